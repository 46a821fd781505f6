"""When an item of the backlog is due, as it stands in the list."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory import due
from mimikit.memory.notes import backlog_items, changed_backlog
from mimikit.protocol.models import END_OF_TIME, FIRST_TIME

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("item", "name", "at"),
    [
        ("call mum (due 2026-12-01 09:00)", "call mum", "2026-12-01 09:00"),
        ("call mum (due: 2026-12-1 9:05)", "call mum", "2026-12-01 09:05"),
        ("call mum (Due 2026-12-01)", "call mum", "2026-12-01 09:00"),
        ("call mum (due 2026-12-01T23:59)", "call mum", "2026-12-01 23:59"),
        ("交报告（截止 2026-12-01 9:00）", "交报告", "2026-12-01 09:00"),
        ("call mum (due tomorrow)", "call mum (due tomorrow)", None),
        ("call mum (due 2026-13-01)", "call mum (due 2026-13-01)", None),
        ("call mum (due 2026-12-01 25:00)", "call mum (due 2026-12-01 25:00)", None),
        ("call mum (due 0202-12-01)", "call mum (due 0202-12-01)", None),
        ("call mum (due 1970-12-31)", "call mum (due 1970-12-31)", None),
        ("call mum (due 2199-01-01)", "call mum (due 2199-01-01)", None),
        ("call mum (due 9999-12-31 23:00)", "call mum (due 9999-12-31 23:00)", None),
        ("(due 2026-12-01)", "(due 2026-12-01)", None),
        ("(due 2026-12-01) call mum", "(due 2026-12-01) call mum", None),
    ],
)
def test_a_date_at_the_end_is_when_it_is_due(item: str, name: str, at: str | None) -> None:
    assert due.split(item) == (name, at)


def test_it_is_the_workspaces_time_and_never_before_the_moment() -> None:
    assert due.instant("2026-12-01 09:00", SHANGHAI) == datetime(2026, 12, 1, 1, 0, tzinfo=UTC)
    for second, text in ((0, "2026-12-01 09:00"), (1, "2026-12-01 09:01")):
        assert due.text_of(datetime(2026, 12, 1, 1, 0, second, tzinfo=UTC), SHANGHAI) == text


@pytest.mark.parametrize("year", [1970, 2199, 2200])
def test_a_time_that_the_list_would_not_know_again_is_none(year: int) -> None:
    assert due.text_of(datetime(year, 6, 1, tzinfo=UTC), SHANGHAI) is None


@given(
    st.datetimes(),
    st.sampled_from(["Asia/Shanghai", "America/New_York", "Pacific/Kiritimati", "Etc/GMT+12"]),
)
def test_whatever_time_stands_there_it_is_one_that_triggers_have(at: datetime, zone: str) -> None:
    name, found = due.split(f"call mum (due {at.year:04}-{at.month}-{at.day} {at:%H:%M})")
    if found is None:
        assert "due" in name
        assert not 1971 <= at.year < 2199
    else:
        assert FIRST_TIME <= due.instant(found, ZoneInfo(zone)) < END_OF_TIME


FILE = "# Mine\r\n- [ ] call mum <!-- b-1 -->\r\n* [x] cook (due 2026-01-01) <!-- b-2 -->\r\n"


def test_a_date_is_set_changed_and_taken_away_and_the_line_stays_the_users() -> None:
    one = changed_backlog(FILE, "due", "call mum (due 2026-12-01 09:00)")
    assert "- [ ] call mum (due 2026-12-01 09:00) <!-- b-1 -->\r\n" in one
    two = changed_backlog(one, "due", "call mum (due 2026-12-02 10:00)")
    assert "- [ ] call mum (due 2026-12-02 10:00) <!-- b-1 -->\r\n" in two
    assert changed_backlog(two, "due", "call mum") == FILE


def test_an_item_keeps_its_name_whatever_its_date() -> None:
    dated = changed_backlog("", "add", "call mum (due 2026-12-01 09:00)")
    assert dated == "- [ ] call mum (due 2026-12-01 09:00)\n"
    assert changed_backlog(dated, "add", "call mum") == dated
    assert changed_backlog(dated, "done", "call mum") == dated.replace("[ ]", "[x]")
    assert changed_backlog(dated, "remove", "call mum (due 2020-01-01)") == ""
    later = changed_backlog(dated, "add", "call mum (due 2026-12-03 09:00)")
    assert [(it.text, it.due) for it in backlog_items(later)] == [("call mum", "2026-12-03 09:00")]


names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
times = st.builds(
    "{:%Y-%m-%d} {:02}:{:02}".format,
    st.dates(date(1990, 1, 1), date(2100, 1, 1)),
    st.integers(0, 23),
    st.integers(0, 59),
)


@given(names, times, times)
def test_what_is_set_is_read_again(name: str, first: str, second: str) -> None:
    if due.split(name).due is not None or "<!--" in name:
        return
    dated = due.with_due(name, first)
    assert due.split(dated) == (name, first)
    assert due.split(due.with_due(dated, second)) == (name, second)
    assert due.with_due(dated, None) == name
