"""The files that are searched, as they are now: each with its state, long transcripts in parts.

Only reads the files. Nothing of `secrets/`, no settings, no log; a link is never followed.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_bits
import threading
import time
import zlib
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, cast

from mimikit.errors import StorageError
from mimikit.memory import passages
from mimikit.memory.index import Stamp, StampTable
from mimikit.memory.passages import FilePart, part_of
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES
from mimikit.protocol.watch import FolderWatch

LARGEST = 8 * 2**20
"""Bytes; a longer file is not searched, but for transcripts and `memory.md`, which are cut."""
PART_BYTES = 32 * 2**10
"""A longer transcript is searched in parts of so much: as messages come only the last changes. Of a
`memory.md` beyond LARGEST, too."""
LARGEST_DAY = 256 * 2**20
"""Bytes of one day's transcript, or of `memory.md`, that are searched."""
MOST_DEPTH = 16
"""Folders of the workspace's docs, one in another."""
MOST_ENTRIES = 100_000
"""Files and folders there that are looked at."""
MOST_DOCS = 5000
"""Files of the workspace's docs; so many are looked at, in the order of their names."""
_FOLLOWED = 300
"""Files; a smaller folder is looked at whole at each search: that takes a millisecond."""
_FEW = 2000
"""Files; the states of more are held in a table, which is slower to ask and takes little memory."""
_SLOW_S = 0.005

_NEAR = ((paths.MEMORY_FOLDER, ".md"), (f"{paths.MEMORY_FOLDER}/summary", ".md"))
_RESULTS = (("worker/results", ".json"), ("planner/done", ".json"))


def _stamp(path: str, stat: FileStat | None) -> Stamp | None:
    """None: not searched. Not each name is text that can be told to anybody."""
    if stat is None or stat.kind != "file" or stat.size > LARGEST:
        return None
    is_text = path.isascii() or path.encode(errors="ignore").decode() == path
    return Stamp(stat.size, stat.mtime_ns) if is_text else None


class DocumentSnapshot:
    """The files that can be searched at one moment, told from others by identity."""

    def __init__(self, parts: Sequence[Mapping[str, Stamp]]) -> None:
        """`parts`: by path, no path in two; they are not changed any more."""
        self.parts = parts
        self.stamps: Mapping[str, Stamp] = ChainMap(*cast("Sequence[dict[str, Stamp]]", parts))
        """Not to be gone through, which makes a dict of them all: there may be very many."""

    def paths(self) -> Iterator[str]:
        """Of all of them, one by one."""
        return chain.from_iterable(reversed(self.parts))

    def changes_since(self, before: DocumentSnapshot) -> set[str]:
        """The paths that are otherwise than in another of the same folders."""
        changed: set[str] = set()
        for old, new in zip(before.parts, self.parts, strict=True):
            if old is not new:
                is_table = isinstance(new, StampTable)
                among = new.differs_in(old) if is_table else old.keys() | new.keys()
                changed |= {path for path in among if old.get(path) != new.get(path)}
        return changed


