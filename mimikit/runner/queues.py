"""A queue of the product as a Huey.

Its file is the protocol's Task, its one registered function runs it, and Huey adds nothing of its
own (no results, retries, revocations, schedule).
"""

# Huey carries no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

from huey.api import Huey, PeriodicTask, crontab
from huey.api import Task as HueyTask
from huey.storage import BaseStorage

from mimikit.errors import BadSettings
from mimikit.hueyfiles.serializer import JsonSerializer, NamedBytes
from mimikit.protocol.files import decode
from mimikit.protocol.models import Seat, Task
from mimikit.tasks.drop import parse_task

_CRON_FIELDS = ("minute", "hour", "day", "month", "day_of_week")


class TaskHuey(Huey):
    """One seat of the product as a Huey: a message is the protocol's Task, nothing else."""

    def __init__(self, seat: Seat, storage: BaseStorage, run: Callable[[Seat, Task], None]) -> None:
        """Run each task of `seat` by `run`, which writes the outcome itself and never raises."""
        self._given_storage = storage
        super().__init__(seat, results=False, serializer=JsonSerializer())
        self.seat: Seat = seat

        def run_task(task: Task) -> None:
            run(seat, task)

        self._wrapper = self.task(name="run")(run_task)

    def create_storage(self) -> BaseStorage:
        """The seat's own."""
        return self._given_storage

    def task_of(self, task: Task) -> HueyTask:
        """The protocol's task as one of Huey's."""
        return self._wrapper.task_class((task,), {}, id=task.id, priority=task.priority)

    def serialize_task(self, task: HueyTask) -> NamedBytes:
        """The Task's JSON, as it lies in the queue."""
        (record,) = cast("tuple[Task]", task.args)
        return NamedBytes(record.to_json(), f"{record.id}.json")

    def deserialize_task(self, data: bytes) -> HueyTask:
        """Huey's task for a claimed file; the storage has validated it."""
        if isinstance(data, NamedBytes) and data.seen_at is not None:
            return self.task_of(parse_task(data.name, data, self.seat, data.seen_at))
        return self.task_of(decode(data, Task))

    def is_revoked(self, task: Any, timestamp: datetime | None = None, peek: bool = True) -> bool:
        """Never: tasks are canceled by the product, not revoked by Huey."""
        return False

    def delete(self, key: str) -> bool:
        """Nothing to delete: Huey would look for a revocation after every task."""
        return False

    def read_schedule(self, timestamp: datetime | None = None) -> list[HueyTask]:
        """Nothing: a task that must wait has `notBefore` and waits in its queue."""
        return []

    def enqueue(self, task: HueyTask) -> Any:
        """Put a task into the queue; a periodic one only rings."""
        if isinstance(task, PeriodicTask):
            return task.execute()
        return super().enqueue(task)

    def ring_at(self, name: str, cron: str, ring: Callable[[], None]) -> None:
        """Call `ring` in each minute that fits `cron` (five fields, UTC).

        Raises:
            BadSettings: it is not five fields that Huey's crontab knows.
        """
        fields = cron.split()
        if len(fields) != len(_CRON_FIELDS):
            raise BadSettings(f"{name}: expected five cron fields, got {cron!r}")
        try:
            fits = crontab(**dict(zip(_CRON_FIELDS, fields, strict=True)), strict=True)
        except ValueError as error:
            raise BadSettings(
                f"{name}: expected a cron expression, got {cron!r}: {error}"
            ) from None

        def run_bell() -> None:
            ring()

        self.periodic_task(fits, name=f"bell-{name}")(run_bell)
