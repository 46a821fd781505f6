"""The only room that writes state: whole files, exclusive files, claims, lines, quarantine.

It works on the FileSystem seam and knows how a change is made safe (temp file, flush, rename, flush
of the folder), but not what the files mean. Errors of the disk come out as StorageError, so that a
caller needs to know one kind only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
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
    most_bytes,
    whole_lines,
    without_line_end,
)

OnEvent: TypeAlias = Callable[[str, dict[str, object]], None]

R = TypeVar("R", bound=Record)
TEMP_PREFIX = ".tmp-"
_BLOCK_BYTES = (2**16, 2**18, 2**20)
_NOT_YOURS = "expected a file of yours, got permission denied"
_STUCK = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV})
"""Why something can not be moved away, now or later."""


class Files:
    """Reads and writes of one state folder.

    durable: flush files and folders (survives power loss). Without it the order of steps is the
        same and a killed process loses nothing; a power cut may.
    """

    def __init__(self, fs: FileSystem, *, durable: bool = True) -> None:
        """Wrap `fs`; no folder is made before `make_folders`."""
        self.fs = fs
        self.durable = durable
        self._on_event: OnEvent | None = None
        self._stuck: dict[str, FileStat | None] = {}
        """What should be set aside and can not be moved; told once."""
        self._long_lines: dict[str, tuple[int, int, int]] = {}
        """Where a file has no line's end for more than a line: inode, begin, end. Of 100 files."""
        self._temp_owner = f"{os.getpid()}-{ids.own_start_time()}-{ids.boot_id()[:8]}"

    def on_event(self, listener: OnEvent) -> None:
        """Tell `listener` of each quarantine from now on, as (event name, facts)."""
        self._on_event = listener

    def make_folders(self, folders: Iterable[str] = paths.FOLDERS) -> None:
        """Create those folders that are missing: every one of the protocol, or these."""
        for folder in folders:
            with DiskErrors(folder):
                self.fs.make_dir(folder)

    # ---- whole files ----------------------------------------------------------------------

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace or create a file atomically; without `sync` a power cut may undo it.

        A folder that stands there is set aside.
        Crash: the old content or the new, never a mixture; a temp file may stay behind.
        """
        with DiskErrors(path):
            try:
                self._publish(path, data, self.fs.rename, sync=sync and self.durable)
            except IsADirectoryError:
                self.quarantine(path, "expected a plain file, got a folder")
                self._publish(path, data, self.fs.rename, sync=sync and self.durable)

    def create(self, path: str, data: bytes) -> bool:
        """Create a file that must not exist; False when it already does.

        Crash: the whole file or none. A replay finds it there and changes nothing, but makes sure
        of it: whoever created it may have died before its name was flushed. What is no file is
        set aside.
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
        """Rename atomically; False when `source` is gone: somebody else was faster.

        When the flush fails it is moved back, so that an error means the file is where it was;
        when not even that can be done, it has moved, and only a power cut may still undo it.
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
        """Remove a file for good; False when it was gone already."""
        with DiskErrors(path):
            try:
                self.fs.unlink(path)
            except FileNotFoundError:
                return False
            self._sync_folders(path)
            return True

    def read(self, path: str, *, most: int | None = None) -> bytes | None:
        """The bytes of a file; None when there is none.

        Raises:
            UnsafeFile: it is no plain file, not ours to read, or has more than `most` bytes.
        """
        with DiskErrors(path):
            try:
                return self.fs.read(path, most=most)
            except FileNotFoundError:
                return None
            except PermissionError:
                raise self._not_yours(path) from None

    def _not_yours(self, path: str) -> UnsafeFile:
        """What a file is that may not be read; a folder that is closed refuses for a while only.

        Raises:
            OSError: the folder around it is closed.
        """
        self.fs.stat(path)
        return UnsafeFile(f"{path}: {_NOT_YOURS}")

    def part(self, path: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; nothing when there is no file."""
        with DiskErrors(path), contextlib.suppress(FileNotFoundError, UnsafeFile):
            return self.fs.read(path, offset=offset, limit=limit)
        return b""

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def stat(self, path: str) -> FileStat | None:
        """Size, time and kind; None when nothing stands there."""
        with DiskErrors(path):
            return self.fs.stat(path)

    def stats(self, folder: str, *, suffix: str) -> dict[str, FileStat]:
        """The plain files of a folder by name, each with size and time, in one go."""
        with DiskErrors(folder):
            return {
                name: found
                for name, found in self.fs.stat_dir(folder)
                if found.kind == "file" and name.endswith(suffix) and not name.startswith(".")
            }

    def names(self, folder: str, *, suffix: str = ".json") -> list[str]:
        """Names of the files in a folder, sorted; temp files are never among them.

        In a folder of records what can be none by its name or kind is set aside, and what can not
        be moved is passed over: nothing else has to look for it.
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
                self.set_aside(f"{folder}/{name}", f"expected a plain file, got {got}")
            elif not records.fit(name[: -len(suffix)]):
                self.set_aside(f"{folder}/{name}", f"expected {records.expected}, got {name!r}")
            else:
                found.append(name)
        return sorted(found)

    def set_aside(self, path: str, reason: str) -> None:
        """Move to `corrupt/` what can be moved; the rest is passed over."""
        with contextlib.suppress(UnsafeFile):
            self.quarantine(path, reason)

    @contextlib.contextmanager
    def carried_out(self, path: str) -> Generator[None]:
        """Do in here what a record asks for: one that asks for what can not be is set aside."""
        try:
            yield
        except (BadInput, Refused, ValueError, OverflowError) as error:
            self.set_aside(path, f"it can not be carried out: {error}")

    # ---- records --------------------------------------------------------------------------

    def save(self, path: str, record: Record) -> None:
        """Write a record.

        Raises:
            BadRecord: it is larger than what is read again; nothing was written.
        """
        self.write(path, encode(record))

    def save_new(self, path: str, record: Record) -> bool:
        """Create the file of a record as `create` does; refuses what `save` refuses."""
        return self.create(path, encode(record))

    def load(self, path: str, model: type[R]) -> R | None:
        """Read a record; None when there is no file, or none that can be used.

        What does not fit, or names itself otherwise than its file, is moved to `corrupt/` with the
        reason beside it.

        Raises:
            UnsafeFile: it should be, and can not be moved.
        """
        try:
            if (data := self.read(path, most=most_bytes(model))) is None:
                return None
            record = decode(data, model)
            check_name(record, path)
        except (BadRecord, UnsafeFile) as error:
            self.quarantine(path, str(error))
            return None
        return record

    def peek(self, path: str, model: type[R]) -> R | None:
        """Read a record as `load` does, but leave what can not be used where it is.

        For readers that are not a folder's keeper: the web process must not move files.
        """
        return ReadOnlyFiles(self).load(path, model)

    def load_all(self, folder: str, model: type[R], names: Iterable[str] | None = None) -> list[R]:
        """Every usable record of a folder, or of these in it, by name; none holds up the others."""
        found: list[R] = []
        for name in self.names(folder) if names is None else names:
            with contextlib.suppress(UnsafeFile):
                if (record := self.load(f"{folder}/{name}", model)) is not None:
                    found.append(record)
        return found

    def quarantine(self, path: str, reason: str) -> None:
        """Move a file, or whatever stands there, to `corrupt/` with the reason beside it.

        Crash: the reason is written first, so a file in `corrupt/` always has one.

        Raises:
            UnsafeFile: it can not be moved; that is told once, and tried again when it has changed.
        """
        shown = path.encode(errors="backslashreplace").decode()
        label = re.sub(r"[^A-Za-z0-9._-]", "_", path)[-100:]
        target = f"{paths.CORRUPT}/{secrets.token_hex(4)}-{label}"
        with DiskErrors(path):
            stat = self.fs.stat(path)
            if path in self._stuck and self._stuck[path] == stat:
                raise UnsafeFile(f"{shown}: {reason}, and it can not be moved to {paths.CORRUPT}/")
            self.create(target + paths.REASON, f"{shown}\n{reason}\n".encode(errors="replace"))
            try:
                moved = self.move(path, target)
            except StorageError as error:
                self.remove(target + paths.REASON)
                if getattr(error.__cause__, "errno", None) not in _STUCK:
                    raise
                self._stuck[path] = stat
                self._tell("not_set_aside", path=shown, reason=reason, error=str(error))
                raise UnsafeFile(f"{shown}: {reason}; {error}") from None
            self._stuck.pop(path, None)
            if not moved:
                self.remove(target + paths.REASON)
            else:
                self._tell("quarantined", path=shown, reason=reason, kept=target)

    def _tell(self, event: str, **facts: object) -> None:
        if self._on_event is not None:
            self._on_event(event, facts)

    # ---- lines ----------------------------------------------------------------------------

    def append(self, path: str, value: object, *, sync: bool = True) -> int:
        """Append one JSON line; gives its offset in bytes.

        What is no file of ours is set aside, and a new one begun.
        Crash: the whole line, or a torn one that readers drop and the next writer closes.
        """
        with DiskErrors(path):
            fresh, line = self.fs.stat(path) is None, dump_line(value)
            try:
                offset = self.fs.append_line(path, line, sync=sync and self.durable)
            except (UnsafeFile, PermissionError):
                self.fs.stat(path)  # a folder that is closed is waited for
                self.quarantine(path, "expected a plain file of yours, got something else")
                fresh = True
                offset = self.fs.append_line(path, line, sync=sync and self.durable)
            if fresh and sync:
                self._sync_folders(path)
            return offset

    def lines(
        self, path: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        """Each line's end offset and object, within `limit` bytes from `offset` on.

        Torn and foreign ones are skipped, what is no file of ours is set aside; a file of any size
        costs little memory.
        """
        held, left = b"", sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, _BLOCK_BYTES[-1])
            data = self._block(path, offset, size)
            if data is None:
                return
            whole, begin = data.rfind(b"\n") + 1, offset - len(held)
            for end, value in whole_lines(held + data[:whole]):
                yield begin + end, value
            held = data[whole:] if whole else held + data
            offset += len(data)
            left = left - size if len(data) == size else 0
            if len(held) > MAX_RECORD_BYTES:  # no line of ours
                _, offset = self._long_line(path, offset - len(held), offset)
                held = b""

    def _long_line(self, path: str, begin: int, end: int) -> tuple[int, int]:
        """How far bytes without a line's end, too many for a line, reach; the longest is kept."""
        stat = self.stat(path)
        inode, known, upto = self._long_lines.get(path, (0, 0, 0))
        is_known = stat is not None and stat.inode == inode and stat.size >= upto
        if is_known and known <= end and begin <= upto:
            begin, end = min(begin, known), max(end, upto)
        begin, end = without_line_end(partial(self._block, path), begin, end)
        if stat is not None and not (is_known and end - begin <= upto - known):
            others = [one for one in self._long_lines.items() if one[0] != path][-99:]
            self._long_lines = dict([*others, (path, (stat.inode, begin, end))])
        if begin == 0 and not self._block(path, end, 1):
            self.set_aside(path, f"expected lines, got none in {end:,} bytes")
        return begin, end

    def _block(self, path: str, offset: int, size: int) -> bytes | None:
        """Bytes of a file of lines; None where there is none, or what is none was set aside."""
        with DiskErrors(path):
            try:
                return self.fs.read(path, offset=offset, limit=size)
            except FileNotFoundError:
                return None
            except UnsafeFile as error:
                reason = str(error)
            except PermissionError:
                reason = str(self._not_yours(path))
        self.set_aside(path, reason)
        return None

    def lines_back(
        self, path: str, *, upto: int = sys.maxsize, holding: bytes = b"\n", most: int = sys.maxsize
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        """Each line's offset and object, newest first; torn and foreign ones are skipped.

        Little more is read than is taken, as the blocks, from the end back, begin small.

        upto: lines that end after this offset are left out. holding: lines without it are passed
            over unparsed. most: no more bytes are read.
        """
        stat, sizes = self.stat(path), iter(_BLOCK_BYTES)
        start, size, rest = min(stat.size if stat else 0, upto), 0, b""
        while start > 0 and most > 0:
            size = min(next(sizes, size), start, most)
            start -= size
            most -= size
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
            if len(rest) > MAX_RECORD_BYTES:  # no line of ours
                end = start + len(rest) - rest.endswith(b"\n")
                start, _ = self._long_line(path, start, end)
                rest = b""

    # ---- locks and temps ------------------------------------------------------------------

    def settle(self, folders: Iterable[str], lines: Iterable[str]) -> None:
        """Flush what a killed process wrote and did not: names in folders, files of lines.

        What is seen after a kill is relied upon from then on; without this a power cut could still
        take it back.
        """
        if not self.durable:
            return
        for path in lines:
            # What is not ours is set aside by who reads it.
            with DiskErrors(path), contextlib.suppress(UnsafeFile, PermissionError):
                self.fs.sync_file(path)
        for folder in folders:
            with DiskErrors(folder):
                self.fs.sync_dir(folder)

    def lock(self, path: str) -> Lock | None:
        """Take a lock without waiting; None when another process holds it."""
        with DiskErrors(path):
            return self.fs.lock(path)

    def sweep_temps(self, folder: str) -> int:
        """Remove temp files whose owner is dead; gives how many. A living writer's are kept."""
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
        """Temp file, its flush, rename, flush of the folder."""
        folder, _, _ = path.rpartition("/")
        name = f"{TEMP_PREFIX}{self._temp_owner}-{secrets.token_hex(6)}"
        temp = f"{folder}/{name}".lstrip("/")
        try:
            self.fs.write_new(temp, data, sync=sync)
            rename(temp, path)
        except OSError:
            # A failed write or flush is never repeated on the same file.
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
    """State files as all but the consumer have them: create and read, never judge.

    The consumer keeps the folders: it alone moves a broken file to `corrupt/`. Functions of other
    rooms that `load` are given these files, and so leave in place what they can not read.
    """

    def __init__(self, files: Files) -> None:
        super().__init__(files.fs, durable=files.durable)

    def quarantine(self, path: str, reason: str) -> None:
        """Nothing: a broken file is its keeper's to move."""

    def names(self, folder: str, *, suffix: str = ".json") -> list[str]:
        """Of triggers also those whose name is no id: until they are moved, people are told."""
        if folder != paths.TRIGGERS:
            return super().names(folder, suffix=suffix)
        return sorted(name for name in self.stats(folder, suffix=suffix) if name.isprintable())
