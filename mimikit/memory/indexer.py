"""Keeps the index in step with the files: memory, docs, the transcript, results of tasks.

A changed file is put into memory at once (`MemoryTable`); many files, or many passages in memory,
are written to the index by a thread. So no search waits for a commit, and none misses an edit.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.memory import passages, ranking
from mimikit.memory.documents import DocumentFolders, DocumentSnapshot
from mimikit.memory.index import (
    EMPTY_VIEW,
    BrokenIndex,
    Changed,
    MemoryTable,
    MemoryView,
    PassageIndex,
    PassageView,
    Stamp,
)
from mimikit.memory.passages import Passage, is_near, part_of
from mimikit.memory.terms import ChineseDictionary, Cutter, has_cjk

SMALL_FILES, SMALL_BYTES = 12, 40_000
"""The most that a search reads itself; more is read by a thread."""
MAX_IN_MEMORY = 300
"""Passages; beyond it they are written to the index."""
_MAX_WITHOUT_INDEX = 20_000
"""Passages in memory while the index on disk is broken."""
_ATTEMPTS = 3
_DISABLED_S = 60.0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Units: bytes."""

    files: int
    passages: int
    bytes: int
    fresh: bool
    """Whether everything on disk is indexed as it is now."""
    stale_files: int
    refreshed_at: datetime | None
    words: str
    """Of the Chinese dictionary: ready, loading, not loaded."""
    fallback: str | None
    """Why the index is not used; None when it is."""


@dataclass(frozen=True)
class IndexState:
    """How the index and the table in memory fit the files, at one moment."""

    snapshot: DocumentSnapshot
    view: PassageView
    recent: MemoryView
    behind: frozenset[str]
    """Files that are not in the index as they are now."""
    gone: frozenset[str]
    """Files in the index that no longer exist."""
    stale: list[str]
    """Files that are neither in the index nor in memory as they are now."""

    def is_indexed(self, path: str) -> bool:
        """Whether the indexed passages of a file count."""
        return path not in self.behind and self._is_shown(path)

    def is_recent(self, path: str) -> bool:
        """Whether the passages in memory of a file count."""
        now = self.snapshot.stamps.get(path)
        return path in self.behind and self.recent.stamps.get(path) == now and self._is_shown(path)

    def _is_shown(self, path: str) -> bool:
        return path in self.snapshot.stamps and not ranking.is_hidden(path, self.snapshot.stamps)


