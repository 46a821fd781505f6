"""The only place that asks the machine for the time.

Deciders take `now`; whoever needs the time is given a Clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells wall time and a steady time."""

    def now(self) -> datetime:
        """Wall time, aware, UTC, cut to milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; for deadlines."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Wall time, aware, UTC, cut to milliseconds (the precision of every record)."""
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()


class FakeClock:
    """A clock that moves only when told; for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        """Start at `start` (aware)."""
        self._now = start.astimezone(UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """The time it was last set to."""
        return self._now

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass for both times."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def jump(self, to: datetime) -> None:
        """Set the wall clock, as a user or NTP would; steady time is untouched."""
        self._now = to.astimezone(UTC)
