"""Spans of time are read and written as people do."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.cli.durations import ago, at, parse_duration, short, words
from mimikit.errors import BadInput

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("90s", 90),
        ("2h", 7200),
        ("1d", 86400),
        ("1w", 604800),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2 days, 3 hours", 183600),
        ("1.5h", 5400),
        ("0.5s", 0.5),
        ("45", 45),
        (" 10 Minutes ", 600),
    ],
)
def test_what_people_write_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "zz", "10x", "m", "-5m", "1h-3m", "0", "0s", "1e9", "１０m", "10m!", "1 h m"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match=r"expected a duration such as 90s, 10m, 2h or 1d, got"):
        parse_duration(text)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert parse_duration(text) > 0


@given(st.integers(min_value=1, max_value=10**8))
def test_what_is_written_is_read_again_to_its_two_greatest_units(seconds: int) -> None:
    error = abs(parse_duration(words(seconds)) - seconds)
    assert error < seconds * 0.05


@pytest.mark.parametrize(
    ("seconds", "long", "brief"),
    [
        (0, "under 0.1 seconds", "0s"),
        (0.42, "0.4 seconds", "0.4s"),
        (1.0, "1 second", "1s"),
        (1.04, "1 second", "1s"),
        (1.26, "1.3 seconds", "1.3s"),
        (59.7, "1 minute", "1m"),
        (61, "1 minute 1 second", "1m 1s"),
        (3600, "1 hour", "1h"),
        (3605, "1 hour", "1h"),
        (93784, "1 day 2 hours", "1d 2h"),
        (-3, "under 0.1 seconds", "0s"),
    ],
)
def test_a_span_is_told_by_its_two_greatest_units(seconds: float, long: str, brief: str) -> None:
    assert (words(seconds), short(seconds)) == (long, brief)


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
    assert ago(NOW - timedelta(seconds=seconds), NOW) == told


def test_a_moment_is_told_in_local_time_with_its_day_unless_today() -> None:
    zone = ZoneInfo("Asia/Shanghai")
    assert at(NOW - timedelta(hours=1), NOW, zone) == "16:00:00"
    assert at(NOW - timedelta(hours=20), NOW, zone) == "2026-11-30 21:00"
