"""Reminders as tasks: no pool takes them, their end is their text, and when they were meant."""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json
from mimikit.protocol.models import Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.tasks.queue import finish

LATE = timedelta(minutes=1)
"""A reminder that comes so long after its time is told with the time it was meant for."""


def tell(files: Files, task: Task, planned_at: datetime | None, missed: int = 0) -> bool:
    """Bring a reminder to its end, which is its text: no pool takes it. False: it had come there.

    planned_at: when it was to be told; missed: how many later times of it have passed since.

    Crash: the result is there first, then the definition where a run's stands: without it this is
    done again, with it the start brings it to its end.
    """
    if files.exists(paths.ended("worker", task.id)):
        return False
    now = task.created_at
    result = TaskResult.of(task, "done", attempts=1, started_at=now, completed_at=now)
    data = {"text": task.prompt, **lateness(planned_at, now, missed)}
    finish(files, result.but(result=data))
    files.save(paths.running("worker", task.id), task)
    return True


def lateness(planned_at: datetime | None, now: datetime, missed: int = 0) -> dict[str, Json]:
    """What the result of a reminder says beside its text; of one that is on time nothing."""
    if planned_at is None or now - planned_at < LATE:
        return {}
    return {"plannedAt": time_text(planned_at), "missed": missed}
