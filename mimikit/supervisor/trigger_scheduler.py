"""Fires due triggers: a run's id follows from trigger and slot, so a slot never has two runs.

A firing is decided once and written into the trigger's state (`firing`) before anything else
happens; then its run is published, its line written, the state brought up to date. Dying anywhere
in between only means that the rest is done at the next start, by the same words.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit.errors import StorageError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.triggers import FiringIntent, Trigger, TriggerState
from mimikit.supervisor import chain_steps
from mimikit.supervisor.commit_applier import SLICE_S
from mimikit.supervisor.store import Store
from mimikit.supervisor.trigger_facts import FactReader, TriggerIndex
from mimikit.triggers import conditions, registry, schedule
from mimikit.triggers.decide import (
    LOOK_AGAIN,
    Decision,
    SkippedSlot,
    after_firing,
    decide,
    look_after_firing,
    take_up,
)
from mimikit.triggers.workspace import TriggerWatch, Workspace

_CHEAP_S = 0.02
_SHARE = 10
"""A condition that costs more to look at than that gets one part in so many of the time."""
_KEPT_S = 86_400
"""What is known of a trigger is kept so long after its definition was taken away by hand."""
_SET_BACK = timedelta(seconds=1)
"""A clock that goes back by less is only being kept right."""


class TriggerScheduler:
    """Looks at triggers when the index says so, and fires those that are due."""

    def __init__(self, store: Store, workspace: Workspace, watch: TriggerWatch) -> None:
        self._store, self._workspace, self._watch = store, workspace, watch
        self.index = TriggerIndex()
        self._reported: dict[str, str] = {}
        """Broken definition → what is wrong with it; its last good version is in force."""
        self._faulted: set[str] = set()
        self._to_refresh: dict[str, None] = {}
        self._stamps: dict[str, object] = {}
        self._rests: dict[str, datetime] = {}
        """Triggers whose look is costly → until when changes of files are gathered."""
        self._looked_at: datetime | None = None
        self._zone = store.settings.zone
        self.asks: dict[str, dict[str, str]] = {}
        """Trigger → the questions (by node path) on which its condition depends now."""
        self._is_loaded = False
        self.happened = 0
        """Counts what has happened that a model might see: ends of tasks, changes of files."""

    # ---- definitions

    def load(self, now: datetime) -> None:
        """Read every definition, end the firings a crash cut short, judge every condition.

        One that can not be looked at is tried again with the first tick: it must not keep the
        others from their start.
        """
        for trigger_id in registry.ids(self._store.files):
            try:
                self.refresh(trigger_id, now)
            except StorageError:
                self._store.events.changed_triggers.put(trigger_id)
            except Exception as error:
                if shortage_of(error):
                    raise
                self._fault(trigger_id, error, now)
        self._is_loaded = True

    def clear_away(self, now: datetime) -> None:
        """End what is left of definitions that are gone; an editor may have one away just now."""
        files = self._store.files
        believed = self._store.believed(now)
        states = {name.removesuffix(".json") for name in files.names(paths.TRIGGER_STATE)}
        for trigger_id in states - set(registry.ids(files)):
            stat = files.stat(paths.trigger_state(trigger_id))
            age_s = believed.timestamp() - stat.mtime_ns / 1e9 if stat else 0
            is_old = age_s > _KEPT_S
            state = registry.state(files, trigger_id)  # of no use, it is set aside, however old
            if is_old or self._is_left_over(trigger_id, state):
                registry.remove(files, trigger_id)

    def _is_left_over(self, trigger_id: str, state: TriggerState) -> bool:
        """Whether the end of a definition that is gone was cut short: its last firing, or none."""
        return state.firing is not None or chain_steps.is_left_over(self._store, trigger_id)

    def refresh_changed(self, now: datetime) -> bool:
        """Look again at definitions that have changed, and soon at whose files have.

        Gives whether there are more.
        """
        self._take_changes()
        failed: StorageError | None = None
        until = self._store.clock.monotonic() + SLICE_S
        for trigger_id in list(self._to_refresh):
            if self._store.clock.monotonic() > until:
                break
            try:
                self.refresh(trigger_id, now)
            except StorageError as error:
                failed = error  # the others go first
            except Exception as error:
                if shortage_of(error):
                    raise
                del self._to_refresh[trigger_id]
                self._fault(trigger_id, error, now)
            else:
                del self._to_refresh[trigger_id]
                self._store.feed.tell("trigger", id=trigger_id)
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
            self.happened += 1
            for trigger_id in trigger_ids:
                rests_until = self._rests.get(trigger_id)
                if rests_until is not None and rests_until > self._store.clock.now():
                    self.index.look_at(trigger_id, rests_until)
                elif self.index.listens(trigger_id):
                    self.index.look_soon(trigger_id)

    def refresh(self, trigger_id: str, now: datetime) -> None:
        """Look at one definition again: made, edited, paused or gone.

        Crash: a firing that was cut short is carried out first.
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
            self._carry_out(trigger, state, state.firing)
            self.refresh(trigger_id, now)
        elif stamp is None and self._is_left_over(trigger_id, state):
            registry.remove(files, trigger_id)
        elif trigger is not None:
            self._take_up(trigger, state, now, is_new=is_new)

    def _in_force(self, trigger_id: str, state: TriggerState) -> tuple[Trigger | None, bool]:
        """The definition that counts, and whether it was accepted just now.

        What is wrong with its file is told once.
        """
        files = self._store.files
        trigger, broken = registry.read(files, trigger_id)
        is_new = trigger is not None and trigger.to_dict() != state.last_good
        if trigger is not None and is_new:
            way = registry.cycle_of(files, trigger, accepted=True)
            if way is not None:
                broken = f"condition: expected no cycle, got {' → '.join(way)}"
        if broken is None:
            self._reported.pop(trigger_id, None)
            return trigger, is_new
        if self._reported.get(trigger_id) != broken:
            self._store.log.write("audit", "trigger_broken", triggerId=trigger_id, reason=broken)
        self._reported[trigger_id] = broken
        return registry.sound(state.last_good), False

    def _take_up(
        self, trigger: Trigger, before: TriggerState, now: datetime, *, is_new: bool
    ) -> None:
        """Bring state and index in line with the definition in force."""
        store = self._store
        known = registry.sound(before.last_good) if is_new and trigger.condition else None
        taken = take_up(trigger, known, before, now, is_new=is_new, zone=store.settings.zone)
        if taken.skipped is not None:
            self._write_skipped(trigger, taken.skipped, now)
        if before.last_good is None:
            store.ledger.write("trigger_created", trigger.id, now, title=trigger.title or None)
        if taken.state != before:
            registry.save_state(store.files, trigger.id, taken.state)
            store.feed.tell("trigger", id=trigger.id)
        condition = trigger.condition if trigger.enabled else None
        self.index.listen(trigger.id, conditions.subjects(condition) if condition else None)
        self._watch.set(trigger.id, conditions.watched(condition) if condition else ())
        if condition is not None:
            self.index.look_soon(trigger.id)
        else:
            self.asks.pop(trigger.id, None)
        is_clocked = trigger.schedule is not None and trigger.enabled
        self.index.look_at(trigger.id, taken.state.next_run_at if is_clocked else None)

    def _forget(self, trigger_id: str) -> None:
        self.index.forget(trigger_id)
        self._watch.set(trigger_id, ())
        self.asks.pop(trigger_id, None)
        self._stamps.pop(trigger_id, None)
        self._rests.pop(trigger_id, None)

    def task_ended(self, task_id: str) -> None:
        """Judge what waits for this task; called at the moment its end is written."""
        self.happened += 1
        for subject in self._store.ledger.subjects_of(task_id):
            self.index.tell(subject)

    def steps_after(self, task: Task) -> list[str]:
        """Titles of the steps of a chain, near and far, that wait for this task to be done."""
        return chain_steps.titles_after(self._store.files, task, self._may_wait_for)

    def _may_wait_for(self, subject: str) -> set[str]:
        if not self._is_loaded:
            return set(registry.ids(self._store.files))
        self._take_changes()
        return {*self.index.listeners(subject), *self._to_refresh}

    # ---- firing

    def fire_due(self, now: datetime) -> bool:
        """Look at everything that is due and fire; gives whether anything was."""
        set_back = self._looked_at is not None and self._looked_at - now > _SET_BACK
        zone, self._zone = self._zone, self._store.settings.zone
        worked = (set_back or zone is not self._zone) and self._plan_anew(now)
        self._looked_at = now
        failed: StorageError | None = None
        until = self._store.clock.monotonic() + SLICE_S
        while self._store.clock.monotonic() <= until:
            if (trigger_id := self.index.take(now)) is None:
                break
            try:
                worked = self._fire(trigger_id, now) or worked
            except StorageError as error:
                self._store.events.changed_triggers.put(trigger_id)  # found again by another look
                failed = error  # the others go first
            except Exception as error:
                if shortage_of(error):
                    raise
                self._fault(trigger_id, error, now)
        else:
            worked = True  # there may be more
        if failed is not None:
            raise failed
        return worked

    def _fault(self, trigger_id: str, error: Exception, now: datetime) -> None:
        """A trigger that can not be looked at must not hold up the others.

        What is known of it is put aside, once: most likely that is what is damaged.
        """
        store, path = self._store, paths.trigger_state(trigger_id)
        store.log.write("error", "trigger_fault", triggerId=trigger_id, error=repr(error))
        if trigger_id not in self._faulted and store.files.exists(path):
            self._faulted.add(trigger_id)
            store.files.quarantine(path, f"the trigger could not be looked at: {error!r}")
            store.events.changed_triggers.put(trigger_id)
        else:
            self.index.look_at(trigger_id, now + LOOK_AGAIN)

    def _plan_anew(self, now: datetime) -> bool:
        """The clock was set back, or the zone is another: what no longer fits is planned anew."""
        worked, zone = False, self._zone
        self._rests.clear()
        for trigger_id, due in self.index.planned():
            trigger = self._accepted(trigger_id)
            plan = trigger.schedule if trigger is not None else None
            is_far = plan is None or schedule.is_far_ahead(plan, due, now=now, zone=zone)
            if trigger is not None and is_far:
                self._store.events.changed_triggers.put(trigger_id)
                worked = True
        return worked

    def _accepted(self, trigger_id: str) -> Trigger | None:
        """The definition as it was taken up; its file is as it was then."""
        if trigger_id in self._reported:
            return registry.last_good(self._store.files, trigger_id)
        return registry.active(self._store.files, trigger_id)[0]

    def _fire(self, trigger_id: str, now: datetime) -> bool:
        """Fire a trigger whose time has come, or for which something has happened.

        Gives whether a slot or an edge was settled.

        1. Decide, purely, by the definition, its state and the facts of this moment.
        2. It does not fire: note what was found, and when to look again.
        3. It fires: write the firing, whole, into the trigger's state.
        4. Carry it out: publish the run, write the slot's line, bring the state up to date.

        Crash: before 3 nothing has happened, and the same is decided again; after it 4 is done
        again by the words of 3, and finds what it has done before.
        """
        store = self._store
        stamp = store.files.stat(paths.trigger(trigger_id))
        if stamp is None or stamp != self._stamps.get(trigger_id):
            self.refresh(trigger_id, now)  # it was edited: state and index are of the old one
            return True
        trigger = self._accepted(trigger_id)
        if trigger is None or not trigger.enabled:
            return False
        state = registry.state(store.files, trigger_id)
        if state.firing is not None:
            store.events.changed_triggers.put(trigger_id)  # there it is carried out first
            return False
        began = store.clock.monotonic()
        facts = FactReader(store, self._workspace, self._watch, trigger, state, now)
        decided = decide(trigger, state, facts, now)
        spent_s = store.clock.monotonic() - began
        self._rests.pop(trigger_id, None)
        if spent_s > _CHEAP_S:
            self._rests[trigger_id] = now + timedelta(seconds=spent_s * _SHARE)
        if decided.is_early:
            store.events.changed_triggers.put(trigger_id)
            return False
        if decided.lost_to is not None:
            chain_steps.end_step(store, trigger, decided.lost_to, now)
            self._forget(trigger.id)
            return True
        if decided.firing is None:
            self._note(trigger, state, decided, now)
            return trigger.schedule is not None
        firing = decided.state.but(firing=decided.firing)
        registry.save_state(store.files, trigger_id, firing)
        self._carry_out(trigger, firing, decided.firing)
        if decided.more:
            self.index.look_soon(trigger_id)
        return True

    def _note(
        self, trigger: Trigger, before: TriggerState, decided: Decision, now: datetime
    ) -> None:
        """Write down a look after which nothing fires."""
        store, state = self._store, decided.state
        if decided.skipped is not None:
            self._write_skipped(trigger, decided.skipped, now)
        if decided.is_over:
            registry.remove(store.files, trigger.id)
        elif state != before:
            registry.save_state(store.files, trigger.id, state)
        if state != before:
            store.feed.tell("trigger", id=trigger.id)
        self.asks.pop(trigger.id, None)
        if decided.asks:
            self.asks[trigger.id] = decided.asks
        if state.blocked_by != before.blocked_by:
            self.index.tell(trigger.id)
        if decided.waits_for is not None:
            self.index.look_after(decided.waits_for, trigger.id)
        self.index.look_at(trigger.id, decided.look_at)

    def _carry_out(self, trigger: Trigger, state: TriggerState, firing: FiringIntent) -> None:
        """Do what a firing says.

        Crash: it stands in the state until the last step, and every step may be repeated.
        """
        store, task, now = self._store, firing.task, firing.fired_at
        store.submit(task, planned_at=firing.planned_at, missed=firing.missed)
        self._write_slot(
            trigger, firing.slot, now, state="ran", missed=firing.missed, taskId=task.id,
            plannedAt=firing.planned_at if firing.planned_at != now else None,
        )  # fmt: skip
        fired = after_firing(trigger, state, firing, store.settings.zone)
        if fired is None:
            registry.remove(store.files, trigger.id)
            self._forget(trigger.id)
        else:
            registry.save_state(store.files, trigger.id, fired)
            facts = FactReader(store, self._workspace, self._watch, trigger, fired, now)
            self.index.look_at(trigger.id, look_after_firing(trigger, fired, facts, now))
            self.asks.pop(trigger.id, None)
            if trigger.condition is not None and conditions.questions(trigger.condition):
                self.index.look_soon(trigger.id)
        store.feed.tell("trigger", id=trigger.id)

    def _write_skipped(self, trigger: Trigger, skipped: SkippedSlot, now: datetime) -> None:
        self._write_slot(
            trigger, skipped.slot, now,
            state="skipped", missed=skipped.missed, reason=skipped.reason,
        )  # fmt: skip

    def _write_slot(
        self, trigger: Trigger, slot: str, now: datetime, *, missed: int, **facts: object
    ) -> None:
        """The line of one slot, once: a repeated firing finds it."""
        if self._store.ledger.newest_slot(trigger.id) != slot:
            self._store.ledger.write(
                "slot", trigger.id, now,
                slot=slot, title=trigger.title or None, missed=missed or None, **facts,
            )  # fmt: skip
