"""Parsing of durations and past times."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.cli import terminal
from mimikit.cli.options import parse_duration, parse_past
from mimikit.errors import BadInput

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("2h", 7200),
        ("1h 30m", 5400),
        ("2 days, 3 hours", 183600),
        ("1.5h", 5400),
        ("45", 45),
        (" 10 Minutes ", 600),
    ],
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "zz", "10x", "m", "-5m", "1h-3m", "0", "0s", "1e9", "10m!", "1 h m"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match=r"expected a duration such as 90s, 10m, 2h or 1d, got"):
        parse_duration(text)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert parse_duration(text) > 0


@given(st.integers(min_value=1, max_value=10**8))
def test_a_formatted_duration_is_parsed_again(seconds: int) -> None:
    error = abs(parse_duration(terminal.span(seconds)) - seconds)
    assert error < seconds * 0.05


# ---- times of the past

NOW = datetime(2026, 1, 28, 1, 30, tzinfo=UTC)  # 09:30 in Shanghai


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-01-28", datetime(2026, 1, 28, tzinfo=SHANGHAI)),
        ("2026-01-28T09:30", datetime(2026, 1, 28, 9, 30, tzinfo=SHANGHAI)),
        ("2026-01-28t09:30z", datetime(2026, 1, 28, 9, 30, tzinfo=UTC)),
        ("2025-12", datetime(2025, 12, 1, tzinfo=SHANGHAI)),
        ("Yesterday", datetime(2026, 1, 27, tzinfo=SHANGHAI)),
        ("yesterday at 18:05", datetime(2026, 1, 27, 18, 5, tzinfo=SHANGHAI)),
        ("7d", NOW - timedelta(days=7)),
        ("2 hours ago", NOW - timedelta(hours=2)),
    ],
)
def test_a_time_of_the_past_is_read(text: str, meant: datetime) -> None:
    assert parse_past(text, NOW, SHANGHAI) == meant


@pytest.mark.parametrize(
    "text",
    ["", "soon", "tomorrow", "7", "2026-13", "2026-02-30", "yesterday 25:00", "0001-01-01",
     "9999-12-31", "99999d", "99999999999d", "1e9", "-7d", "x" * 5000],
)  # fmt: skip
def test_an_invalid_past_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="expected a day or time such as 2026-01-28"):
        parse_past(text, NOW, SHANGHAI)
