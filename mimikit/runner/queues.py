"""The two queues on Huey: a waiting file is a Task of the protocol, claimed by a rename.

Each is a `TaskHuey` on a `TaskStorage`, with one registered function that runs the task; Huey's own
results, retries, revocations and schedule are not used.
"""

# Huey has no type annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from huey.api import Huey, crontab
from huey.api import Task as HueyTask

from mimikit.errors import BadRecord, BadSettings, StorageError
from mimikit.hueyfiles.folder import Glance, Inspect, QueueEntry, QueueFolder, WaitingFile
from mimikit.hueyfiles.owners import Claims, Owner
from mimikit.hueyfiles.serializer import JsonSerializer
from mimikit.hueyfiles.storage import ClaimStorage
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Task
from mimikit.protocol.records import MAX_RECORD_BYTES, encode
from mimikit.tasks import queue as task_queue

_REFUSED_S = 0.2


class FileBytes(bytes):
    """The bytes of a file, with its name and when it was first seen."""

    name: str
    seen_at: datetime

    def __new__(cls, data: bytes, name: str, seen_at: datetime) -> FileBytes:
        made = super().__new__(cls, data)
        made.name = name
        made.seen_at = seen_at
        return made


class TaskClaims(Claims):
    """Claims a task by renaming its file from `queue/` to `running/`.

    A claim has no owner in its name, as one consumer holds the lock of the state folder.
    """

    def __init__(self, files: Files, folder: QueueFolder, running: str, claimed: set[str]) -> None:
        """`claimed` has each name from before its rename until its run is over."""
        self._files = files
        self._folder = folder
        self._running = running
        self._claimed = claimed

    def claim(self, waiting: WaitingFile) -> FileBytes | None:
        """Read and validate, rename, and check that the file is still what was read.

        Crash: before the rename it waits; after it the attempt counts, whether it began or not. A
        hand-made file is in `running/` without defaults for a moment.
        """
        name = waiting.name
        source, target = f"{self._folder.path}/{name}", f"{self._running}/{name}"
        data = self._files.read(source, max_bytes=MAX_RECORD_BYTES)
        if data is None:
            return None
        entry = self._folder.inspect(name, data, waiting.seen_at)
        if entry[:2] != waiting.entry[:2]:
            self._folder.refresh([name])  # it changed, perhaps its order too
            return None
        self._claimed.add(name)
        try:
            if not self._files.move(source, target):
                self._claimed.discard(name)
                return None
            if self._files.read(target, max_bytes=MAX_RECORD_BYTES) != data:
                self._files.move(target, source)
                self._claimed.discard(name)
                self._folder.refresh([name])
                return None
            if entry.fill is not None:
                # Not flushed: the defaults can be filled in again.
                self._files.write(target, entry.fill, sync=False)
                data = entry.fill
        except StorageError:
            with contextlib.suppress(OSError):
                if self._files.fs.stat(source) is None:
                    self._files.fs.rename(target, source)
            self._claimed.discard(name)
            raise
        return FileBytes(data, name, waiting.seen_at)


class TaskStorage(ClaimStorage):
    """The files of one queue as messages, claimed as `FileBytes`.

    `inspect(name, data, seen_at)` gives a file's QueueEntry (its order) or raises BadRecord;
    `glance(name, data)` is a faster version for files of our programs, else None.
    """

    def __init__(
        self,
        queue: QueueName,
        files: Files,
        *,
        inspect: Inspect,
        glance: Glance | None = None,
        **options: Any,
    ) -> None:
        self._inspect, self._glance = inspect, glance
        self.claimed = set[str]()
        """Names claimed by a thread, from before their rename."""
        super().__init__(
            queue,
            files=files,
            base=paths.HUEY,
            queue=f"{queue}/queue",
            running=f"{queue}/running",
            **options,
        )

    def dequeue(self) -> bytes | None:
        """The next message; None: there is none, or a storage error."""
        try:
            return super().dequeue()
        except StorageError:
            time.sleep(_REFUSED_S)
            return None

    def new_folder(self) -> QueueFolder:
        return QueueFolder(
            self._files,
            self._queue,
            self._clock,
            inspect=self._inspect,
            glance=self._glance,
            settle_s=self._settle_s,
        )

    def new_claims(self, folder: QueueFolder, owner: Owner) -> Claims:
        return TaskClaims(self._files, folder, self._running, self.claimed)


