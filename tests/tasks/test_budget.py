"""A run starts while its window is below the cap; a day is one of the user's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.config import TokenCapSettings
from mimikit.tasks.usage import BudgetHold, HeldFor, day_end, day_of, hold_for

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Berlin")
MIDNIGHT = datetime(2026, 11, 23, 23, 0, tzinfo=UTC)
CAPS = TokenCapSettings(daily_tokens=1000, per_task_tokens=500, per_trigger_daily_tokens=200)


def hold(*used: int | None, caps: TokenCapSettings = CAPS) -> BudgetHold | None:
    """Of the tokens of the day, the trigger and the task."""
    windows: tuple[HeldFor, ...] = ("day", "trigger", "task")
    return hold_for(caps, dict(zip(windows, used, strict=False)), NOON, ZONE)


def test_without_a_cap_every_run_starts() -> None:
    assert hold(10**9, 10**9, 10**9, caps=TokenCapSettings()) is None


@pytest.mark.parametrize(
    ("below", "reached", "expected"),
    [
        ((999,), (1000,), BudgetHold("day", 1000, 1000, MIDNIGHT)),
        ((0, 199), (0, 201), BudgetHold("trigger", 200, 201, MIDNIGHT)),
        ((0, None, 499), (0, None, 500), BudgetHold("task", 500, 500, None)),
    ],
    ids=["day", "trigger", "task"],
)
def test_a_run_starts_while_its_window_is_below_the_cap_and_waits_from_then_on(
    below: tuple[int | None, ...], reached: tuple[int | None, ...], expected: BudgetHold
) -> None:
    assert hold(*below) is None
    assert hold(*reached) == expected


def test_a_task_without_tokens_ends_rather_than_waits_for_the_next_day() -> None:
    found = hold(1000, 200, 500)
    assert found is not None
    assert (found.held_for, found.until) == ("task", None)


@pytest.mark.parametrize(
    ("zone", "now", "end"),
    [
        ("Europe/Berlin", "2026-03-29T00:30+01:00", "2026-03-29T22:00Z"),  # of 23 hours
        ("Europe/Berlin", "2026-10-25T00:30+02:00", "2026-10-25T23:00Z"),  # of 25
        ("Asia/Shanghai", "2026-11-23T23:59+08:00", "2026-11-23T16:00Z"),
        ("Asia/Beirut", "2026-03-28T12:00+02:00", "2026-03-28T22:00Z"),  # no midnight comes then
        ("Pacific/Apia", "2011-12-29T12:00-10:00", "2011-12-30T10:00Z"),  # no next day
    ],
)
def test_the_day_ends_where_the_user_s_next_one_begins(zone: str, now: str, end: str) -> None:
    assert day_end(datetime.fromisoformat(now), ZoneInfo(zone)) == datetime.fromisoformat(end)


@given(
    st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Africa/Cairo"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001 - UTC is added
)
def test_a_moment_before_its_end_it_is_the_same_day_and_then_another(
    key: str, naive: datetime
) -> None:
    zone, now = ZoneInfo(key), naive.replace(tzinfo=UTC)
    end = day_end(now, zone)
    assert end > now
    assert day_of(end, zone) > day_of(now, zone)
    assert day_of(end - timedelta(milliseconds=1), zone) == day_of(now, zone)
