"""A disk in memory that can crash, lose power and fail: the twin of RealDisk.

Two images live here. The volatile one is what a process sees, and what a killed process leaves.
The durable one is what a power cut leaves: the synced state plus any part of what was not synced
yet. Every change is one entry of `log`; `crash_at` stops the world before the n-th of them, and
after that the object is dead, so that no `finally` block can tidy up what a real crash would not.
"""

from __future__ import annotations

import copy
import errno
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from mimikit.errors import UnsafeFile
from mimikit.protocol.disk import FileKind, FileStat, Lock, check_size, file_name


class Crash(BaseException):
    """The process died here. A BaseException: no handler for errors may catch it."""


@dataclass
class _File:
    inode: int
    data: bytes = b""
    synced: bytes = b""
    mtime_ns: int = 0


# Times rise from here, so that nothing on this disk is ever past its retention.
_YEAR_2100_NS = 4_102_444_800 * 10**9

_Names: TypeAlias = dict[str, _File]


@dataclass(frozen=True)
class DiskStep:
    """One change: its name and its path."""

    operation: str
    path: str


@dataclass
class _Unsynced:
    """A change of names not yet flushed; it is durable once any folder it touches is."""

    folders: frozenset[str]
    apply: Callable[[dict[str, _Names]], None]


@dataclass
class MemoryDisk:
    """An in-memory FileSystem. It loses whatever a real disk may lose.

    crash_at: stop before the change with this number (0 is the first). None: never.
    torn: with `crash_at` on a write, how much of the data is still written (0 to 1).
    fail: called before each change; an OSError it gives is raised instead of doing it.
    """

    crash_at: int | None = None
    torn: float = 0.0
    fail: Callable[[int, DiskStep], OSError | None] | None = None
    log: list[DiskStep] = field(default_factory=list[DiskStep])
    dead: bool = False
    root: str = "(memory)"
    _folders: dict[str, _Names] = field(default_factory=lambda: {"": {}})
    _durable: dict[str, _Names] = field(default_factory=lambda: {"": {}})
    _pending: list[_Unsynced] = field(default_factory=list[_Unsynced])
    _inodes: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _time: Iterator[int] = field(default_factory=lambda: itertools.count(_YEAR_2100_NS))
    _locks: set[str] = field(default_factory=set[str])
    _guard: threading.RLock = field(default_factory=threading.RLock)

    def __enter__(self) -> None:
        """Begin an operation: one at a time, and none after the crash."""
        self._guard.acquire()
        if self.dead:
            self._guard.release()
            raise Crash

    def __exit__(self, *_error: object) -> None:
        self._guard.release()

    # ---- what a crash leaves ------------------------------------------------------------

    def after_kill(self) -> MemoryDisk:
        """The disk a killed process leaves: all that was written, no locks."""
        return self._reborn(self._folders)

    def after_power_loss(self) -> Iterator[MemoryDisk]:
        """Disks a power cut may leave: none, all, each one alone, all but one, each prefix.

        Unsynced bytes of a surviving file are lost, kept, or cut in half.
        """
        n = len(self._pending)
        keep: set[frozenset[int]] = {frozenset(), frozenset(range(n))}
        keep |= {frozenset([i]) for i in range(n)}
        keep |= {frozenset(range(n)) - {i} for i in range(n)}
        keep |= {frozenset(range(i)) for i in range(n)}
        for kept in sorted(keep, key=sorted):
            for share in (0.0, 0.5, 1.0):
                image, dirty = self._power_image(kept, share)
                yield self._reborn(image)
                if not dirty:
                    break

    def _power_image(self, kept: frozenset[int], share: float) -> tuple[dict[str, _Names], bool]:
        image = {folder: dict(names) for folder, names in self._durable.items()}
        for i in sorted(kept):
            self._pending[i].apply(image)
        dirty = False
        for names in image.values():
            for name, file in list(names.items()):
                # Bytes appended to a synced file may be partly there; the synced part always is.
                extra = file.data[len(file.synced) :]
                dirty = dirty or bool(extra)
                data = file.synced + extra[: int(len(extra) * share)]
                names[name] = _File(file.inode, data, data, file.mtime_ns)
        return image, dirty

    def _reborn(self, folders: dict[str, _Names]) -> MemoryDisk:
        image: dict[str, _Names] = {}
        copies: dict[int, _File] = {}
        for folder, names in folders.items():
            image[folder] = {}
            for name, old in names.items():
                twin = _File(old.inode, old.data, old.data, old.mtime_ns)
                image[folder][name] = copies.setdefault(old.inode, twin)
        born = MemoryDisk(_folders=image, _durable={f: dict(n) for f, n in image.items()})
        born._inodes, born._time = copy.copy(self._inodes), copy.copy(self._time)
        return born

    def fingerprint(self) -> int:
        """A hash of names and contents: equal disks have equal ones."""
        with self._guard:
            return hash(frozenset(self.contents().items()))

    def contents(self) -> dict[str, bytes]:
        """Every file by path; for oracles and failure reports."""
        return {
            f"{folder}/{name}".lstrip("/"): file.data
            for folder, names in self._folders.items()
            for name, file in names.items()
        }

    # ---- FileSystem ---------------------------------------------------------------------

    def make_dir(self, path: str) -> None:
        """Create one folder; durable at once, as folders are made before any work."""
        with self:
            self._folder(path.rpartition("/")[0])
            if path not in self._folders:
                self._step("make_dir", path)
                self._folders[path], self._durable[path] = {}, {}

    def list_dir(self, path: str) -> list[tuple[str, FileKind]]:
        with self:
            files: list[tuple[str, FileKind]] = [(name, "file") for name in self._folder(path)]
            prefix = path + "/" if path else ""
            for folder in self._folders:
                rest = folder[len(prefix) :]
                if folder and folder.startswith(prefix) and rest and "/" not in rest:
                    files.append((rest, "folder"))
            return files

    def stat_dir(self, path: str) -> list[tuple[str, FileStat]]:
        names = ((name, f"{path}/{name}".lstrip("/")) for name, _ in self.list_dir(path))
        return [(name, found) for name, below in names if (found := self.stat(below))]

    def stat(self, path: str) -> FileStat | None:
        with self:
            if path in self._folders:
                return FileStat("folder", 0, 0, 0)
            folder, _, name = path.rpartition("/")
            file = self._folders.get(folder, {}).get(name)
            return file and FileStat("file", len(file.data), file.mtime_ns, file.inode)

    def read(
        self, path: str, *, offset: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> bytes:
        with self:
            if path in self._folders:
                raise UnsafeFile(f"expected a plain file, got a folder, at {path}")
            data = self._file(path).data
            check_size(len(data), max_bytes, path)
            return data[offset:] if limit is None else data[offset : offset + limit]

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        with self:
            folder, name = _split(path)
            if name in self._folder(folder):
                raise FileExistsError(errno.EEXIST, "exists", path)
            file = self._create(path)
            self._write(file, data, path)
            if sync:
                self._flush(file, path)

    def append_line(self, path: str, line: bytes, *, sync: bool) -> int:
        with self:
            folder, name = _split(path)
            if path in self._folders:
                raise UnsafeFile(f"expected a plain file, got a folder, at {path}")
            file = self._folder(folder).get(name) or self._create(path)
            torn = bool(file.data) and not file.data.endswith(b"\n")
            offset = len(file.data) + torn
            self._write(file, b"\n" + line if torn else line, path)
            if sync:
                self._flush(file, path)
            return offset

    def rename(self, source: str, target: str) -> None:
        with self:
            from_folder, from_name = _split(source)
            to_folder, to_name = _split(target)
            self._folder(to_folder)
            if source in self._folders:  # durable at once, as making one is
                self._step("rename", f"{source} → {target}")
                for image in (self._folders, self._durable):
                    for path in [p for p in image if p == source or p.startswith(f"{source}/")]:
                        image[target + path[len(source) :]] = image.pop(path)
                return
            self._file(source)
            if target in self._folders:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
            self._step("rename", f"{source} → {target}")

            def move(image: dict[str, _Names]) -> None:
                file = image[from_folder].pop(from_name, None)
                if file is not None:
                    image[to_folder][to_name] = file

            self._change(frozenset([from_folder, to_folder]), move)

    def rename_exclusive(self, source: str, target: str) -> None:
        with self:
            if self.stat(target) is not None:
                raise FileExistsError(errno.EEXIST, "exists", target)
            self.rename(source, target)

    def unlink(self, path: str) -> None:
        with self:
            self._file(path)
            self._step("unlink", path)
            folder, name = _split(path)

            def drop(image: dict[str, _Names]) -> None:
                image[folder].pop(name, None)

            self._change(frozenset([folder]), drop)

    def sync_dir(self, path: str) -> None:
        """Make every pending change of this folder's names durable.

        With a change go the earlier ones it builds on (those that share a folder with it): a file
        system never keeps a rename and forgets the creation of what was renamed.
        """
        with self:
            self._folder(path)
            for change in self._pending:  # a loop, as crash tests come here half a million times
                if path in change.folders:
                    break
            else:
                return
            self._step("sync_dir", path)
            closure, durable, rest = {path}, list[_Unsynced](), list[_Unsynced]()
            for change in reversed(self._pending):
                if closure & change.folders:
                    closure |= change.folders
                    durable.append(change)
                else:
                    rest.append(change)
            for change in reversed(durable):
                change.apply(self._durable)
            self._pending = rest[::-1]

    def sync_file(self, path: str) -> None:
        with self:
            file = self._file(path)
            if file.synced != file.data:
                self._flush(file, path)

    def lock(self, path: str) -> Lock | None:
        with self:
            if path in self._locks:
                return None
            found = self.stat(path)
            self._locks.add(path)
            inode = found.inode if found else 0
            return Lock(functools.partial(self._locks.discard, path), inode)

    def is_full(self) -> bool:
        return False

    def is_in_place(self) -> bool:
        return True

    # ---- steps --------------------------------------------------------------------------

    def _step(self, operation: str, path: str) -> None:
        """Count one change; crash or fail here when told to."""
        number = len(self.log)
        step = DiskStep(operation, path)
        if self.fail is not None and (error := self.fail(number, step)) is not None:
            raise error
        if self.crash_at == number:
            self.dead = True
            raise Crash
        self.log.append(step)

    def _create(self, path: str) -> _File:
        folder, name = _split(path)
        self._step("create", path)
        file = _File(next(self._inodes), mtime_ns=next(self._time))

        def put(image: dict[str, _Names]) -> None:
            image[folder][name] = file

        self._change(frozenset([folder]), put)
        return file

    def _write(self, file: _File, data: bytes, path: str) -> None:
        try:
            self._step("write", path)
        except Crash:
            file.data += data[: int(len(data) * self.torn)]
            raise
        file.data += data
        file.mtime_ns = next(self._time)

    def _flush(self, file: _File, path: str) -> None:
        self._step("sync", path)
        file.synced = file.data

    def _change(self, folders: frozenset[str], apply: Callable[[dict[str, _Names]], None]) -> None:
        apply(self._folders)
        self._pending.append(_Unsynced(folders, apply))

    def _folder(self, path: str) -> _Names:
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._folders[path]

    def _file(self, path: str) -> _File:
        folder, name = _split(path)
        if name not in self._folder(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._folders[folder][name]


def _split(path: str) -> tuple[str, str]:
    """Folder and name; a name that the real disk refuses is refused here too."""
    folder, _, name = path.rpartition("/")
    return folder, file_name(name)
