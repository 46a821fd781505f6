"""Keeps what is searched in step with the files: memory, docs, the transcript, results of tasks.

A file that changed is held in memory at once (`MemTable`); what is much, or has gathered, is
written into the index by a thread of its own. So no search waits for a flush, none misses an edit.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
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
    MemTable,
    MemTableView,
    PassageIndex,
    PassageView,
    Stamp,
)
from mimikit.memory.passages import Passage, is_near, part_of
from mimikit.memory.terms import ChineseDictionary, Cutter, has_wide

SMALL_FILES, SMALL_BYTES = 12, 40_000
"""So much is taken in by whoever searches; more by a thread of its own."""
MOST_FRESH = 300
"""Passages held in memory; beyond it they go into the index."""
MOST_HELD = 20_000
"""Passages held in memory while there is no index that can be used."""
_TRIES = 3
_REPAIR_S = 60.0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How the index is. Units: bytes."""

    files: int
    passages: int
    bytes: int
    fresh: bool
    """Whether nothing on disk is newer than the index."""
    stale_files: int
    refreshed_at: datetime | None
    words: str
    """Of the Chinese dictionary: ready, loading, not loaded."""
    fallback: str | None
    """Why the index does not serve; None when it does."""


@dataclass(frozen=True)
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

    @functools.cached_property
    def is_double(self) -> bool:
        """Whether some of what is held is indexed too, as it was before."""
        return any(path in self.view.stamps for path in self.held.stamps)

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
                wanted = indexed if everywhere else (p for p in indexed if is_near(p))
                gone = {p for p in wanted if not any(p in part for part in snapshot.parts)}
            state = IndexState(
                snapshot=snapshot,
                view=view,
                held=held,
                behind=frozenset(behind),
                gone=frozenset(path for path in gone if everywhere or is_near(path)),
                stale=sorted(path for path in behind if held.stamps.get(path) != now[path]),
            )
            if snapshot is self.documents.newest.get(everywhere):
                self._states[everywhere] = state
                self._table.keep(
                    # Of the far files nothing is known when they were not looked at.
                    lambda path, stamp: (
                        (path in behind and now.get(path) == stamp)
                        or not (everywhere or is_near(path))
                    )
                )
            return state

    def keep_up(self) -> None:
        """Begin to index what has changed; what little others hold in memory is left to them."""
        state = self._state_of(self._snapshot(everywhere=True), everywhere=True)
        if len(state.behind) + len(state.gone) > SMALL_FILES:
            self._start_worker()

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
                # The interpreter must not end while the library's own code runs in a thread.
                atexit.register(self.close)
                worker.start()
                self._worker = worker
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
