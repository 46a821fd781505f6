"""What lies in a workspace, looked at from outside before a run and after it.

No program is run for it, git least of all: whoever writes a workspace says what git there runs. The
files of git and its kin are not looked at, nor what programs make anew (caches, installed
packages). No link is followed, each folder is opened below the one before it, and nothing but plain
files is read: a run may put anything there, and exchange it meanwhile.

Contents are kept in a file without a name: no run can reach it, and with the process it is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections import deque
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, field
from pathlib import Path

MOST_FILES = 20_000
MOST_FILE_BYTES = 2**20
"""Of a larger file nobody reads what changed in it."""
MOST_KEPT_BYTES = 64 * 2**20
LOOK_S = 3.0
"""So long one look may take; what it did not come to counts as not looked at."""
_OTHER_VCS = (".hg", ".jj", ".sl", ".pijul", "_darcs")
_NEVER = frozenset({".git", "__pycache__", *_OTHER_VCS})
"""Of these nobody has to be told that they were not looked at."""
_MADE_ANEW = frozenset({"node_modules"})
_MADE_SIGNS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
"""By these a folder says that programs fill it."""
_RACY_NS = 2 * 10**9
"""A file written so shortly before the look may be written again within the same tick of its time
stamps: it is read to be compared."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file or link as it was. What it held is kept as far as there is room."""

    is_link: bool
    mode: int
    size: int
    stamp: tuple[int, int, int]
    """Its inode, and when it was written and changed, in nanoseconds: the same means untouched."""
    digest: bytes | None = None
    """None where it was not read."""
    place: int | None = None
    """Where in the store its content lies."""


@dataclass
class WorkspaceSnapshot:
    """One look at a workspace. Paths are relative, with `/`; odd bytes stand as surrogates."""

    files: dict[str, SeenFile] = field(default_factory=dict[str, SeenFile])
    folders: set[str] = field(default_factory=set[str])
    unseen: set[str] = field(default_factory=set[str])
    """Folders not looked into, or not to their end; the workspace itself as the empty path."""
    taken_ns: int = 0

    def saw(self, path: str) -> bool:
        """Whether it would have been seen, had it been there."""
        if path in self.files:
            return True
        while path:
            path = path.rpartition("/")[0]
            if path in self.unseen or path in self.folders:
                return path not in self.unseen
        return False


