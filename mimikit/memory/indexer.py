"""Keeps the index up to date with memory, docs, the transcript and results of tasks.

A few changed files are indexed in memory (`MemoryView`) by the search itself; many are written to
the index on disk by a thread. So no search waits for a commit, and none misses an edit.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.memory import passages, ranking
from mimikit.memory.documents import DocumentFolders
from mimikit.memory.index import EMPTY_VIEW, BrokenIndex, Changed, MemoryView, Stamp, view_of
from mimikit.memory.passages import Passage, is_near, part_of
from mimikit.memory.terms import ChineseDictionary, Cutter, has_cjk

if TYPE_CHECKING:
    from mimikit.memory.tantivy_index import TantivyIndex, TantivyView

SMALL_FILES, SMALL_BYTES = 12, 40_000
"""A search indexes up to this many stale files and bytes itself; a thread indexes more."""
MAX_IN_MEMORY = 300
"""Above this number of passages in memory, they are written to the index on disk."""
_MAX_WITHOUT_INDEX = 20_000
"""Maximum of passages in memory while the index on disk is broken."""
_ATTEMPTS = 3
_DISABLED_S = 60.0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    files: int
    passages: int
    bytes: int
    fresh: bool
    stale_files: int
    refreshed_at: datetime | None
    words: str
    fallback: str | None


@dataclass(frozen=True)
class IndexState:
    """The files, the index on disk and the one in memory at one moment."""

    snapshot: Mapping[str, Stamp]
    view: TantivyView | MemoryView
    recent: MemoryView
    outdated: frozenset[str]
    """Files whose current version is not in the index on disk."""
    deleted: frozenset[str]
    """Files in the index that no longer exist; only when all files were listed."""
    stale: list[str]
    """Files whose current version is in neither index."""

    def is_indexed(self, path: str) -> bool:
        return path not in self.outdated and self._is_shown(path)

    def is_recent(self, path: str) -> bool:
        now = self.snapshot.get(path)
        is_current = path in self.outdated and self.recent.stamps.get(path) == now
        return is_current and self._is_shown(path)

    def _is_shown(self, path: str) -> bool:
        return path in self.snapshot and not ranking.is_hidden(path, self.snapshot)


class Indexer:
    """Updates the index on disk and the one in memory. Thread-safe."""

    def __init__(
        self,
        documents: DocumentFolders,
        index: TantivyIndex | None,
        zone: tzinfo,
        clock: Clock,
        words: ChineseDictionary | None,
    ) -> None:
        self.documents = documents
        self.index = index
        self._recent = EMPTY_VIEW
        """The index in memory; another object after each change."""
        self._zone, self._clock, self._words = zone, clock, words
        self._reading = threading.Lock()
        self._updating = threading.Lock()
        self._states: dict[bool, IndexState] = {}
        self._worker: threading.Thread | None = None
        self._refreshed_at: datetime | None = None
        self.fault: str | None = None
        self._disabled_until = 0.0
        self._closing = False

    def catch_up(self, *, everywhere: bool, patience_s: float) -> IndexState:
        """Index changed files; waits at most `patience_s` for the thread."""
        snapshot = self._snapshot(everywhere=everywhere)
        state = self._state_of(snapshot, everywhere=everywhere)
        for _ in range(_ATTEMPTS):  # a concurrent search may remove the files again
            stale = state.stale
            small = (
                len(stale) <= SMALL_FILES and sum(snapshot[p].size for p in stale) <= SMALL_BYTES
            )
            if not stale or not small:
                break
            self._put(stale, snapshot)
            state = self._state_of(snapshot, everywhere=everywhere)
        if state.stale:
            self._start_worker().join(patience_s)
            state = self._state_of(snapshot, everywhere=everywhere)
        elif self.index is not None and self._recent.passage_count > MAX_IN_MEMORY:
            self._start_worker()
        return state

    def _put(self, paths: Iterable[str], now: Mapping[str, Stamp]) -> None:
        added = view_of(self._read(paths, now), self._words.cut if self._words else None)
        with self._reading:
            self._recent = MemoryView({**self._recent.files, **added.files})

    def _snapshot(self, *, everywhere: bool) -> dict[str, Stamp]:
        if index := self._usable_index():
            try:
                index.refresh()
            except StorageError as error:
                self.disable(error)
        with self._reading:
            return self.documents.snapshot(everywhere=everywhere)

    def _state_of(self, snapshot: dict[str, Stamp], *, everywhere: bool) -> IndexState:
        with self._reading:
            view, recent = self.index.view if self.index else EMPTY_VIEW, self._recent
            known = self._states.get(everywhere)
            if (
                known
                and known.snapshot is snapshot
                and known.view is view
                and known.recent is recent
            ):
                return known
            indexed = view.stamps
            outdated = {path for path, stamp in snapshot.items() if indexed.get(path) != stamp}
            stale = [path for path in outdated if recent.stamps.get(path) != snapshot[path]]
            state = IndexState(
                snapshot=snapshot,
                view=view,
                recent=recent,
                outdated=frozenset(outdated),
                deleted=frozenset(indexed.keys() - snapshot.keys() if everywhere else ()),
                stale=sorted(stale),
            )
            if snapshot is self.documents.newest.get(everywhere):
                self._states[everywhere] = state
                files = {
                    path: file
                    for path, file in recent.files.items()
                    if (path in outdated and snapshot.get(path) == file[0])
                    or not (everywhere or is_near(path))  # far files were perhaps not listed
                }
                if len(files) != len(recent.files):
                    self._recent = MemoryView(files)
            return state

    def index_ahead(self) -> None:
        """Start the thread if more has changed than a search indexes itself."""
        state = self._state_of(self._snapshot(everywhere=True), everywhere=True)
        if len(self._pending(state)) + len(state.deleted) > SMALL_FILES:
            self._start_worker()

    def refresh(self, *, rebuild: bool = False) -> IndexStatus:
        if self._words is not None:
            self._words.load()
        with self._updating:
            self._disabled_until = 0.0
            if self.index is None:
                self._read_into_memory()
                self._refreshed_at = self._clock.now()
            else:
                if rebuild:
                    self.index.clear()
                self._write(self.index)
        return self.status()

    def status(self) -> IndexStatus:
        state = self._state_of(self._snapshot(everywhere=True), everywhere=True)
        view = state.view if self.index else state.recent
        stale = len(self._pending(state)) + len(state.deleted)
        return IndexStatus(
            files=sum(part_of(path).offset == 0 for path in view.stamps),
            passages=view.passage_count,
            bytes=self.index.bytes_on_disk if self.index else 0,
            fresh=stale == 0,
            stale_files=stale,
            refreshed_at=self._refreshed_at,
            words=self._words.state if self._words else "not loaded",
            fallback=self.fault,
        )

    def _pending(self, state: IndexState) -> Collection[str]:
        """The files still to be indexed: on disk, or in memory where there is no index on disk."""
        return state.outdated if self.index else state.stale

    def passages_of(self, path: str, data: bytes | None = None) -> list[Passage]:
        """Split a file into passages. `data`: its content, if already read."""
        pieces = passages.of_file(path, data or self.documents.read(path) or b"", self._zone)
        if self._words and any(has_cjk(passage.text) for passage in pieces):
            self._words.load_soon()
        return pieces

    def cutter(self, text: str) -> Cutter | None:
        """The dictionary, if loaded; a Chinese text starts loading it."""
        if self._words and has_cjk(text):
            self._words.load_soon()
        return self._words.cut if self._words else None

    def disable(self, error: Exception) -> None:
        """Stop using the index on disk for a while; a broken one is deleted."""
        self.fault = str(error)
        self._disabled_until = time.monotonic() + _DISABLED_S
        if self.index is not None and isinstance(error, BrokenIndex):
            with contextlib.suppress(StorageError, OSError):  # the next rebuild retries
                self.index.clear()

    def _usable_index(self) -> TantivyIndex | None:
        """The index on disk, unless it failed a short while ago."""
        return self.index if time.monotonic() >= self._disabled_until else None

    # ---- the thread

    def _start_worker(self) -> threading.Thread:
        with self._reading:
            worker = self._worker
            if worker is None or not worker.is_alive():
                worker = threading.Thread(target=self._work, name="index", daemon=True)
                # The interpreter must not exit while tantivy runs in a thread.
                atexit.register(self.close)
                worker.start()
                self._worker = worker
            return worker

    def close(self) -> None:
        """Stop the thread once it has written what it has read; before the disk is closed."""
        self._closing = True
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join()

    def _work(self) -> None:
        try:
            with self._updating:
                if index := self._usable_index():
                    self._write(index)
                if self._usable_index() is None:
                    self._read_into_memory()
        finally:
            atexit.unregister(self.close)

    def _read_into_memory(self) -> None:
        """Index in memory what is stale; while the index on disk is broken, only so much."""
        snapshot = self._snapshot(everywhere=True)
        stale = self._state_of(snapshot, everywhere=True).stale
        for start in range(0, len(stale), SMALL_FILES):
            if self.index and self._recent.passage_count > _MAX_WITHOUT_INDEX:
                break
            self._put(stale[start : start + SMALL_FILES], snapshot)

    def _write(self, index: TantivyIndex) -> None:
        """Bring the index on disk up to date; an error disables it for a while."""
        try:
            for _ in range(_ATTEMPTS):  # an index that was rebuilt lacks all other files
                snapshot = self._snapshot(everywhere=True)
                state = self._state_of(snapshot, everywhere=True)
                if self._closing or not (state.outdated or state.deleted):
                    break
                cut = self._words.cut if self._words else None
                # Of passages with equal scores the newest come first.
                outdated = sorted(state.outdated, reverse=True)
                if not index.update(self._read(outdated, snapshot), state.deleted, cut):
                    break
                self._refreshed_at = self._clock.now()
            self.fault = None
        except (StorageError, OSError) as error:
            self.disable(error)

    def _read(self, paths: Iterable[str], now: Mapping[str, Stamp]) -> Iterator[Changed]:
        """Read files, each with its stamp from before: one that changes meanwhile is reread."""
        for path in paths:
            if self._closing:
                return
            if path in now:
                yield path, now[path], self.passages_of(path)
