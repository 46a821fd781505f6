"""One disk that several processes share, each by a front of its own.

A front tells the scheduler of each operation before it is done, with what it reads and changes. Of
what takes several steps on a real disk (a file is created, then written, then flushed) each is a
point of its own. A process that died does nothing more, and its locks are free, as the kernel does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from mimikit.protocol.disk import FileKind, FileStat, Lock
from mimikit.protocol.files import TEMP_PREFIX
from mimikit.testing.memory_disk import Crash
from tests.crash.disk import WatchedDisk
from tests.crash.images import Contents, Image
from tests.interleave.scheduler import Operation, Process, Scheduler

NOTHING: frozenset[str] = frozenset()
_SKIPS_TEMPS = frozenset({"names", "stats"})
"""Functions of `Files` that list a folder and pass over temp files."""


@dataclass
class SharedDisk(WatchedDisk):
    """What all processes see."""

    scheduler: Scheduler | None = None

    @classmethod
    def holding(cls, folders: Contents, *, start_ns: int) -> SharedDisk:
        """A disk with these files, all of them flushed."""
        made = cls.of(Image("start", folders), start_ns=start_ns)
        assert isinstance(made, SharedDisk)
        return made

    def _step(self, operation: str, path: str) -> None:
        # The first step of an operation was told by the front; these come after it.
        if self.scheduler is not None:
            if operation == "write":
                self.scheduler.point(Operation("write", path, NOTHING, frozenset({path})))
            elif operation == "sync":
                self.scheduler.point(Operation("sync", path))
        super()._step(operation, path)


@dataclass
class DiskFront:
    """The disk of one process: the FileSystem its `Files` work on."""

    core: SharedDisk
    process: Process
    scheduler: Scheduler | None = None
    root: str = "(memory)"
    _held: list[Lock] = field(default_factory=list[Lock])

    def __post_init__(self) -> None:
        self.process.on_death = self._die

    def _die(self) -> None:
        for lock in self._held:
            lock.release()

    def _about(
        self, name: str, path: str, reads: Iterable[str], writes: Iterable[str] = ()
    ) -> None:
        if self.process.is_dead:
            raise Crash
        if self.scheduler is not None:
            self.scheduler.point(Operation(name, path, frozenset(reads), frozenset(writes)))

    # ---- FileSystem ---------------------------------------------------------------------

    def make_dir(self, path: str) -> None:
        self._about("make_dir", path, [path, f"{path}/"], () if self._is_dir(path) else [path])
        self.core.make_dir(path)

    def _is_dir(self, path: str) -> bool:
        return path in self.core._folders

    def list_dir(self, path: str) -> list[tuple[str, FileKind]]:
        reads = [f"{path}/"]
        if sys._getframe(1).f_code.co_name not in _SKIPS_TEMPS:
            reads.append(f"{path}/{TEMP_PREFIX}")
        self._about("list", path, reads)
        return self.core.list_dir(path)

    def stat_dir(self, path: str) -> Iterable[tuple[str, FileStat]]:
        # The listing and a look at each are steps of their own, as on a real disk.
        names = ((name, f"{path}/{name}".lstrip("/")) for name, _ in self.list_dir(path))
        for name, below in list(names):
            is_temp = name.startswith(TEMP_PREFIX)
            if (found := self.core.stat(below) if is_temp else self.stat(below)) is not None:
                yield name, found

    def stat(self, path: str) -> FileStat | None:
        self._about("stat", path, [path])
        return self.core.stat(path)

    def read(
        self, path: str, *, offset: int = 0, limit: int | None = None, most: int | None = None
    ) -> bytes:
        self._about("read", path, [path])
        return self.core.read(path, offset=offset, limit=limit, most=most)

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        self._about("create", path, (), [path, _listing(path)])
        self.core.write_new(path, data, sync=sync)

    def append_line(self, path: str, line: bytes, *, sync: bool) -> int:
        is_new = self.core.stat(path) is None
        self._about("open", path, [path], [path, _listing(path)] if is_new else ())
        return self.core.append_line(path, line, sync=sync)

    def rename(self, source: str, target: str) -> None:
        self._about("rename", f"{source} → {target}", (), _of_rename(source, target))
        self.core.rename(source, target)

    def rename_exclusive(self, source: str, target: str) -> None:
        self._about("link", f"{source} → {target}", (), _of_rename(source, target))
        self.core.rename_exclusive(source, target)

    def unlink(self, path: str) -> None:
        self._about("unlink", path, (), [path, _listing(path)])
        self.core.unlink(path)

    def remove_dir(self, path: str) -> None:
        self._about("remove_dir", path, [f"{path}/"], [path, _listing(path)])
        self.core.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self._about("sync_dir", path, ())
        self.core.sync_dir(path)

    def sync_file(self, path: str) -> None:
        self._about("sync_file", path, ())
        self.core.sync_file(path)

    def lock(self, path: str) -> Lock | None:
        self._about("lock", path, (), [f"lock {path}"])
        found = self.core.lock(path)
        if found is None:
            return None
        self._held.append(found)

        def release() -> None:
            if self.process.is_dead or found not in self._held:
                return
            self._about("unlock", path, (), [f"lock {path}"])
            self._held.remove(found)
            found.release()

        return Lock(release, found.inode)

    def is_in_place(self) -> bool:
        return True

    def let_go(self) -> None:
        self.process.is_dead = True


def _listing(path: str) -> str:
    """What whoever lists its folder reads."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{TEMP_PREFIX}" if name.startswith(TEMP_PREFIX) else f"{folder}/"


def _of_rename(source: str, target: str) -> list[str]:
    return [source, target, _listing(source), _listing(target)]