class WorkspaceReader:
    """Looks at one workspace."""

    def __init__(
        self,
        workspace: Path,
        closed: Collection[Path],
        monotonic: Callable[[], float],
        store: int,
    ) -> None:
        """Look at nothing yet.

        closed: what nobody looks at, the state folder among it.
        store: the descriptor of an open file, where contents are kept.
        """
        self._root = Path(os.path.realpath(workspace))
        self._closed = frozenset(os.path.realpath(path) for path in closed)
        self._monotonic = monotonic
        self._store = store
        self._room, self._end = MOST_KEPT_BYTES, 0
        self._until = 0.0

    def look(self, like: WorkspaceSnapshot | None = None) -> WorkspaceSnapshot:
        """See what lies there; `like`: look where that one looked, and read only what changed."""
        seen = WorkspaceSnapshot()
        os.utime(self._store)
        seen.taken_ns = os.fstat(self._store).st_mtime_ns
        self._until = self._monotonic() + LOOK_S
        try:
            with opened(self._root) as root:
                todo = deque([""])
                while todo:
                    folder = todo.popleft()
                    if self._is_enough(seen) or not self._look_into(folder, root, seen, todo, like):
                        seen.unseen.add(folder)
        except OSError:
            seen.unseen.add("")
        return seen

    def _is_enough(self, seen: WorkspaceSnapshot) -> bool:
        return len(seen.files) >= MOST_FILES or self._monotonic() > self._until

    def content(self, seen: SeenFile) -> bytes | None:
        """What a file held; None where that was not kept."""
        if seen.place is None:
            return None
        return os.pread(self._store, seen.size, seen.place)

    def _look_into(
        self,
        folder: str,
        root: int,
        seen: WorkspaceSnapshot,
        todo: deque[str],
        like: WorkspaceSnapshot | None,
    ) -> bool:
        """Look into one folder; False when nobody can, or none should."""
        try:
            with opened(Path(folder), root) as at:
                handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
                try:
                    with os.scandir(handle) as listed:
                        entries = sorted(listed, key=lambda entry: entry.name)
                    if folder and self._is_made(folder, entries, like):
                        return False
                    seen.folders.add(folder)
                    for entry in entries:
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        if self._is_enough(seen):
                            return False
                        if self._is_closed(entry.name, path):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(path)
                        elif found := self._see(entry, handle, _untouched(path, like)):
                            seen.files[path] = found
                finally:
                    os.close(handle)
        except (OSError, ValueError):
            return False
        return True

    def _is_closed(self, name: str, path: str) -> bool:
        return name in _NEVER or f"{self._root}/{path}" in self._closed

    @staticmethod
    def _is_made(
        folder: str, entries: list[os.DirEntry[str]], like: WorkspaceSnapshot | None
    ) -> bool:
        if like is not None and (folder in like.folders or folder in like.unseen):
            return folder not in like.folders
        name = folder.rpartition("/")[2]
        return name in _MADE_ANEW or any(entry.name in _MADE_SIGNS for entry in entries)

    def _see(self, entry: os.DirEntry[str], at: int, before: SeenFile | None) -> SeenFile | None:
        """One file as it is; None for what is neither a file nor a link, or just went."""
        with contextlib.suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                target = os.fsencode(os.readlink(entry.name, dir_fd=at))
                return self._kept(found, target, is_link=True)
            if not stat.S_ISREG(found.st_mode):
                return None
            if before is not None and before.stamp == _stamp(found):
                return before
            return self._read(entry.name, at, found)
        return None

    def _read(self, name: str, at: int, found: os.stat_result) -> SeenFile | None:
        if found.st_size > MOST_FILE_BYTES:
            return _seen(found, found.st_size)
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(name, flags, dir_fd=at), "rb") as file:
                found = os.fstat(file.fileno())
                data = file.read(MOST_FILE_BYTES + 1)
        except FileNotFoundError:
            raise
        except OSError:  # it is there, and nobody can read it
            return _seen(found, found.st_size)
        if not stat.S_ISREG(found.st_mode):  # exchanged just now
            return None
        if len(data) > MOST_FILE_BYTES:
            return _seen(found, found.st_size)
        return self._kept(found, data)

    def _kept(self, found: os.stat_result, data: bytes, *, is_link: bool = False) -> SeenFile:
        digest, place = hashlib.blake2b(data, digest_size=16).digest(), None
        if len(data) <= self._room:
            written = -1
            with contextlib.suppress(OSError):
                written = os.pwrite(self._store, data, self._end)
            if written == len(data):
                place, self._end, self._room = self._end, self._end + written, self._room - written
            else:  # no room on that disk either
                self._room = 0
        return _seen(found, len(data), digest, place, is_link=is_link)


def _untouched(path: str, like: WorkspaceSnapshot | None) -> SeenFile | None:
    """What was seen there before, if its stamp tells whether it was written since."""
    before = like.files.get(path) if like is not None else None
    if before is None or like is None or before.is_link:
        return None
    return before if before.stamp[2] < like.taken_ns - _RACY_NS else None


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _seen(
    found: os.stat_result,
    size: int,
    digest: bytes | None = None,
    place: int | None = None,
    *,
    is_link: bool = False,
) -> SeenFile:
    mode = 0 if is_link else stat.S_IMODE(found.st_mode)
    return SeenFile(is_link, mode, size, _stamp(found), digest, place)


@contextlib.contextmanager
def opened(folder: Path, below: int | None = None) -> Generator[int]:
    """A descriptor of a folder to which no link leads.

    Raises:
        OSError: there is a link on the way, or no such folder.
    """
    how = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
    at = os.open("/", how) if below is None else os.dup(below)
    try:
        for part in folder.parts[1 if below is None else 0 :]:
            inner = os.open(part, how, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)
