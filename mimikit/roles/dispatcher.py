"""Hands a claimed task to its role; whatever goes wrong, the task gets an end."""

from __future__ import annotations

from datetime import datetime

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import Seat, Task
from mimikit.roles.planner import run_plan
from mimikit.roles.run import Office
from mimikit.roles.worker import run_task
from mimikit.tasks import queue
from mimikit.tasks.after_run import Finish, result_of


def work(office: Office, seat: Seat, claimed: Task) -> bool:
    """Carry out one claimed task; True when it ended, False when it goes back for another try."""
    now = office.clock.now()
    cancel = office.live.start(claimed.id, seat, claimed.title or claimed.prompt, now)
    office.feed.tell("task", id=claimed.id, seat=seat)
    try:
        task = _begun(office, seat, claimed)
        return (
            run_plan(office, task, cancel) if seat == "planner" else run_task(office, task, cancel)
        )
    except Exception as error:
        if isinstance(error, StorageError) and office.stopping.is_set():
            raise  # recovery decides
        office.log.write("error", "run_fault", taskId=claimed.id, error=repr(error))
        _fail(office, seat, claimed, f"a fault of mimikit's own: {error}", now)
        return True
    finally:
        office.live.end(claimed.id)


def _fail(office: Office, seat: Seat, task: Task, error: str, started: datetime) -> None:
    """Write that the task failed: whatever goes wrong, no claimed task is left without an end."""
    end = Finish("failed", "error", task.attempts + 1)
    result = result_of(task.but(role=seat), end, started, office.clock.now(), error=error)
    office.insist(lambda: queue.finish(office.files, result))


def _begun(office: Office, seat: Seat, task: Task) -> Task:
    """The task without the mark of its release, which would hide that this attempt began.

    Crash: before it is gone, no engine was started, and recovery brings the task back uncounted.
    """
    if not task.released:
        return task
    begun = task.but(released=False)
    office.insist(lambda: office.files.save(paths.running(seat, task.id), begun))
    return begun
