"""Lists and reads the searchable files; long transcripts in parts.

Read only. Excludes `secrets/`, settings and logs; links are not followed.
"""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from mimikit.errors import StorageError
from mimikit.memory import markdown, passages
from mimikit.memory.index import Stamp
from mimikit.memory.passages import FilePart, part_of
from mimikit.memory.workspace_docs import Documents
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES
from mimikit.protocol.watch import FolderWatch

MAX_FILE_BYTES = 8 * 2**20
"""Larger files are not searched, except transcripts."""
PART_BYTES = 32 * 2**10
"""Longer transcripts are indexed in parts of this size: a new message changes only the last one."""
MAX_DAY_BYTES = 256 * 2**20
"""The rest of a day's transcript is not searched."""
_ALWAYS_LISTED = 300
"""Folders with at most this many files are listed at each search, which takes a millisecond."""
_SLOW_S = 0.005

_NEAR = ((paths.MEMORY_FOLDER, ".md"), (f"{paths.MEMORY_FOLDER}/summary", ".md"))
_RESULTS = (("worker/results", ".json"), ("planner/done", ".json"))


def _stamp(path: str, stat: FileStat | None) -> Stamp | None:
    """None: not searchable: no plain file, too large, or its name is not UTF-8."""
    if stat is None or stat.kind != "file" or stat.size > MAX_FILE_BYTES:
        return None
    is_text = path.isascii() or path.encode(errors="ignore").decode() == path
    return Stamp(stat.size, stat.mtime_ns) if is_text else None


class DocumentFolders:
    """Lists the searchable files. Not thread-safe."""

    def __init__(self, files: Files, workspace: Path | None, watch: FolderWatch | None) -> None:
        """`watch`: reports changes; without it each search lists large folders too."""
        self._files = files
        self._workspace = Documents(workspace, files.fs.root) if workspace else None
        watch = watch if watch is not None and watch.by_events else None
        self._near = [_Folder(files, watch, *place) for place in _NEAR]
        self._far = [
            _Transcripts(files, watch, paths.TRANSCRIPT, ".jsonl"),
            *(_Folder(files, watch, *place) for place in _RESULTS),
        ]
        self._docs: dict[str, Stamp] = {}
        self._long_term: dict[str, Stamp] = {}
        self._docs_until = 0.0
        self._parts: dict[bool, list[dict[str, Stamp]]] = {}
        self.newest: dict[bool, dict[str, Stamp]] = {}

    def snapshot(self, *, everywhere: bool) -> dict[str, Stamp]:
        """The searchable files; the same object while nothing has changed."""
        stamp = _stamp(paths.MEMORY, self._files.stat(paths.MEMORY))
        long_term = {paths.MEMORY: stamp} if stamp else {}
        if long_term != self._long_term:
            self._long_term = long_term
        folders = self._near + self._far if everywhere else self._near
        parts = [self._long_term, *(folder.stamps() for folder in folders)]
        started = time.monotonic()
        if self._workspace is not None and started >= self._docs_until:
            found = self._workspace.listed()
            docs = {f.path: Stamp(f.size, f.mtime_ns) for f in found if f.size <= MAX_FILE_BYTES}
            if docs != self._docs:
                self._docs = docs
            is_slow = time.monotonic() - started > _SLOW_S  # a large tree: once a second at most
            self._docs_until = started + 1.0 if is_slow else started
        parts.append(self._docs)
        before = self._parts.get(everywhere, [])
        if [*map(id, before)] != [*map(id, parts)]:
            self._parts[everywhere] = parts
            # In the order in which a scan visits them: docs first.
            self.newest[everywhere] = {p: part[p] for part in reversed(parts) for p in part}
        return self.newest[everywhere]

    def read(self, path: str) -> bytes | None:
        """The content of a file or part; None: deleted or no plain file."""
        try:
            if passages.kind_of(path) == "transcript":
                return _read_part(self._files, part_of(path))
            if not path.startswith("docs/"):
                return self._files.read(path)
            found = self._workspace and self._workspace.read(path, MAX_FILE_BYTES)
            return found[0] if found else None
        except StorageError:
            return None


class _Folder:
    """Lists one folder; a large watched one only where changes were reported."""

    def __init__(self, files: Files, watch: FolderWatch | None, path: str, suffix: str) -> None:
        self._files, self._watch = files, watch
        self._path, self._suffix = path, suffix
        self._stamps: dict[str, Stamp] = {}
        self._is_watched: bool | None = None
        """None: not tried yet."""
        self._guard = threading.Lock()
        self._changed: set[str] | None = None
        """Names changed since the last listing; None: list all."""

    def stamps(self) -> dict[str, Stamp]:
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
        return [f"{self._path}/{name}"]

    def _stamped(self, name: str, stat: FileStat | None) -> dict[str, Stamp]:
        path, stamp = f"{self._path}/{name}", _stamp(name, stat)
        return {path: stamp} if stamp else {}

    def _on_change(self, names: Sequence[str] | None) -> None:
        """Called from any thread; None: unknown, list all."""
        with self._guard:
            if names is None:
                self._changed = None
            elif self._changed is not None:
                self._changed.update(names)

    def _stats(self) -> dict[str, FileStat]:
        try:
            return self._files.stats(self._path, suffix=self._suffix)
        except StorageError:
            with contextlib.suppress(StorageError):
                self._files.make_folders(accumulate(self._path.split("/"), "{}/{}".format))
                return self._files.stats(self._path, suffix=self._suffix)
            return {}


@dataclass(frozen=True, slots=True)
class _Split:
    stat: FileStat
    whole: dict[str, Stamp]
    """The full parts, with their lengths and checksums."""
    parts: dict[str, Stamp]
    end: FilePart


class _Transcripts(_Folder):
    """The days of the conversation; a long one is reread from its last full part on."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._splits: dict[str, _Split] = {}

    def _paths(self, name: str) -> Sequence[str]:
        split = self._splits.get(name)
        return [*split.parts] if split else super()._paths(name)

    def _stamped(self, name: str, stat: FileStat | None) -> dict[str, Stamp]:
        known = self._splits.pop(name, None)
        stem = name.removesuffix(self._suffix)
        if f"{markdown.parse_day(stem)}" != stem:
            return {}
        if stat is None or stat.size <= PART_BYTES or _stamp(name, stat._replace(size=0)) is None:
            return super()._stamped(name, stat)
        if known is None or known.stat != stat:
            known = self._split(FilePart(f"{self._path}/{name}"), stat, known)
        self._splits[name] = known
        return known.parts

    def _split(self, part: FilePart, stat: FileStat, before: _Split | None) -> _Split:
        """Split a file into parts; one that has only grown, from its last full part on."""
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
    """The stamp of a full part; independent of the file's modification time."""
    return Stamp(len(data), zlib.crc32(data))


def _read_part(files: Files, part: FilePart) -> bytes:
    """Lines up to the first that ends after PART_BYTES, or to the end of the file.

    Stops before a line longer than a record may be.
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
