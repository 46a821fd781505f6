"""Decides what follows from the end of a run: its report, and the circuit breaker of its trigger.

For a trigger's run the decision is first saved in the trigger's state, so that a replay after a
crash counts no failure twice and reports the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from datetime import timedelta
from typing import Literal

from mimikit.protocol import paths
from mimikit.protocol.models import REMINDER, Task
from mimikit.protocol.notify import NoticeKind, is_standing
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent, LastRun, PlanResult, Trigger, TriggerState
from mimikit.supervisor.store import Store
from mimikit.triggers import registry

Reporter = Literal["teller", "message"]
BREAKS_AT = 3
"""Identical failures in a row after which a trigger is paused."""
MAX_ERROR = 200
"""Characters of an error in a trigger's state."""
REPORT_COALESCE_WINDOW = timedelta(minutes=1)
"""A standing condition is reported once in this time; results of one request wait this long."""

LONG_RUN = timedelta(seconds=60)
"""A success of a shorter run is not sent to the notification channels."""


def after_end(
    trigger: Trigger,
    state: TriggerState,
    task: Task,
    result: TaskResult,
    *,
    is_inner_step: bool,
    under_way: Container[str],
) -> TriggerState:
    """The state of a trigger after a run; its `ends` say what follows from it. Pure.

    is_inner_step: other steps of a chain wait for it. under_way: runs not ended yet.
    """
    reporter = reporter_of(task, result, state, is_inner_step=is_inner_step)
    if result.status != "canceled":
        outcome = outcome_hash(result)
        is_change = state.last_outcome not in (None, outcome)
        state = state.but(last_outcome=outcome, changes=state.changes + is_change)
    # Not counted: runs ended from outside, and tasks of a trigger's plan (several to a run).
    counts = result.failure_reason not in ("canceled", "killed") and task.origin == "trigger"
    if counts:
        failure = _failure_hash(result) if result.status == "failed" else None
        is_again = failure is not None and failure == state.last_failure
        streak = state.failure_streak + 1 if is_again else int(failure is not None)
        state = state.but(last_failure=failure, failure_streak=streak)
    ended = EndIntent(told=reporter)
    if counts and trigger.enabled and state.failure_streak >= BREAKS_AT:
        ended = EndIntent(told="message", trips=True)
        state = state.but(paused_by="breaker")
    elif reporter and is_standing(trigger):
        ended, state = _coalesced(ended, state, task, result)
    ends = {id_: end for id_, end in state.ends.items() if id_ in under_way}
    return state.but(ends={**ends, task.id: ended}, last_end=last_run(result))


def reporter_of(
    task: Task, result: TaskResult, before: TriggerState | None, *, is_inner_step: bool = False
) -> Reporter | None:
    """Who reports a result: the Teller, a plain message, or nobody. Pure. Source: spec 0."""
    if task.profile == REMINDER:
        return "message"
    if task.internal or task.notify == "none" or result.failure_reason == "upstream":
        return None
    if is_inner_step and result.status == "canceled":
        return "message"
    notify = "failure" if is_inner_step and not task.notify_given else task.notify
    if task.improvement is not None and result.status != "done":
        return None
    if notify == "teller":
        return "message" if result.status == "canceled" else "teller"
    if notify == "failure":
        return "message" if result.status == "failed" else None
    if notify == "change":
        if result.status == "canceled":
            return None
        # The first run counts as a change.
        changed = before is None or before.last_outcome != outcome_hash(result)
        return "message" if changed or result.status == "failed" else None
    return "message"


def notice_kind(task: Task, outcome: TaskResult | PlanResult, end: EndIntent) -> NoticeKind | None:
    """What the notification channels tell of an end; None: nothing. Pure. Source: spec 6."""
    if end.trips:
        return "breaker"
    if end.told is None or outcome.status == "needs_input":
        return None
    if outcome.status != "done":
        return outcome.status
    if task.profile == REMINDER:
        return "reminder"
    is_long = outcome.completed_at - outcome.started_at >= LONG_RUN
    is_told = not task.internal and (task.profile == "specialist" or is_long)
    return "done" if is_told and task.profile != "deferred" else None


