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
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from pydantic import ValidationError

from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import FileStat, FileSystem, Lock
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.models import Record

OnEvent: TypeAlias = Callable[[str, dict[str, object]], None]

R = TypeVar("R", bound=Record)
TEMP_PREFIX = ".tmp-"
MAX_RECORD_BYTES = 16 * 2**20
_BLOCK_BYTES = (2**16, 2**18, 2**20)


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
        self._temp_owner = f"{os.getpid()}-{ids.own_start_time()}"
        self._temp_boot = ids.boot_id()[:8]

    def on_event(self, listener: OnEvent) -> None:
        """Tell `listener` of each quarantine from now on, as (event name, facts)."""
        self._on_event = listener

    def make_folders(self) -> None:
        """Create every folder of the protocol that is missing."""
        with _DiskErrors(paths.ROOT):
            for folder in paths.FOLDERS:
                self.fs.make_dir(folder)

    # ---- whole files ----------------------------------------------------------------------

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace or create a file atomically; without `sync` a power cut may undo it.

        Crash: the old content or the new, never a mixture; a temp file may stay behind.
        """
        with _DiskErrors(path):
            self._publish(path, data, self.fs.rename, sync=sync and self.durable)

    def create(self, path: str, data: bytes) -> bool:
        """Create a file that must not exist; False when it already does.

        Crash: the whole file or none. A replay finds it there and changes nothing, but makes sure
        of it: whoever created it may have died before its name was flushed.
        """
        with _DiskErrors(path):
            if self.fs.stat(path) is not None:
                self._sync_folders(path)
                return False
            try:
                self._publish(path, data, self.fs.rename_exclusive, sync=self.durable)
            except FileExistsError:
                self._sync_folders(path)
                return False
            return True

    def move(self, source: str, target: str) -> bool:
        """Rename atomically; False when `source` is gone: somebody else was faster.

        When the flush fails it is moved back, so that an error means the file is where it was;
        when not even that can be done, it has moved, and only a power cut may still undo it.
        """
        with _DiskErrors(source):
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
        with _DiskErrors(path):
            try:
                self.fs.unlink(path)
            except FileNotFoundError:
                return False
            self._sync_folders(path)
            return True

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None when there is none."""
        with _DiskErrors(path):
            try:
                return self.fs.read(path)
            except FileNotFoundError:
                return None

    def part(self, path: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; nothing when there is no file."""
        with _DiskErrors(path), contextlib.suppress(FileNotFoundError, UnsafeFile):
            return self.fs.read(path, offset=offset, limit=limit)
        return b""

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def stat(self, path: str) -> FileStat | None:
        """Size, time and kind; None when nothing stands there."""
        with _DiskErrors(path):
            return self.fs.stat(path)

    def stats(self, folder: str, *, suffix: str) -> dict[str, FileStat]:
        """The plain files of a folder by name, each with size and time, in one go."""
        with _DiskErrors(folder):
            return {
                name: found
                for name, found in self.fs.stat_dir(folder)
                if found.kind == "file" and name.endswith(suffix) and not name.startswith(".")
            }

    def names(self, folder: str, *, suffix: str = ".json") -> list[str]:
        """Names of the files in a folder, sorted; temp files are never among them."""
        with _DiskErrors(folder):
            return sorted(
                name
                for name, kind in self.fs.list_dir(folder)
                if kind != "folder" and name.endswith(suffix) and not name.startswith(".")
            )

    # ---- records --------------------------------------------------------------------------

    def save(self, path: str, record: Record) -> None:
        self.write(path, record.to_json())

    def save_new(self, path: str, record: Record) -> bool:
        return self.create(path, record.to_json())

    def load(self, path: str, model: type[R]) -> R | None:
        """Read a record; None when there is no file, or none that can be used.

        What does not fit is moved to `corrupt/` with the reason beside it.
        """
        try:
            data = self.read(path)
            return None if data is None else decode(data, model)
        except (BadRecord, UnsafeFile) as error:
            self.quarantine(path, str(error))
            return None

    def peek(self, path: str, model: type[R]) -> R | None:
        """Read a record as `load` does, but leave what can not be used where it is.

        For readers that are not a folder's keeper: the web process must not move files.
        """
        return ReadOnlyFiles(self).load(path, model)

    def load_all(self, folder: str, model: type[R]) -> list[R]:
        """Every usable record of a folder, by name."""
        found = (self.load(f"{folder}/{name}", model) for name in self.names(folder))
        return [record for record in found if record is not None]

    def quarantine(self, path: str, reason: str) -> None:
        """Move a file to `corrupt/` unchanged, with the reason beside it; told once.

        Crash: the reason is written first, so a file in `corrupt/` always has one.
        """
        label = re.sub(r"[^A-Za-z0-9._-]", "_", path)[-100:]
        target = f"{paths.CORRUPT}/{secrets.token_hex(4)}-{label}"
        with _DiskErrors(path):
            self.create(target + paths.REASON, f"{path}\n{reason}\n".encode(errors="replace"))
            if not self.move(path, target):
                self.remove(target + paths.REASON)
            elif self._on_event is not None:
                self._on_event("quarantined", {"path": path, "reason": reason, "kept": target})

    # ---- lines ----------------------------------------------------------------------------

    def append(self, path: str, value: object, *, sync: bool = True) -> int:
        """Append one JSON line; gives its offset in bytes.

        Crash: the whole line, or a torn one that readers drop and the next writer closes.
        """
        with _DiskErrors(path):
            fresh = self.fs.stat(path) is None
            offset = self.fs.append_line(path, dump_line(value), sync=sync and self.durable)
            if fresh and sync:
                self._sync_folders(path)
            return offset

    def lines(
        self, path: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        """Each line's end offset and object, within `limit` bytes from `offset` on.

        Torn and foreign ones are skipped. Of a long file little is held at a time.
        """
        left, rest = sys.maxsize if limit is None else limit, b""
        while left > 0:
            want = min(left, _BLOCK_BYTES[-1])
            with _DiskErrors(path):
                try:
                    data = self.fs.read(path, offset=offset + len(rest), limit=want)
                except FileNotFoundError:
                    return
            left = left - want if len(data) == want else 0
            data = rest + data
            for end, value in whole_lines(data):
                yield offset + end, value
            end = data.rfind(b"\n") + 1
            offset, rest = offset + end, data[end:]

    def lines_back(
        self,
        path: str,
        *,
        upto: int = sys.maxsize,
        holding: bytes = b"\n",
        most: int = sys.maxsize,
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
            data = self.part(path, start, size) + rest
            # A block may begin inside a line, which is read with the block before.
            begin = data.find(b"\n") + 1 if start else 0
            rest, end = (data[:begin], len(data)) if begin or not start else (data, 0)
            while (at := data.rfind(holding, begin, end)) >= 0:
                end, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1
                with contextlib.suppress(BadRecord):
                    if stop:  # else it is torn
                        yield start + end, parse_object(data[end:stop])

    # ---- locks and temps ------------------------------------------------------------------

    def settle(self, folders: Iterable[str], lines: Iterable[str]) -> None:
        """Flush what a killed process wrote and did not: names in folders, files of lines.

        What is seen after a kill is relied upon from then on; without this a power cut could still
        take it back.
        """
        if not self.durable:
            return
        for path in lines:
            with _DiskErrors(path):
                self.fs.sync_file(path)
        for folder in folders:
            with _DiskErrors(folder):
                self.fs.sync_dir(folder)

    def lock(self, path: str) -> Lock | None:
        """Take a lock without waiting; None when another process holds it."""
        with _DiskErrors(path):
            return self.fs.lock(path)

    def sweep_temps(self, folder: str) -> int:
        """Remove temp files whose owner is dead; gives how many. A living writer's are kept."""
        swept = 0
        with _DiskErrors(folder):
            for name, _ in self.fs.list_dir(folder):
                if name.startswith(TEMP_PREFIX) and not _owner_lives(name):
                    self.fs.unlink(f"{folder}/{name}")
                    swept += 1
        return swept

    def _publish(
        self, path: str, data: bytes, rename: Callable[[str, str], None], *, sync: bool
    ) -> None:
        """Temp file, its flush, rename, flush of the folder."""
        folder, _, _ = path.rpartition("/")
        name = f"{TEMP_PREFIX}{self._temp_owner}-{self._temp_boot}-{secrets.token_hex(6)}"
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

    def lines(
        self, path: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        with contextlib.suppress(UnsafeFile):
            yield from super().lines(path, offset=offset, limit=limit)

    def tail(self, path: str, limit: int) -> list[dict[str, Json]]:
        """The objects on the whole lines within the last `limit` bytes, oldest first."""
        stat = self.stat(path)
        start = max(stat.size - limit, 0) if stat else 0
        data = self.part(path, start, limit)
        if start:
            data = data.partition(b"\n")[2]
        return [value for _, value in whole_lines(data)]


def whole_lines(data: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
    """Each line's end within `data` and its object; torn and foreign lines are skipped."""
    end = 0
    for line in data.split(b"\n")[:-1]:
        end += len(line) + 1
        with contextlib.suppress(BadRecord):
            yield end, parse_object(line)


def decode(data: bytes, model: type[R]) -> R:
    """Validate the bytes of one record.

    Raises:
        BadRecord: naming the field, what was expected and what was got.
    """
    if len(data) > MAX_RECORD_BYTES:
        raise BadRecord(f"expected at most {MAX_RECORD_BYTES} bytes, got {len(data)}")
    parse_object(data)
    try:
        return model.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        raise bad_record(error) from None


def bad_record(error: ValidationError) -> BadRecord:
    """The first complaint of a validation, in words."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "(the record)"
    got = repr(first.get("input"))
    shown = got if len(got) <= 80 else got[:77] + "…"
    if first["type"] == "missing":
        return BadRecord(f"{where}: expected a value, got none", field=where)
    return BadRecord(f"{where}: {first['msg']}, got {shown}", field=where)


class _DiskErrors:
    """Turns what the disk says into one error whose text names place and remedy.

    A class and not a generator: it stands around every read, and costs a quarter so.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, FileExistsError):
            remedy = _REMEDY.get(error.errno or 0, error.strerror or str(error))
            raise StorageError(f"{self._path}: {remedy}") from error


_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space, nothing was changed",
    errno.EDQUOT: "the disk quota is used up; free some space, nothing was changed",
    errno.EROFS: "the disk is read-only; make it writable, nothing was changed",
    errno.EIO: "the disk failed to read or write; check it, nothing was changed",
    errno.EMFILE: "too many open files; close some or raise the limit",
    errno.EACCES: "permission denied; the state folder must belong to you",
    errno.ENOENT: "the folder is gone; was the state folder moved or deleted?",
}


def _owner_lives(name: str) -> bool:
    """Whether the writer of a temp file may still finish it; unreadable names are nobody's."""
    match name.removeprefix(TEMP_PREFIX).split("-"):
        case [pid, started, boot, _] if pid.isdigit():
            return ids.boot_id().startswith(boot) and ids.start_time(int(pid)) == started
        case _:
            return False
