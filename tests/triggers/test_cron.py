"""Cron lines in time zones, compared with a check of every minute."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.triggers import schedule
from tests.triggers import naive_cron

ZONES = (
    "America/New_York", "Europe/Berlin", "Asia/Shanghai", "Asia/Kolkata", "Australia/Lord_Howe",
    "Africa/Casablanca", "America/St_Johns", "Pacific/Apia", "Asia/Tehran", "America/Asuncion",
    "Antarctica/Troll", "Europe/Dublin", "Pacific/Chatham", "America/Sao_Paulo", "Asia/Kathmandu",
    "America/Havana", "Asia/Gaza", "Africa/Cairo", "America/Santiago", "Asia/Pyongyang", "UTC",
)  # fmt: skip
# Ten years in which these zones changed their clocks most: Apia lost 30 December 2011 whole.
FIRST, LAST = datetime(2011, 7, 1, tzinfo=UTC), datetime(2021, 7, 1, tzinfo=UTC)


@cache
def zone_of(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def told(line: str, start: datetime, end: datetime, zone: ZoneInfo) -> list[datetime]:
    return list(
        itertools.takewhile(lambda time: time <= end, schedule.cron_times(line, start, zone))
    )


def assert_as_naive(line: str, start: datetime, end: datetime, zone: ZoneInfo) -> None:
    expected = naive_cron.times(line, naive_cron.rows(start, end, zone))
    assert told(line, start, end, zone) == expected, (line, start, end, zone.key)


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    stepped = st.tuples(st.just("*") | span | number.map(str), st.integers(1, high)).map(
        lambda two: f"{two[0]}/{two[1]}"
    )
    term = number.map(str) | span | stepped
    return st.just("*") | term | st.lists(term, min_size=2, max_size=3).map(",".join)


LINES_OF_ALL_KINDS = st.tuples(
    numbers(0, 59),
    numbers(0, 23),
    numbers(1, 31) | st.sampled_from(["*", "*", "L", "LW", "1,L", "13"]),
    st.sampled_from(["*", "*", "*", "2", "JAN-MAR", "*/3", "11,12"]),
    numbers(0, 7) | st.sampled_from(["*", "*", "5L", "1#1", "MON-FRI", "SUN", "6#5", "0L,3#2"]),
).map(" ".join)


@pytest.mark.slow
def test_any_line_in_any_week_of_any_zone(size: int) -> None:
    @settings(max_examples=500 * size)
    @given(
        LINES_OF_ALL_KINDS,
        st.sampled_from(ZONES),
        st.integers(0, 26 * 366 * 86400),
        st.integers(1, 9 * 24),
    )
    def holds(line: str, name: str, second: int, hours: int) -> None:
        try:
            schedule.check_cron(line)
        except BadInput:
            return
        start = FIRST + timedelta(seconds=second)
        assert_as_naive(line, start, start + timedelta(hours=hours), zone_of(name))

    holds()


@pytest.mark.parametrize(
    ("line", "name", "day", "expected"),
    [
        ("30 2 14 3 *", "America/New_York", "2027-03-14", ["03:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["02:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["02:30"]),
        ("30 1,2 1 11 *", "America/New_York", "2026-11-01", ["01:30", "02:30"]),
        (
            "*/30 1 * * *", "America/New_York", "2026-11-01",
            ["01:00", "01:30", "01:00 again", "01:30 again"],
        ),
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-29", []),
    ],
)  # fmt: skip
def test_a_line_passes_a_change_of_the_clocks_as_in_debian_s_cron(
    line: str, name: str, day: str, expected: list[str]
) -> None:
    zone = zone_of(name)
    midnight = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    start, end = midnight - timedelta(hours=14), midnight + timedelta(hours=38)
    found = [time.astimezone(zone) for time in told(line, start, end, zone)]
    shown = [f"{at:%H:%M}{' again' * at.fold}" for at in found if f"{at:%Y-%m-%d}" == day]
    assert shown == expected
    assert_as_naive(line, start, end, zone)


def test_at_the_end_of_the_calendar_the_times_end() -> None:
    for name in ("UTC", "Asia/Shanghai", "America/New_York"):
        late = datetime(9999, 12, 31, 23, 58, tzinfo=UTC)
        assert len(list(schedule.cron_times("* * * * *", late, zone_of(name)))) <= 1
        assert list(schedule.cron_times("0 0 29 2 *", late, zone_of(name))) == []


@pytest.mark.parametrize(
    "line",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *",
        "* * * 13 *", "* * * * 8", "0 0 30 2 *", "0 0 31 4,6 *", "5-1 * * * *", "*/0 * * * *",
        "a * * * *", "-1 * * * *", "1, * * * *", "* * * * L", "* * * * 1#6", "* * * * ²L",
        "@daily", "0 9 * * 1-5 ; rm", "1/2/3 * * * *", "* * LL * *", "* * L-3 * *", "* * 15W * *",
        f"{','.join(['1'] * 200)} * * * *", "0 0 */31 2 1#5", "٣ * * * *", "* * * * 1#",
        "1- * * * *", "9-9/0 * * * *",
    ],
)  # fmt: skip
def test_a_line_that_can_not_be_used_is_refused_in_words(line: str) -> None:
    with pytest.raises(BadInput) as caught:
        schedule.check_cron(line)
    assert str(caught.value).startswith("cron: ")
    assert caught.value.field == "schedule.cron"
    assert len(str(caught.value)) < 300


@settings(max_examples=300, deadline=1000)
@given(
    st.text(alphabet="0123456789*/,-#L WSUNJAé²\t\n", max_size=40)
    | st.lists(
        st.text(alphabet="0123459*/,-#LW", min_size=1, max_size=6), min_size=5, max_size=5
    ).map(" ".join)
)
def test_no_text_raises_anything_else_and_what_passes_has_times(line: str) -> None:
    try:
        schedule.check_cron(line)
    except BadInput:
        return
    start = datetime(2026, 11, 22, tzinfo=UTC)
    first, second = itertools.islice(schedule.cron_times(line, start, zone_of("Asia/Tehran")), 2)
    assert start < first < second
