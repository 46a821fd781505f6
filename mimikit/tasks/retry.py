"""Decides after a run whether the task has ended, is retried, or waits. Pure; `queue` does it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from mimikit.protocol.models import EndStatus, FailureReason, Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult

MAX_INTERRUPTIONS = 3
WAITING: frozenset[FailureReason] = frozenset({"rate_limited", "engine_unavailable", "budget"})
"""Reasons that count as no attempt: the run did not start."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    status: EndStatus
    failure_reason: FailureReason | None = None
    retry_at: datetime | None = None
    final: bool = False
    """Not to be retried, whatever the task allows."""
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The task has ended: this was the last attempt."""

    status: EndStatus
    failure_reason: FailureReason | None
    attempts: int


def after_run(
    task: Task, ended: RunEnd, now: datetime, *, retry_delay_s: float, engine_retry_s: float
) -> TaskEnd | Task:
    """The end of the task, or the task as it goes back to its queue. Source: spec 2."""
    attempts = task.attempts + 1
    if ended.status in ("done", "canceled"):
        return TaskEnd(ended.status, "canceled" if ended.status == "canceled" else None, attempts)
    interruptions = task.interruptions + ended.interrupted
    is_over = ended.final or interruptions >= MAX_INTERRUPTIONS
    if ended.failure_reason in WAITING and not is_over:
        known = ended.retry_at if ended.retry_at and ended.retry_at > now else None
        wait_until = known or now + timedelta(seconds=engine_retry_s)
        return task.but(interruptions=interruptions, not_before=wait_until, released=True)
    if is_over or attempts >= task.max_attempts:
        return TaskEnd("failed", ended.failure_reason or "error", attempts)
    delay = retry_delay_s * 2 ** min(task.attempts, 20)
    return task.but(
        attempts=attempts,
        interruptions=interruptions,
        released=True,
        not_before=now + timedelta(seconds=min(delay, 86400)),
    )


def result_of(
    task: Task, end: TaskEnd, started_at: datetime, now: datetime, *, error: str | None = None
) -> TaskResult | PlanResult:
    """The result of a task that no engine finished: canceled, killed or refused."""
    kind = PlanResult if task.role == "planner" else TaskResult
    return kind.of(
        task,
        end.status,
        failure_reason=end.failure_reason,
        error=error,
        attempts=end.attempts,
        started_at=started_at,
        completed_at=now,
    )
