"""Hands a claimed task to its role; whatever goes wrong, the task gets an end."""

from __future__ import annotations

from datetime import datetime

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import QueueName, Task
from mimikit.roles.planner import run_plan
from mimikit.roles.run import RunContext
from mimikit.roles.worker import run_task
from mimikit.tasks import queue
from mimikit.tasks.after_run import TaskEnd, result_of


def work(context: RunContext, seat: QueueName, claimed: Task) -> bool:
    """Carry out one claimed task; True when it ended, False when it goes back for another try."""
    now = context.clock.now()
    cancel = context.live.start(claimed.id, seat, claimed.title or claimed.prompt, now)
    context.feed.tell("task", id=claimed.id, seat=seat)
    try:
        task = _begun(context, seat, claimed)
        return (
            run_plan(context, task, cancel)
            if seat == "planner"
            else run_task(context, task, cancel)
        )
    except Exception as error:
        if isinstance(error, StorageError) and context.stopping.is_set():
            raise  # recovery decides
        context.log.write("error", "run_fault", taskId=claimed.id, error=repr(error))
        _fail(context, seat, claimed, f"a fault of mimikit's own: {error}", now)
        return True
    finally:
        context.live.end(claimed.id)


def _fail(context: RunContext, seat: QueueName, task: Task, error: str, started: datetime) -> None:
    """Write that the task failed: whatever goes wrong, no claimed task is left without an end."""
    end = TaskEnd("failed", "error", task.attempts + 1)
    result = result_of(task.but(role=seat), end, started, context.clock.now(), error=error)
    context.insist(lambda: queue.finish(context.files, result))


def _begun(context: RunContext, seat: QueueName, task: Task) -> Task:
    """The task without the mark of its release, which would hide that this attempt began.

    Crash: before it is gone, no engine was started, and recovery brings the task back uncounted.
    """
    if not task.released:
        return task
    begun = task.but(released=False)
    context.insist(lambda: context.files.save(paths.running(seat, task.id), begun))
    return begun
