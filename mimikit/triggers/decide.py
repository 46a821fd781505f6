"""What follows from one look at a trigger. Pure: facts and `now` come in, nothing is changed.

`take_up` settles what is known once a definition is in force; `decide` whether it fires:
`decide_slot` for one that is due or was missed, `decide_condition` for a condition, and so for a
chain's next step; `after_firing` what is known when that has been done. Whoever calls them writes
it down.

A run's id follows from trigger and slot: deciding the same again gives the run that is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from mimikit.protocol.ids import derived_id
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import MOST_FILES, REMINDER, FileRef, Task, time_text
from mimikit.protocol.notify import notify_of
from mimikit.protocol.triggers import (
    Condition,
    FiringIntent,
    NodeVerdict,
    Schedule,
    Trigger,
    TriggerState,
)
from mimikit.triggers import conditions, schedule
from mimikit.triggers.conditions import Verdict

LOOK_AGAIN = timedelta(seconds=60)
"""How often a condition is looked at that waits for something of which an event should tell."""
POLL = timedelta(seconds=2)
"""How often files are looked at of which the kernel does not tell."""


class TriggerFacts(conditions.ConditionFacts, Protocol):
    """What is decided by, beside the trigger and its state."""

    zone: ZoneInfo
    """The workspace's, for a cron line without one."""
    answers_last: timedelta
    """So long what a model said counts."""

    def is_settled(self, slot: str, run: Task) -> bool:
        """Whether this slot ran or was skipped: the clock went back over it, or a crash came."""
        ...

    def is_blind(self) -> bool:
        """Whether files it looks at may change without anybody being told."""
        ...

    def is_live(self, task_id: str) -> bool: ...
    def bodies(self, deliveries: Sequence[str]) -> list[FileRef]:
        """What came with these by webhooks, oldest first."""
        ...

    def trace_of(self, task_id: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class SkippedSlot:
    """A slot without a run of its own."""

    slot: str
    reason: str
    missed: int
    """So many slots came after it, up to now."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a look. Nothing fires where `firing` is None."""

    state: TriggerState
    """What is known now; equal to what was known if nothing is new."""
    firing: FiringIntent | None = None
    more: bool = False
    """Whether more has happened than this firing uses up."""
    skipped: SkippedSlot | None = None
    lost_to: str | None = None
    """It is a step of a chain that can not run any more: that before it failed or was canceled."""
    is_over: bool = False
    """Its one time has been: it is to be removed."""
    is_early: bool = False
    """It was looked at for a slot that it does not wait for."""
    asks: dict[str, str] = field(default_factory=dict[str, str])
    """The questions (by node path) on which its condition depends."""
    waits_for: str | None = None
    """The run before, whose end is waited for."""
    look_at: datetime | None = None
    """When to look again though no event tells; None: not before one does."""


# ---- a definition is taken up


def take_up(
    trigger: Trigger,
    before: Trigger | None,
    state: TriggerState,
    now: datetime,
    *,
    is_new: bool,
    zone: ZoneInfo,
) -> Decision:
    """What is known once a definition is in force: made, edited, paused, resumed.

    `before`: the one that was accepted last; of use where `is_new`: this is good and is not that.
    """
    state = _accepted(trigger, before, state, now, zone) if is_new else state
    skipped: SkippedSlot | None = None
    plan, slot = trigger.schedule, state.next_run_at
    if not trigger.enabled:
        state = state if state.paused else state.but(paused=True)
    elif state.paused:  # while it was paused it had no slots: those that came are skipped
        if plan is not None and plan.run_at is None and slot is not None and slot <= now:
            missed = schedule.count_slots_after(plan, slot, now=now, zone=zone)
            skipped = SkippedSlot(time_text(slot), "paused", missed)
            state = state.but(next_run_at=_following(trigger, slot, now, zone))
        # Failures from before it was resumed do not count.
        state = state.but(paused=False, paused_by=None, failure_streak=0, last_failure=None)
    if plan is not None and (trigger.enabled or state.next_run_at is None):
        # A paused one keeps the slot it was paused at: at its resume that tells what it skipped.
        slot = schedule.slot_to_wait_for(
            plan,
            now=now,
            recorded=state.next_run_at,
            last_run_at=state.last_run_at,
            created_at=trigger.created_at,
            zone=zone,
        )
        state = state.but(next_run_at=slot)
    return Decision(state, skipped=skipped)


def _accepted(
    trigger: Trigger, before: Trigger | None, state: TriggerState, now: datetime, zone: ZoneInfo
) -> TriggerState:
    """The state once this definition is known to be good; what was edited begins anew."""
    definition = trigger.to_dict()
    if trigger.schedule is not None:
        planned, known = state.next_run_at, state.last_good
        if known is not None and known.get("schedule") != definition["schedule"]:
            planned = schedule.next_run_at(trigger.schedule, now=now, planned=None, zone=zone)
        return state.but(
            last_good=definition, next_run_at=planned, seen={}, verdicts={}, blocked_by=None
        )
    if trigger.condition is None:
        return state
    if state.last_good is None or (before and before.condition == trigger.condition):
        return state.but(last_good=definition)
    seen = conditions.still_meant(before and before.condition, trigger.condition, state.seen)
    return state.but(
        last_good=definition, next_run_at=None, seen=seen, verdicts={}, answers={},
        last_eval_at=None, false_streak=0,
    )  # fmt: skip


# ---- does it fire?


def decide(trigger: Trigger, state: TriggerState, facts: TriggerFacts, now: datetime) -> Decision:
    """Whether a trigger that is enabled fires now, and what else follows.

    `state`: what is known of it; no firing is under way.
    """
    if trigger.condition is not None:
        return decide_condition(trigger, trigger.condition, state, facts, now)
    if trigger.schedule is not None and state.next_run_at is not None:
        return decide_slot(trigger, trigger.schedule, state.next_run_at, state, facts, now)
    return Decision(state, is_early=True)


def decide_slot(
    trigger: Trigger,
    plan: Schedule,
    slot: datetime,
    state: TriggerState,
    facts: TriggerFacts,
    now: datetime,
) -> Decision:
    """A due slot runs, unless it has run or the run before is not over.

    A missed one runs late, once, however late; the slots after it that have passed too are counted
    and told, not made up.
    """
    if slot > now:
        return Decision(state, is_early=True)
    name = time_text(slot)
    run = make_run(trigger, name, now)
    missed = schedule.count_slots_after(plan, slot, now=now, zone=facts.zone)
    following = _following(trigger, slot, now, facts.zone)
    if facts.is_settled(name, run):
        is_over = plan.run_at is not None
        return Decision(state.but(next_run_at=following), is_over=is_over, look_at=following)
    if plan.run_at is None and _piles_up(trigger, state, facts):
        return Decision(
            state.but(last_verdict="skipped", next_run_at=following),
            skipped=SkippedSlot(name, "overlap", missed),
            look_at=following,
        )
    firing = FiringIntent(slot=name, task=run, fired_at=now, planned_at=slot, missed=missed)
    return Decision(state, firing=firing)


def decide_condition(
    trigger: Trigger, condition: Condition, state: TriggerState, facts: TriggerFacts, now: datetime
) -> Decision:
    """A condition fires where something new makes it hold and nothing hinders it.

    So a chain goes on: its next step is the trigger whose condition waits for the end of this one.
    """
    if state.last_triggered_at is not None and state.last_triggered_at > now:
        state = state.but(last_triggered_at=now)  # the clock was set back
    cooldown = conditions.cooldown_of(condition, trigger.cooldown)
    verdict = conditions.evaluate(condition, facts, state.seen, cooldown=cooldown)
    kept = {path: used for path, used in state.seen.items() if path not in verdict.forgets}
    found = state.but(
        seen={**kept, **verdict.baseline},
        initialized=True,
        verdicts=_verdicts(state, verdict, now),
        blocked_by=verdict.blocked_by,
    )
    if trigger.once and (lost_to := verdict.lost_to) is not None:
        return Decision(found, lost_to=lost_to)
    cools_until = conditions.cools_until(cooldown, state.last_triggered_at)
    if cools_until is not None and cools_until > now:
        said = "cooling" if verdict.root.holds else "waits"
        return Decision(found.but(last_verdict=said), look_at=cools_until)
    # A change is kept until the run before is over. A task's result is never added to another:
    # each has a firing of its own.
    can_wait = verdict.root.holds and verdict.root.keeps
    waits_for = found.last_task_id if can_wait and _piles_up(trigger, found, facts) else None
    if verdict.fires(cooldown) and waits_for is None:
        seen = {**found.seen, **verdict.root.uses}
        after = conditions.evaluate(condition, facts, seen, cooldown=cooldown)
        return Decision(
            found.but(verdicts=_verdicts(found, after, now)),
            firing=_edge_firing(trigger, found, verdict, facts, now),
            more=verdict.more,
        )
    found = found.but(last_verdict="overlap" if waits_for else "waits")
    prompts = conditions.questions(condition) if verdict.asks else {}
    return Decision(
        found,
        asks={path: prompts[path] for path in verdict.asks},
        waits_for=waits_for,
        look_at=_next_look(found, facts, now, waits_for),
    )


def _piles_up(trigger: Trigger, state: TriggerState, facts: TriggerFacts) -> bool:
    """Whether a run would come on top of one that is not over, and shall not."""
    last = state.last_task_id
    may_pile_up = trigger.overlap == "queue" or trigger.profile == REMINDER
    return not may_pile_up and last is not None and facts.is_live(last)


def _edge_firing(
    trigger: Trigger, state: TriggerState, verdict: Verdict, facts: TriggerFacts, now: datetime
) -> FiringIntent:
    """The firing of a condition; its slot is named by its number and what it uses up."""
    uses, upstream = verdict.root.uses, verdict.root.upstream
    digest = hashlib.sha256(dump_line(uses)).hexdigest()[:12]
    slot = f"{time_text(trigger.created_at)} #{state.fire_count + 1} {digest}"
    bodies = facts.bodies(verdict.root.deliveries) if verdict.root.deliveries else []
    run = make_run(trigger, slot, now, upstream=upstream, files=bodies)
    if upstream and trigger.origin == "file":  # a step made by hand knows no trace of its own
        run = run.but(trace_id=facts.trace_of(upstream[0]) or run.trace_id)
    return FiringIntent(slot=slot, task=run, fired_at=now, seen=uses)


def _verdicts(state: TriggerState, verdict: Verdict, now: datetime) -> dict[str, NodeVerdict]:
    """What each node was found to be; one that is as it was keeps the time it became so."""
    found: dict[str, NodeVerdict] = {}
    for path, node in verdict.nodes.items():
        new = NodeVerdict(holds=node.holds, why=node.why, facts=node.facts, at=now)
        old = state.verdicts.get(path)
        found[path] = old if old is not None and old.but(at=now) == new else new
    return found


# ---- after it


def after_firing(
    trigger: Trigger, state: TriggerState, firing: FiringIntent, zone: ZoneInfo
) -> TriggerState | None:
    """What is known once a firing is carried out; None: it fires once, and is gone."""
    if not trigger.stays:
        return None
    now = firing.fired_at
    return state.but(
        firing=None,
        last_run_at=now,
        last_triggered_at=now,
        next_run_at=_following(trigger, firing.planned_at, now, zone),
        fire_count=state.fire_count + 1,
        last_task_id=firing.task.id,
        last_verdict="ran",
        seen={**state.seen, **firing.seen},
        answers={},
        false_streak=0,
    )


def look_after_firing(
    trigger: Trigger, fired: TriggerState, facts: TriggerFacts, now: datetime
) -> datetime | None:
    """The next slot, the end of the cooldown, or where no event tells the next look."""
    if trigger.condition is None:
        return fired.next_run_at
    cooldown = conditions.cooldown_of(trigger.condition, trigger.cooldown)
    return conditions.cools_until(cooldown, now) or _next_look(fired, facts, now)


def _next_look(
    state: TriggerState, facts: TriggerFacts, now: datetime, waits_for: str | None = None
) -> datetime | None:
    times = [now + LOOK_AGAIN] if waits_for is not None else []
    if facts.is_blind():
        hopeless = any(verdict.why == "too_many" for verdict in state.verdicts.values())
        times.append(now + (LOOK_AGAIN if hopeless else POLL))
    times += [answer.at + facts.answers_last for answer in state.answers.values()]
    return min((time for time in times if time > now), default=None)


def _following(
    trigger: Trigger, slot: datetime | None, now: datetime, zone: ZoneInfo
) -> datetime | None:
    """The slot after this one, which is settled; None where there is none."""
    if trigger.schedule is None or slot is None:
        return None
    return schedule.next_run_at(trigger.schedule, now=now, planned=slot, zone=zone)


def make_run(
    trigger: Trigger,
    slot: str,
    now: datetime,
    upstream: tuple[str, ...] = (),
    files: Sequence[FileRef] = (),
) -> Task:
    """The run of a trigger for one slot; the same slot always gives the same id.

    `slot`: a planned time, a condition's edge or a command, by name; `upstream`: the tasks whose
    results it builds on; `files`: what it is given beside the trigger's own, the newest of many.
    """
    more = files[-(MOST_FILES - len(trigger.files)) :] if len(trigger.files) < MOST_FILES else ()
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
        parent_task_id=upstream[0] if upstream else trigger.parent_task_id,
        source_trigger_id=trigger.id,
        firing=trigger.stays,
        triggered_at=now,
        notify=notify_of(trigger),
        notify_given=trigger.notify_given,
        origin="trigger",
        trigger_origin=trigger.origin,
        allow_triggers=trigger.allow_triggers,
        upstream=list(upstream),
        remote=trigger.remote,
        timezone=(trigger.schedule and trigger.schedule.timezone) or trigger.timezone,
        locale=trigger.locale,
        files=[*trigger.files, *more],
    )
