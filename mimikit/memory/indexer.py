"""Keeps what is searched in step with the files: memory, docs, the transcript, results of tasks.

A file that changed is held in memory at once (`MemTable`); what is much, or has gathered, is
written into the index by a thread of its own. So no search waits for a flush, none misses an edit.
Only reads the files. Nothing of `secrets/`, no settings, no log; a link is never followed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat as stat_bits
import threading
import time
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import accumulate
from pathlib import Path

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.memory import passages, ranking
from mimikit.memory.index import (
    EMPTY_VIEW,
    BrokenIndex,
    Changed,
    IndexStatus,
    MemTable,
    MemTableView,
    PassageIndex,
    PassageView,
    Stamp,
)
from mimikit.memory.passages import FAR, NEAR, Passage, scope_of
from mimikit.memory.terms import ChineseDictionary, Cutter, has_wide
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.watch import FolderWatch

SMALL_FILES, SMALL_BYTES = 12, 40_000
"""So much is taken in by whoever searches; more by a thread of its own."""
MOST_FRESH = 300
"""Passages held in memory; beyond it they go into the index."""
MOST_HELD = 20_000
"""Passages held in memory while there is no index that can be used."""
_TRIES = 3
_REPAIR_S = 60.0

LARGEST = 8 * 2**20
"""Bytes; a longer file is not searched."""
MOST_DOCS = 5000
"""Files of the workspace's docs; so many are looked at, in the order of their names."""
_FOLLOWED = 300
"""Files; a smaller folder is looked at whole at each search: that takes a millisecond."""
_SLOW_S = 0.005

_NEAR = ((paths.MEMORY_FOLDER, ".md"), (f"{paths.MEMORY_FOLDER}/summary", ".md"))
_FAR = ((paths.TRANSCRIPT, ".jsonl"), ("worker/results", ".json"), ("planner/done", ".json"))


# ---- the files


def _stamp(path: str, stat: FileStat | None) -> Stamp | None:
    """None: not searched. Not each name is text that can be told to anybody."""
    if stat is None or stat.kind != "file" or stat.size > LARGEST:
        return None
    is_text = path.isascii() or path.encode(errors="ignore").decode() == path
    return Stamp(stat.size, stat.mtime_ns) if is_text else None


class DocumentSnapshot:
    """The files that can be searched at one moment, told from others by identity."""

    def __init__(self, parts: Sequence[dict[str, Stamp]]) -> None:
        """`parts`: by path, no path in two; they are not changed any more."""
        self.parts = parts
        self.stamps: Mapping[str, Stamp] = ChainMap(*parts)
        """Slow to go through: there may be very many."""

    def changes_since(self, before: DocumentSnapshot) -> set[str]:
        """The paths that are otherwise than in another of the same folders."""
        changed: set[str] = set()
        for old, new in zip(before.parts, self.parts, strict=True):
            if old is new:
                continue
            # What was not looked at again is the same object: cheap to see among very many.
            other = {p for p, s in new.items() if (o := old.get(p)) is not s and o != s}
            added = sum(path not in old for path in other)
            changed |= other
            if len(new) - added != len(old):
                changed |= old.keys() - new.keys()
        return changed


class DocumentFolders:
    """What there is to search, as it is now. One thread at a time."""

    def __init__(self, files: Files, workspace: Path | None, watch: FolderWatch | None) -> None:
        """`watch`: tells of changes; else each search looks at all files of large folders too."""
        self._files = files
        self._workspace = workspace
        watch = watch if watch is not None and watch.by_events else None
        self._near = [_Folder(files, watch, *place) for place in _NEAR]
        self._far = [_Folder(files, watch, *place) for place in _FAR]
        self._docs: dict[str, Stamp] = {}
        self._long_term: dict[str, Stamp] = {}
        self._docs_until = 0.0
        self.newest: dict[bool, DocumentSnapshot] = {}
        """By whether it is of everything."""

    def snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        """Every file that can be searched; the same object as before when nothing has changed."""
        stamp = _stamp(paths.MEMORY, self._files.stat(paths.MEMORY))
        now = {paths.MEMORY: stamp} if stamp else {}
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
        """The bytes of one of these files; None when it is gone or no plain file."""
        try:
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
            with contextlib.suppress(StorageError, OSError):
                for made in accumulate(self._path.split("/"), "{}/{}".format):
                    self._files.fs.make_dir(made)
                return self._files.stats(self._path, suffix=self._suffix)
            return {}


