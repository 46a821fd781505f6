"""For the trigger scheduler: the index of due triggers, and the facts for a decision."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from mimikit import permission
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import Trigger, TriggerState
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.triggers.conditions import Standing
from mimikit.triggers.patterns import Pattern, Seen
from mimikit.triggers.workspace import TriggerWatch, Workspace


class TriggerIndex:
    """Which triggers to evaluate when: a heap of due times, and listeners by event.

    In memory only, rebuilt at each start. The cost of a tick depends only on what is due.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._due: dict[str, datetime] = {}
        self._listeners: defaultdict[str, set[str]] = defaultdict(set)
        self._subjects: dict[str, frozenset[str]] = {}
        self._waiting: defaultdict[str, set[str]] = defaultdict(set)
        """Run → triggers whose next firing waits for its end."""
        self._soon: set[str] = set()

    def set_due(self, trigger_id: str, due: datetime | None) -> None:
        if due is None:
            self._due.pop(trigger_id, None)
        elif self._due.get(trigger_id) != due:
            self._due[trigger_id] = due
            heapq.heappush(self._heap, (due, trigger_id))

    def mark_due(self, trigger_id: str) -> None:
        self._soon.add(trigger_id)

    def wait_for(self, task_id: str, trigger_id: str) -> None:
        self._waiting[task_id].add(trigger_id)

    def listen(self, trigger_id: str, subjects: frozenset[str] | None) -> None:
        """Evaluate a trigger at each event of these tasks or triggers."""
        for subject in self._subjects.pop(trigger_id, frozenset()):
            self._listeners[subject].discard(trigger_id)
            if not self._listeners[subject]:
                del self._listeners[subject]
        if subjects is not None:
            self._subjects[trigger_id] = subjects
            for subject in subjects:
                self._listeners[subject].add(trigger_id)

    def listens(self, trigger_id: str) -> bool:
        return trigger_id in self._subjects

    def listeners(self, subject: str) -> set[str]:
        return self._listeners.get(subject, set())

    def notify(self, subject: str) -> None:
        self._soon |= self._listeners.get(subject, set())
        self._soon |= self._waiting.pop(subject, set())

    def forget(self, trigger_id: str) -> None:
        self.listen(trigger_id, None)
        self.set_due(trigger_id, None)
        self._soon.discard(trigger_id)
        self.notify(trigger_id)

    def next_due(self) -> datetime | None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: datetime) -> str | None:
        due = self.next_due()
        if due is not None and due <= now:
            _, trigger_id = heapq.heappop(self._heap)
            del self._due[trigger_id]
            return trigger_id
        return self._soon.pop() if self._soon else None

    def planned(self) -> list[tuple[str, datetime]]:
        return list(self._due.items())


class FactReader:
    """The facts for one decision about one trigger; `TriggerFacts` documents them."""

    def __init__(
        self,
        store: Store,
        workspace: Workspace,
        watch: TriggerWatch,
        trigger: Trigger,
        state: TriggerState,
        now: datetime,
        change_runs: Mapping[str, tuple[str, datetime]],
    ) -> None:
        """`change_runs`: trigger → its newest run fired by changes of files, and when."""
        self._change_runs = change_runs
        self._store, self._workspace, self._watch = store, workspace, watch
        self._trigger, self._state, self._now = trigger, state, now
        self._confined = permission.is_confined(trigger.origin)
        self.zone = store.settings.zone
        self.answer_ttl = timedelta(seconds=store.settings.triggers.llm_eval_interval_s)

    def results(self, subject: str, status: Literal["done", "failed"]) -> Sequence[str]:
        ledger = self._store.ledger
        ended = ((task_id, ledger.end_of(task_id)) for task_id in ledger.results_of(subject))
        return [task_id for task_id, end in ended if end is not None and end.status == status]

    def standing(self, subject: str) -> Standing:
        store = self._store
        if store.files.exists(paths.trigger(subject)):
            blocked = registry.state(store.files, subject).blocked_by
            return "blocked" if blocked else "awaited"
        if store.ledger.running_for(subject):
            return "live"
        if results := store.ledger.results_of(subject):
            end = store.ledger.end_of(results[-1])
            return end.status if end else "live"
        known = any(queue.where(store.files, seat, subject) for seat in paths.QUEUES)
        return "live" if known else "unknown"

    def files(self, pattern: Pattern) -> Seen | None:
        return self._workspace.list_files(pattern) if self._may_look(pattern) else {}

    def exists(self, pattern: Pattern) -> bool | None:
        return self._workspace.exists(pattern) if self._may_look(pattern) else False

    def rests(self, entry: Sequence[int], settle: float | None) -> bool:
        rest_s = self._store.settings.triggers.settle_s if settle is None else settle
        age_s = self._now.timestamp() - entry[0] / 1e9
        return not -1 < age_s < rest_s  # a time to come tells nothing

    def answer(self, path: str) -> bool | None:
        found = self._state.answers.get(path)
        if found is None or not timedelta() <= self._now - found.at < self.answer_ttl:
            return None
        return found.result

    def window_of(self, run_id: str) -> tuple[datetime, datetime] | None:
        path = paths.result("worker", run_id)
        found = self._store.files.load(path, TaskResult) if self._trigger.role == "worker" else None
        return (found.started_at, found.completed_at) if found else None

    def fires_behind(self, files: Seen) -> list[datetime]:
        found: list[datetime] = []
        for trigger_id, (run_id, fired_at) in self._change_runs.items():
            end = self._store.ledger.end_of(run_id)
            until = end.completed_at if end else self._now
            times = [fired_at.timestamp(), until.timestamp() + 1]
            if trigger_id != self._trigger.id and any(
                times[0] <= entry[0] / 1e9 <= times[1] for entry in files.values()
            ):
                found += registry.state(self._store.files, trigger_id).change_fires
        return found

    def is_live(self, task_id: str) -> bool:
        store = self._store
        return not store.ledger.end_of(task_id) and queue.find(store.files, task_id) is not None

    def was_handled(self, slot: str, run: Task) -> bool:
        if self._store.ledger.newest_slot(self._trigger.id) == slot:
            return True
        return queue.where(self._store.files, run.role, run.id) is not None

    def trace_of(self, task_id: str) -> str | None:
        end = self._store.ledger.end_of(task_id)
        return end.trace_id if end is not None else None

    def needs_polling(self) -> bool:
        return self._watch.needs_polling(self._trigger.id)

    def _may_look(self, pattern: Pattern) -> bool:
        """A trigger created by a model must not see files outside the workspace."""
        return not self._confined or self._workspace.is_inside(pattern)
