"""The files that are searched: memory's own, the workspace's docs, the transcript, the results.

Only reads. Nothing of `secrets/`, no settings, no log; a link is never followed.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_bits
import threading
import time
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple
from weakref import ref

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.watch import FolderWatch

LARGEST = 8 * 2**20
"""Bytes; a longer file is not searched."""
MOST_DOCS = 5000
"""Files of the workspace's docs; so many are looked at, in the order of their names."""
DOCS = "docs"
_FOLLOWED = 300
"""Files; a smaller folder is looked at whole at each search: that takes a millisecond."""
_SLOW_S = 0.005

_NEAR = ((paths.MEMORY_FOLDER, ".md"), (f"{paths.MEMORY_FOLDER}/summary", ".md"))
_FAR = ((paths.TRANSCRIPT, ".jsonl"), ("worker/results", ".json"), ("planner/done", ".json"))


class Stamp(NamedTuple):
    """A file's state. Units: bytes, nanoseconds."""

    size: int
    mtime_ns: int


def _stamp(path: str, stat: FileStat | None) -> Stamp | None:
    """None: not searched."""
    is_searched = stat is not None and stat.kind == "file" and stat.size <= LARGEST
    return Stamp(stat.size, stat.mtime_ns) if stat and is_searched and _is_text(path) else None


class DocumentSnapshot:
    """The files that can be searched at one moment, told from others by identity."""

    def __init__(self, parts: Sequence[dict[str, Stamp]], before: DocumentSnapshot | None) -> None:
        """`parts`: by path, no path in two; they are not changed any more."""
        self.parts = parts
        self.stamps: Mapping[str, Stamp] = ChainMap(*parts)
        """Slow to go through: there may be very many."""
        self.before = ref(before) if before is not None else None
        changed: set[str] = set()
        for old, new in zip(before.parts if before else parts, parts, strict=True):
            if old is new:
                continue
            # What was not looked at again is the same object: cheap to see among very many.
            other = {p for p, s in new.items() if (o := old.get(p)) is not s and o != s}
            added = sum(path not in old for path in other)
            changed |= other
            if len(new) - added != len(old):
                changed |= old.keys() - new.keys()
        self.changed = frozenset(changed)
        """The paths that are otherwise than in the one before."""


class DocumentFolders:
    """What there is to search, as it is now. One thread at a time."""

    def __init__(self, files: Files, workspace: Path | None, watch: FolderWatch | None) -> None:
        """Nothing is read yet.

        workspace: whose `docs/**/*.md` are searched too; None: there are none.
        watch: tells of changes in large folders, so that not every search looks at all their files.
        """
        self._files = files
        self._workspace = workspace
        watch = watch if watch is not None and watch.by_events else None
        self._near = [_Folder(files, watch, *place) for place in _NEAR]
        self._far = [_Folder(files, watch, *place) for place in _FAR]
        self._docs: dict[str, Stamp] = {}
        self._long_term: dict[str, Stamp] = {}
        self._docs_until = 0.0
        self._snapshots: dict[bool, DocumentSnapshot] = {}

    def snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        """Every file that can be searched; the same object as before when nothing has changed."""
        stamp = _stamp(paths.MEMORY, self._files.stat(paths.MEMORY))
        now = {paths.MEMORY: stamp} if stamp else {}
        if now != self._long_term:
            self._long_term = now
        folders = self._near + self._far if everywhere else self._near
        parts = [self._long_term, *(folder.look() for folder in folders), self._documents()]
        known = self._snapshots.get(everywhere)
        if known is not None and all(a is b for a, b in zip(known.parts, parts, strict=True)):
            return known
        self._snapshots[everywhere] = DocumentSnapshot(parts, known)
        return self._snapshots[everywhere]

    def read(self, path: str) -> bytes | None:
        """The bytes of one of these files; None when it is gone or no plain file."""
        try:
            if not path.startswith(f"{DOCS}/"):
                return self._files.read(path)
            if self._workspace is None:
                return None
            how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self._workspace / path, how), "rb") as file:
                return file.read() if stat_bits.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        except (StorageError, OSError):
            return None

    def _documents(self) -> dict[str, Stamp]:
        """The workspace's docs; a large tree is looked at once a second at most."""
        begun = time.monotonic()
        if self._workspace is not None and begun >= self._docs_until:
            found = dict(_docs(self._workspace, self._files.fs.root))
            if found != self._docs:
                self._docs = found
            took = time.monotonic() - begun
            self._docs_until = begun + (1.0 if took > _SLOW_S else 0.0)
        return self._docs


