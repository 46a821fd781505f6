"""The index of one queue folder: reads waiting files, orders them, hands them out.

The folder is the source of truth; the index in memory is updated by watch events, own writes and
full scans. It may lag: a name that has left the folder costs one failed rename. `inspect` decodes a
file, so this module knows no Task.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from mimikit.clock import Clock
from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES, written_at
from mimikit.protocol.watch import CriticalThread

_logger = logging.getLogger(__name__)

_BATCH = 64
"""Files read per batch; between two batches other threads run."""
_PAUSE_S = 0.005
_SCAN_SHARE = 50
"""Full scans use at most one part in so many of the time."""
_MAX_SLEEP_S = 1.0
"""Maximum wait for a due time, as the wall clock may jump meanwhile."""


class QueueEntry(NamedTuple):
    """The order and due time of a waiting file."""

    order: Any
    """Smallest first; any comparable values."""
    ready_at: float | None = None
    """Seconds since 1970; None: immediately."""
    fill: bytes | None = None
    """The content for `running/`, if fields are missing in the file."""


class WaitingFile(NamedTuple):
    name: str
    entry: QueueEntry
    seen_at: datetime


Inspect: TypeAlias = Callable[[str, bytes, datetime], QueueEntry]
"""(name, data, seen_at) → the entry; raises BadRecord."""
Glance: TypeAlias = Callable[[str, bytes], QueueEntry | None]
"""(name, data) → the entry of a file that is certainly valid, fast; None: inspect it."""

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""`seen_at` of a file that contains its creation time."""


class QueueIndex:
    """A priority queue of file names, for 100,000 of them. Not thread-safe. Times: since 1970."""

    def __init__(self) -> None:
        self._entries: dict[str, QueueEntry] = {}
        self._seen: dict[str, datetime] = {}
        self._ready: list[tuple[Any, str]] = []
        self._due: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> dict[str, QueueEntry]:
        return dict(self._entries)

    def seen_at(self, name: str) -> datetime:
        return self._seen.get(name, NEVER)

    def add(self, waiting: WaitingFile) -> None:
        name, entry, seen_at = waiting
        known = self._entries.get(name)
        self._entries[name] = entry
        if seen_at is not NEVER:
            self._seen[name] = seen_at
        if known is not None and known[:2] == entry[:2]:
            return
        if entry.ready_at is None:
            heapq.heappush(self._ready, (entry.order, name))
        else:
            heapq.heappush(self._due, (entry.ready_at, name))

    def discard(self, name: str, *, only: QueueEntry | None = None) -> None:
        """Remove a name; with `only`, unless its entry has changed."""
        if only is None or self._entries.get(name) is only:
            self._entries.pop(name, None)
            self._seen.pop(name, None)

    def first(self, now: float) -> WaitingFile | None:
        """The first file due at `now`; it stays in the index."""
        while self._due and self._due[0][0] <= now:
            ready_at, name = heapq.heappop(self._due)
            entry = self._entries.get(name)
            if entry is not None and entry.ready_at == ready_at:
                heapq.heappush(self._ready, (entry.order, name))
        while self._ready:
            order, name = self._ready[0]
            entry = self._entries.get(name)
            if entry is not None and entry.order == order:
                if entry.ready_at is None or entry.ready_at <= now:
                    return WaitingFile(name, entry, self.seen_at(name))
                # It was postponed, or the clock was set back, after it became due.
                heapq.heappush(self._due, (entry.ready_at, name))
            heapq.heappop(self._ready)
        return None

    def pop(self, now: float) -> WaitingFile | None:
        """Remove and return the first file due at `now`."""
        waiting = self.first(now)
        if waiting is not None:
            heapq.heappop(self._ready)
            self.discard(waiting.name)
        return waiting

    def upcoming(self, most: int) -> list[str]:
        """The first names in order, then those not due yet; the cost depends on `most` alone."""
        found: dict[str, None] = {}
        for heap in (self._ready, self._due):
            places: list[tuple[tuple[Any, str], int]] = [(heap[0], 0)] if heap else []
            while places and len(found) < most:
                (_, name), place = heapq.heappop(places)
                if name in self._entries:
                    found[name] = None
                for below in range(2 * place + 1, min(2 * place + 3, len(heap))):
                    heapq.heappush(places, (heap[below], below))
        return list(found)

    def next_due(self) -> float | None:
        while self._due:
            ready_at, name = self._due[0]
            entry = self._entries.get(name)
            if entry is not None and entry.ready_at == ready_at:
                return ready_at
            heapq.heappop(self._due)
        return None