class TaskHuey(Huey):
    """One queue as a Huey whose messages are Tasks of the protocol."""

    storage: TaskStorage

    def __init__(
        self, queue: QueueName, storage: TaskStorage, run: Callable[[QueueName, Task], None]
    ) -> None:
        """`run` runs a task, writes its outcome and never raises."""
        self._given_storage = storage
        super().__init__(queue, results=False, serializer=JsonSerializer())
        self.queue: QueueName = queue

        def run_task(task: Task) -> None:
            run(queue, task)
            storage.claimed.discard(f"{task.id}.json")  # not after an error: recovery handles it

        self._wrapper = self.task(name="run")(run_task)

    def create_storage(self) -> TaskStorage:
        return self._given_storage

    def task_of(self, task: Task) -> HueyTask:
        return self._wrapper.task_class((task,), {}, id=task.id, priority=task.priority)

    def deserialize_task(self, data: bytes) -> HueyTask:
        """Huey's task for a claimed, validated file."""
        if not isinstance(data, FileBytes):
            raise TypeError(f"expected a claimed file, got {type(data).__name__}")
        task, _ = task_queue.parse_task(data.name, data, self.queue, data.seen_at)
        return self.task_of(task)

    def is_revoked(self, task: Any, timestamp: datetime | None = None, peek: bool = True) -> bool:
        """Never: tasks are canceled by commands, not revoked by Huey."""
        return False

    def delete(self, key: str) -> bool:
        """Nothing: Huey would look for a revocation after every task."""
        return False

    def read_schedule(self, timestamp: datetime | None = None) -> list[HueyTask]:
        """Nothing: a delayed task has `notBefore` and waits in its queue."""
        return []

    def enqueue(self, task: HueyTask) -> Any:
        """Run a periodic task here; all others come as files."""
        return task.execute()

    def ring_at(self, name: str, cron: str, ring: Callable[[], None]) -> None:
        """Call `ring` in each minute that matches `cron` (five fields, UTC).

        Raises:
            BadSettings: `cron` is not valid.
        """
        names = ("minute", "hour", "day", "month", "day_of_week")
        try:
            fits = crontab(**dict(zip(names, cron.split(), strict=True)), strict=True)
        except ValueError as error:
            raise BadSettings(f"{name}: expected five cron fields, got {cron!r}: {error}") from None
        self.periodic_task(fits, name=f"bell-{name}")(ring)


def open_queue(
    queue: QueueName,
    files: Files,
    run: Callable[[QueueName, Task], None],
    is_known_id: Callable[[str], bool],
    **options: Any,
) -> TaskHuey:
    """Open a queue; `options` are those of `ClaimStorage`.

    is_known_id: whether an id was used before; a file with such an id is quarantined.
    """

    def inspect(name: str, data: bytes, seen_at: datetime) -> QueueEntry:
        task, whole = task_queue.parse_task(name, data, queue, seen_at)
        used = (paths.running(queue, task.id), paths.ended(queue, task.id))
        if is_known_id(task.id) or any(map(files.exists, used)):
            raise BadRecord(f"id already used: {task.id}; give the file another name", field="id")
        fill = None if whole else encode(task)
        return QueueEntry(task_queue.order_of(task), task_queue.ready_at(task), fill)

    def glance(name: str, data: bytes) -> QueueEntry | None:
        found = task_queue.glance(name, data)
        return QueueEntry(*found) if found else None

    storage = TaskStorage(queue, files, inspect=inspect, glance=glance, **options)
    return TaskHuey(queue, storage, run)
