"""Hands a claimed task to its role; whatever goes wrong, the task gets an end."""

from __future__ import annotations

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import QueueName, Task
from mimikit.roles.planner import run_plan
from mimikit.roles.run import RunContext
from mimikit.roles.worker import run_task
from mimikit.tasks import queue
from mimikit.tasks.after_run import TaskEnd, result_of


def dispatch(context: RunContext, queue_name: QueueName, claimed: Task) -> bool:
    """Have a claimed task carried out; True when it ended, False when it is to be tried again.

    Crash: before the mark of its release is gone, which would hide that this attempt began, no
    engine was started, and recovery brings the task back uncounted.
    """
    started = context.clock.now()
    cancel = context.live.start(claimed.id, queue_name, claimed.title or claimed.prompt, started)
    context.feed.tell("task", id=claimed.id, seat=queue_name)
    try:
        task = claimed
        if claimed.released:
            task = claimed.but(released=False)
            context.insist(lambda: context.files.save(paths.running(queue_name, task.id), task))
        if queue_name == "planner":
            return run_plan(context, task, cancel)
        return run_task(context, task, cancel)
    except Exception as error:
        if isinstance(error, StorageError) and context.stopping.is_set():
            raise  # recovery decides
        context.log.write("error", "run_fault", taskId=claimed.id, error=repr(error))
        end = TaskEnd("failed", "error", claimed.attempts + 1)
        said = f"a fault of mimikit's own: {error}"
        now = context.clock.now()
        result = result_of(claimed.but(role=queue_name), end, started, now, error=said)
        context.insist(lambda: queue.finish(context.files, result))
        return True
    finally:
        context.live.end(claimed.id)
