"""What lies in a workspace, looked at from outside before a run and after it.

The files of git and its kin are not looked at, nor what programs make anew (caches, installed
packages). No link is followed, and nothing but plain files is read.

Contents are kept in a file without a name: no run can reach it, and with the process it is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

MOST_FILES = 20_000
MOST_FILE_BYTES = 2**20
"""Of a larger file nobody reads what changed in it."""
MOST_KEPT_BYTES = 64 * 2**20
_NEVER = frozenset({".git", ".hg", ".jj", ".sl", ".pijul", "_darcs", "__pycache__"})
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

    def is_same(self, now: SeenFile) -> bool:
        """Whether nothing changed; of what was not read the time stamps tell."""
        if (self.is_link, self.mode, self.size) != (now.is_link, now.mode, now.size):
            return False
        if self.digest is None or now.digest is None:
            return self.stamp == now.stamp
        return self.digest == now.digest


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

    def __init__(self, workspace: Path, closed: Collection[Path], store: int) -> None:
        """Look at nothing yet.

        closed: what nobody looks at, the state folder among it.
        store: the descriptor of an open file, where contents are kept.
        """
        self._root = os.path.realpath(workspace)
        self._closed = frozenset(os.path.realpath(path) for path in closed)
        self._store = store
        self._room, self._end = MOST_KEPT_BYTES, 0

    def look(self, like: WorkspaceSnapshot | None = None) -> WorkspaceSnapshot:
        """See what lies there; `like`: look where that one looked, and read only what changed."""
        seen = WorkspaceSnapshot()
        os.utime(self._store)
        seen.taken_ns = os.fstat(self._store).st_mtime_ns
        pending = {""}  # listed by its parent, and not looked into yet
        with contextlib.suppress(OSError):
            for top, folders, names, at in os.fwalk(self._root):
                folder = top[len(self._root) :].lstrip("/")
                pending.discard(folder)
                if self._look_into(folder, folders, names, at, seen, like):
                    inner = [_inside(folder, name) for name in folders]
                    pending.update(path for path in inner if path not in seen.files)
                else:
                    seen.unseen.add(folder)
        seen.unseen |= pending  # nobody may look into them
        return seen

    def _look_into(
        self,
        folder: str,
        folders: list[str],
        names: list[str],
        at: int,
        seen: WorkspaceSnapshot,
        like: WorkspaceSnapshot | None,
    ) -> bool:
        """See the files of one folder, and leave in `folders` where to look next.

        Returns: whether all of it was seen.
        """
        is_made = bool(folder) and _is_made(folder, {*folders, *names}, like)
        if is_made or len(seen.files) >= MOST_FILES:
            folders.clear()
            return False
        seen.folders.add(folder)
        inner = {*folders}
        entries = sorted(name for name in (*names, *folders) if not self._is_closed(folder, name))
        folders[:] = [name for name in entries if name in inner]
        for name in entries:
            if len(seen.files) >= MOST_FILES:
                return False
            path = _inside(folder, name)
            with contextlib.suppress(OSError, ValueError):  # it is gone, or changes just now
                if found := self._see(name, at, _untouched(path, like)):
                    seen.files[path] = found
        return True

    def content(self, seen: SeenFile) -> bytes | None:
        """What a file held; None where that was not kept."""
        if seen.place is None:
            return None
        return os.pread(self._store, seen.size, seen.place)

    def _is_closed(self, folder: str, name: str) -> bool:
        return name in _NEVER or f"{self._root}/{_inside(folder, name)}" in self._closed

    def _see(self, name: str, at: int, before: SeenFile | None) -> SeenFile | None:
        """One file as it is; None for what is neither a file nor a link.

        Raises:
            OSError: it just went.
        """
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=at))
            return self._kept(found, target, is_link=True)
        if not stat.S_ISREG(found.st_mode):
            return None
        if before is not None and before.stamp == _stamp(found):
            return before
        if found.st_size > MOST_FILE_BYTES:
            return _seen(found, found.st_size)
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(name, flags, dir_fd=at), "rb") as file:
                found = os.fstat(file.fileno())
                data = file.read(MOST_FILE_BYTES + 1)
        except PermissionError:
            return _seen(found, found.st_size)
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


def _inside(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _is_made(folder: str, names: set[str], like: WorkspaceSnapshot | None) -> bool:
    if like is not None and (folder in like.folders or folder in like.unseen):
        return folder not in like.folders
    return folder.rpartition("/")[2] in _MADE_ANEW or not names.isdisjoint(_MADE_SIGNS)


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
