"""What conditions are judged by: the ledger's ends, the workspace's files, a model's answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from mimikit import permission
from mimikit.protocol import paths
from mimikit.protocol.models import Task, Trigger, TriggerState
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.triggers.conditions import Standing
from mimikit.triggers.patterns import Pattern, Seen
from mimikit.triggers.workspace import Watch, Workspace


class FactsNow:
    """The facts for one look at one trigger. See `TriggerFacts` for what they mean."""

    def __init__(
        self,
        books: Store,
        workspace: Workspace,
        watch: Watch,
        trigger: Trigger,
        state: TriggerState,
        now: datetime,
    ) -> None:
        self._books, self._workspace, self._watch = books, workspace, watch
        self._trigger, self._state, self._now = trigger, state, now
        self._confined = permission.is_confined(trigger.origin)
        self.zone = books.settings.zone
        self.answers_last = timedelta(seconds=books.settings.triggers.llm_eval_interval_s)

    def results(self, subject: str, status: Literal["done", "failed"]) -> Sequence[str]:
        ledger = self._books.ledger
        ended = ((task_id, ledger.end_of(task_id)) for task_id in ledger.results_of(subject))
        return [task_id for task_id, end in ended if end is not None and end.status == status]

    def standing(self, subject: str) -> Standing:
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
        return self._workspace.look(pattern) if self._may_look(pattern) else {}

    def exists(self, pattern: Pattern) -> bool | None:
        return self._workspace.exists(pattern) if self._may_look(pattern) else False

    def answer(self, path: str) -> bool | None:
        found = self._state.answers.get(path)
        if found is None or not timedelta() <= self._now - found.at < self.answers_last:
            return None
        return found.result

    def is_live(self, task_id: str) -> bool:
        if self._books.ledger.end_of(task_id):
            return False
        return queue.find(self._books.files, task_id) is not None

    def is_settled(self, slot: str, run: Task) -> bool:
        if self._books.ledger.newest_slot(self._trigger.id) == slot:
            return True
        return queue.where(self._books.files, run.role, run.id) is not None

    def trace_of(self, task_id: str) -> str | None:
        end = self._books.ledger.end_of(task_id)
        return end.trace_id if end is not None else None

    def is_blind(self) -> bool:
        return self._watch.is_blind(self._trigger.id)

    def _may_look(self, pattern: Pattern) -> bool:
        """A trigger that a model made learns nothing of files outside of the workspace."""
        return not self._confined or self._workspace.is_inside(pattern)
