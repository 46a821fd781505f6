"""Small twins: a clock that moves only when told, and the Teller's place without a thread."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, outcome_of


class FakeClock:
    """A clock for tests and simulations."""

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


class TellerInPlace:
    """Takes a turn at once: what it changes is there when `start` returns."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._done: list[TurnOutcome] = []

    def start(self, job: TurnJob) -> None:
        self._done.append(outcome_of(self._context, job))

    def outcomes(self) -> list[TurnOutcome]:
        found, self._done = self._done, []
        return found
