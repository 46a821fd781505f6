"""How a task ends with its run: for good, with another attempt, or in a wait for its engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from mimikit.engines.base import Failed, Outcome
from mimikit.engines.circuit import MAX_REST_S
from mimikit.protocol.models import EndStatus, Task
from mimikit.roles.run import RunContext
from mimikit.tasks import queue
from mimikit.tasks.retry import WAITING, RunEnd, TaskEnd, after_run, result_of

MAX_ERROR_CHARACTERS = 100_000


def end_or_retry(
    context: RunContext,
    task: Task,
    outcome: Outcome,
    started: datetime,
    facts: Callable[[EndStatus], Mapping[str, object]],
    *,
    engine: str,
    retry_delay_s: float,
    final: bool = False,
) -> bool:
    """Write a task's end, or give it back for its next attempt; True when it ended.

    facts: what only the role knows of the result, by its fields.
    engine: who carried it out, or is waited for.
    final: trying again could not help.
    """
    now = context.clock.now()
    failed = outcome if isinstance(outcome, Failed) else None
    retry_at = failed and failed.retry_at
    for_tokens = outcome.reason == "budget"
    final = final or (for_tokens and retry_at is None)
    is_waiting = outcome.reason in WAITING and not for_tokens
    waits = context.engines.wait_of(engine, task.role) if is_waiting else None
    if waits is not None:  # the supervisor ends its wait; should it not, it comes by itself
        retry_at = max(waits.until or now, now) + timedelta(seconds=MAX_REST_S)
    ended = RunEnd(outcome.status, outcome.reason, retry_at, final=final)
    engine_retry_s = context.settings.limits.engine_retry_s
    match after_run(task, ended, now, retry_delay_s=retry_delay_s, engine_retry_s=engine_retry_s):
        case TaskEnd() as end:
            error = outcome.error and outcome.error[:MAX_ERROR_CHARACTERS]
            result = result_of(task, end, started, now, error=error)
            context.insist(lambda: queue.finish(context.files, result.but(**facts(end.status))))
            return True
        case release:
            if for_tokens:
                release = release.but(waits_for=context.usage.waits_for(task.id))
            elif is_waiting:
                # It serves again by now, or another does: nothing is to be waited for.
                is_over = failed is not None and failed.want is not None and waits is None
                is_over = is_over or _other_serves(context, task, engine)
                release = release.but(not_before=now) if is_over else release.but(waits_for=engine)
            context.insist(lambda: queue.release(context.files, release))
            if waits is not None and release.waits_for == engine:
                # Only now: what is not in its queue counts as taken away.
                context.engines.waits(task.role, task.id, engine, task.profile)
            return False


def _other_serves(context: RunContext, task: Task, engine: str) -> bool:
    """Whether another engine than the one that turned the task away can take it now."""
    choice = context.engines.for_role(task.role, task.profile)
    return choice.waiting is None and choice.engine.name != engine