def _docs(workspace: Path, state: str) -> Iterator[tuple[str, Stamp]]:
    """The workspace's docs, without the state folder, should it lie among them."""

    def is_state(folder: Path) -> bool:
        with contextlib.suppress(OSError):
            return folder.samefile(state)
        return False

    left = MOST_DOCS
    top = workspace / "docs"
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
                found = (folder / name).lstat()
                kind = "file" if stat_bits.S_ISREG(found.st_mode) else "other"
                stat = FileStat(kind, found.st_size, found.st_mtime_ns, found.st_ino)
                if stamp := _stamp(f"{shown}/{name}", stat):
                    yield f"{shown}/{name}", stamp


# ---- how the index fits them


@dataclass(frozen=True, slots=True)
class IndexState:
    """How what is searched fits the files."""

    snapshot: DocumentSnapshot
    view: PassageView
    """What was indexed then."""
    held: MemTableView
    """What was held in memory then."""
    behind: frozenset[str]
    """Files the index does not have as they are now."""
    gone: frozenset[str]
    """Files it has and that are no more."""
    stale: list[str]
    """Files that are searched neither there nor in memory as they are now."""

    def is_indexed(self, path: str) -> bool:
        """Whether the passages that the index has of a file count."""
        return path not in self.behind and self._is_shown(path)

    def is_held(self, path: str) -> bool:
        """Whether the passages that are held of a file count."""
        now = self.snapshot.stamps.get(path)
        return path in self.behind and self.held.stamps.get(path) == now and self._is_shown(path)

    def _is_shown(self, path: str) -> bool:
        return path in self.snapshot.stamps and not ranking.is_hidden(path, self.snapshot.stamps)


