"""The files that can be searched, with their stamps; long transcripts in parts.

Read only. Nothing of `secrets/`, no settings, no log; links are not followed.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_bits
import threading
import time
import zlib
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from mimikit.errors import StorageError
from mimikit.memory import passages
from mimikit.memory.index import Stamp
from mimikit.memory.passages import FilePart, part_of
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES
from mimikit.protocol.watch import FolderWatch

MAX_FILE_BYTES = 8 * 2**20
"""A larger file is not searched, but for transcripts."""
PART_BYTES = 32 * 2**10
"""A longer transcript is searched in parts of this size, so that a new message changes the last."""
MAX_DAY_BYTES = 256 * 2**20
"""Of one day's transcript that are searched."""
MAX_DOCS_DEPTH = 16
MAX_DOCS_ENTRIES = 100_000
"""Files and folders below `docs` that are listed."""
MAX_DOCS = 5000
_ALWAYS_LISTED = 300
"""Files; a smaller folder is listed at each search, which takes a millisecond."""
_SLOW_S = 0.005

_NEAR = ((paths.MEMORY_FOLDER, ".md"), (f"{paths.MEMORY_FOLDER}/summary", ".md"))
_RESULTS = (("worker/results", ".json"), ("planner/done", ".json"))


def _stamp(path: str, stat: FileStat | None) -> Stamp | None:
    """None: not searched, as it is no plain file, too large, or its name is no text."""
    if stat is None or stat.kind != "file" or stat.size > MAX_FILE_BYTES:
        return None
    is_text = path.isascii() or path.encode(errors="ignore").decode() == path
    return Stamp(stat.size, stat.mtime_ns) if is_text else None


class DocumentSnapshot:
    """The files that can be searched at one moment; compared by identity."""

    def __init__(self, parts: Sequence[Mapping[str, Stamp]]) -> None:
        """`parts`: one for each folder; immutable."""
        self.parts = parts
        self.stamps: Mapping[str, Stamp] = ChainMap(*cast("Sequence[dict[str, Stamp]]", parts))
        """Slow to iterate."""

    def changes_since(self, before: DocumentSnapshot) -> set[str]:
        """The paths whose stamps differ from another snapshot of the same folders."""
        changed: set[str] = set()
        for old, new in zip(before.parts, self.parts, strict=True):
            if old is not new:
                changed |= {path for path, _ in old.items() ^ new.items()}
        return changed


class DocumentFolders:
    """Lists what can be searched. One thread at a time."""

    def __init__(self, files: Files, workspace: Path | None, watch: FolderWatch | None) -> None:
        """`watch`: reports changes; without one each search lists large folders too."""
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
        self._docs_until = 0.0
        self.newest: dict[bool, DocumentSnapshot] = {}
        """By `everywhere`."""

    def snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        """All files that can be searched; the same object while nothing has changed."""
        stamp = _stamp(paths.MEMORY, self._files.stat(paths.MEMORY))
        long_term = {paths.MEMORY: stamp} if stamp else {}
        if long_term != self._long_term:
            self._long_term = long_term
        folders = self._near + self._far if everywhere else self._near
        parts = [self._long_term, *(folder.look() for folder in folders)]
        started = time.monotonic()
        if self._workspace is not None and started >= self._docs_until:
            docs = dict(_docs(self._workspace, self._files.fs.root))
            if docs != self._docs:
                self._docs = docs
            is_slow = time.monotonic() - started > _SLOW_S  # a large tree: once a second at most
            self._docs_until = started + 1.0 if is_slow else started
        parts.append(self._docs)
        known = self.newest.get(everywhere)
        if known is None or any(a is not b for a, b in zip(known.parts, parts, strict=True)):
            known = self.newest[everywhere] = DocumentSnapshot(parts)
        return known

    def read(self, path: str) -> bytes | None:
        """The bytes of a file or part; None when it is gone or no plain file."""
        try:
            if passages.kind_of(path) == "transcript":
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
    """One folder: its files, and the changes reported since they were listed."""

    def __init__(self, files: Files, watch: FolderWatch | None, path: str, suffix: str) -> None:
        self._files, self._watch = files, watch
        self._path, self._suffix = path, suffix
        self._stamps: dict[str, Stamp] = {}
        self._is_watched: bool | None = None
        """None: not tried yet."""
        self._guard = threading.Lock()
        self._changed: set[str] | None = None
        """Names that have changed; None: all are to be listed."""

    def look(self) -> dict[str, Stamp]:
        """The stamps by path; the same object while nothing has changed."""
        if self._watch is not None and self._is_watched is None:
            # Before the first listing, so that no change is missed between the two.
            self._is_watched = self._watch.watch(self._path, self._on_change)
        with self._guard:
            changed, self._changed = self._changed, set[str]() if self._is_watched else None
        stamps: dict[str, Stamp] = {}
        if changed is None or len(self._stamps) <= _ALWAYS_LISTED:
            stats = self._stats()
            for name in sorted(stats, reverse=True):
                stamps |= self._stamped(name, stats[name])
        else:
            names = [name for name in changed if name.endswith(self._suffix) and name[0] != "."]
            if not names:
                return self._stamps
            before = {path for name in names for path in self._paths(name)}
            stamps = {path: stamp for path, stamp in self._stamps.items() if path not in before}
            for name in names:
                stamps |= self._stamped(name, self._files.stat(f"{self._path}/{name}"))
        if stamps != self._stamps:
            self._stamps = stamps
        return self._stamps

    def _paths(self, name: str) -> Sequence[str]:
        """The paths under which a file was searched."""
        return [f"{self._path}/{name}"]

    def _stamped(self, name: str, stat: FileStat | None) -> dict[str, Stamp]:
        path, stamp = f"{self._path}/{name}", _stamp(name, stat)
        return {path: stamp} if stamp else {}

    def _on_change(self, names: Sequence[str] | None) -> None:
        """Called from any thread; None: anything may have changed."""
        with self._guard:
            if names is None:
                self._changed = None
            elif self._changed is not None:
                self._changed.update(names)

    def _stats(self) -> dict[str, FileStat]:
        """A folder that its user removed is created again."""
        try:
            return self._files.stats(self._path, suffix=self._suffix)
        except StorageError:
            with contextlib.suppress(StorageError):
                self._files.make_folders(accumulate(self._path.split("/"), "{}/{}".format))
                return self._files.stats(self._path, suffix=self._suffix)
            return {}


