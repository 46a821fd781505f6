"""Decides whether a trigger fires, and its next state. Pure: takes facts and `now`.

`accept_definition` takes a new or edited trigger into effect, `decide` decides whether it fires,
`after_firing` gives the state afterwards. Callers write the state. A run's id is derived from
trigger and slot, so the same decision gives the same run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Literal, Protocol
from zoneinfo import ZoneInfo

from mimikit.protocol.ids import derived_id
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import REMINDER, Task, time_text
from mimikit.protocol.notify import notify_of
from mimikit.protocol.triggers import (
    Condition,
    FileChanged,
    FiringIntent,
    NodeVerdict,
    Schedule,
    Trigger,
    TriggerState,
)
from mimikit.triggers import conditions, patterns, schedule
from mimikit.triggers.conditions import Verdict
from mimikit.triggers.patterns import Seen

RECHECK_EVERY = timedelta(seconds=60)
"""Recheck interval of a condition that waits for a run to end, in case the event is lost."""
SETTLE_CHECK = timedelta(seconds=1)
"""Recheck interval of files that are being written."""
LOOP_FIRES, LOOP_TIME = 20, timedelta(minutes=5)
"""More firings than this, by changes of files alone, are a loop."""
_SLACK = timedelta(milliseconds=20)
"""The clock of files is coarser than ours."""
POLL_EVERY = timedelta(seconds=2)
"""Poll interval of files without kernel events."""


class TriggerFacts(conditions.ConditionFacts, Protocol):
    """The inputs of a decision besides the trigger and its state."""

    zone: ZoneInfo
    """The workspace's, for cron lines without a zone."""
    answer_ttl: timedelta

    def was_handled(self, slot: str, run: Task) -> bool:
        """Whether this slot has already run or been skipped (before a crash or a clock jump)."""
        ...

    def needs_polling(self) -> bool:
        """Whether files of the condition may change without a kernel event."""
        ...

    def window_of(self, run_id: str) -> tuple[datetime, datetime] | None:
        """When an ended run of this trigger ran; None: not yet, or unknown."""
        ...

    def fires_behind(self, files: Seen) -> Sequence[datetime]:
        """The latest firings of other triggers during whose runs these files were changed."""
        ...

    def is_live(self, task_id: str) -> bool: ...
    def trace_of(self, task_id: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class SkippedSlot:
    slot: str
    reason: str
    missed: int
    """Number of later slots, up to now."""
    state: Literal["skipped", "missed"] = "skipped"


@dataclass(frozen=True, slots=True)
class Decision:
    """The next state of a trigger, and what its caller does."""

    state: TriggerState
    """Equal to the previous one if nothing changed."""
    firing: FiringIntent | None = None
    more: bool = False
    """Whether events remain for another firing."""
    skipped: SkippedSlot | None = None
    failed_task: str | None = None
    """The failed or canceled task of the previous step: this one can never run."""
    is_finished: bool = False
    """It has no further slot: remove the trigger."""
    not_due: bool = False
    loops: tuple[str, ...] = ()
    """Files that fired it too often: pause it instead."""
    asks: dict[str, str] = field(default_factory=dict[str, str])
    """llm_eval prompts to answer, by node path."""
    waits_for: str | None = None
    """The live run whose end it waits for."""
    next_check_at: datetime | None = None
    """When to recheck without an event."""


# ---- a new definition


def accept_definition(
    trigger: Trigger,
    before: Trigger | None,
    state: TriggerState,
    now: datetime,
    *,
    is_new: bool,
    zone: ZoneInfo,
) -> Decision:
    """Accept a definition that was created, edited, paused or resumed.

    `before`: the previously accepted one. `is_new`: this one differs from it.
    """
    state = _with_definition(trigger, before, state, now, zone) if is_new else state
    skipped: SkippedSlot | None = None
    plan, slot = trigger.schedule, state.next_run_at
    if not trigger.enabled:
        state = state if state.paused else state.but(paused=True)
    elif state.paused:  # slots that came while it was paused are skipped
        if plan is not None and plan.run_at is None and slot is not None and slot <= now:
            missed = schedule.count_slots_after(plan, slot, now=now, zone=zone)
            skipped = SkippedSlot(time_text(slot), "paused", missed)
            state = state.but(next_run_at=_next_slot(trigger, slot, now, zone))
            if state.next_run_at is None:
                return Decision(state, skipped=skipped, is_finished=True)
        # Earlier failures do not count.
        state = state.but(
            paused=False, paused_by=None, failure_streak=0, last_failure=None, change_fires=[]
        )
    if plan is not None and (trigger.enabled or state.next_run_at is None):
        # A paused trigger keeps its slot: on resume, skipped slots are counted from it.
        slot = schedule.slot_to_wait_for(
            plan,
            now=now,
            recorded=state.next_run_at,
            last_run_at=state.last_run_at,
            created_at=trigger.created_at,
            zone=zone,
        )
        state = state.but(next_run_at=slot)
    is_finished = plan is not None and trigger.enabled and state.next_run_at is None
    return Decision(state, skipped=skipped, is_finished=is_finished)


def _with_definition(
    trigger: Trigger, before: Trigger | None, state: TriggerState, now: datetime, zone: ZoneInfo
) -> TriggerState:
    """The state with this definition accepted; the progress of edited parts is reset."""
    definition = trigger.to_dict()
    if trigger.schedule is not None:
        planned, known = state.next_run_at, state.last_good
        if known is not None and known.get("schedule") != definition["schedule"]:
            planned = schedule.next_run_at(trigger.schedule, now=now, planned=None, zone=zone)
            state = state.but(schedule_fires=0)
        return state.but(
            last_good=definition, next_run_at=planned, seen={}, verdicts={}, blocked_by=None
        )
    if trigger.condition is None:
        return state
    if state.last_good is None or (before and before.condition == trigger.condition):
        return state.but(last_good=definition)
    seen = conditions.still_valid(before and before.condition, trigger.condition, state.seen)
    return state.but(
        last_good=definition, next_run_at=None, seen=seen, verdicts={}, answers={},
        last_eval_at=None, false_streak=0,
    )  # fmt: skip


# ---- firing


def decide(trigger: Trigger, state: TriggerState, facts: TriggerFacts, now: datetime) -> Decision:
    """Decide whether an enabled trigger without a firing in progress fires now."""
    if trigger.condition is not None:
        return decide_condition(trigger, trigger.condition, state, facts, now)
    if trigger.schedule is not None and state.next_run_at is not None:
        return decide_slot(trigger, trigger.schedule, state.next_run_at, state, facts, now)
    return Decision(state, not_due=True)


def decide_slot(
    trigger: Trigger,
    plan: Schedule,
    slot: datetime,
    state: TriggerState,
    facts: TriggerFacts,
    now: datetime,
) -> Decision:
    """Fire a due slot, unless it has already run or would overlap the previous run.

    A missed slot runs late, once; the slots missed after it are counted, not run. One later than
    `lateness` does not run, and the first slot that is not too late is next.
    """
    if slot > now:
        return Decision(state, not_due=True)
    name = time_text(slot)
    run = make_run(trigger, name, now)
    missed = schedule.count_slots_after(plan, slot, now=now, zone=facts.zone)
    following = _next_slot(trigger, slot, now, facts.zone)
    skipped: SkippedSlot | None = None
    if schedule.is_too_late(plan, slot, now):
        following = schedule.first_timely_slot(plan, slot, now=now, zone=facts.zone)
        before = now if following is None else min(now, following - timedelta(microseconds=1))
        missed = schedule.count_slots_after(plan, slot, now=before, zone=facts.zone)
        skipped = SkippedSlot(name, "late", missed, state="missed")
    elif plan.run_at is None and _would_overlap(trigger, state, facts):
        skipped = SkippedSlot(name, "overlap", missed)
    was_handled = facts.was_handled(name, run)
    if was_handled or skipped is not None:
        verdict = state.last_verdict if was_handled or skipped is None else skipped.state
        return Decision(
            state.but(last_verdict=verdict, next_run_at=following),
            skipped=None if was_handled else skipped,
            is_finished=following is None,
            next_check_at=following,
        )
    firing = FiringIntent(slot=name, task=run, fired_at=now, planned_at=slot, missed=missed)
    return Decision(state, firing=firing)


def decide_condition(
    trigger: Trigger, condition: Condition, state: TriggerState, facts: TriggerFacts, now: datetime
) -> Decision:
    """Fire when a new event makes the condition true, outside of cooldown and overlap."""
    if state.last_triggered_at is not None and state.last_triggered_at > now:
        state = state.but(last_triggered_at=now)  # the clock was set back
    state = _with_own_changes(condition, state, facts, now)
    cooldown = conditions.cooldown_of(condition, trigger.cooldown)
    verdict = conditions.evaluate(condition, facts, state.seen, cooldown=cooldown)
    seen_still = {
        path: used for path, used in state.seen.items() if path not in verdict.turned_false
    }
    evaluated = state.but(
        seen={**seen_still, **verdict.baseline},
        initialized=True,
        verdicts=_verdicts(state, verdict, now),
        blocked_by=verdict.blocked_by,
    )
    if trigger.once and (failed_task := verdict.failed_task) is not None:
        return Decision(evaluated, failed_task=failed_task)
    cooldown_end = conditions.cooldown_end(cooldown, state.last_triggered_at)
    if cooldown_end is not None and cooldown_end > now:
        outcome = "cooling" if verdict.root.holds else "waits"
        return Decision(evaluated.but(last_verdict=outcome), next_check_at=cooldown_end)
    # File changes wait for the previous run to end. Results do not: each fires separately.
    can_wait = verdict.root.holds and verdict.root.can_accumulate
    waits_for = (
        evaluated.last_task_id if can_wait and _would_overlap(trigger, evaluated, facts) else None
    )
    if verdict.fires(cooldown) and waits_for is None:
        seen = {**evaluated.seen, **verdict.root.consumes}
        after = conditions.evaluate(condition, facts, seen, cooldown=cooldown)
        firing = _edge_firing(trigger, evaluated, verdict, facts, now)
        return Decision(
            evaluated.but(verdicts=_verdicts(evaluated, after, now)),
            firing=firing,
            loops=tuple(firing.fired_by[:5]) if len(firing.change_fires) > LOOP_FIRES else (),
            more=verdict.more or verdict.unsettled,
        )
    evaluated = evaluated.but(last_verdict="overlap" if waits_for else "waits")
    prompts = conditions.questions(condition) if verdict.open_questions else {}
    return Decision(
        evaluated,
        asks={path: prompts[path] for path in verdict.open_questions},
        waits_for=waits_for,
        next_check_at=now + SETTLE_CHECK
        if verdict.unsettled and waits_for is None
        else _next_poll(evaluated, facts, now, waits_for),
    )


def _would_overlap(trigger: Trigger, state: TriggerState, facts: TriggerFacts) -> bool:
    """Whether a new run would overlap the last one against `overlap`."""
    last = state.last_task_id
    may_pile_up = trigger.overlap == "queue" or trigger.profile == REMINDER
    return not may_pile_up and last is not None and facts.is_live(last)


def _edge_firing(
    trigger: Trigger, state: TriggerState, verdict: Verdict, facts: TriggerFacts, now: datetime
) -> FiringIntent:
    """The firing of a condition; its slot is its number and a digest of the events consumed."""
    consumes, upstream = verdict.root.consumes, verdict.root.upstream
    digest = hashlib.sha256(dump_line(consumes)).hexdigest()[:12]
    slot = f"{time_text(trigger.created_at)} #{state.fire_count + 1} {digest}"
    run = make_run(trigger, slot, now, upstream=upstream)
    if upstream and trigger.origin == "file":  # a hand-written step joins its upstream's trace
        run = run.but(trace_id=facts.trace_of(upstream[0]) or run.trace_id)
    firing = FiringIntent(slot=slot, task=run, fired_at=now, seen=consumes)
    files = {
        name: entry
        for path, value in consumes.items()
        if (listing := patterns.as_listing(value)) is not None
        for name, entry in patterns.changes(_known(state, path), listing).items()
    }
    if not files or upstream:
        return firing
    earlier = {*state.change_fires, *facts.fires_behind(files)}
    fires = sorted(at for at in earlier if timedelta() <= now - at <= LOOP_TIME)
    return firing.but(fired_by=list(files), change_fires=[*fires, now][-LOOP_FIRES - 1 :])


def _known(state: TriggerState, path: str) -> Seen:
    return patterns.as_listing(state.seen.get(path)) or {}


def _with_own_changes(
    condition: Condition, state: TriggerState, facts: TriggerFacts, now: datetime
) -> TriggerState:
    """Note as seen what the last run changed itself, by the times of the files.

    Not a file that fired this run and is changed again: the user may have gone on. Then it fires
    once more, and what is changed during that run does not.
    """
    run = state.last_task_id
    window = facts.window_of(run) if run is not None and run != state.settled_run else None
    if window is None:
        return state
    start, end = window[0] - _SLACK, window[1] + _SLACK
    seen, again = dict(state.seen), list[str]()
    for path, node in conditions.walk(condition):
        known = patterns.as_listing(seen.get(path))
        if not isinstance(node, FileChanged) or known is None:
            continue
        files = patterns.list_all(node.params.path, facts.files)
        if files is None:
            continue
        for name, entry in patterns.changes(known, files).items():
            is_own = start.timestamp() <= entry[0] / 1e9 <= end.timestamp()
            is_cause = name in state.fired_by
            if name not in files:
                is_own = is_cause and now - end < POLL_EVERY  # as one that moves what it finds
            elif is_cause:
                again += [name] if is_own else []
                continue
            if is_own:
                known = patterns.as_before(known, files, [name])
        seen[path] = known
    return state.but(seen=seen, settled_run=run, fired_by=again)


def _verdicts(state: TriggerState, verdict: Verdict, now: datetime) -> dict[str, NodeVerdict]:
    """The verdict of each node; unchanged ones keep their time."""
    verdicts: dict[str, NodeVerdict] = {}
    for path, node in verdict.nodes.items():
        new = NodeVerdict(holds=node.holds, why=node.why, facts=node.facts, at=now)
        old = state.verdicts.get(path)
        verdicts[path] = old if old is not None and old.but(at=now) == new else new
    return verdicts


# ---- after a firing


def after_firing(
    trigger: Trigger, state: TriggerState, firing: FiringIntent, zone: ZoneInfo
) -> TriggerState | None:
    """The state after a firing; None: it was the last one, the trigger is to be removed."""
    now, plan = firing.fired_at, trigger.schedule
    following = _next_slot(trigger, firing.planned_at or now, now, zone)
    fires = state.schedule_fires + 1
    if trigger.once or (plan is not None and (following is None or fires >= (plan.times or inf))):
        return None
    return state.but(
        firing=None,
        last_run_at=now,
        last_triggered_at=now,
        next_run_at=following,
        fire_count=state.fire_count + 1,
        schedule_fires=fires if plan is not None else 0,
        last_task_id=firing.task.id,
        last_verdict="ran",
        seen={**state.seen, **firing.seen},
        fired_by=[name for name in firing.fired_by if name not in state.fired_by],
        change_fires=firing.change_fires,
        answers={},
        false_streak=0,
    )


def next_check_after_firing(
    trigger: Trigger, fired: TriggerState, facts: TriggerFacts, now: datetime
) -> datetime | None:
    """When to check next: the next slot, the end of the cooldown, or the next poll."""
    if trigger.condition is None:
        return fired.next_run_at
    cooldown = conditions.cooldown_of(trigger.condition, trigger.cooldown)
    return conditions.cooldown_end(cooldown, now) or _next_poll(fired, facts, now)


def _next_poll(
    state: TriggerState, facts: TriggerFacts, now: datetime, waits_for: str | None = None
) -> datetime | None:
    times = [now + RECHECK_EVERY] if waits_for is not None else []
    if facts.needs_polling():
        hopeless = any(verdict.why == "too_many" for verdict in state.verdicts.values())
        times.append(now + (RECHECK_EVERY if hopeless else POLL_EVERY))
    times += [answer.at + facts.answer_ttl for answer in state.answers.values()]
    return min((time for time in times if time > now), default=None)


def _next_slot(trigger: Trigger, slot: datetime, now: datetime, zone: ZoneInfo) -> datetime | None:
    if trigger.schedule is None:
        return None
    return schedule.next_run_at(trigger.schedule, now=now, planned=slot, zone=zone)


def make_run(trigger: Trigger, slot: str, now: datetime, upstream: tuple[str, ...] = ()) -> Task:
    """The task of one firing; its id is derived from trigger and slot.

    `slot`: a planned time, a condition's edge or a command; `upstream`: the tasks whose results
    become its input.
    """
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
        files=trigger.files,
    )
