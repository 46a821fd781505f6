"""The only place that asks the machine for the time, and that notices when its clock leaps.

Deciders take `now`; whoever needs the time is given a Clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

LEAP = timedelta(minutes=1)
"""A wall clock that moves by less against the steady one is only being kept right."""
A_DAY = CONFIRMED_AFTER = timedelta(days=1)
"""So long a clock that leapt must go on from there before anything is removed on its word."""
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Tells wall time and a steady time."""

    def now(self) -> datetime:
        """Wall time, aware, UTC, cut to milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; for deadlines."""
        ...

    def uptime(self) -> float:
        """Such seconds that go on while the machine sleeps: a sleep is told from a leap by them."""
        ...


class SystemClock:
    def now(self) -> datetime:
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> float:
        return time.clock_gettime(_BOOT_CLOCK)


class ClockWatch:
    """Notices when the wall clock was set, or leapt, while this process ran."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._booted_at = self._look()

    def leap(self) -> timedelta:
        """By how much it has leapt since `settle`; nothing where that is less than LEAP."""
        by = self._look() - self._booted_at
        return by if abs(by) >= LEAP else timedelta()

    def settle(self) -> None:
        """What followed from the leap is done: go on from the time it shows."""
        self._booted_at = self._look()

    def _look(self) -> datetime:
        """When the machine was started, by its clock: moves only where that does."""
        while True:
            up_s, now = self._clock.uptime(), self._clock.now()
            if self._clock.uptime() - up_s < 1:  # else the process stood still in between
                return now - timedelta(seconds=up_s)


def leap_at_start(newest: datetime | None, now: datetime) -> timedelta:
    """By how much the clock may have leapt while nobody looked. Pure.

    newest: when the newest record was written. Back is certain; ahead by less than a day is taken
    for time that nobody ran.
    """
    by = now - newest if newest is not None else timedelta()
    return by if by <= -LEAP or by >= CONFIRMED_AFTER else timedelta()
