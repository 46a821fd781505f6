"""What conditions are judged by: the ledger's ends, the workspace's files, a model's answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from mimikit.protocol import paths
from mimikit.protocol.models import TriggerState
from mimikit.supervisor.store import Books
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.triggers.conditions import Standing
from mimikit.triggers.patterns import Pattern, Seen
from mimikit.triggers.workspace import Workspace


class FactsNow:
    """The facts for one look at one trigger."""

    def __init__(
        self,
        books: Books,
        workspace: Workspace,
        state: TriggerState,
        now: datetime,
        *,
        confined: bool = False,
    ) -> None:
        """An answer of a model counts for one interval of asking.

        `confined`: nothing is known of files outside of the workspace.
        """
        self._books, self._workspace, self._state, self._now = books, workspace, state, now
        self._confined = confined

    def results(self, subject: str, status: Literal["done", "failed"]) -> Sequence[str]:
        """The tasks that ended so, oldest first: the one named, its retries, a trigger's runs."""
        ledger = self._books.ledger
        ended = ((task_id, ledger.end_of(task_id)) for task_id in ledger.results_of(subject))
        return [task_id for task_id, end in ended if end is not None and end.status == status]

    def standing(self, subject: str) -> Standing:
        """How it is with a task or trigger now."""
        books = self._books
        if books.files.exists(paths.trigger(subject)):
            blocked = registry.state(books.files, subject).blocked_by
            return "blocked" if blocked else "awaited"
        if books.ledger.at_it(subject):
            return "live"
        if results := books.ledger.results_of(subject):
            end = books.ledger.end_of(results[-1])
            return end.status if end else "live"
        known = any(queue.where(books.files, seat, subject) for seat in paths.SEATS)
        return "live" if known else "unknown"

    def files(self, pattern: Pattern) -> Seen | None:
        """The files that are meant; None when they are too many."""
        return self._workspace.look(pattern) if self._may_look(pattern) else {}

    def exists(self, pattern: Pattern) -> bool | None:
        """Whether anything that is meant exists; None when that is too much to look through."""
        return self._workspace.exists(pattern) if self._may_look(pattern) else False

    def answer(self, path: str) -> bool | None:
        """What a model said of this node a short time ago; None when it was not asked."""
        found = self._state.answers.get(path)
        counts = timedelta(seconds=self._books.settings.triggers.llm_eval_interval_s)
        if found is None or not timedelta() <= self._now - found.at < counts:
            return None
        return found.result

    def _may_look(self, pattern: Pattern) -> bool:
        return not self._confined or self._workspace.is_inside(pattern)