class Indexer:
    """The files, what is held of them in memory, and the index. Safe from any thread."""

    def __init__(
        self,
        documents: DocumentFolders,
        index: PassageIndex | None,
        zone: tzinfo,
        clock: Clock,
        words: ChineseDictionary | None,
    ) -> None:
        self.documents = documents
        self.index = index
        self._table = MemTable()
        self._zone, self._clock, self._words = zone, clock, words
        self._looking = threading.Lock()
        self._updating = threading.Lock()
        self._states: dict[bool, IndexState] = {}
        self._worker: threading.Thread | None = None
        self._refreshed_at: datetime | None = None
        self.fault = None if index is not None else "there is no index here"
        """Why the index does not serve; None when it does."""
        self._rests_until = 0.0
        self._closing = False

    def catch_up(self, *, everywhere: bool, patience_s: float) -> IndexState:
        """Have what is searched fit the files, as far as there is patience for it."""
        snapshot = self._snapshot(everywhere=everywhere)
        state = self._state_of(snapshot, everywhere=everywhere)
        for _ in range(_TRIES):  # another search, with a later snapshot, may let go of what is held
            stale, now = state.stale, snapshot.stamps
            small = len(stale) <= SMALL_FILES and sum(now[p].size for p in stale) <= SMALL_BYTES
            if not stale or not (small or self.index is None):
                break
            self._hold(stale, now)
            state = self._state_of(snapshot, everywhere=everywhere)
        if state.stale:
            self._start_worker().join(patience_s)
            state = self._state_of(snapshot, everywhere=everywhere)
        elif self.index is not None and self._table.view.passage_count > MOST_FRESH:
            self._start_worker()
        return state

    def _hold(self, paths: Iterable[str], now: Mapping[str, Stamp]) -> None:
        self._table.put(self._read(paths, now), self._words.cut if self._words else None)

    def _snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        if self.index is not None and not self._rests():
            try:
                self.index.refresh()
            except StorageError as error:
                self.give_up(error)
        with self._looking:
            return self.documents.snapshot(everywhere=everywhere)

    def _state_of(self, snapshot: DocumentSnapshot, *, everywhere: bool) -> IndexState:
        """Worked out once for each state of the files and of what is held; by what has changed."""
        with self._looking:
            view, held = self.index.view if self.index else EMPTY_VIEW, self._table.view
            known = self._states.get(everywhere)
            if known and known.snapshot is snapshot and known.view is view and known.held is held:
                return known
            indexed, now = view.stamps, snapshot.stamps
            if known and known.view is view:
                changed = snapshot.changes_since(known.snapshot)
                behind = {
                    p for p in known.behind | changed if p in now and indexed.get(p) != now[p]
                }
                gone = {p for p in known.gone | changed if p not in now and p in indexed}
            else:
                there = (item for part in snapshot.parts for item in part.items())
                behind = {path for path, stamp in there if indexed.get(path) != stamp}
                gone = set(indexed).difference(*snapshot.parts)
            state = IndexState(
                snapshot=snapshot,
                view=view,
                held=held,
                behind=frozenset(behind),
                gone=frozenset(path for path in gone if everywhere or scope_of(path) == NEAR),
                stale=sorted(path for path in behind if held.stamps.get(path) != now[path]),
            )
            if snapshot is self.documents.newest.get(everywhere):
                self._states[everywhere] = state
                self._table.keep(
                    # Of the far files nothing is known when they were not looked at.
                    lambda path, stamp: (
                        (path in behind and now.get(path) == stamp)
                        or (scope_of(path) == FAR and not everywhere)
                    )
                )
            return state

    def refresh(self, *, rebuild: bool = False) -> IndexStatus:
        """Have the index fit the files, from nothing with `rebuild`."""
        if self._words is not None:
            self._words.load()
        with self._updating:
            self._rests_until = 0.0
            if self.index is not None:
                if rebuild:
                    self.index.clear()
                self._write(self.index)
        return self.status()

    def status(self) -> IndexStatus:
        state = self._state_of(self._snapshot(everywhere=True), everywhere=True)
        stale = len(state.behind) + len(state.gone)
        return IndexStatus(
            files=len(state.view.stamps),
            passages=state.view.passage_count,
            bytes=self.index.bytes_on_disk if self.index else 0,
            fresh=stale == 0,
            stale_files=stale,
            refreshed_at=self._refreshed_at,
            words=self._words.state if self._words else "not loaded",
            fallback=self.fault,
        )

    def passages_of(self, path: str, data: bytes | None = None) -> list[Passage]:
        """The passages of a file as it is now; `data`: when it was read already."""
        found = passages.of_file(path, data or self.documents.read(path) or b"", self._zone)
        if self._words and any(has_wide(passage.text) for passage in found):
            self._words.want()
        return found

    def cutter(self, text: str) -> Cutter | None:
        """The dictionary, if it is there; a Chinese text has it loaded for later."""
        if self._words and has_wide(text):
            self._words.want()
        return self._words.cut if self._words else None

    def give_up(self, error: Exception) -> None:
        """The index failed: it is made anew after a while; what is told of it is kept."""
        self.fault = str(error)
        self._rests_until = time.monotonic() + _REPAIR_S
        if self.index is not None and isinstance(error, BrokenIndex):
            # When the disk refuses more than the index, the next repair clears it.
            with contextlib.suppress(StorageError, OSError):
                self.index.clear()

    # ---- taking in

    def _rests(self) -> bool:
        return time.monotonic() < self._rests_until

    def _start_worker(self) -> threading.Thread:
        with self._looking:
            worker = self._worker
            if worker is None or not worker.is_alive():
                worker = threading.Thread(target=self._work, name="index", daemon=True)
                self._worker = worker
                # The interpreter must not end while the library's own code runs in a thread.
                atexit.register(self.close)
                worker.start()
            return worker

    def close(self) -> None:
        """Have the thread write down what it has, and wait for its end."""
        self._closing = True
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join()

    def _work(self) -> None:
        try:
            with self._updating:
                if self.index is not None and not self._rests():
                    self._write(self.index)
                if not self._rests():
                    return
                # Without an index: what there is is held in memory, as far as there is room.
                snapshot = self._snapshot(everywhere=True)
                stale = self._state_of(snapshot, everywhere=True).stale
                for at in range(0, len(stale), SMALL_FILES):
                    if self._table.view.passage_count > MOST_HELD:
                        break
                    self._hold(stale[at : at + SMALL_FILES], snapshot.stamps)
        finally:
            atexit.unregister(self.close)

    def _write(self, index: PassageIndex) -> None:
        """Write into the index what it is behind in; what goes wrong is kept for `status`."""
        try:
            for _ in range(_TRIES):  # an index that was begun anew lacks what was up to date
                snapshot = self._snapshot(everywhere=True)
                state = self._state_of(snapshot, everywhere=True)
                if self._closing or not (state.behind or state.gone):
                    break
                cut = self._words.cut if self._words else None
                if not index.update(self._read(state.behind, snapshot.stamps), state.gone, cut):
                    break
                self._refreshed_at = self._clock.now()
            self.fault = None
        except (StorageError, OSError) as error:
            self.give_up(error)

    def _read(self, paths: Iterable[str], now: Mapping[str, Stamp]) -> Iterator[Changed]:
        """Each file with the state it was in before it was read: a later one is read again."""
        for path in paths:
            if self._closing:
                return
            if path in now:
                yield path, now[path], self.passages_of(path)
