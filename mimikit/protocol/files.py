"""The only module that writes state: atomic writes, exclusive creates, moves, lines, quarantine.

How a change survives a crash is decided here (temp file, fsync, rename, fsync of the folder); what
the files mean is not known. Every OSError becomes a StorageError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeAlias, TypeVar

from mimikit.errors import BadInput, BadRecord, Refused, StorageError, UnsafeFile
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import DiskErrors, FileStat, FileSystem, Lock
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.models import Record
from mimikit.protocol.records import (
    MAX_RECORD_BYTES,
    check_name,
    decode,
    encode,
    max_record_bytes,
    whole_lines,
)

OnEvent: TypeAlias = Callable[[str, dict[str, object]], None]

R = TypeVar("R", bound=Record)
TEMP_PREFIX = ".tmp-"
LOCK_WAIT_S, _LOCK_POLL_S = 10.0, 0.002
_BLOCK_BYTES = (2**16, 2**18, 2**20)
_NOT_YOURS = "expected a file of yours, got permission denied"
_IMMOVABLE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV})


class Files:
    """Reads and writes one state folder.

    durable: fsync files and folders. Without it a killed process loses nothing, a power cut may.
    """

    def __init__(self, fs: FileSystem, *, durable: bool = True) -> None:
        self.fs = fs
        self.durable = durable
        self.on_event: OnEvent = lambda _event, _facts: None
        """Called with an event's name and facts for each quarantine."""
        self._immovable: dict[str, FileStat | None] = {}
        """Bad files that cannot be moved: each is reported once per change."""
        self._temp_owner = f"{os.getpid()}-{ids.own_start_time()}-{ids.boot_id()[:8]}"

    def make_folders(self, folders: Iterable[str] = paths.FOLDERS) -> None:
        for folder in folders:
            with DiskErrors(folder):
                self.fs.make_dir(folder)

    # ---- whole files ----------------------------------------------------------------------

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace or create a file atomically; a folder at its path is quarantined.

        Crash: the old content or the new; a temp file may be left. Not fsynced without `sync`.
        """
        with DiskErrors(path):
            try:
                self._publish(path, data, self.fs.rename, sync=sync and self.durable)
            except IsADirectoryError:
                self.quarantine(path, "expected a plain file, got a folder")
                self._publish(path, data, self.fs.rename, sync=sync and self.durable)

    def create(self, path: str, data: bytes) -> bool:
        """Create a file; False when it already exists. A non-file at its path is quarantined.

        Crash: the whole file or none. A replay only syncs the folder: the first call may have died
        before that.
        """
        with DiskErrors(path):
            found = self.fs.stat(path)
            if found is not None and found.kind != "file":
                self.quarantine(path, "expected a plain file, got something else")
                found = self.fs.stat(path)
            if found is None:
                with contextlib.suppress(FileExistsError):
                    self._publish(path, data, self.fs.rename_exclusive, sync=self.durable)
                    return True
            self._sync_folders(path)
            return False

    def move(self, source: str, target: str) -> bool:
        """Rename atomically; False when `source` is gone, as another process claimed it.

        If the sync fails it is moved back, so an error means that nothing was moved. If that fails
        too, it has moved, and only a power cut may still undo it.
        """
        with DiskErrors(source):
            try:
                self.fs.rename(source, target)
            except FileNotFoundError:
                if self.fs.stat(source) is not None:
                    raise
                return False
            try:
                self._sync_folders(source, target)
            except OSError:
                try:
                    self.fs.rename(target, source)
                except OSError:
                    return True
                raise
            return True

    def remove(self, path: str) -> bool:
        """Remove a file; False when there was none."""
        with DiskErrors(path):
            try:
                self.fs.unlink(path)
            except FileNotFoundError:
                return False
            self._sync_folders(path)
            return True

    def read(self, path: str, *, max_bytes: int | None = None) -> bytes | None:
        """Read a file; None when there is none.

        Raises:
            UnsafeFile: not a plain file, not readable, or larger than `max_bytes`.
        """
        with DiskErrors(path):
            try:
                return self.fs.read(path, max_bytes=max_bytes)
            except FileNotFoundError:
                return None
            except PermissionError:
                raise self._unreadable(path) from None

    def _unreadable(self, path: str) -> UnsafeFile:
        """The error for a file that must not be read.

        Raises:
            OSError: its folder is not accessible.
        """
        self.fs.stat(path)
        return UnsafeFile(f"{path}: {_NOT_YOURS}")

    def part(self, path: str, offset: int, limit: int) -> bytes:
        """Read at most `limit` bytes from `offset` on; empty when there is no file."""
        with DiskErrors(path), contextlib.suppress(FileNotFoundError, UnsafeFile):
            return self.fs.read(path, offset=offset, limit=limit)
        return b""

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def stat(self, path: str) -> FileStat | None:
        with DiskErrors(path):
            return self.fs.stat(path)

    def stats(self, folder: str, *, suffix: str) -> dict[str, FileStat]:
        """The plain files of a folder by name, from one scan."""
        with DiskErrors(folder):
            return {
                name: found
                for name, found in self.fs.stat_dir(folder)
                if found.kind == "file" and name.endswith(suffix) and not name.startswith(".")
            }

    def names(self, folder: str, *, suffix: str = ".json") -> list[str]:
        """Sorted names of the files in a folder, without temp files.

        In a folder of records, entries of the wrong name or kind are quarantined.
        """
        with DiskErrors(folder):
            listed = self.fs.list_dir(folder)
        records = paths.RECORDS.get(folder)
        found: list[str] = []
        for name, kind in listed:
            if not name.endswith(suffix) or name.startswith("."):
                continue
            if records is None or records.suffix != suffix:
                if kind != "folder":
                    found.append(name)
            elif kind != "file":
                got = "a folder" if kind == "folder" else "a link, fifo or device"
                self.try_quarantine(f"{folder}/{name}", f"expected a plain file, got {got}")
            elif not records.fit(name[: -len(suffix)]):
                self.try_quarantine(
                    f"{folder}/{name}", f"expected {records.expected}, got {name!r}"
                )
            else:
                found.append(name)
        return sorted(found)

    def try_quarantine(self, path: str, reason: str) -> None:
        """Quarantine a file if it can be moved; otherwise leave it."""
        with contextlib.suppress(UnsafeFile):
            self.quarantine(path, reason)

    @contextlib.contextmanager
    def quarantine_if_refused(self, path: str) -> Generator[None]:
        """Quarantine a record that cannot be applied in this block."""
        try:
            yield
        except (BadInput, Refused, ValueError, OverflowError) as error:
            self.try_quarantine(path, f"it cannot be carried out: {error}")

    # ---- records --------------------------------------------------------------------------

    def save(self, path: str, record: Record) -> None:
        """Write a record; BadRecord, and nothing is written, when it is too large."""
        self.write(path, encode(record))

    def save_new(self, path: str, record: Record) -> bool:
        return self.create(path, encode(record))

    def load(self, path: str, model: type[R]) -> R | None:
        """Read a record; None when there is none, or a bad one, which is quarantined.

        Raises:
            UnsafeFile: it is bad and cannot be moved.
        """
        try:
            return self._decoded(path, model)
        except (BadRecord, UnsafeFile) as error:
            self.quarantine(path, str(error))
        return None

    def peek(self, path: str, model: type[R]) -> R | None:
        """Read a record; None also for a bad one, which stays where it is."""
        with contextlib.suppress(BadRecord, UnsafeFile):
            return self._decoded(path, model)
        return None

    def _decoded(self, path: str, model: type[R]) -> R | None:
        if (data := self.read(path, max_bytes=max_record_bytes(model))) is None:
            return None
        record = decode(data, model)
        check_name(record, path)
        return record

    def load_all(self, folder: str, model: type[R], names: Iterable[str] | None = None) -> list[R]:
        """Load the valid records of a folder (or of these names), in the order of names."""
        found: list[R] = []
        for name in self.names(folder) if names is None else names:
            with contextlib.suppress(UnsafeFile):
                if (record := self.load(f"{folder}/{name}", model)) is not None:
                    found.append(record)
        return found

    def quarantine(self, path: str, reason: str) -> None:
        """Move whatever is at `path` to `corrupt/`, with the reason in a file beside it.

        Crash: the reason is written first, so a file in `corrupt/` always has one.

        Raises:
            UnsafeFile: it cannot be moved; logged once, tried again after the file has changed.
        """
        shown = path.encode(errors="backslashreplace").decode()
        label = re.sub(r"[^A-Za-z0-9._-]", "_", path)[-100:]
        target = f"{paths.CORRUPT}/{secrets.token_hex(4)}-{label}"
        facts: dict[str, object] = {"path": shown, "reason": reason}
        with DiskErrors(path):
            stat = self.fs.stat(path)
            if path in self._immovable and self._immovable[path] == stat:
                raise UnsafeFile(f"{shown}: {reason}, and it cannot be moved to {paths.CORRUPT}/")
            self.create(target + paths.REASON, f"{shown}\n{reason}\n".encode(errors="replace"))
            try:
                moved = self.move(path, target)
            except StorageError as error:
                self.remove(target + paths.REASON)
                if getattr(error.__cause__, "errno", None) not in _IMMOVABLE:
                    raise
                self._immovable[path] = stat
                self.on_event("not_set_aside", facts | {"error": str(error)})
                raise UnsafeFile(f"{shown}: {reason}; {error}") from None
            self._immovable.pop(path, None)
            if not moved:
                self.remove(target + paths.REASON)
            else:
                self.on_event("quarantined", facts | {"kept": target})

    # ---- lines ----------------------------------------------------------------------------

    def append(self, path: str, value: object, *, sync: bool = True) -> int:
        """Append one JSON line and return its byte offset; a non-file at its path is quarantined.

        Crash: the whole line, or a torn one that readers skip and the next writer ends.
        """
        with DiskErrors(path):
            fresh, line = self.fs.stat(path) is None, dump_line(value)
            try:
                offset = self.fs.append_line(path, line, sync=sync and self.durable)
            except (UnsafeFile, PermissionError):
                self.fs.stat(path)  # raises when the folder is not accessible
                self.quarantine(path, "expected a plain file of yours, got something else")
                fresh = True
                offset = self.fs.append_line(path, line, sync=sync and self.durable)
            if fresh and sync:
                self._sync_folders(path)
            return offset

    def lines(
        self, path: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        """Iterate over the end offset and object of each line in `limit` bytes from `offset` on.

        Torn, foreign and too long lines are skipped; a file is read in blocks.
        """
        partial, left = b"", sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, _BLOCK_BYTES[-1])
            data = self._block(path, offset, size)
            if data is None:
                return
            whole, begin = data.rfind(b"\n") + 1, offset - len(partial)
            if whole:
                for end, value in whole_lines(partial + data[:whole]):
                    yield begin + end, value
                partial = data[whole:]
            elif len(partial) <= MAX_RECORD_BYTES:  # the rest of a line too long is dropped
                partial += data
            offset += len(data)
            left = left - size if len(data) == size else 0

    def _block(self, path: str, offset: int, size: int) -> bytes | None:
        """Read from a file of lines; None when there is none, or it was quarantined."""
        with DiskErrors(path):
            try:
                return self.fs.read(path, offset=offset, limit=size)
            except FileNotFoundError:
                return None
            except UnsafeFile as error:
                reason = str(error)
            except PermissionError:
                reason = str(self._unreadable(path))
        self.try_quarantine(path, reason)
        return None

    def lines_back(
        self,
        path: str,
        *,
        upto: int = sys.maxsize,
        holding: bytes = b"\n",
        max_bytes: int = sys.maxsize,
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        """Iterate over the offset and object of each line, newest first; skips as `lines` does.

        The first blocks are small, as most callers need a few lines.

        upto: lines that end after this offset are skipped. holding: lines without it are skipped
            unparsed. max_bytes: how many to read.
        """
        stat, sizes = self.stat(path), iter(_BLOCK_BYTES)
        start, size, rest = min(stat.size if stat else 0, upto), 0, b""
        is_too_long = False
        while start > 0 and max_bytes > 0:
            size = min(next(sizes, size), start, max_bytes)
            start -= size
            max_bytes -= size
            block = self._block(path, start, size)
            if block is None:
                return
            data = block + rest
            # A block may begin inside a line, which is read with the block before.
            begin = data.find(b"\n") + 1 if start else 0
            rest, end = (data[:begin], len(data)) if begin or not start else (data, 0)
            while (at := data.rfind(holding, begin, end)) >= 0:
                end, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1
                with contextlib.suppress(BadRecord):
                    if stop:  # else it is torn
                        yield start + end, parse_object(data[end:stop])
            is_too_long = len(rest) > MAX_RECORD_BYTES or (is_too_long and b"\n" not in block)
            if is_too_long:  # without its end the line counts as torn
                rest = b""

    # ---- locks and temps ------------------------------------------------------------------

    def sync_written(self, folders: Iterable[str], lines: Iterable[str]) -> None:
        """Fsync what a killed process may have written without fsync: folders, and files of lines.

        Recovery relies on what it reads; without this a power cut could still undo it.
        """
        if not self.durable:
            return
        for path in lines:
            with DiskErrors(path), contextlib.suppress(UnsafeFile, PermissionError):
                self.fs.sync_file(path)
        for folder in folders:
            with DiskErrors(folder):
                self.fs.sync_dir(folder)

    def lock(self, path: str) -> Lock | None:
        with DiskErrors(path):
            return self.fs.lock(path)

    @contextlib.contextmanager
    def locked(self, path: str) -> Generator[None]:
        """Hold a lock that is always brief; StorageError when it is not free in time."""
        deadline = time.monotonic() + LOCK_WAIT_S
        while (lock := self.lock(path)) is None:
            if time.monotonic() > deadline:
                raise StorageError(f"{path}: another process holds the lock; try again")
            time.sleep(_LOCK_POLL_S)
        try:
            yield
        finally:
            lock.release()

    def sweep_temps(self, folder: str) -> int:
        """Remove temp files of dead processes; returns how many."""
        swept = 0
        with DiskErrors(folder):
            for name, kind in self.fs.list_dir(folder):
                is_temp = name.startswith(TEMP_PREFIX) and kind != "folder"
                if is_temp and not ids.writer_lives(name.removeprefix(TEMP_PREFIX)):
                    self.fs.unlink(f"{folder}/{name}")
                    swept += 1
        return swept

    def _publish(
        self, path: str, data: bytes, rename: Callable[[str, str], None], *, sync: bool
    ) -> None:
        """Temp file, fsync, rename, fsync of the folder."""
        folder, _, _ = path.rpartition("/")
        name = f"{TEMP_PREFIX}{self._temp_owner}-{secrets.token_hex(6)}"
        temp = f"{folder}/{name}".lstrip("/")
        try:
            self.fs.write_new(temp, data, sync=sync)
            rename(temp, path)
        except OSError:
            # A failed write or fsync is never repeated on the same file.
            with contextlib.suppress(OSError):
                self.fs.unlink(temp)
            raise
        if sync:
            self._sync_folders(path)

    def _sync_folders(self, *changed: str) -> None:
        if self.durable:
            for folder in dict.fromkeys(path.rpartition("/")[0] for path in changed):
                self.fs.sync_dir(folder)


class ReadOnlyFiles(Files):
    """State files for every process but the consumer, which alone quarantines bad files."""

    def __init__(self, files: Files) -> None:
        super().__init__(files.fs, durable=files.durable)

    def quarantine(self, path: str, reason: str) -> None:
        pass
