"""Fires due triggers: a run's id follows from trigger and slot, so a slot never has two runs.

A firing is decided once and written into the trigger's state (`firing`) before anything else
happens; then its run is published, its line written, the state brought up to date. Dying anywhere
in between only means that the rest is done at the next start, by the same words.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import (
    Condition,
    FiringIntent,
    Task,
    Trigger,
    TriggerState,
)
from mimikit.supervisor import judging
from mimikit.supervisor.agenda import Agenda
from mimikit.supervisor.store import Books
from mimikit.tasks import queue
from mimikit.triggers import conditions, registry, schedule
from mimikit.triggers.decide import make_run
from mimikit.triggers.workspace import Watch, Workspace

LOOK_AGAIN = timedelta(seconds=60)
"""How often a condition is looked at that waits for something of which an event should tell."""
POLL = timedelta(seconds=2)
"""How often files are looked at of which the kernel does not tell."""
_CHEAP_S = 0.02
_SHARE = 10
"""A condition that costs more to look at than that gets one part in so many of the time."""
_KEPT_S = 86_400
"""What is known of a trigger is kept so long after its definition was taken away by hand."""
_SET_BACK = timedelta(seconds=1)
"""A clock that goes back by less is only being kept right."""


class Firing:
    """Looks at triggers when the agenda says so, and fires those that are due."""

    def __init__(self, books: Books, workspace: Workspace, watch: Watch) -> None:
        """Know of no trigger until `load`."""
        self._books, self._workspace, self._watch = books, workspace, watch
        self._agenda = Agenda()
        self._reported: dict[str, str] = {}
        """Broken definition → what is wrong with it; its last good version is in force."""
        self._faulted: set[str] = set()
        self._stamps: dict[str, object] = {}
        self._rests: dict[str, datetime] = {}
        """Triggers whose look is costly → until when changes of files are gathered."""
        self._looked_at: datetime | None = None
        self.asks: dict[str, dict[str, str]] = {}
        """Trigger → the questions (by node path) on which its condition depends now."""
        self.happened = 0
        """Counts what has happened that a model might see: ends of tasks, changes of files."""

    # ---- definitions ---------------------------------------------------------------------

    def load(self, now: datetime) -> None:
        """Read every definition, end the firings a crash cut short, judge every condition.

        One that can not be looked at is tried again with the first tick: it must not keep the
        others from their start.
        """
        known = registry.ids(self._books.files)
        for trigger_id in known:
            try:
                self.refresh(trigger_id, now)
            except StorageError:
                self._books.events.trigger_changed(trigger_id)
            except Exception as error:  # noqa: BLE001 - one trigger's fault stays its own
                self.fault(trigger_id, error, now)
        self._sweep(registry.states(self._books.files) - set(known), now)

    def _sweep(self, orphans: set[str], now: datetime) -> None:
        """Remove what is known of triggers that are gone; an editor may have one away just now."""
        files = self._books.files
        for trigger_id in orphans:
            stat = files.stat(paths.trigger_state(trigger_id))
            age_s = now.timestamp() - stat.mtime_ns / 1e9 if stat else 0
            if registry.state(files, trigger_id).firing is not None or age_s > _KEPT_S:
                registry.remove(files, trigger_id)

    def strangers(self) -> set[str]:
        """Triggers whose file is not as it was at the last look: made, edited, gone."""
        files = self._books.files
        names = set(registry.ids(files))
        changed = {id_ for id_ in names if files.stat(paths.trigger(id_)) != self._stamps.get(id_)}
        return changed | (self._stamps.keys() - names)

    def refresh(self, trigger_id: str, now: datetime) -> None:
        """Look at one definition again: made, edited, paused or gone."""
        books = self._books
        stamp = books.files.stat(paths.trigger(trigger_id))
        state = registry.state(books.files, trigger_id)
        trigger, broken = self._in_force(trigger_id, state)
        if trigger is None:
            self._forget(trigger_id)
        if stamp is not None:
            self._stamps[trigger_id] = stamp
        if state.firing is not None and trigger is not None:
            self._finish(trigger, state, state.firing)
            self.refresh(trigger_id, now)
        elif state.firing is not None and stamp is None:
            registry.remove(books.files, trigger_id)  # its last firing was cut short at its end
        elif trigger is not None:
            self._take_up(trigger, state, now, is_good=broken is None)

    def _take_up(
        self, trigger: Trigger, before: TriggerState, now: datetime, *, is_good: bool
    ) -> None:
        """Bring state and agenda in line with the definition in force."""
        books, state = self._books, before
        if is_good:
            state = _known(before, trigger, now, books.settings.zone)
        state = self._settle_pause(trigger, state, now)
        if before.last_good is None:
            books.ledger.write("trigger_created", trigger.id, now, title=trigger.title or None)
        if trigger.schedule is not None:
            state = state.but(next_run_at=self._slot(trigger, state, now))
        if state != before:
            registry.save_state(books.files, trigger.id, state)
            books.feed.tell("trigger", id=trigger.id)
        self._enter(trigger, state)

    def _in_force(self, trigger_id: str, state: TriggerState) -> tuple[Trigger | None, str | None]:
        """The definition that counts; what is wrong with its file is told once."""
        files = self._books.files
        trigger, broken = registry.read(files, trigger_id)
        if trigger is not None and trigger.to_dict() != state.last_good:
            way = registry.cycle_of(files, trigger, accepted=True)
            if way is not None:
                broken = f"condition: expected no circle, got {' → '.join(way)}"
        if broken is not None:
            trigger = registry.sound(state.last_good)
        self._report(trigger_id, broken)
        return trigger, broken

    def task_ended(self, task_id: str) -> None:
        """Judge what waits for this task; called at the moment its end is written."""
        self.happened += 1
        for subject in self._books.ledger.subjects_of(task_id):
            self._agenda.tell(subject)

    def files_changed(self, trigger_ids: set[str]) -> None:
        """Judge these: files they look at have changed."""
        self.happened += 1
        for trigger_id in trigger_ids:
            rests_until = self._rests.get(trigger_id)
            if rests_until is not None and rests_until > self._books.clock.now():
                self._agenda.look_at(trigger_id, rests_until)
            elif self._agenda.listens(trigger_id):
                self._agenda.look_soon([trigger_id])

    def next_due(self) -> datetime | None:
        """The earliest due time."""
        return self._agenda.next_due()

    def judge_soon(self, trigger_id: str) -> None:
        """Judge this one at the next pass."""
        self._agenda.look_soon([trigger_id])

    def _slot(self, trigger: Trigger, state: TriggerState, now: datetime) -> datetime | None:
        """The slot to wait for.

        A paused one keeps the slot it was paused at: at its resume that tells what it skipped.
        """
        if trigger.schedule is None or (state.next_run_at is not None and not trigger.enabled):
            return state.next_run_at
        return schedule.slot_to_wait_for(
            trigger.schedule,
            now=now,
            recorded=state.next_run_at,
            last_run_at=state.last_run_at,
            created_at=trigger.created_at,
            zone=self._books.settings.zone,
        )

    def _enter(self, trigger: Trigger, state: TriggerState) -> None:
        """Put a trigger, as its state now stands on disk, on the agenda."""
        condition = trigger.condition if trigger.enabled else None
        self._agenda.listen(trigger.id, conditions.subjects(condition) if condition else None)
        self._watch.set(trigger.id, conditions.watched(condition) if condition else ())
        if condition is not None:
            self._agenda.look_soon([trigger.id])
        else:
            self.asks.pop(trigger.id, None)
        clocked = trigger.schedule is not None and trigger.enabled
        self._agenda.look_at(trigger.id, state.next_run_at if clocked else None)

    def _forget(self, trigger_id: str) -> None:
        self._agenda.forget(trigger_id)
        self._watch.set(trigger_id, ())
        self.asks.pop(trigger_id, None)
        self._stamps.pop(trigger_id, None)
        self._rests.pop(trigger_id, None)

    def _report(self, trigger_id: str, broken: str | None) -> None:
        if broken and self._reported.get(trigger_id) != broken:
            self._books.log.write("audit", "trigger_broken", triggerId=trigger_id, reason=broken)
        if broken:
            self._reported[trigger_id] = broken
        else:
            self._reported.pop(trigger_id, None)

    def _settle_pause(self, trigger: Trigger, state: TriggerState, now: datetime) -> TriggerState:
        """While it is paused a trigger has no slots: those that came are skipped at its resume."""
        if not trigger.enabled:
            return state if state.paused else state.but(paused=True)
        if not state.paused:
            return state
        slot, plan = state.next_run_at, trigger.schedule
        if plan is not None and plan.run_at is None and slot is not None and slot <= now:
            self._write_slot(
                trigger, schedule.slot_name(slot), now, state="skipped", reason="paused",
                missed=self._missed(trigger, slot, now),
            )  # fmt: skip
            state = state.but(next_run_at=self._following(trigger, slot, now))
        return state.but(paused=False)

    # ---- firing --------------------------------------------------------------------------

    def fire_due(self, now: datetime) -> bool:
        """Look at everything that is due and fire; gives whether anything was."""
        set_back = self._looked_at is not None and self._looked_at - now > _SET_BACK
        worked = set_back and self._look_back(now)
        self._looked_at = now
        failed: StorageError | None = None
        while (trigger_id := self._agenda.take(now)) is not None:
            try:
                worked = self._look(trigger_id, now) or worked
            except StorageError as error:
                self._books.events.trigger_changed(trigger_id)  # found again by another look
                failed = error  # the others go first
            except Exception as error:  # noqa: BLE001 - one trigger's fault stays its own
                self.fault(trigger_id, error, now)
        if failed is not None:
            raise failed
        return worked

    def fault(self, trigger_id: str, error: Exception, now: datetime) -> None:
        """A trigger that can not be looked at must not hold up the others.

        What is known of it is put aside, once: most likely that is what is damaged.
        """
        books, path = self._books, paths.trigger_state(trigger_id)
        books.log.write("error", "trigger_fault", triggerId=trigger_id, error=repr(error))
        if trigger_id not in self._faulted and books.files.exists(path):
            self._faulted.add(trigger_id)
            books.files.quarantine(path, f"the trigger could not be looked at: {error!r}")
            books.events.trigger_changed(trigger_id)
        else:
            self._agenda.look_at(trigger_id, now + LOOK_AGAIN)

    def _look_back(self, now: datetime) -> bool:
        """The clock was set back: slots planned far ahead of it are planned anew."""
        far = [id_ for id_, due in self._agenda.planned() if self._is_far(id_, due, now)]
        for trigger_id in far:
            self._books.events.trigger_changed(trigger_id)
        return bool(far)

    def _is_far(self, trigger_id: str, due: datetime, now: datetime) -> bool:
        trigger = self._accepted(trigger_id)
        if trigger is None or trigger.schedule is None:
            return trigger is not None
        zone = self._books.settings.zone
        return schedule.is_far_ahead(trigger.schedule, due, now=now, zone=zone)

    def _look(self, trigger_id: str, now: datetime) -> bool:
        """A trigger's time has come, or something it waits for has happened."""
        stamp = self._books.files.stat(paths.trigger(trigger_id))
        if stamp is None or stamp != self._stamps.get(trigger_id):
            self.refresh(trigger_id, now)  # it was edited: state and agenda are of the old one
            return True
        trigger = self._accepted(trigger_id)
        if trigger is None or not trigger.enabled:
            return False
        state = registry.state(self._books.files, trigger_id)
        if state.firing is not None:
            self._books.events.trigger_changed(trigger_id)  # there it is carried out first
            return False
        if trigger.condition is not None:
            return self._judge(trigger, trigger.condition, state, now)
        return self._fire_slot(trigger, state, now)

    def _accepted(self, trigger_id: str) -> Trigger | None:
        """The definition as it was taken up; its file is as it was then."""
        if trigger_id in self._reported:
            return registry.last_good(self._books.files, trigger_id)
        return registry.active(self._books.files, trigger_id)[0]

    def _fire_slot(self, trigger: Trigger, state: TriggerState, now: datetime) -> bool:
        """The clock reached a slot."""
        slot = state.next_run_at
        if trigger.schedule is None or slot is None or slot > now:
            self._books.events.trigger_changed(trigger.id)
            return False
        run = make_run(trigger, schedule.slot_name(slot), now)
        missed = self._missed(trigger, slot, now)
        if self._is_settled(trigger, run, schedule.slot_name(slot)):
            self._save_next(trigger, state, slot, now)
        elif (
            trigger.schedule.run_at is None
            and trigger.overlap == "skip"
            and judging.is_at_it(self._books, state)
        ):
            self._write_slot(
                trigger,
                schedule.slot_name(slot),
                now,
                state="skipped",
                reason="overlap",
                missed=missed,
            )
            self._save_next(trigger, state.but(last_verdict="skipped"), slot, now)
        else:
            intent = FiringIntent(
                slot=schedule.slot_name(slot),
                task=run,
                fired_at=now,
                planned_at=slot,
                missed=missed,
            )
            self._fire(trigger, state, intent)
        return True

    def _save_next(
        self, trigger: Trigger, state: TriggerState, slot: datetime, now: datetime
    ) -> None:
        """Go on to the slot after this one, which had no run of its own."""
        following = self._following(trigger, slot, now)
        if trigger.schedule is not None and trigger.schedule.run_at is not None:
            registry.remove(self._books.files, trigger.id)
        else:
            registry.save_state(self._books.files, trigger.id, state.but(next_run_at=following))
        self._agenda.look_at(trigger.id, following)
        self._books.feed.tell("trigger", id=trigger.id)

    def _fire(self, trigger: Trigger, state: TriggerState, intent: FiringIntent) -> None:
        """Decide, for good, on one firing; then carry it out."""
        decided = state.but(firing=intent)
        registry.save_state(self._books.files, trigger.id, decided)
        self._finish(trigger, decided, intent)

    def _finish(self, trigger: Trigger, state: TriggerState, intent: FiringIntent) -> None:
        """Carry a decided firing out.

        Crash: the intent stands in the state until the last step, and every step may be repeated.
        """
        books, task, now = self._books, intent.task, intent.fired_at
        queue.submit(books.files, task)
        books.feed.tell("task", id=task.id, seat=task.role)
        late = intent.planned_at if intent.planned_at != now else None
        self._write_slot(
            trigger, intent.slot, now, state="ran", taskId=task.id, missed=intent.missed,
            plannedAt=late,
        )  # fmt: skip
        if trigger.once or (trigger.schedule is not None and trigger.schedule.run_at is not None):
            registry.remove(books.files, trigger.id)
            self._forget(trigger.id)
        else:
            fired = state.but(
                firing=None,
                last_run_at=now,
                last_triggered_at=now,
                next_run_at=self._following(trigger, intent.planned_at, now),
                fire_count=state.fire_count + 1,
                last_task_id=task.id,
                last_verdict="ran",
                seen={**state.seen, **intent.seen},
                answers={},
                false_streak=0,
            )
            registry.save_state(books.files, trigger.id, fired)
            self._wait_after(trigger, fired, now)
        books.feed.tell("trigger", id=trigger.id)

    def _wait_after(self, trigger: Trigger, fired: TriggerState, now: datetime) -> None:
        """After a firing: the next slot, the end of the cooldown, or the next event."""
        if trigger.condition is None:
            self._agenda.look_at(trigger.id, fired.next_run_at)
            return
        cooldown = conditions.cooldown_of(trigger.condition, trigger.cooldown)
        cools_until = judging.cool_at(now, cooldown)
        again = cools_until or self._next_look(fired, trigger.id, now)
        self._agenda.look_at(trigger.id, again)
        self.asks.pop(trigger.id, None)
        if conditions.questions(trigger.condition):
            self._agenda.look_soon([trigger.id])

    def _write_slot(self, trigger: Trigger, slot: str, now: datetime, **facts: Any) -> None:
        """The state of one slot, once: a repeated firing finds its line."""
        if self._books.ledger.newest_slot(trigger.id) != slot:
            facts["missed"] = facts.get("missed") or None
            title = trigger.title or None
            self._books.ledger.write("slot", trigger.id, now, slot=slot, title=title, **facts)

    def _following(self, trigger: Trigger, slot: datetime | None, now: datetime) -> datetime | None:
        if trigger.schedule is None or slot is None:
            return None
        return schedule.next_run_at(
            trigger.schedule,
            now=now,
            planned=slot,
            last_run_at=now,
            created_at=trigger.created_at,
            zone=self._books.settings.zone,
        )

    def _missed(self, trigger: Trigger, slot: datetime, now: datetime) -> int:
        if trigger.schedule is None:
            return 0
        return schedule.missed_after(
            trigger.schedule, slot, now=now, zone=self._books.settings.zone
        )

    def _piles_up(self, trigger: Trigger, state: TriggerState) -> bool:
        """Whether this run would come on top of one that is not over, and shall not."""
        recurs = trigger.schedule is not None and trigger.schedule.run_at is None
        return recurs and trigger.overlap == "skip" and judging.is_at_it(self._books, state)

    def _is_settled(self, trigger: Trigger, run: Task, slot: str) -> bool:
        """Whether this slot ran or was skipped: the clock went back over it, or a crash came."""
        if self._books.ledger.newest_slot(trigger.id) == slot:
            return True
        return queue.where(self._books.files, run.role, run.id) is not None

    def _judge(
        self, trigger: Trigger, condition: Condition, state: TriggerState, now: datetime
    ) -> bool:
        """Look at a condition; fire if it is time, else say when to look again."""
        began = self._books.clock.monotonic()
        found = judging.look(self._books, self._workspace, trigger, condition, state, now)
        self._note_cost(trigger.id, self._books.clock.monotonic() - began, now)
        if found.fires is not None:
            self._fire(trigger, found.state, found.fires)
            if found.more:
                self._agenda.look_soon([trigger.id])
            return True
        if found.asks:
            self.asks[trigger.id] = found.asks
        else:
            self.asks.pop(trigger.id, None)
        if found.state != state:
            registry.save_state(self._books.files, trigger.id, found.state)
            self._books.feed.tell("trigger", id=trigger.id)
        if found.state.blocked_by != state.blocked_by:
            self._agenda.tell(trigger.id)
        if found.waits_for is not None:
            self._agenda.look_after(found.waits_for, trigger.id)
        again = found.cools_until or self._next_look(found.state, trigger.id, now, found.waits_for)
        self._agenda.look_at(trigger.id, again)
        return False

    def _note_cost(self, trigger_id: str, spent_s: float, now: datetime) -> None:
        if spent_s > _CHEAP_S:
            self._rests[trigger_id] = now + timedelta(seconds=spent_s * _SHARE)
        else:
            self._rests.pop(trigger_id, None)

    def _next_look(
        self, state: TriggerState, trigger_id: str, now: datetime, waits_for: str | None = None
    ) -> datetime | None:
        """When to look again though no event tells; None: not before one does."""
        times = [now + LOOK_AGAIN] if waits_for is not None else []
        if self._watch.is_blind(trigger_id):
            hopeless = any(verdict.why == "too_many" for verdict in state.verdicts.values())
            times.append(now + (LOOK_AGAIN if hopeless else POLL))
        counts = timedelta(seconds=self._books.settings.triggers.llm_eval_interval_s)
        times += [answer.at + counts for answer in state.answers.values()]
        return min((time for time in times if time > now), default=None)


def _known(state: TriggerState, trigger: Trigger, now: datetime, zone: ZoneInfo) -> TriggerState:
    """The state once this definition is known to be good; what was edited begins anew."""
    definition = trigger.to_dict()
    if state.last_good == definition:
        return state
    old = state.last_good or {}
    if trigger.schedule is not None:
        planned = state.next_run_at
        if state.last_good is not None and old.get("schedule") != definition["schedule"]:
            planned = schedule.next_run_at(
                trigger.schedule, now=now, planned=None, last_run_at=now, created_at=now, zone=zone
            )
        return state.but(
            last_good=definition, next_run_at=planned, seen={}, verdicts={}, blocked_by=None
        )
    if trigger.condition is None:
        return state
    before = registry.sound(state.last_good)
    if state.last_good is None or (before and before.condition == trigger.condition):
        return state.but(last_good=definition)
    seen = conditions.still_meant(before and before.condition, trigger.condition, state.seen)
    return state.but(
        last_good=definition, next_run_at=None, seen=seen, verdicts={}, answers={},
        last_eval_at=None, false_streak=0,
    )  # fmt: skip
