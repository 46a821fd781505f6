"""Two kinds of Huey: one for any program, and the product's own, whose queue holds the tasks.

`ClaimHuey` is Huey on `ClaimStorage` with JSON: a message is done when it was executed, not when it
was read. `TaskHuey` is one seat of the product: its file is the protocol's Task, its one registered
function runs it, and Huey adds nothing of its own (no results, retries, revocations, schedule).
"""

# Huey carries no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from huey.api import Huey, PeriodicTask, crontab
from huey.api import Task as HueyTask
from huey.signals import SIGNAL_INTERRUPTED
from huey.storage import BaseStorage

from mimikit.errors import BadSettings
from mimikit.protocol.files import decode
from mimikit.protocol.models import Seat, Task
from mimikit.runner.claims import OwnedClaims
from mimikit.runner.serializer import JsonSerializer, NamedBytes
from mimikit.runner.storage import ClaimStorage
from mimikit.tasks.drop import parse_task

_CRON_FIELDS = ("minute", "hour", "day", "month", "day_of_week")


class ClaimHuey(Huey):
    """Huey on files, for any program: `huey = ClaimHuey("my-app", path="queue")`.

    Crash: a message is acknowledged after it was executed and what follows from it (result, retry,
    next in the pipeline) was written. Killed before that, it runs again at the next start.
    """

    storage_class = ClaimStorage

    def __init__(self, name: str = "huey", *, path: str | Path, **options: Any) -> None:
        """Take Huey's own options and `ClaimStorage`'s."""
        options.setdefault("serializer", JsonSerializer())
        super().__init__(name, path=path, **options)
        self.signal(SIGNAL_INTERRUPTED)(self._interrupted)

    def dequeue(self) -> HueyTask | None:
        """The next task; a message that is none, or of an unknown function, goes to `corrupt/`."""
        try:
            task = super().dequeue()
        except Exception as error:
            claims = self._claims()
            if claims is not None:
                claims.reject_held(f"expected a task of this program, got {error!r}")
            raise
        claims = self._claims()
        if task is not None and claims is not None:
            task.claim = claims.held()
        return task

    def execute(self, task: HueyTask, timestamp: datetime | None = None) -> Any:
        """Run a task; its message is done when this returns."""
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is None or claim is None:
            return super().execute(task, timestamp)
        try:
            value = super().execute(task, timestamp)
        except BaseException:
            # The thread ends: the claim is neither done nor to be repeated at once.
            claims.keep_held()
            raise
        if claims.held() == claim:
            claims.finish_held()
        return value

    def _interrupted(self, _signal: str, task: HueyTask) -> None:
        """A task was broken off in this thread: its message goes back to the queue.

        Huey also tells this of tasks that other threads are still at: those keep their claims, and
        the next start finds them without an owner.
        """
        claims = self._claims()
        held = claims.held() if claims is not None else None
        if claims is not None and held is not None and held == getattr(task, "claim", None):
            claims.return_held()

    def _claims(self) -> OwnedClaims | None:
        return self.storage.owned() if isinstance(self.storage, ClaimStorage) else None


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