class _Folder:
    """One folder: its files, and what has been told of them since they were looked at."""

    def __init__(self, files: Files, watch: FolderWatch | None, path: str, suffix: str) -> None:
        self._files, self._watch = files, watch
        self._path, self._suffix = path, suffix
        self._stamps: dict[str, Stamp] = {}
        self._is_followed: bool | None = None
        """Whether its changes are told; None: nobody was asked to."""
        self._guard = threading.Lock()
        self._told: set[str] | None = None
        """Names that have changed; None: everything is to be looked at."""

    def look(self) -> dict[str, Stamp]:
        """By path; only what changed is looked at where that is known."""
        if self._watch is not None and self._is_followed is None:
            # Before the first look, so that nothing is missed between them.
            self._is_followed = self._watch.watch(self._path, self._tell)
        with self._guard:
            told, self._told = self._told, set[str]() if self._is_followed else None
        if told is None or len(self._stamps) <= _FOLLOWED:
            there = self._all_stats()
            found = {
                f"{self._path}/{name}": stamp
                for name in sorted(there, reverse=True)
                if (stamp := _stamp(name, there[name]))
            }
            if found != self._stamps:
                self._stamps = found
            return self._stamps
        names = [name for name in told if name.endswith(self._suffix) and name[0] != "."]
        stats = {name: self._files.stat(f"{self._path}/{name}") for name in names}
        looked_at = {f"{self._path}/{name}": _stamp(name, stats[name]) for name in names}
        if any(self._stamps.get(path) != stamp for path, stamp in looked_at.items()):
            both = {**self._stamps, **looked_at}
            self._stamps = {path: stamp for path, stamp in both.items() if stamp}
        return self._stamps

    def _tell(self, names: list[str] | None) -> None:
        """These have changed, or anything (None); any thread may say so."""
        with self._guard:
            if names is None:
                self._told = None
            elif self._told is not None:
                self._told.update(names)

    def _all_stats(self) -> dict[str, FileStat]:
        """The files as they are; a folder that its user has removed is made again and empty."""
        try:
            return self._files.stats(self._path, suffix=self._suffix)
        except StorageError:
            try:
                for made in accumulate(self._path.split("/"), "{}/{}".format):
                    self._files.fs.make_dir(made)
                return self._files.stats(self._path, suffix=self._suffix)
            except (StorageError, OSError):
                return {}


def _docs(workspace: Path, state: str) -> Iterator[tuple[str, Stamp]]:
    """The workspace's docs, without the state folder, should it lie among them."""

    def is_state(folder: Path) -> bool:
        with contextlib.suppress(OSError):
            return folder.samefile(state)
        return False

    left = MOST_DOCS
    top = workspace / DOCS
    if top.is_symlink() or is_state(top):
        return
    for place, below, names in os.walk(top):
        folder = Path(place)
        below[:] = sorted(n for n in below if n[0] != "." and not is_state(folder / n))
        shown = folder.relative_to(workspace).as_posix()
        for name in sorted(names):
            if left <= 0 or not name.endswith(".md") or name.startswith("."):
                continue
            left -= 1
            with contextlib.suppress(OSError):
                stat = (folder / name).lstat()
                is_plain = stat_bits.S_ISREG(stat.st_mode) and stat.st_size <= LARGEST
                if is_plain and _is_text(f"{shown}/{name}"):
                    yield f"{shown}/{name}", Stamp(stat.st_size, stat.st_mtime_ns)


def _is_text(name: str) -> bool:
    """Whether a name can be told to anybody: not each one is text."""
    return name.isascii() or name.encode(errors="ignore").decode() == name