class DocumentFolders:
    """What there is to search, as it is now. One thread at a time."""

    def __init__(self, files: Files, workspace: Path | None, watch: FolderWatch | None) -> None:
        """`watch`: tells of changes; else each search looks at all files of large folders too."""
        self._files = files
        self._workspace = workspace
        watch = watch if watch is not None and watch.by_events else None
        self._near = [_Folder(files, watch, *place) for place in _NEAR]
        self._far = [
            _Transcripts(files, watch, paths.TRANSCRIPT, ".jsonl"),
            *(_Folder(files, watch, *place) for place in _RESULTS),
        ]
        self._docs: dict[str, Stamp] = {}
        self._long_term: dict[str, Stamp] = {}
        self._memory_cut: _Cut | None = None
        """Of a `memory.md` that is too long to be searched as one."""
        self._docs_until = 0.0
        self.newest: dict[bool, DocumentSnapshot] = {}
        """By whether it is of everything."""

    def snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        """Every file that can be searched; the same object as before when nothing has changed."""
        stat = self._files.stat(paths.MEMORY)
        if stat is None or stat.kind != "file" or stat.size <= LARGEST:
            self._memory_cut, stamp = None, _stamp(paths.MEMORY, stat)
            now = {paths.MEMORY: stamp} if stamp else {}
        else:  # its user may have changed it anywhere
            if self._memory_cut is None or self._memory_cut.stat != stat:
                self._memory_cut = _cut(self._files, FilePart(paths.MEMORY), stat, {})
            now = self._memory_cut.parts
        if now != self._long_term:
            self._long_term = now
        folders = self._near + self._far if everywhere else self._near
        parts = [self._long_term, *(folder.look() for folder in folders)]
        begun = time.monotonic()
        if self._workspace is not None and begun >= self._docs_until:
            found = dict(_docs(self._workspace, self._files.fs.root))
            if found != self._docs:
                self._docs = found
            is_slow = time.monotonic() - begun > _SLOW_S  # a large tree: once a second at most
            self._docs_until = begun + 1.0 if is_slow else begun
        parts.append(self._docs)
        known = self.newest.get(everywhere)
        if known is None or any(a is not b for a, b in zip(known.parts, parts, strict=True)):
            known = self.newest[everywhere] = DocumentSnapshot(parts)
        return known

    def read(self, path: str) -> bytes | None:
        """The bytes of one of these files, or its part; None when it is gone or no plain file."""
        try:
            is_cut = path.startswith(paths.MEMORY) and self._memory_cut is not None
            if is_cut or passages.kind_of(path) == "transcript":
                return _read_part(self._files, part_of(path))
            if not path.startswith("docs/"):
                return self._files.read(path)
            if self._workspace is None:
                return None
            how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self._workspace / path, how), "rb") as file:
                return file.read() if stat_bits.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        except (StorageError, OSError):
            return None


class _Folder:
    """One folder: its files, and what has been told of them since they were looked at."""

    def __init__(self, files: Files, watch: FolderWatch | None, path: str, suffix: str) -> None:
        self._files, self._watch = files, watch
        self._path, self._suffix = path, suffix
        self._stamps: Mapping[str, Stamp] = {}
        self._is_followed: bool | None = None
        """Whether its changes are told; None: nobody was asked to."""
        self._guard = threading.Lock()
        self._told: set[str] | None = None
        """Names that have changed; None: everything is to be looked at."""

    def look(self) -> Mapping[str, Stamp]:
        """By path; only what changed is looked at where that is known."""
        if self._watch is not None and self._is_followed is None:
            # Before the first look, so that nothing is missed between them.
            self._is_followed = self._watch.watch(self._path, self._tell)
        with self._guard:
            told, self._told = self._told, set[str]() if self._is_followed else None
        if told is None or len(self._stamps) <= _FOLLOWED:
            all_of_it = self._all_stamps()
            found: Mapping[str, Stamp] = dict(islice(all_of_it, _FEW + 1))
            if len(found) > _FEW:
                rest = chain(found.items(), all_of_it)
                found = StampTable(rest) if self._is_followed else dict(rest)
            if found != self._stamps:
                self._stamps = found
            return self._stamps
        names = [name for name in told if name.endswith(self._suffix) and name[0] != "."]
        before = {path for name in names for path in self._paths(name)}
        now: dict[str, Stamp] = {}
        for name in names:
            now |= self._stamped(name, self._files.stat(f"{self._path}/{name}"))
        both = before | now.keys()
        changes = {path: now.get(path) for path in both if self._stamps.get(path) != now.get(path)}
        if changes and isinstance(self._stamps, StampTable):
            self._stamps = self._stamps.but(changes)
        elif changes:
            merged = {**self._stamps, **changes}
            self._stamps = {path: stamp for path, stamp in merged.items() if stamp}
        return self._stamps

    def _all_stamps(self) -> Iterator[tuple[str, Stamp]]:
        there = self._all_stats()
        for name in sorted(there, reverse=True):
            yield from self._stamped(name, there.pop(name)).items()

    def _paths(self, name: str) -> Iterable[str]:
        """Under which paths a file was searched."""
        return [f"{self._path}/{name}"]

    def _stamped(self, name: str, stat: FileStat | None) -> dict[str, Stamp]:
        """What is searched of a file now."""
        path, stamp = f"{self._path}/{name}", _stamp(name, stat)
        return {path: stamp} if stamp else {}

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
            with contextlib.suppress(StorageError):
                self._files.make_folders(accumulate(self._path.split("/"), "{}/{}".format))
                return self._files.stats(self._path, suffix=self._suffix)
            return {}


