"""What the end of a trigger's run comes to: who is told and when, and the circuit breaker. Pure.

It is written into the trigger's state before anything follows from it, so that an end which is
carried out again after a crash counts no failure twice and tells what it told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from datetime import timedelta

from mimikit.protocol.models import REMINDER, Task
from mimikit.protocol.notify import is_standing
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent, Trigger, TriggerState
from mimikit.supervisor.code_turns import last_run, outcome_hash, telling

BREAKS_AT = 3
"""So many failures in a row that are alike pause a trigger."""
GATHERED = timedelta(minutes=1)
"""Runs of a standing condition are told at most so often; results of one request wait so long."""


def after_end(
    trigger: Trigger,
    state: TriggerState,
    task: Task,
    result: TaskResult,
    *,
    waited_for: bool,
    under_way: Container[str],
) -> TriggerState:
    """What is known of a trigger once a run of it has ended; under its `ends` what follows.

    under_way: runs whose end is not carried out yet.
    """
    told = telling(task, result, state, waited_for=waited_for)
    outcome, before = outcome_hash(result), state.last_outcome
    changed = result.status != "canceled" and before not in (None, outcome)
    if result.status != "canceled":
        state = state.but(last_outcome=outcome)
    # That it was ended from outside says nothing of how it would have gone; the tasks of a plan
    # that a trigger had made are several to a run.
    counts = result.failure_reason not in ("canceled", "killed") and task.origin == "trigger"
    if counts:
        failure = _failure_hash(result) if result.status == "failed" else None
        is_again = failure is not None and failure == state.last_failure
        streak = state.failure_streak + 1 if is_again else int(failure is not None)
        state = state.but(last_failure=failure, failure_streak=streak)
    ended = EndIntent(told=told, changed=changed)
    if counts and trigger.enabled and state.failure_streak >= BREAKS_AT:
        ended = ended.but(told="message", trips=True)
        state = state.but(paused_by="breaker")
    elif told and is_standing(trigger):
        ended, state = _gathered(ended, state, task, result)
    kept = {id_: end for id_, end in state.ends.items() if id_ in under_way}
    return state.but(ends={**kept, task.id: ended}, last_end=last_run(result))


def _gathered(
    end: EndIntent, state: TriggerState, task: Task, result: TaskResult
) -> tuple[EndIntent, TriggerState]:
    """When an edge of a standing condition is told: at once, or with what else comes by then."""
    now, last = result.completed_at, state.told_at
    if task.profile == REMINDER or last is None or not last - GATHERED < now < last + GATHERED:
        return end, state.but(told_at=now)  # or the clock was set back
    at = last if now < last else last + GATHERED
    return end.but(not_before=at), state.but(told_at=at)


def _failure_hash(result: TaskResult) -> str:
    """Why a run failed; what it printed, which may hold a time, does not count."""
    return hashlib.sha256(f"{result.failure_reason}\x00{result.error}".encode()).hexdigest()[:16]
