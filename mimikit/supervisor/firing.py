"""Fires due triggers: a run's id follows from trigger and slot, so a slot never has two runs.

Due times stand in a heap; a tick looks at its top only. Conditions come later.
"""

from __future__ import annotations

import heapq
from datetime import datetime

from mimikit.errors import StorageError
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Schedule, Task, Trigger, TriggerState, time_text
from mimikit.supervisor.books import Books
from mimikit.tasks import queue
from mimikit.triggers import registry, schedule


class Firing:
    """The heap of due times over the definitions on disk."""

    def __init__(self, books: Books) -> None:
        """Empty until `load`."""
        self._books = books
        self._heap: list[tuple[datetime, str]] = []
        self._due: dict[str, datetime] = {}
        self._reported: dict[str, str] = {}
        self._looked_at: datetime | None = None

    def load(self, now: datetime) -> None:
        """Read every definition."""
        for trigger_id in registry.ids(self._books.files):
            self.refresh(trigger_id, now)

    def refresh(self, trigger_id: str, now: datetime) -> None:
        """Look at one definition again: made, edited, paused or gone."""
        trigger, broken = registry.active(self._books.files, trigger_id)
        self._report(trigger_id, broken)
        if trigger is None or not trigger.enabled or schedule.unsupported(trigger):
            self._due.pop(trigger_id, None)
            return
        before = registry.state(self._books.files, trigger_id)
        state = _known(before, trigger) if broken is None else before
        due = _next(trigger, state, now)
        if state.next_run_at is None:
            state = state.but(next_run_at=due)
        if state != before:
            registry.save_state(self._books.files, trigger_id, state)
            self._books.feed.tell("trigger", id=trigger_id)
        if due is None:
            self._due.pop(trigger_id, None)
        elif self._due.get(trigger_id) != due:
            self._due[trigger_id] = due
            heapq.heappush(self._heap, (due, trigger_id))

    def next_due(self) -> datetime | None:
        """The earliest due time."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def fire_due(self, now: datetime) -> bool:
        """Fire everything that is due; gives whether anything was."""
        fired = False
        if self._looked_at is not None and now < self._looked_at:
            self.load(now)  # the clock was set back: plans made ahead of it are looked at again
        self._looked_at = now
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            due, trigger_id = heapq.heappop(self._heap)
            self._due.pop(trigger_id, None)
            try:
                self._fire(trigger_id, due, now)
                self.refresh(trigger_id, now)
            except StorageError:
                self._books.triggers_changed(trigger_id)  # its next slot is found by another look
                raise
            self._drop_stale()
            fired = True
        return fired

    def _fire(self, trigger_id: str, slot: datetime, now: datetime) -> None:
        """One slot: its run is published before the state says so.

        Crash: between the two the slot is due again, and its run's id is taken.
        """
        books = self._books
        trigger, _ = registry.active(books.files, trigger_id)
        if trigger is None or not trigger.enabled:
            return
        state = registry.state(books.files, trigger_id)
        facts: dict[str, object] = {"slot": time_text(slot)}
        task_id = state.last_task_id
        if trigger.overlap == "skip" and self._still_at_it(state):
            facts |= {"state": "skipped", "reason": "the run before is not over"}
        else:
            task = make_run(trigger, time_text(slot), now)
            queue.submit(books.files, task)
            task_id = task.id
            facts |= {"state": "ran", "taskId": task.id}
            books.feed.tell("task", id=task.id, seat=task.role)
        missed = _missed(trigger, slot, now)
        books.ledger.write("slot", trigger_id, now, missed=missed or None, **facts)
        ran = facts["state"] == "ran"
        registry.save_state(
            books.files,
            trigger_id,
            state.but(
                last_run_at=now,
                last_triggered_at=now if ran else state.last_triggered_at,
                next_run_at=schedule.next_run_at(
                    trigger.schedule or Schedule(),
                    now=now,
                    planned=slot,
                    last_run_at=now,
                    created_at=trigger.created_at,
                ),
                fire_count=state.fire_count + ran,
                last_task_id=task_id,
                last_verdict=str(facts["state"]),
            ),
        )
        books.feed.tell("trigger", id=trigger_id)

    def _still_at_it(self, state: TriggerState) -> bool:
        if state.last_task_id is None or self._books.ledger.end_of(state.last_task_id):
            return False
        return queue.find(self._books.files, state.last_task_id) is not None

    def _drop_stale(self) -> None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)

    def _report(self, trigger_id: str, broken: str | None) -> None:
        if broken and self._reported.get(trigger_id) != broken:
            self._books.log.write("audit", "trigger_broken", triggerId=trigger_id, reason=broken)
        if broken:
            self._reported[trigger_id] = broken
        else:
            self._reported.pop(trigger_id, None)


def make_run(trigger: Trigger, slot: str, now: datetime) -> Task:
    """The run of a trigger for one slot; the same slot always gives the same id."""
    return Task(
        id=derived_id("task", trigger.id, slot),
        role=trigger.role,
        profile=trigger.profile,
        title=trigger.title,
        prompt=trigger.prompt,
        priority=trigger.priority,
        created_at=now,
        max_attempts=trigger.max_attempts,
        timeout=trigger.timeout,
        trace_id=trigger.trace_id,
        parent_task_id=trigger.parent_task_id,
        source_trigger_id=trigger.id,
        triggered_at=now,
        notify=trigger.notify,
        origin="trigger",
        trigger_origin=trigger.origin,
    )


def _known(state: TriggerState, trigger: Trigger) -> TriggerState:
    """The state once this definition is known to be good; a new schedule is planned anew."""
    definition = trigger.to_dict()
    if state.last_good == definition:
        return state
    old = state.last_good or {}
    planned = state.next_run_at if old.get("schedule") == definition["schedule"] else None
    return state.but(last_good=definition, next_run_at=planned)


def _next(trigger: Trigger, state: TriggerState, now: datetime) -> datetime | None:
    return schedule.slot_to_wait_for(
        trigger.schedule or Schedule(),
        now=now,
        recorded=state.next_run_at,
        last_run_at=state.last_run_at,
        created_at=trigger.created_at,
    )


def _missed(trigger: Trigger, slot: datetime, now: datetime) -> int:
    """Slots that passed unfired since `slot`; they are told, not made up."""
    interval = trigger.schedule.interval if trigger.schedule else None
    return int((now - slot).total_seconds() // interval) if interval else 0