@dataclass(frozen=True, slots=True)
class _Split:
    """A transcript in parts."""

    stat: FileStat
    whole: dict[str, Stamp]
    """The parts that are full: their lengths and checksums."""
    parts: dict[str, Stamp]
    end: FilePart
    """The part after the full ones."""


class _Transcripts(_Folder):
    """The days of the conversation. A long one is read once, and then from its last part on."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._splits: dict[str, _Split] = {}

    def _paths(self, name: str) -> Sequence[str]:
        split = self._splits.get(name)
        return [*split.parts] if split else super()._paths(name)

    def _stamped(self, name: str, stat: FileStat | None) -> dict[str, Stamp]:
        known = self._splits.pop(name, None)
        if not _is_day(name.removesuffix(self._suffix)):
            return {}
        if stat is None or stat.size <= PART_BYTES or _stamp(name, stat._replace(size=0)) is None:
            return super()._stamped(name, stat)
        if known is None or known.stat != stat:
            known = self._split(FilePart(f"{self._path}/{name}"), stat, known)
        self._splits[name] = known
        return known.parts

    def _split(self, part: FilePart, stat: FileStat, before: _Split | None) -> _Split:
        """Split a file anew; one that has only grown from its last full part on."""
        whole: dict[str, Stamp] = {}
        has_grown = before and before.stat.inode == stat.inode and before.stat.size <= stat.size
        if before and before.whole and has_grown:
            last, stamp = list(before.whole.items())[-1]
            if _checksum(_read_part(self._files, part_of(last))) == stamp:
                part, whole = before.end, dict(before.whole)
        while True:
            data = _read_part(self._files, part) if part.offset < MAX_DAY_BYTES else b""
            if len(data) < PART_BYTES or not data.endswith(b"\n"):
                break
            whole[part.name] = _checksum(data)
            lines = part.lines + data.count(b"\n")
            part = FilePart(part.path, part.offset + len(data), lines)
        rest = {part.name: Stamp(len(data), stat.mtime_ns)} if data else {}
        return _Split(stat, whole, whole | rest, part)


def _checksum(data: bytes) -> Stamp:
    """The stamp of a full part: it does not depend on the file's time."""
    return Stamp(len(data), zlib.crc32(data))


def _read_part(files: Files, part: FilePart) -> bytes:
    """Lines up to the first that ends after PART_BYTES, or to the end.

    Nothing is read from a line on that is longer than a record may be.
    """
    want, limit = 2 * PART_BYTES, PART_BYTES + MAX_RECORD_BYTES
    while True:
        data = files.part(part.path, part.offset, want)
        end = data.find(b"\n", PART_BYTES - 1) + 1
        if end or len(data) < want:
            return data[: end or None]
        if want == limit:
            return data[: data.rfind(b"\n") + 1]
        want = min(want * 4, limit)


def _is_day(stem: str) -> bool:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(stem).isoformat() == stem
    return False


def _docs(workspace: Path, state: str) -> Iterator[tuple[str, Stamp]]:
    """The workspace's docs, without a state folder among them."""

    def is_state(folder: Path) -> bool:
        with contextlib.suppress(OSError):
            return folder.samefile(state)
        return False

    left, entries = MAX_DOCS, 0
    top = workspace / "docs"
    if top.is_symlink() or is_state(top):
        return
    for place, below, names in os.walk(top):
        folder = Path(place)
        shown = folder.relative_to(workspace).as_posix()
        entries += len(below) + len(names)
        if shown.count("/") >= MAX_DOCS_DEPTH or entries > MAX_DOCS_ENTRIES:
            below.clear()  # os.walk recurses
        below[:] = sorted(n for n in below if n[0] != "." and not is_state(folder / n))
        for name in sorted(names):
            if left <= 0 or not name.endswith(".md") or name.startswith("."):
                continue
            left -= 1
            with contextlib.suppress(OSError):
                entry = (folder / name).lstat()
                kind = "file" if stat_bits.S_ISREG(entry.st_mode) else "other"
                stat = FileStat(kind, entry.st_size, entry.st_mtime_ns, entry.st_ino)
                if stamp := _stamp(f"{shown}/{name}", stat):
                    yield f"{shown}/{name}", stamp