@dataclass(frozen=True, slots=True)
class _Cut:
    """How a transcript was cut into parts."""

    stat: FileStat
    whole: dict[str, Stamp]
    """The parts that do not change any more: their lengths and sums."""
    parts: dict[str, Stamp]
    end: FilePart
    """The part after those."""


class _Transcripts(_Folder):
    """The days of the conversation. A long one is read once and then from its last part on."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._cuts: dict[str, _Cut] = {}

    def _paths(self, name: str) -> Iterable[str]:
        cut = self._cuts.get(name)
        return list(cut.parts) if cut else super()._paths(name)

    def _stamped(self, name: str, stat: FileStat | None) -> dict[str, Stamp]:
        known = self._cuts.pop(name, None)
        if not _is_day(name.removesuffix(self._suffix)):
            return {}
        if stat is None or stat.size <= PART_BYTES or _stamp(name, stat._replace(size=0)) is None:
            return super()._stamped(name, stat)
        if known is None or known.stat != stat:
            known = self._cut_anew(FilePart(f"{self._path}/{name}"), stat, known)
        self._cuts[name] = known
        return known.parts

    def _cut_anew(self, part: FilePart, stat: FileStat, before: _Cut | None) -> _Cut:
        """The parts of a file; those of before, if it has only grown, as they are."""
        if before and before.stat.inode == stat.inode and before.stat.size <= stat.size:
            last, stamp = list(before.whole.items())[-1]
            if _sum(_read_part(self._files, part_of(last))) == stamp:
                return _cut(self._files, before.end, stat, before.whole)
        return _cut(self._files, part, stat, {})


def _cut(files: Files, part: FilePart, stat: FileStat, before: Mapping[str, Stamp]) -> _Cut:
    """The parts of a file from one on; `before`: those before that."""
    whole = dict(before)
    while True:
        data = _read_part(files, part) if part.offset < LARGEST_DAY else b""
        if len(data) < PART_BYTES or not data.endswith(b"\n"):
            break
        whole[part.name] = _sum(data)
        lines = part.lines + data.count(b"\n")
        part = FilePart(part.path, part.offset + len(data), lines)
    rest = {part.name: Stamp(len(data), stat.mtime_ns)} if data else {}
    return _Cut(stat, whole, whole | rest, part)


def _sum(data: bytes) -> Stamp:
    """The state of a part that is whole: whatever time its file has by now."""
    return Stamp(len(data), zlib.crc32(data))


def _read_part(files: Files, part: FilePart) -> bytes:
    """Lines of a transcript: up to the first that ends after PART_BYTES, or to the end.

    A line that is longer than a record may be is none of ours, and nothing is read from it on.
    """
    want, most = 2 * PART_BYTES, PART_BYTES + MAX_RECORD_BYTES
    while True:
        data = files.part(part.path, part.offset, want)
        end = data.find(b"\n", PART_BYTES - 1) + 1
        if end or len(data) < want:
            return data[: end or None]
        if want == most:
            return data[: data.rfind(b"\n") + 1]
        want = min(want * 4, most)


def _is_day(stem: str) -> bool:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(stem).isoformat() == stem
    return False


def _docs(workspace: Path, state: str) -> Iterator[tuple[str, Stamp]]:
    """The workspace's docs, without the state folder, should it lie among them."""

    def is_state(folder: Path) -> bool:
        with contextlib.suppress(OSError):
            return folder.samefile(state)
        return False

    left, entries = MOST_DOCS, 0
    top = workspace / "docs"
    if top.is_symlink() or is_state(top):
        return
    for place, below, names in os.walk(top):
        folder = Path(place)
        shown = folder.relative_to(workspace).as_posix()
        entries += len(below) + len(names)
        if shown.count("/") >= MOST_DEPTH or entries > MOST_ENTRIES:
            below.clear()  # Python walks no deeper than it can call itself
        below[:] = sorted(n for n in below if n[0] != "." and not is_state(folder / n))
        for name in sorted(names):
            if left <= 0 or not name.endswith(".md") or name.startswith("."):
                continue
            left -= 1
            with contextlib.suppress(OSError):
                found = (folder / name).lstat()
                kind = "file" if stat_bits.S_ISREG(found.st_mode) else "other"
                stat = FileStat(kind, found.st_size, found.st_mtime_ns, found.st_ino)
                if stamp := _stamp(f"{shown}/{name}", stat):
                    yield f"{shown}/{name}", stamp
