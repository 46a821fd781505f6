"""Tasks as they are shown: definition, part of the way, and outcome in one.

Reads only; used by page, terminal and context.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import PlanResult, Seat, Task, TaskResult
from mimikit.tasks import drop, ledger, queue

State = Literal["queued", "running", "done", "failed", "canceled"]


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task with everything known about it."""

    task: Task
    seat: Seat
    state: State
    result: TaskResult | None = None
    plan: PlanResult | None = None

    @property
    def started_at(self) -> datetime | None:
        """When its last attempt began, once it ended."""
        outcome = self.result or self.plan
        return outcome.started_at if outcome else None

    @property
    def completed_at(self) -> datetime | None:
        """When it ended."""
        outcome = self.result or self.plan
        return outcome.completed_at if outcome else None

    @property
    def error(self) -> str | None:
        """What went wrong, in words."""
        outcome = self.result or self.plan
        return outcome.error if outcome else None


def show(files: Files, task_id: str) -> TaskView | None:
    """One task; None when no folder has it."""
    found = queue.find(files, task_id)
    if found is None:
        return None
    return _view(files, found.task, found.task.role, found.where)


def live(files: Files) -> list[TaskView]:
    """Every queued and running task, in the order they are taken."""
    places: tuple[tuple[queue.Where, str], ...] = (("running", "running"), ("queued", "queue"))
    views = [
        _view(files, task, seat, where)
        for seat in paths.SEATS
        for where, folder in places
        for name in files.names(f"{seat}/{folder}")
        # What can not be read is the storage's to judge, not a reader's.
        if (task := queue.read(files, seat, f"{seat}/{folder}/{name}"))
    ]
    return sorted(views, key=lambda v: (v.state != "running", *drop.order_of(v.task)))


def recent(files: Files, limit: int = 50) -> list[TaskView]:
    """The tasks that ended last, newest first."""
    views = (show(files, task_id) for task_id in ledger.ended_ids(files, limit))
    return [view for view in views if view is not None]


def _view(files: Files, task: Task, seat: Seat, where: queue.Where) -> TaskView:
    if where != "ended":
        return TaskView(task, seat, "queued" if where == "queued" else "running")
    if seat == "worker":
        result = files.peek(paths.result("worker", task.id), TaskResult)
        return TaskView(task, seat, result.status if result else "failed", result=result)
    settled = files.peek(paths.plan_done(task.id), PlanResult)
    plan = settled or files.peek(paths.result("planner", task.id), PlanResult)
    state: State = "running" if plan is None else _plan_state(plan, settled is not None)
    return TaskView(task, seat, state, plan=plan)


def _plan_state(plan: PlanResult, settled: bool) -> State:
    """A plan that asks is still at it until its question is answered."""
    if plan.status == "needs_input":
        return "done" if settled else "running"
    return plan.status
