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
from pathlib import Path
from typing import NamedTuple, TypeAlias
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


Stamps: TypeAlias = Mapping[str, Stamp]


def _stamp(path: str, stat: FileStat | None) -> Stamp | None:
    """None: not searched."""
    is_searched = stat is not None and stat.kind == "file" and stat.size <= LARGEST
    return Stamp(stat.size, stat.mtime_ns) if stat and is_searched and _is_text(path) else None


class DocumentSnapshot:
    """The files that can be searched at one moment, told from others by identity."""

    def __init__(
        self,
        parts: Sequence[dict[str, Stamp]],
        before: DocumentSnapshot | None,
        changed: frozenset[str] | None,
    ) -> None:
        """`parts`: by path, no path in two; they are not changed any more."""
        self.parts = parts
        self.stamps: Mapping[str, Stamp] = ChainMap(*parts)
        """Slow to go through: there may be very many."""
        self.before = ref(before) if before is not None else None
        self.changed = changed
        """The paths that are otherwise than in the one before; None: not known."""


class DocumentFolders:
    """What there is to search, as it is now. One thread at a time."""

    def __init__(self, files: Files, workspace: Path | None, watch: FolderWatch | None) -> None:
        """Nothing is read yet.

        workspace: whose `docs/**/*.md` are searched too; None: there are none.
        watch: tells of changes in large folders, so that not every search looks at all their files.
        """
        self._files = files
        self._workspace = workspace
        self._watch = watch if watch is not None and watch.by_events else None
        self._folders: dict[str, _Folder] = {}
        self._docs: dict[str, Stamp] = {}
        self._long_term: dict[str, Stamp] = {}
        self._docs_until = 0.0
        self._snapshots: dict[bool, DocumentSnapshot] = {}

    def snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        """Every file that can be searched; the same object as before when nothing has changed."""
        places = (*_NEAR, *_FAR) if everywhere else _NEAR
        parts = [self._memory(), *(self._look_at(*place) for place in places), self._documents()]
        known = self._snapshots.get(everywhere)
        if known is not None and all(a is b for a, b in zip(known.parts, parts, strict=True)):
            return known
        snapshot = DocumentSnapshot(parts, known, _difference(known.parts if known else (), parts))
        self._snapshots[everywhere] = snapshot
        return snapshot

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

    def _memory(self) -> dict[str, Stamp]:
        stamp = _stamp(paths.MEMORY, self._files.stat(paths.MEMORY))
        now = {paths.MEMORY: stamp} if stamp else {}
        if now != self._long_term:
            self._long_term = now
        return self._long_term

    def _look_at(self, folder: str, suffix: str) -> dict[str, Stamp]:
        """The files of one folder; only those that changed are looked at where that is known."""
        known = self._folders.setdefault(folder, _Folder())
        if self._watch is not None and known.followed is None:
            # Before the first look, so that nothing is missed between them.
            known.followed = self._watch.watch(folder, known.tell)
        changed = known.taken()
        if changed is None or len(known.stamps) <= _FOLLOWED:
            known.replace(folder, self._stats(folder, suffix))
        elif names := [name for name in changed if name.endswith(suffix) and name[0] != "."]:
            known.update(folder, {n: self._files.stat(f"{folder}/{n}") for n in names})
        return known.stamps

    def _stats(self, folder: str, suffix: str) -> dict[str, FileStat]:
        """The files of a folder; one that its user has removed is made again and empty."""
        try:
            return self._files.stats(folder, suffix=suffix)
        except StorageError:
            try:
                parts = folder.split("/")
                for depth in range(len(parts)):
                    self._files.fs.make_dir("/".join(parts[: depth + 1]))
                return self._files.stats(folder, suffix=suffix)
            except (StorageError, OSError):
                return {}

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
    """What is known of one folder, and what has been told of it since."""

    def __init__(self) -> None:
        self.stamps: dict[str, Stamp] = {}
        self.followed: bool | None = None
        """Whether its changes are told; None: nobody was asked to."""
        self._guard = threading.Lock()
        self._told: set[str] | None = None

    def tell(self, names: list[str] | None) -> None:
        """These have changed, or anything (None); any thread may say so."""
        with self._guard:
            if names is None:
                self._told = None
            elif self._told is not None:
                self._told.update(names)

    def taken(self) -> set[str] | None:
        """What was told since the last time; None: everything is to be looked at."""
        with self._guard:
            told = self._told
            self._told = set() if self.followed else None
            return told

    def replace(self, folder: str, stats: dict[str, FileStat]) -> None:
        found = {
            f"{folder}/{name}": stamp
            for name in sorted(stats, reverse=True)
            if (stamp := _stamp(name, stats[name]))
        }
        if found != self.stamps:
            self.stamps = found

    def update(self, folder: str, stats: dict[str, FileStat | None]) -> None:
        looked_at = {f"{folder}/{name}": _stamp(name, stat) for name, stat in stats.items()}
        if any(self.stamps.get(path) != stamp for path, stamp in looked_at.items()):
            both = {**self.stamps, **looked_at}
            self.stamps = {path: stamp for path, stamp in both.items() if stamp}


def _difference(
    before: Sequence[dict[str, Stamp]], now: Sequence[dict[str, Stamp]]
) -> frozenset[str] | None:
    """The paths that have changed; None when there was nothing before."""
    if not before:
        return None
    changed: set[str] = set()
    for old, new in zip(before, now, strict=True):
        if old is new:
            continue
        # What was not looked at again is the same object: cheap to see among very many.
        other = {p for p, s in new.items() if (o := old.get(p)) is not s and o != s}
        added = sum(path not in old for path in other)
        changed |= other
        if len(new) - added != len(old):
            changed |= old.keys() - new.keys()
    return frozenset(changed)


def _docs(workspace: Path, state: str) -> Iterator[tuple[str, Stamp]]:
    """The workspace's docs, without the state folder, should it lie among them."""
    left = MOST_DOCS
    top = workspace / DOCS
    if top.is_symlink() or _is_same(top, state):
        return
    for folder, below, names in os.walk(top):
        below[:] = sorted(
            name
            for name in below
            if not name.startswith(".") and not _is_same(Path(folder) / name, state)
        )
        shown = Path(folder).relative_to(workspace).as_posix()
        for name in sorted(names):
            if left <= 0 or not name.endswith(".md") or name.startswith("."):
                continue
            left -= 1
            with contextlib.suppress(OSError):
                stat = (Path(folder) / name).lstat()
                is_plain = stat_bits.S_ISREG(stat.st_mode) and stat.st_size <= LARGEST
                if is_plain and _is_text(f"{shown}/{name}"):
                    yield f"{shown}/{name}", Stamp(stat.st_size, stat.st_mtime_ns)


def _is_same(folder: Path, other: str) -> bool:
    try:
        return folder.samefile(other)
    except OSError:
        return False


def _is_text(name: str) -> bool:
    """Whether a name can be told to anybody: not each one is text."""
    return name.isascii() or name.encode(errors="ignore").decode() == name
