"""A clock that moves only when told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock that moves only when told; for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
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
