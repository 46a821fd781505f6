"""A snapshot of the state folder: what a kill at one instant would leave, while others go on.

Recovery is made for what a kill leaves, so a copy of that is a state which starts and goes on, with
nothing lost and nothing doubled. Every file is linked into a folder below `cache/` (or copied where
the file system has no links): most of them before, and under the snapshot lock those that came or
changed since, so that nobody waits long. What is read of them later does not change any more:
records are replaced and never written over, and of files of lines it is known how long they were.

Who changes files by another way (an editor, an older mimikit, a program that drops a task) does not
wait. So the folder is looked at twice under the lock, and what changed in between is taken anew.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Generator, Iterator
from typing import NamedTuple

from mimikit.errors import Conflict, StorageError, UnsafeFile
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import DiskErrors, RealDisk
from mimikit.protocol.files import TEMP_PREFIX
from mimikit.protocol.snapshot_lock import PATIENCE_S

OF_PROCESSES = frozenset(
    {paths.HEALTH, paths.CONSUMER_HOLDER, paths.CONSUMER_LOCK, paths.MEMORY_LOCK, paths.LOG_LOCK,
     paths.CONFIG_LOCK, paths.FILES_LOCK, paths.PACK_LOCK, paths.SNAPSHOT_LOCK}
)  # fmt: skip
"""What tells of processes of this machine, and is no part of what the folder knows."""
_MOST_TRIES = 5
_LONGEST_S = PATIENCE_S * 0.75
_PREFIX = "snapshot-"
_LINES = ".jsonl"
_BLOCK_BYTES = 2**20


class SnapshotFile(NamedTuple):
    """One file as it was at that instant: its path, its first `size` bytes, where they are held."""

    path: str
    size: int
    mtime_ns: int
    held: str


class Snapshot(NamedTuple):
    files: list[SnapshotFile]
    left_out: dict[str, str]
    """Path → why it is not among them: a link, a device, a name that is no text, not readable."""


class _Changed(Exception):
    """Somebody who does not wait changed something meanwhile."""


@contextlib.contextmanager
def taken(disk: RealDisk, *, with_secrets: bool) -> Generator[Snapshot]:
    """A snapshot of a state folder, which is held as long as this lasts.

    disk: one with a snapshot lock, which nobody uses for changes meanwhile.
    Crash: a folder of links in `cache/`, which the next snapshot removes.

    Raises:
        StorageError: the disk has no room, or nobody could be kept from writing.
        Conflict: files are changed all the time by who does not wait.
    """
    with DiskErrors(paths.CACHE):
        disk.make_dir(paths.CACHE)
        for name in ids.abandoned(disk.list_dir(paths.CACHE), "folder", _PREFIX):
            _remove(disk, name)
        held = f"{paths.CACHE}/{_PREFIX}{ids.writer_name()}"
        disk.make_dir(held)
    try:
        yield _take(disk, held, with_secrets=with_secrets)
    finally:
        _remove(disk, held.rpartition("/")[2])


def blocks(disk: RealDisk, file: SnapshotFile) -> Iterator[bytes]:
    """The bytes of a file as it was.

    Raises:
        StorageError: they can not be read.
    """
    at = 0
    while at < file.size:
        with DiskErrors(file.path):
            block = disk.read(file.held, offset=at, limit=min(_BLOCK_BYTES, file.size - at))
        if not block:
            raise StorageError(f"{file.path}: expected {file.size:,} bytes, got {at:,}; try again")
        at += len(block)
        yield block


def _take(disk: RealDisk, held: str, *, with_secrets: bool) -> Snapshot:
    lock, links = disk.snapshot_lock, _Links(disk, held)
    for _ in range(_MOST_TRIES):
        for path, seen in list(_walk(disk, "", {}, with_secrets=with_secrets)):
            with contextlib.suppress(FileNotFoundError):
                links.hold(path, seen)
        if lock is None or not lock.take_alone(PATIENCE_S):
            raise StorageError(
                f"{paths.SNAPSHOT_LOCK}: expected to keep others from writing for a moment, got no "
                "lock; is another export stopped halfway? End it, or remove that file"
            )
        try:
            with DiskErrors(paths.CACHE), contextlib.suppress(_Changed, FileNotFoundError):
                there, left_out = _see(disk, links, with_secrets=with_secrets)
                lock.release()
                return Snapshot(links.files(there, left_out), left_out)
        finally:
            lock.release()
    raise Conflict(
        "expected the state folder to hold still while it is looked at, but something that does "
        "not wait (an older mimikit, a program of yours) changes it all the time; end that first"
    )


def _see(
    disk: RealDisk, links: _Links, *, with_secrets: bool
) -> tuple[dict[str, _Seen], dict[str, str]]:
    """What is there under the lock, every file of it held; and what is left out, with why."""
    begun_s = time.monotonic()
    left_out: dict[str, str] = {}
    there = dict(_walk(disk, "", left_out, with_secrets=with_secrets))
    for path, seen in there.items():
        if not links.hold(path, seen):
            left_out[path] = "not readable"
    again = dict(_walk(disk, "", {}, with_secrets=with_secrets))
    # What came meanwhile came after that instant; what went or changed may have been seen twice.
    is_same = all(again.get(path) == seen for path, seen in there.items())
    waited_for = time.monotonic() - begun_s < _LONGEST_S
    if not is_same or (not waited_for and there.keys() != again.keys()):
        raise _Changed
    return there, left_out


def _walk(
    disk: RealDisk, folder: str, left_out: dict[str, str], *, with_secrets: bool
) -> Iterator[tuple[str, _Seen]]:
    """Each file with what is seen of it; only of files of lines the size, as that takes longest."""
    listing = os.open(
        ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=disk.folder_fd(folder)
    )
    try:
        with os.scandir(listing) as entries:
            found = [
                (entry.name, entry.is_dir(follow_symlinks=False),
                 _seen(entry) if entry.is_file(follow_symlinks=False) else None)
                for entry in entries
            ]  # fmt: skip
    finally:
        os.close(listing)
    for name, is_folder, seen in sorted(found):
        path = f"{folder}/{name}".lstrip("/")
        if name.startswith(TEMP_PREFIX) or path in OF_PROCESSES or _is_passed(path, with_secrets):
            continue
        if not is_text(name):
            left_out[path.encode(errors="backslashreplace").decode()] = "its name is no text"
        elif is_folder:
            yield from _walk(disk, path, left_out, with_secrets=with_secrets)
        elif seen is not None:
            yield path, seen
        else:
            left_out[path] = "a link, fifo or device"


class _Seen(NamedTuple):
    inode: int
    size: int
    """-1: it is never written over, so it has the size it always had."""


def _seen(entry: os.DirEntry[str]) -> _Seen:
    is_of_lines = entry.name.endswith(_LINES)
    size = entry.stat(follow_symlinks=False).st_size if is_of_lines else -1
    return _Seen(entry.inode(), size)


def _is_passed(path: str, with_secrets: bool) -> bool:
    return path in (paths.CACHE, paths.PAGES) or (path == paths.SECRETS and not with_secrets)


def is_text(name: str) -> bool:
    """Whether a file's name can be written down: it is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Links:
    """The files that are held, each under a number in one folder."""

    def __init__(self, disk: RealDisk, folder: str) -> None:
        self._disk, self._folder = disk, folder
        self._held: dict[str, tuple[_Seen, str]] = {}
        """Path → what it was when it was held, and under which name."""
        self._copied: set[str] = set()
        self._count = itertools.count()

    def hold(self, path: str, seen: _Seen) -> bool:
        """Hold a file, unless it is held already; False: it can not be read."""
        known, name = self._held.get(path, (None, ""))
        if known == seen or (known and known.inode == seen.inode and name not in self._copied):
            return True
        name = str(next(self._count))
        folder, _, old = path.rpartition("/")
        source, target = self._disk.folder_fd(folder), self._disk.folder_fd(self._folder)
        try:
            os.link(old, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except FileNotFoundError:
            raise
        except OSError:  # no links here, too many of this file, or somebody else's
            try:
                data = self._disk.read(path)
                self._disk.write_new(f"{self._folder}/{name}", data, sync=False)
            except (PermissionError, UnsafeFile):
                return False
            self._copied.add(name)
        self._held[path] = seen, name
        return True

    def files(self, there: dict[str, _Seen], left_out: dict[str, str]) -> list[SnapshotFile]:
        """What was seen, as it is held.

        Raises:
            _Changed: what is held of it is another file, whose name it was for a moment.
        """
        held = dict(self._disk.stat_dir(self._folder))
        found: list[SnapshotFile] = []
        for path, seen in there.items():
            if path in left_out:
                continue
            name = self._held[path][1]
            stat = held.get(name)
            if stat is None or (name not in self._copied and stat.inode != seen.inode):
                del self._held[path]
                raise _Changed
            size = stat.size if seen.size < 0 else seen.size
            found.append(SnapshotFile(path, size, stat.mtime_ns, f"{self._folder}/{name}"))
        return found


def _remove(disk: RealDisk, name: str) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(name, ignore_errors=True, dir_fd=disk.folder_fd(paths.CACHE))