class Indexer:
    """The files, the table in memory, and the index. Safe from any thread."""

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
        self._table = MemoryTable()
        self._zone, self._clock, self._words = zone, clock, words
        self._reading = threading.Lock()
        self._updating = threading.Lock()
        self._states: dict[bool, IndexState] = {}
        self._worker: threading.Thread | None = None
        self._refreshed_at: datetime | None = None
        self.fault = None if index is not None else "there is no index here"
        self._disabled_until = 0.0
        self._closing = False

    def catch_up(self, *, everywhere: bool, patience_s: float) -> IndexState:
        """Index what has changed; what takes longer than `patience_s` stays stale."""
        snapshot = self._snapshot(everywhere=everywhere)
        state = self._state_of(snapshot, everywhere=everywhere)
        for _ in range(_ATTEMPTS):  # a search with a later snapshot may drop what was read
            stale, now = state.stale, snapshot.stamps
            small = len(stale) <= SMALL_FILES and sum(now[p].size for p in stale) <= SMALL_BYTES
            if not stale or not (small or self.index is None):
                break
            self._put(stale, now)
            state = self._state_of(snapshot, everywhere=everywhere)
        if state.stale:
            self._start_worker().join(patience_s)
            state = self._state_of(snapshot, everywhere=everywhere)
        elif self.index is not None and self._table.view.passage_count > MAX_IN_MEMORY:
            self._start_worker()
        return state

    def _put(self, paths: Iterable[str], now: Mapping[str, Stamp]) -> None:
        self._table.put(self._read(paths, now), self._words.cut if self._words else None)

    def _snapshot(self, *, everywhere: bool) -> DocumentSnapshot:
        if self.index is not None and not self._is_disabled():
            try:
                self.index.refresh()
            except StorageError as error:
                self.disable(error)
        with self._reading:
            return self.documents.snapshot(everywhere=everywhere)

    def _state_of(self, snapshot: DocumentSnapshot, *, everywhere: bool) -> IndexState:
        """Cached; updated by what has changed since."""
        with self._reading:
            view, recent = self.index.view if self.index else EMPTY_VIEW, self._table.view
            known = self._states.get(everywhere)
            if (
                known
                and known.snapshot is snapshot
                and known.view is view
                and known.recent is recent
            ):
                return known
            indexed, now = view.stamps, snapshot.stamps
            if known and known.view is view:
                changed = snapshot.changes_since(known.snapshot)
                behind = {
                    p for p in known.behind | changed if p in now and indexed.get(p) != now[p]
                }
                gone = {p for p in known.gone | changed if p not in now and p in indexed}
            else:
                every = (item for part in snapshot.parts for item in part.items())
                behind = {path for path, stamp in every if indexed.get(path) != stamp}
                wanted = indexed if everywhere else filter(is_near, indexed)
                gone = {p for p in wanted if not any(p in part for part in snapshot.parts)}
            state = IndexState(
                snapshot=snapshot,
                view=view,
                recent=recent,
                behind=frozenset(behind),
                gone=frozenset(path for path in gone if everywhere or is_near(path)),
                stale=sorted(path for path in behind if recent.stamps.get(path) != now[path]),
            )
            if snapshot is self.documents.newest.get(everywhere):
                self._states[everywhere] = state
                self._table.keep(
                    # Of far files nothing is known when they were not listed.
                    lambda path, stamp: (
                        (path in behind and now.get(path) == stamp)
                        or not (everywhere or is_near(path))
                    )
                )
            return state

    def index_ahead(self) -> None:
        """Have the thread index what has changed, where it is more than a search reads itself."""
        state = self._state_of(self._snapshot(everywhere=True), everywhere=True)
        if len(state.behind) + len(state.gone) > SMALL_FILES:
            self._start_worker()

    def refresh(self, *, rebuild: bool = False) -> IndexStatus:
        """Bring the index up to date, from nothing with `rebuild`."""
        if self._words is not None:
            self._words.load()
        with self._updating:
            self._disabled_until = 0.0
            if self.index is not None:
                if rebuild:
                    self.index.clear()
                self._write(self.index)
        return self.status()

    def status(self) -> IndexStatus:
        state = self._state_of(self._snapshot(everywhere=True), everywhere=True)
        stale = len(state.behind) + len(state.gone)
        return IndexStatus(
            files=sum(part_of(path).offset == 0 for path in state.view.stamps),
            passages=state.view.passage_count,
            bytes=self.index.bytes_on_disk if self.index else 0,
            fresh=stale == 0,
            stale_files=stale,
            refreshed_at=self._refreshed_at,
            words=self._words.state if self._words else "not loaded",
            fallback=self.fault,
        )

    def passages_of(self, path: str, data: bytes | None = None) -> list[Passage]:
        """The passages of a file as it is now. `data`: its bytes, when already read."""
        pieces = passages.of_file(path, data or self.documents.read(path) or b"", self._zone)
        if self._words and any(has_cjk(passage.text) for passage in pieces):
            self._words.load_soon()
        return pieces

    def cutter(self, text: str) -> Cutter | None:
        """The dictionary's, once it is loaded; a Chinese text has it loaded for later."""
        if self._words and has_cjk(text):
            self._words.load_soon()
        return self._words.cut if self._words else None

    def disable(self, error: Exception) -> None:
        """The index failed: it is rebuilt after a while; the error is kept for `status`."""
        self.fault = str(error)
        self._disabled_until = time.monotonic() + _DISABLED_S
        if self.index is not None and isinstance(error, BrokenIndex):
            with contextlib.suppress(StorageError, OSError):  # the next rebuild clears it
                self.index.clear()

    def _is_disabled(self) -> bool:
        return time.monotonic() < self._disabled_until

    # ---- the thread

    def _start_worker(self) -> threading.Thread:
        with self._reading:
            worker = self._worker
            if worker is None or not worker.is_alive():
                worker = threading.Thread(target=self._work, name="index", daemon=True)
                # The interpreter must not end while tantivy's code runs in a thread.
                atexit.register(self.close)
                worker.start()
                self._worker = worker
            return worker

    def close(self) -> None:
        """Have the thread write what it has read, and wait for it."""
        self._closing = True
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join()

    def _work(self) -> None:
        try:
            with self._updating:
                if self.index is not None and not self._is_disabled():
                    self._write(self.index)
                if not self._is_disabled():
                    return
                snapshot = self._snapshot(everywhere=True)
                stale = self._state_of(snapshot, everywhere=True).stale
                for start in range(0, len(stale), SMALL_FILES):
                    if self._table.view.passage_count > _MAX_WITHOUT_INDEX:
                        break
                    self._put(stale[start : start + SMALL_FILES], snapshot.stamps)
        finally:
            atexit.unregister(self.close)

    def _write(self, index: PassageIndex) -> None:
        """Write to the index what it is behind in; an error is kept for `status`."""
        try:
            for _ in range(_ATTEMPTS):  # an index begun anew lacks what was up to date
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
            self.disable(error)

    def _read(self, paths: Iterable[str], now: Mapping[str, Stamp]) -> Iterator[Changed]:
        """Each file with its stamp from before it was read: if it changes, it is read again."""
        for path in paths:
            if self._closing:
                return
            if path in now:
                yield path, now[path], self.passages_of(path)
