"""How a waiting task is claimed, so that it runs once: its file is renamed, and looked at again."""

from __future__ import annotations

import contextlib
from datetime import datetime

from mimikit.errors import StorageError
from mimikit.hueyfiles.folder import QueueFolder, WaitingFile
from mimikit.hueyfiles.owners import Claims
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES


class FileBytes(bytes):
    """The bytes of a file that know its name, and when it was first seen."""

    name: str
    seen_at: datetime

    def __new__(cls, data: bytes, name: str, seen_at: datetime) -> FileBytes:
        made = super().__new__(cls, data)
        made.name = name
        made.seen_at = seen_at
        return made


class TaskClaims(Claims):
    """A task's file is renamed from `queue/` to `running/`, once.

    The storage forgets a claim: it ends when the task does, or goes back for its next attempt. One
    consumer holds the lock of the state folder, so a claim needs no owner in its name.
    """

    def __init__(self, files: Files, folder: QueueFolder, running: str, claimed: set[str]) -> None:
        """`claimed`: here stands each name from before its rename until its run is over."""
        self._files = files
        self._folder = folder
        self._running = running
        self._claimed = claimed

    def claim(self, waiting: WaitingFile) -> FileBytes | None:
        """Read and validate, rename, and check that what was renamed is what was read.

        Crash: before the rename it waits; after it the run is counted, whether it began or not. A
        file that lacked fields lies in `running/` without them for a moment.
        """
        name = waiting.name
        source, target = f"{self._folder.path}/{name}", f"{self._running}/{name}"
        data = self._files.read(source, most=MAX_RECORD_BYTES)
        if data is None:
            return None
        entry = self._folder.inspect(name, data, waiting.seen_at)
        if entry[:2] != waiting.entry[:2]:
            self._folder.look([name])  # it changed: back to its new place in the order
            return None
        self._claimed.add(name)
        try:
            if not self._files.move(source, target):
                self._claimed.discard(name)
                return None
            if self._files.read(target, most=MAX_RECORD_BYTES) != data:
                self._files.move(target, source)
                self._claimed.discard(name)
                self._folder.look([name])
                return None
            if entry.fill is not None:
                # Not flushed: what is missing can be filled in again at any time.
                self._files.write(target, entry.fill, sync=False)
                data = entry.fill
        except StorageError:
            with contextlib.suppress(OSError):
                if self._files.fs.stat(source) is None:
                    self._files.fs.rename(target, source)
            self._claimed.discard(name)
            raise
        return FileBytes(data, name, waiting.seen_at)
