"""Tasks on their way: submit, look up, finish, release, show.

Claiming is the storage's (a rename); everything here is a single step that may be replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from mimikit.errors import BadRecord, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import PlanResult, QueueName, Task, TaskResult
from mimikit.tasks import ledger, task_file

Where = Literal["queued", "running", "ended"]


def submit(files: Files, task: Task) -> bool:
    """Put a task into its queue; False when its id was used before (a replay, or a claim since).

    Crash: in the queue whole, or not at all.
    """
    if where(files, task.role, task.id) is not None:
        return False
    return files.save_new(paths.queued(task.role, task.id), task)


def where(files: Files, seat: QueueName, task_id: str) -> Where | None:
    """Which part of its way a task is on; None when this seat never had it.

    Looked up in the order tasks move, so that one moving meanwhile is not missed.
    """
    if files.exists(paths.queued(seat, task_id)):
        return "queued"
    if files.exists(paths.running(seat, task_id)):
        return "running"
    if files.exists(paths.result(seat, task_id)) or files.exists(paths.ended(seat, task_id)):
        return "ended"
    # Released meanwhile, from running back to the queue?
    return "queued" if files.exists(paths.queued(seat, task_id)) else None


@dataclass(frozen=True, slots=True)
class TaskLocation:
    """A task with the part of its way it is on."""

    task: Task
    where: Where


def find(
    files: Files, task_id: str, *, seats: tuple[QueueName, ...] = paths.QUEUES
) -> TaskLocation | None:
    """A task by its id, in any seat and on any part of its way."""
    for seat in seats:
        places: tuple[tuple[Where, str], ...] = (
            ("queued", paths.queued(seat, task_id)),
            ("running", paths.running(seat, task_id)),
            ("ended", paths.ended(seat, task_id)),
        )
        for place, path in places:
            if task := read(files, seat, path):
                return TaskLocation(task, place)
        # Released meanwhile, from running back to the queue?
        if task := read(files, seat, paths.queued(seat, task_id)):
            return TaskLocation(task, "queued")
    return None


def read(files: Files, seat: QueueName, path: str) -> Task | None:
    """The task a file of this seat holds, hand-made ones filled in; None when it holds none.

    A claim may die before what was missing is written down, so every folder is read like this.
    """
    try:
        stat, data = files.stat(path), files.read(path)
        if stat is None or data is None:
            return None
        seen_at = datetime.fromtimestamp(stat.mtime_ns / 1e9, UTC)
        return task_file.parse_task(path.rpartition("/")[2], data, seat, seen_at)
    except (BadRecord, UnsafeFile):
        return None


def finish(files: Files, result: TaskResult | PlanResult) -> bool:
    """Write how a run ended; False when that is written already, which then counts."""
    seat = "worker" if isinstance(result, TaskResult) else "planner"
    return files.save_new(paths.result(seat, result.id), result)


def release(files: Files, task: Task) -> None:
    """Bring a running task back to its queue for a next attempt; `task.released` is set.

    Crash: between the two steps it stands in running/ marked released, and recovery repeats the
    second step without counting an attempt.
    """
    if files.exists(paths.running(task.role, task.id)):  # or it is back already: a repetition
        files.save(paths.running(task.role, task.id), task)
        finish_release(files, task)


def finish_release(files: Files, task: Task) -> None:
    """The second step of a release: the rename back."""
    files.move(paths.running(task.role, task.id), paths.queued(task.role, task.id))


def leave_running(files: Files, seat: QueueName, task_id: str) -> None:
    """Put the definition of a finished task aside: the last step of its end."""
    files.move(paths.running(seat, task_id), paths.ended(seat, task_id))


TaskState = Literal["queued", "running", "done", "failed", "canceled"]


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    task: Task
    seat: QueueName
    state: TaskState
    result: TaskResult | None = None
    plan: PlanResult | None = None

    @property
    def started_at(self) -> datetime | None:
        """When its last attempt began, once it ended."""
        outcome = self.result or self.plan
        return outcome.started_at if outcome else None

    @property
    def completed_at(self) -> datetime | None:
        outcome = self.result or self.plan
        return outcome.completed_at if outcome else None

    @property
    def error(self) -> str | None:
        outcome = self.result or self.plan
        return outcome.error if outcome else None


def show(files: Files, task_id: str) -> TaskSnapshot | None:
    """One task; None when no folder has it."""
    found = find(files, task_id)
    if found is None:
        return None
    return _view(files, found.task, found.task.role, found.where)


def live(files: Files) -> list[TaskSnapshot]:
    """Every queued and running task, in the order they are taken."""
    places: tuple[tuple[Where, str], ...] = (("running", "running"), ("queued", "queue"))
    views = [
        _view(files, task, seat, where)
        for seat in paths.QUEUES
        for where, folder in places
        for name in files.names(f"{seat}/{folder}")
        # What can not be read is the storage's to judge, not a reader's.
        if (task := read(files, seat, f"{seat}/{folder}/{name}"))
    ]
    return sorted(views, key=lambda v: (v.state != "running", *task_file.order_of(v.task)))


def recent(files: Files, limit: int = 50) -> list[TaskSnapshot]:
    """The tasks that ended last, newest first."""
    views = (show(files, task_id) for task_id in ledger.ended_ids(files, limit))
    return [view for view in views if view is not None]


def _view(files: Files, task: Task, seat: QueueName, where: Where) -> TaskSnapshot:
    if where != "ended":
        return TaskSnapshot(task, seat, "queued" if where == "queued" else "running")
    if seat == "worker":
        result = files.peek(paths.result("worker", task.id), TaskResult)
        return TaskSnapshot(task, seat, result.status if result else "failed", result=result)
    settled = files.peek(paths.plan_done(task.id), PlanResult)
    plan = settled or files.peek(paths.result("planner", task.id), PlanResult)
    state: TaskState = "running" if plan is None else _plan_state(plan, settled is not None)
    return TaskSnapshot(task, seat, state, plan=plan)


def _plan_state(plan: PlanResult, settled: bool) -> TaskState:
    """A plan that asks is still at it until its question is answered."""
    if plan.status == "needs_input":
        return "done" if settled else "running"
    return plan.status
