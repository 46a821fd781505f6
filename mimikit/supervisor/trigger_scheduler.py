"""Fires due triggers. A run's id is derived from trigger and slot, so a slot never has two runs.

A firing is first saved in the trigger's state (`firing`); then its run is queued, its line written
and the state updated. After a crash the next start does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from mimikit.clock import may_delete
from mimikit.errors import StorageError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.triggers import FiringIntent, TaskDone, Trigger, TriggerState
from mimikit.supervisor.store import SLICE_S, Store
from mimikit.supervisor.trigger_facts import FactReader, TriggerIndex
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd, result_of
from mimikit.triggers import conditions, registry, schedule
from mimikit.triggers.decide import (
    LOOP_FIRES,
    RECHECK_EVERY,
    Decision,
    SkippedSlot,
    accept_definition,
    after_firing,
    decide,
    make_run,
    next_check_after_firing,
)
from mimikit.triggers.workspace import TriggerWatch, Workspace

UPSTREAM = "upstream "
"""Prefix of the slot of a step that did not run; the failed task or trigger follows."""
_CHEAP_S = 0.02
_SHARE = 10
"""A condition that costs more than _CHEAP_S to evaluate gets at most 1/_SHARE of the time."""
_ORPHAN_AGE_S = 86_400
"""How long the state of a trigger outlives its definition, which an editor may have moved."""


class TriggerScheduler:
    def __init__(self, store: Store, workspace: Workspace, watch: TriggerWatch) -> None:
        self._store, self._workspace, self._watch = store, workspace, watch
        self.index = TriggerIndex()
        self._broken: dict[str, str] = {}
        """Trigger with a broken definition → its error; the last valid one is in force."""
        self._faulted: set[str] = set()
        self._to_refresh: dict[str, None] = {}
        self._stamps: dict[str, object] = {}
        self._throttled_until: dict[str, datetime] = {}
        """Trigger that is costly to evaluate → until when changes of files are coalesced."""
        self._zone = store.settings.zone
        self.asks: dict[str, dict[str, str]] = {}
        """Trigger → the questions for a model (by node path) on which its condition depends."""
        self._change_runs: dict[str, tuple[str, datetime]] = {}
        """Trigger → its newest run fired by changes of files, and when it fired."""
        self._is_loaded = False
        self.event_count = 0
        """Events so far that may change a model's answer: ends of tasks, changes of files."""

    # ---- definitions

    def load(self, now: datetime) -> None:
        """Read every definition, finish interrupted firings, evaluate every condition."""
        for trigger_id in registry.ids(self._store.files):
            self._isolated(trigger_id, self.refresh, now)
        self._is_loaded = True

    def _isolated(
        self, trigger_id: str, action: Callable[[str, datetime], bool], now: datetime
    ) -> bool | StorageError:
        """The result of `action`; its failure does not stop the other triggers."""
        try:
            return action(trigger_id, now)
        except StorageError as error:
            self._store.events.changed_triggers.put(trigger_id)  # evaluated again
            return error
        except Exception as error:
            if shortage_of(error):
                raise
            self._handle_fault(trigger_id, error, now)
            return False

    def remove_orphaned_states(self, now: datetime) -> None:
        files = self._store.files
        states = {name.removesuffix(".json") for name in files.names(paths.TRIGGER_STATE)}
        for trigger_id in states - set(registry.ids(files)):
            stat = files.stat(paths.trigger_state(trigger_id))
            age_s = now.timestamp() - stat.mtime_ns / 1e9 if stat else 0
            is_old = age_s > _ORPHAN_AGE_S and may_delete(self._store.runtime.clock_jumped_at, now)
            state = registry.state(files, trigger_id)  # sets a broken one aside
            if is_old or self._is_left_over(trigger_id, state):
                registry.remove(files, trigger_id)

    def _is_left_over(self, trigger_id: str, state: TriggerState) -> bool:
        if state.firing is not None:
            return True
        return (self._store.ledger.newest_slot(trigger_id) or "").startswith(UPSTREAM)

    def refresh_changed(self, now: datetime) -> bool:
        """Reread changed definitions; returns whether there are more."""
        self._take_changes()
        failed: StorageError | None = None
        until = self._store.clock.monotonic() + SLICE_S
        for trigger_id in list(self._to_refresh):
            if self._store.clock.monotonic() > until:
                break
            del self._to_refresh[trigger_id]
            found = self._isolated(trigger_id, self.refresh, now)
            if isinstance(found, StorageError):
                failed = found
            else:
                self._store.feed.publish("trigger", id=trigger_id)
        if failed is not None:
            raise failed
        return bool(self._to_refresh)

    def _take_changes(self) -> None:
        files, events = self._store.files, self._store.events
        for trigger_id in events.changed_triggers.take():
            if trigger_id is not None:
                self._to_refresh[trigger_id] = None
                continue
            ids, stamps = registry.ids(files), self._stamps  # any may have: which?
            found = files.stats(paths.TRIGGERS, suffix=".json")
            changed = (id_ for id_ in ids if found.get(f"{id_}.json") != stamps.get(id_))
            self._to_refresh |= dict.fromkeys([*changed, *sorted(stamps.keys() - set(ids))])
        for trigger_ids in events.changed_files.take():
            self.event_count += 1
            for trigger_id in trigger_ids:
                rests_until = self._throttled_until.get(trigger_id)
                if rests_until is not None and rests_until > self._store.clock.now():
                    self.index.set_due(trigger_id, rests_until)
                elif self.index.listens(trigger_id):
                    self.index.mark_due(trigger_id)

    def refresh(self, trigger_id: str, now: datetime) -> bool:
        """Reread a definition that was created, edited, paused or removed.

        Crash: an interrupted firing is applied first.
        """
        files = self._store.files
        stamp = files.stat(paths.trigger(trigger_id))
        state = registry.state(files, trigger_id)
        trigger, is_new = self._in_force(trigger_id, state)
        if trigger is None:
            self._forget(trigger_id)
        if stamp is not None:
            self._stamps[trigger_id] = stamp
        if state.firing is not None and trigger is not None:
            self._apply(trigger, state, state.firing)
            self.refresh(trigger_id, now)
        elif stamp is None and self._is_left_over(trigger_id, state):
            registry.remove(files, trigger_id)
        elif trigger is not None:
            self._apply_definition(trigger, state, now, is_new=is_new)
        return True

    def _in_force(self, trigger_id: str, state: TriggerState) -> tuple[Trigger | None, bool]:
        """The definition in force, and whether it is new. An error is logged once."""
        files = self._store.files
        trigger, broken = registry.read(files, trigger_id)
        is_new = trigger is not None and trigger.to_dict() != state.last_good
        if trigger is not None and is_new:
            way = registry.cycle_of(files, trigger, accepted=True)
            if way is not None:
                broken = f"condition: expected no cycle, got {' → '.join(way)}"
        if broken is None:
            self._broken.pop(trigger_id, None)
            return trigger, is_new
        if self._broken.get(trigger_id) != broken:
            self._store.log.write("audit", "trigger_broken", triggerId=trigger_id, reason=broken)
        self._broken[trigger_id] = broken
        return registry.sound(state.last_good), False

    def _apply_definition(
        self, trigger: Trigger, before: TriggerState, now: datetime, *, is_new: bool
    ) -> None:
        store = self._store
        known = registry.sound(before.last_good) if is_new and trigger.condition else None
        taken = accept_definition(
            trigger, known, before, now, is_new=is_new, zone=store.settings.zone
        )
        if taken.skipped is not None:
            self._write_skipped(trigger, taken.skipped, now)
        if before.last_good is None:
            whole = trigger.trace_id if registry.is_step(trigger) else None
            title = trigger.title or None
            store.ledger.write("trigger_created", trigger.id, now, title=title, stepOf=whole)
        if taken.is_finished:
            self._end(trigger, now)
            return
        if taken.state != before:
            registry.save_state(store.files, trigger.id, taken.state)
            store.feed.publish("trigger", id=trigger.id)
        condition = trigger.condition if trigger.enabled else None
        self.index.listen(trigger.id, conditions.subjects(condition) if condition else None)
        self._watch.set(trigger.id, conditions.watched(condition) if condition else ())
        if condition is not None:
            self.index.mark_due(trigger.id)
        else:
            self.asks.pop(trigger.id, None)
        is_clocked = trigger.schedule is not None and trigger.enabled
        self.index.set_due(trigger.id, taken.state.next_run_at if is_clocked else None)

    def _forget(self, trigger_id: str) -> None:
        self.index.forget(trigger_id)
        self._watch.set(trigger_id, ())
        self.asks.pop(trigger_id, None)
        self._stamps.pop(trigger_id, None)
        self._throttled_until.pop(trigger_id, None)

    def task_ended(self, task_id: str) -> None:
        self.event_count += 1
        for subject in self._store.ledger.subjects_of(task_id):
            self.index.notify(subject)

    # ---- steps of a chain: each is a trigger that fires once, after the task it waits for

    def steps_after(self, task: Task) -> list[str]:
        """Titles of the steps that wait for this task, directly or not."""
        waiting = [task.id, *filter(None, [task.retry_of])]
        parent = task.source_trigger_id
        if parent and not registry.exists(self._store.files, parent):
            waiting.append(parent)  # that was a step itself
        found: dict[str, str] = {}
        while waiting:
            for step in self._steps_of(waiting.pop()):
                if step.id not in found:
                    found[step.id] = step.title or step.id
                    waiting.append(step.id)
        return list(found.values())

    def _end(self, trigger: Trigger, now: datetime) -> None:
        """Remove a trigger without a further slot. Crash: the line may be repeated."""
        if trigger.schedule is not None and trigger.schedule.run_at is None:
            self._store.ledger.write("trigger_ended", trigger.id, now)
        registry.remove(self._store.files, trigger.id)
        self._store.feed.publish("trigger", id=trigger.id)
        self._forget(trigger.id)

    def _steps_of(self, subject: str) -> Iterator[Trigger]:
        for trigger_id in sorted(self._possible_dependents(subject)):
            trigger = registry.active(self._store.files, trigger_id)[0]
            if trigger and trigger.once and trigger.condition and trigger.enabled:
                leaves = (leaf for _, leaf in conditions.walk(trigger.condition))
                if any(isinstance(it, TaskDone) and it.params.task_id == subject for it in leaves):
                    yield trigger

    def _possible_dependents(self, subject: str) -> set[str]:
        if not self._is_loaded:
            return set(registry.ids(self._store.files))
        self._take_changes()
        return {*self.index.listeners(subject), *self._to_refresh}

    def _end_step(self, trigger: Trigger, failed_task: str, now: datetime) -> None:
        """End a step that cannot run any more: as a canceled task, reason `upstream`.

        Crash: its end, with a derived id, is written before its definition is removed.
        """
        store, slot = self._store, f"{UPSTREAM}{failed_task}"
        before = store.ledger.results_of(failed_task)  # of a trigger, its last run
        run, end = make_run(trigger, slot, now), TaskEnd("canceled", "upstream", 0)
        run = run.but(parent_task_id=before[-1] if before else trigger.parent_task_id)
        self._end_unrun(run, end, now, f"{failed_task}, which it waited for, did not succeed")
        self._write_skipped(trigger, SkippedSlot(slot, "upstream", 0), now, run.id)
        self._end(trigger, now)

    def _end_unrun(self, run: Task, end: TaskEnd, now: datetime, error: str) -> None:
        """End a run that was not started, so that it is reported. Idempotent."""
        store = self._store
        queue.finish(store.files, result_of(run, end, now, now, error=error))
        if store.ledger.end_of(run.id) is None:
            store.files.save(paths.running(run.role, run.id), run)
        store.events.ended_runs.put((run.role, run.id))

    def _pause_loop(
        self, trigger: Trigger, state: TriggerState, firing: FiringIntent, names: tuple[str, ...]
    ) -> None:
        """Pause a trigger that changes of files fire again and again, and report it once.

        Crash: the definition is paused last; until then the same is decided again.
        """
        store, now = self._store, firing.fired_at
        error = (
            f"paused: it was fired {LOOP_FIRES} times within 5 minutes by changes of files alone, "
            f"now of {', '.join(names)}; resume it when that is mended"
        )
        self._end_unrun(firing.task, TaskEnd("failed", "error", 0), now, error)
        self._write_skipped(trigger, SkippedSlot(firing.slot, "loop", 0), now, firing.task.id)
        state = state.but(paused_by="breaker", last_verdict="loop")
        registry.save_state(store.files, trigger.id, state)
        store.files.save(paths.trigger(trigger.id), trigger.but(enabled=False))
        store.log.write("audit", "circuit_broken", triggerId=trigger.id, files=list(names))
        store.trigger_changed(trigger.id)

    # ---- firing

    def fire_due(self, now: datetime) -> bool:
        """Evaluate everything that is due, and fire; returns whether anything was due."""
        zone, self._zone = self._zone, self._store.settings.zone
        worked = zone is not self._zone and self.replan(now)
        failed: StorageError | None = None
        until = self._store.clock.monotonic() + SLICE_S
        while trigger_id := self.index.take(now):
            found = self._isolated(trigger_id, self._fire, now)
            if isinstance(found, StorageError):
                failed = found
            else:
                worked = worked or found
            if self._store.clock.monotonic() > until:
                worked = True  # there may be more
                break
        if failed is not None:
            raise failed
        return worked

    def _handle_fault(self, trigger_id: str, error: Exception, now: datetime) -> None:
        """Quarantine the state of a trigger that cannot be evaluated, once; then retry later."""
        store, path = self._store, paths.trigger_state(trigger_id)
        store.log.write("error", "trigger_fault", triggerId=trigger_id, error=repr(error))
        if trigger_id not in self._faulted and store.files.exists(path):
            self._faulted.add(trigger_id)
            store.files.quarantine(path, f"the trigger could not be looked at: {error!r}")
            store.events.changed_triggers.put(trigger_id)
        else:
            self.index.set_due(trigger_id, now + RECHECK_EVERY)

    def replan(self, now: datetime) -> bool:
        """After a clock jump or a change of the zone: recompute due times that no longer fit."""
        worked, zone = False, self._zone
        self._throttled_until.clear()
        for trigger_id, due in self.index.planned():
            trigger = self._accepted(trigger_id)
            plan = trigger.schedule if trigger is not None else None
            is_far = plan is None or schedule.is_far_ahead(plan, due, now=now, zone=zone)
            if trigger is not None and is_far:
                self._store.events.changed_triggers.put(trigger_id)
                worked = True
        return worked

    def _accepted(self, trigger_id: str) -> Trigger | None:
        """The definition in force, of an unchanged file."""
        if trigger_id in self._broken:
            return registry.last_good(self._store.files, trigger_id)
        return registry.active(self._store.files, trigger_id)[0]

    def _fire(self, trigger_id: str, now: datetime) -> bool:
        """Facts → decide → save the outcome, or save and apply the firing; whether any changed.

        Crash: before the firing is saved the same is decided again; after it, `_apply` is repeated.
        """
        store = self._store
        stamp = store.files.stat(paths.trigger(trigger_id))
        if stamp is None or stamp != self._stamps.get(trigger_id):
            return self.refresh(trigger_id, now)  # it was edited: state and index are of the old
        trigger = self._accepted(trigger_id)
        if trigger is None or not trigger.enabled:
            return False
        state = registry.state(store.files, trigger_id)
        if state.firing is not None:
            store.events.changed_triggers.put(trigger_id)  # `refresh` applies it first
            return False
        began = store.clock.monotonic()
        decided = decide(trigger, state, self._facts(trigger, state, now), now)
        spent_s = store.clock.monotonic() - began
        self._throttled_until.pop(trigger_id, None)
        if spent_s > _CHEAP_S:
            self._throttled_until[trigger_id] = now + timedelta(seconds=spent_s * _SHARE)
        if decided.not_due:
            store.events.changed_triggers.put(trigger_id)
            return False
        if decided.failed_task is not None:
            self._end_step(trigger, decided.failed_task, now)
        elif decided.firing is None:
            self._save_outcome(trigger, state, decided, now)
            return trigger.schedule is not None
        elif decided.loops:
            self._pause_loop(trigger, decided.state, decided.firing, decided.loops)
        else:
            firing = decided.state.but(firing=decided.firing)
            registry.save_state(store.files, trigger_id, firing)
            self._apply(trigger, firing, decided.firing)
            if decided.more:
                self.index.mark_due(trigger_id)
        return True

    def _facts(self, trigger: Trigger, state: TriggerState, now: datetime) -> FactReader:
        runs = self._change_runs
        return FactReader(self._store, self._workspace, self._watch, trigger, state, now, runs)

    def _save_outcome(
        self, trigger: Trigger, before: TriggerState, decided: Decision, now: datetime
    ) -> None:
        store, state = self._store, decided.state
        if decided.skipped is not None:
            self._write_skipped(trigger, decided.skipped, now)
        if decided.is_finished:
            self._end(trigger, now)
            return
        if state != before:
            registry.save_state(store.files, trigger.id, state)
            store.feed.publish("trigger", id=trigger.id)
        self.asks.pop(trigger.id, None)
        if decided.asks:
            self.asks[trigger.id] = decided.asks
        if state.blocked_by != before.blocked_by:
            self.index.notify(trigger.id)
        if decided.waits_for is not None:
            self.index.wait_for(decided.waits_for, trigger.id)
        self.index.set_due(trigger.id, decided.next_check_at)

    def _apply(self, trigger: Trigger, state: TriggerState, firing: FiringIntent) -> None:
        """Apply a firing. Crash: it stays in the state until the last step; each is idempotent."""
        store, task, now = self._store, firing.task, firing.fired_at
        store.submit(task, planned_at=firing.planned_at, missed=firing.missed)
        self._write_slot(
            trigger, firing.slot, now, state="ran", missed=firing.missed, taskId=task.id,
            plannedAt=firing.planned_at if firing.planned_at != now else None,
        )  # fmt: skip
        fired = after_firing(trigger, state, firing, store.settings.zone)
        if fired is None:
            self._end(trigger, now)
            return
        registry.save_state(store.files, trigger.id, fired)
        if firing.change_fires:
            self._change_runs[trigger.id] = (task.id, now)
        facts = self._facts(trigger, fired, now)
        self.index.set_due(trigger.id, next_check_after_firing(trigger, fired, facts, now))
        self.asks.pop(trigger.id, None)
        if trigger.condition is not None and conditions.questions(trigger.condition):
            self.index.mark_due(trigger.id)
        store.feed.publish("trigger", id=trigger.id)

    def _write_skipped(
        self, trigger: Trigger, skipped: SkippedSlot, now: datetime, task_id: str | None = None
    ) -> None:
        facts = {"state": skipped.state, "reason": skipped.reason, "taskId": task_id}
        self._write_slot(trigger, skipped.slot, now, missed=skipped.missed, **facts)

    def _write_slot(
        self, trigger: Trigger, slot: str, now: datetime, *, missed: int, **facts: object
    ) -> None:
        if self._store.ledger.newest_slot(trigger.id) != slot:
            self._store.ledger.write(
                "slot", trigger.id, now,
                slot=slot, title=trigger.title or None, missed=missed or None, **facts,
            )  # fmt: skip
