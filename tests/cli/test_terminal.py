"""Text fits its columns, and escape sequences are removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.cli import render, terminal
from mimikit.cli.doctor import DoctorReport, broken, warning
from mimikit.views.backlog import BacklogItem, BacklogView

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("你好", 4), ("e\u0301", 1), (click.style("red", fg="red"), 3), ("", 0)],
)
def test_width_counts_columns(text: str, columns: int) -> None:
    assert terminal.width(text) == columns


@given(st.text(max_size=80), st.integers(min_value=1, max_value=80))
def test_clipped_text_fits(text: str, columns: int) -> None:
    assert terminal.width(terminal.clip(text, columns)) <= columns


def test_a_colour_is_never_cut_in_half() -> None:
    assert terminal.clip(click.style("colourful", fg="red"), 5) == "colo…"


def test_columns_stand_under_each_other_in_chinese_too() -> None:
    lines = terminal.aligned([("ID", "WHAT"), ("a", "买牛奶"), ("bcd", "x")])
    assert lines == ["ID   WHAT", "a    买牛奶", "bcd  x"]


@pytest.mark.parametrize("show", [terminal.one_line, terminal.block])
def test_escapes_of_a_program_do_not_reach_the_terminal(show: object) -> None:
    assert callable(show)
    assert not {"\x1b", "\x9b"} & set(str(show("\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b2J")))


# ---- times ----


@pytest.mark.parametrize(
    ("seconds", "long", "brief"),
    [
        (0, "under 0.1 seconds", "0s"),
        (0.42, "0.4 seconds", "0.4s"),
        (1.26, "1.3 seconds", "1.3s"),
        (59.7, "1 minute", "1m"),
        (61, "1 minute 1 second", "1m 1s"),
        (3605, "1 hour", "1h"),
        (93784, "1 day 2 hours", "1d 2h"),
    ],
)
def test_a_span_is_told_by_its_two_greatest_units(seconds: float, long: str, brief: str) -> None:
    assert (terminal.span(seconds), terminal.short_span(seconds)) == (long, brief)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "just now"),
        (5, "5 seconds ago"),
        (125, "2 minutes ago"),
        (-7300, "in 2 hours"),
        (90000, "1 day ago"),
    ],
)
def test_a_distance_is_told_by_its_greatest_unit(seconds: int, told: str) -> None:
    assert terminal.ago(NOW - timedelta(seconds=seconds), NOW) == told


def test_a_moment_is_told_in_local_time_with_its_day_unless_today() -> None:
    zone = ZoneInfo("Asia/Shanghai")
    assert terminal.moment(NOW - timedelta(hours=1), NOW, zone) == "16:00:00"
    assert terminal.moment(NOW - timedelta(hours=20), NOW, zone) == "2026-11-30 21:00"


# ---- views

CONTEXT = render.RenderContext(datetime(2026, 12, 1, tzinfo=UTC), ZoneInfo("UTC"), empty="Nothing.")
BACKLOG = BacklogView(items=[BacklogItem(number=3, text="买牛奶" * 30, done=False)], hash="h")


@pytest.mark.parametrize("columns", [40, 80])
def test_lines_fit_the_terminal_in_wide_characters_too(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: columns)
    findings = [broken("状态", "磁盘已满" * 30, "mend it " * 20), warning("b", "c")]
    report = DoctorReport(settings=[], findings=findings)
    for view in (BACKLOG, report):
        lines = "\n".join(render.render(view, CONTEXT)).split("\n")
        assert all(terminal.width(click.unstyle(line)) <= columns for line in lines), lines


def test_piped_output_is_not_truncated() -> None:
    _, line = render.render(BACKLOG, CONTEXT)
    assert BACKLOG.items[0].text in line