def last_run(result: TaskResult) -> LastRun:
    error = " ".join((result.error or "").split())
    return LastRun(
        task_id=result.id,
        status=result.status,
        at=result.completed_at,
        failure_reason=result.failure_reason,
        error=error[:MAX_ERROR] or None,
    )


def outcome_hash(result: TaskResult) -> str:
    """Hash of status and text, which `notify: change` compares."""
    return hashlib.sha256(f"{result.status}\x00{result.text}".encode()).hexdigest()[:16]


def _coalesced(
    end: EndIntent, state: TriggerState, task: Task, result: TaskResult
) -> tuple[EndIntent, TriggerState]:
    """Delay the report of a standing condition to the end of the window, if one is open."""
    now, last = result.completed_at, state.told_at
    if task.profile == REMINDER or last is None or abs(now - last) >= REPORT_COALESCE_WINDOW:
        return end, state.but(told_at=now)  # or the clock was set back
    at = last if now < last else last + REPORT_COALESCE_WINDOW
    return end.but(not_before=at), state.but(told_at=at)


def _failure_hash(result: TaskResult) -> str:
    """Hash of reason and error; without the output, which may contain a time."""
    return hashlib.sha256(f"{result.failure_reason}\x00{result.error}".encode()).hexdigest()[:16]


def settled_end(store: Store, task: Task, result: TaskResult, *, is_inner_step: bool) -> EndIntent:
    """What follows from the end of a run; for a trigger's run it is saved in its state, once."""
    files, trigger_id = store.files, task.source_trigger_id
    trigger, broken = registry.active(files, trigger_id) if trigger_id else (None, None)
    if trigger is None:
        return EndIntent(told=reporter_of(task, result, None, is_inner_step=is_inner_step))
    state = registry.state(files, trigger.id)
    if task.id not in state.ends:
        if broken is not None:  # a broken definition cannot be paused
            trigger = trigger.but(enabled=False)
        under_way = {
            id_
            for id_ in state.ends
            if any(files.exists(paths.running(seat, id_)) for seat in paths.QUEUES)
        }
        state = after_end(
            trigger, state, task, result, is_inner_step=is_inner_step, under_way=under_way
        )
        registry.save_state(files, trigger.id, state)
        store.feed.publish("trigger", id=trigger.id)
    return state.ends[task.id]


def plan_end(store: Store, task: Task | None, plan: PlanResult) -> EndIntent:
    """What follows from the end of a plan; one that started something reports through that."""
    works = plan.tasks or plan.triggers or plan.cancels or plan.commands
    reports = plan.status == "failed" or (plan.status == "done" and not works)
    reports = reports and (task is None or task.improvement is None)
    end = EndIntent(told="teller" if reports else None)
    started = plan.tasks or plan.triggers
    if task is None or task.source_trigger_id is None or plan.status == "needs_input" or started:
        return end
    result = TaskResult.of(
        task,
        plan.status,
        attempts=plan.attempts,
        started_at=plan.started_at,
        completed_at=plan.completed_at,
        failure_reason=plan.failure_reason,
        error=plan.error,
    )
    settled = settled_end(store, task, result, is_inner_step=False)
    return settled if settled.trips else end


def break_circuit(store: Store, task: Task) -> None:
    """Pause the trigger of a run that failed like those before it. Idempotent."""
    trigger_id = task.source_trigger_id or ""
    trigger, broken = registry.active(store.files, trigger_id)
    if trigger is not None and broken is None and trigger.enabled:
        store.files.save(paths.trigger(trigger_id), trigger.but(enabled=False))
        store.log.write("audit", "circuit_broken", triggerId=trigger_id, taskId=task.id)
        store.trigger_changed(trigger_id)
