"""Cancels a job: whatever waits or runs of a request, or the firings of a trigger at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Task
from mimikit.supervisor import chain_steps
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.triggers import registry


@dataclass(slots=True)
class _Progress:
    """How far a job is canceled."""

    asked: dict[str, None] = field(default_factory=dict[str, None])
    """Its tasks and steps that were to be canceled, whatever came of it."""
    pending: list[str] = field(default_factory=list[str])
    """Those of them that have not ended yet."""


class JobCanceler:
    """Cancels jobs; the supervisor's thread alone.

    Crash: nothing is kept here that disk does not tell; a job that is canceled again has less left.
    """

    def __init__(self, store: Store, cancel: Callable[[str, datetime], bool]) -> None:
        """`cancel` ends one task; False: it is to be asked again, as its run ends by and by."""
        self._store, self._cancel = store, cancel
        self._progress: dict[str, _Progress] = {}

    def cancel(self, job_id: str, now: datetime) -> int | None:
        """Cancel what is there of a job; how much that was, None: some has not ended yet.

        What a plan still began meanwhile is found as well: there is an end once nothing is left.
        """
        progress = self._progress.setdefault(job_id, _Progress())
        while True:
            progress.pending = [id_ for id_ in progress.pending if not self._cancel(id_, now)]
            if progress.pending:
                return None
            progress.asked |= dict.fromkeys(self._end_steps(job_id, now))
            found = [id_ for id_ in members(self._store.files, job_id) if id_ not in progress.asked]
            if not found:
                del self._progress[job_id]
                return len(progress.asked)
            progress.asked |= dict.fromkeys(found)
            progress.pending = found

    def _end_steps(self, job_id: str, now: datetime) -> Iterator[str]:
        """End the steps that wait, those of the job's trace; gives which."""
        store = self._store
        for trigger_id in registry.ids(store.files):
            if job_id.encode() not in (store.files.read(paths.trigger(trigger_id)) or b""):
                continue
            trigger = registry.active(store.files, trigger_id)[0]
            if trigger and trigger.trace_id == job_id and chain_steps.is_step(trigger):
                chain_steps.end_step(store, trigger, job_id, now, "it was canceled before it began")
                store.trigger_changed(trigger_id)
                yield trigger_id


def members(files: Files, job_id: str) -> list[str]:
    """The tasks of a job that wait, run or ask."""
    here = (queue.find(files, id_, seats=(seat,)) for seat, id_ in _candidates(files, job_id))
    of_it = (one.task.id for one in here if one and job_of(files, one.task) == job_id)
    return list(dict.fromkeys(of_it))


def job_of(files: Files, task: Task) -> str:
    """The job that a task is of, as it is shown."""

    def stays(trigger_id: str) -> bool:
        trigger, _ = registry.active(files, trigger_id)
        return trigger is not None and trigger.stays

    return queue.job_of(task, stays)


def _candidates(files: Files, job_id: str) -> Iterator[tuple[QueueName, str]]:
    """Those at work, and those in a queue whose file names the job, or no trace at all."""
    for seat in paths.QUEUES:
        for name in files.names(f"{seat}/queue"):
            id_ = name.removesuffix(queue.SUFFIX)
            data = files.read(paths.queued(seat, id_)) or b""
            if job_id.encode() in data or b'"traceId"' not in data:
                yield seat, id_
        for name in files.names(f"{seat}/running"):
            id_ = name.removesuffix(queue.SUFFIX)
            if not files.exists(paths.result(seat, id_)):  # else it is over
                yield seat, id_
    for name in files.names("planner/results"):  # plans whose question waits
        yield "planner", name.removesuffix(queue.SUFFIX)
