"""The Teller's place without a thread: what a turn changes is there when `start` returns."""

from __future__ import annotations

from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, outcome_of


class TellerInPlace:
    """The Teller's seat without a thread: takes the turn at once; for tests and simulations."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._done: list[TurnOutcome] = []

    def start(self, job: TurnJob) -> None:
        self._done.append(outcome_of(self._context, job))

    def outcomes(self) -> list[TurnOutcome]:
        found, self._done = self._done, []
        return found
