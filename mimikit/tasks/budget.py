"""Whether a run may start within the token caps. Pure: it knows no clock and no file.

A run starts while the sum of its window (day, trigger's day, task) is below the cap; nothing is
reserved. Units: tokens, of prompts (cached ones, too) and answers together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from mimikit.config import TokenCapSettings

HeldFor: TypeAlias = Literal["day", "trigger", "task"]


@dataclass(frozen=True, slots=True)
class BudgetHold:
    """Why a run may not start. Tokens."""

    held_for: HeldFor
    cap: int
    used: int
    until: datetime | None = None
    """When its window ends; None: never, as a task's tokens never come back."""


@dataclass(frozen=True, slots=True)
class WindowSums:
    """What the windows of a run have used; None: it has no such window."""

    day: int
    trigger: int | None = None
    task: int | None = None


def day_of(now: datetime, zone: ZoneInfo) -> date:
    """The user's day."""
    return now.astimezone(zone).date()


def day_end(now: datetime, zone: ZoneInfo) -> datetime:
    """When the user's day is over: the first moment of the next one that there is."""
    begin = datetime.combine(day_of(now, zone) + timedelta(days=1), time(), zone)
    return begin.astimezone(UTC)


def hold_for(
    caps: TokenCapSettings, used: WindowSums, now: datetime, zone: ZoneInfo
) -> BudgetHold | None:
    """Why a run may not start now; None when it may."""
    end = day_end(now, zone)
    windows: tuple[tuple[HeldFor, int | None, int | None, datetime | None], ...] = (
        ("task", caps.per_task_tokens, used.task, None),
        ("day", caps.daily_tokens, used.day, end),
        ("trigger", caps.per_trigger_daily_tokens, used.trigger, end),
    )
    for held_for, cap, tokens, until in windows:
        if cap is not None and tokens is not None and tokens >= cap:
            return BudgetHold(held_for, cap, tokens, until)
    return None