class _Suspect(NamedTuple):
    """A file that cannot be used, perhaps because it is half written."""

    reason: str
    bad: bool
    """Bad content; False: the disk failed to read it, so it is not quarantined."""
    seen: FileStat | None
    since: float


class QueueFolder:
    """The waiting files of a folder, in order. Thread-safe.

    by_name: names give the order, so files need not be read.
    settle_s: a bad file may be half written: it is quarantined once it was unchanged for so long.
    """

    def __init__(
        self,
        files: Files,
        path: str,
        clock: Clock,
        *,
        inspect: Inspect,
        glance: Glance | None = None,
        by_name: bool = False,
        settle_s: float = 2.0,
    ) -> None:
        self.path = path
        self._files = files
        self._clock = clock
        self.inspect = inspect
        self._glance = glance
        self._by_name = by_name
        self._settle_s = settle_s
        self._index = QueueIndex()
        self._changed = threading.Condition()
        self.wakes = 0
        self._idle = 0
        self.paused = False
        """While set, nothing is handed out; call `wake` after a change."""
        self._expected: set[str] = set()
        self._suspects: dict[str, _Suspect] = {}
        self._reported: dict[str, None] = {}
        self._needs_scan = False
        self.closed = threading.Event()
        self._background = CriticalThread(f"queue {path}")

    def __len__(self) -> int:
        return len(self._index)

    def upcoming(self, most: int) -> list[str]:
        with self._changed:
            return self._index.upcoming(most)

    # ---- handing out --------------------------------------------------------------------

    def take(self) -> WaitingFile | None:
        """Remove the first due file from the index, for the calling thread to claim."""
        with self._changed:
            if self.paused or self.closed.is_set():
                return None
            return self._index.pop(self._now())

    def wait(self, timeout_s: float, wakes: int) -> None:
        """Wait until a file is due, `timeout_s` is over, or `self.wakes` differs from `wakes`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._start_background()
            while self.wakes == wakes and not self.has_ready():
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                due = None if self.paused else self._index.next_due()
                if due is not None:
                    left = min(left, _MAX_SLEEP_S, max(0.0, due - self._now()))
                self._idle += 1
                self._changed.wait(left)
                self._idle -= 1

    def has_ready(self) -> bool:
        with self._changed:
            if self.paused or self.closed.is_set():
                return False
            return self._index.first(self._now()) is not None

    def wake(self) -> None:
        with self._changed:
            self.wakes += 1
            self._changed.notify_all()

    def close(self) -> None:
        self.closed.set()
        self.wake()

    # ---- finding ------------------------------------------------------------------------

    def on_change(self, names: list[str] | None) -> None:
        """FolderWatch listener: read these names, or (None) scan the folder.

        Large changes are read in batches by the background thread, so that the watch thread is
        not blocked.
        """
        with self._changed:
            is_small = names is not None and len(names) <= _BATCH
            if not is_small:
                self._reported.update(dict.fromkeys(names or ()))
                self._needs_scan |= names is None
                self._start_background()
        if is_small:
            self.refresh(names)

    def _start_background(self) -> None:
        """Start the background thread if it has work. The caller holds the lock."""
        if not self.closed.is_set() and (self._reported or self._needs_scan or self._suspects):
            self._background.begin(self._run_background)

    def _run_background(self) -> None:
        """Read reported names, scan, and recheck suspects, until nothing is left to do."""
        rest_until = 0.0
        while True:
            with self._changed:
                has_work = self._reported or self._needs_scan or self._suspects
                if self.closed.is_set() or not has_work:
                    self._background.thread = None
                    return
                names = list(itertools.islice(self._reported, _BATCH))
                for name in names:
                    del self._reported[name]
                began = time.monotonic()
                is_scan = self._needs_scan and not names and began >= rest_until
                self._needs_scan &= not is_scan
                due = [
                    (n, s) for n, s in self._suspects.items() if began >= s.since + self._settle_s
                ]
            try:
                if names or is_scan:
                    self.refresh(names or None, pause_s=_PAUSE_S)
            except StorageError as error:
                _logger.warning("%s: could not be read: %s", self.path, error)
            if is_scan:
                rest_until = began + (time.monotonic() - began) * _SCAN_SHARE
            for name, suspect in due[:_BATCH]:
                self._recheck(name, suspect)
            self.closed.wait(_PAUSE_S if names or len(due) > _BATCH else 20 * _PAUSE_S)

    def refresh(self, names: list[str] | None, *, pause_s: float = 0.0) -> None:
        """Read these names, or (None) scan the folder; `pause_s`: pause after each batch."""
        if names is not None:
            files = [name for name in names if name.endswith(".json") and not name.startswith(".")]
            own = self._expected.intersection(files)  # indexed by `add`
            self._expected -= own
            self._put(self._read(name) for name in files if name not in own)
            return
        with self._changed:
            before = self._index.entries()
            expected = set(self._expected)
        listed = self._files.names(self.path)
        fresh = [name for name in listed if name not in before and name not in self._suspects]
        for at in range(0, len(fresh), _BATCH):
            self._put(self._read(name, glance=True) for name in fresh[at : at + _BATCH])
            if self.closed.wait(pause_s):
                return
        present = set(listed)
        with self._changed:
            # Events of own writes that were not reported by now are lost.
            self._expected -= expected
            for name, entry in before.items():
                if name not in present:
                    self._index.discard(name, only=entry)

    def expect(self, name: str) -> None:
        """Announce an own write: the watch event for this name is ignored."""
        self._expected.add(name)

    def add(self, name: str, entry: QueueEntry) -> None:
        self._put([WaitingFile(name, entry, NEVER)])

    def suspect(self, name: str, error: BadRecord | StorageError) -> None:
        """Recheck a file later that cannot be used: it may be half written."""
        bad = isinstance(error, BadRecord | UnsafeFile)
        try:
            seen = self._files.stat(f"{self.path}/{name}")
        except StorageError:
            seen = None
        with self._changed:
            self._index.discard(name)
            self._suspects[name] = _Suspect(str(error), bad, seen, time.monotonic())
            self._start_background()

    def _read(self, name: str, *, glance: bool = False) -> WaitingFile | None:
        """Read and inspect a file; None when there is none or it became a suspect."""
        if self._by_name and name not in self._suspects:
            return WaitingFile(name, QueueEntry(name), NEVER)
        try:
            data = self._files.read(f"{self.path}/{name}", max_bytes=MAX_RECORD_BYTES)
            if data is None:
                return None
            entry = self._glance(name, data) if glance and self._glance is not None else None
            if entry is not None:
                return WaitingFile(name, entry, NEVER)
            seen_at = self._index.seen_at(name)
            if seen_at is NEVER:
                now = self._clock.now()
                found = self._files.stat(f"{self.path}/{name}")
                seen_at = min(written_at(found), now) if found else now
            entry = self.inspect(name, data, seen_at)
            if entry.fill is None:
                return WaitingFile(name, entry, NEVER)
            # `fill` is made again when the file is claimed, to save memory.
            return WaitingFile(name, entry._replace(fill=None), seen_at)
        except (BadRecord, StorageError) as error:
            self.suspect(name, error)
            return None

    def _put(self, found: Iterable[WaitingFile | None]) -> None:
        """Index these files; none is handed out before the last was read."""
        ready = [waiting for waiting in found if waiting is not None]
        with self._changed:
            for waiting in ready:
                self._suspects.pop(waiting.name, None)
                self._index.add(waiting)
            if self._idle:
                self._changed.notify(len(ready))

    def _now(self) -> float:
        return 0.0 if self._by_name else self._clock.now().timestamp()

    # ---- bad files ----------------------------------------------------------------------

    def _recheck(self, name: str, suspect: _Suspect) -> None:
        """Recheck a suspect: it is valid, changed or gone, or it is quarantined."""
        path = f"{self.path}/{name}"
        try:
            found = self._files.stat(path)
            self._put([self._read(name)])  # a new suspect when it is still bad
            with self._changed:
                again = self._suspects.get(name)
            if found is None:
                again = suspect
            elif again is not None and again.bad and found == suspect.seen == again.seen:
                self._files.quarantine(path, again.reason)
            else:
                return
            with self._changed:
                if self._suspects.get(name) is again:
                    del self._suspects[name]
        except StorageError as error:
            _logger.warning("%s: could not be moved to corrupt/: %s", path, error)
