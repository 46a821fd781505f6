"""The waiting files of one queue folder: found, put in order, handed out one by one.

The folder is the truth; the index is a view of it, kept by the watch's news, by own writes and by
whole looks. A name that is in the index but no longer in the folder costs one failed rename and
nothing else, so the view may lag. This module knows no Task: `inspect` tells what a file means.
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
from mimikit.errors import BadRecord, StorageError, UnsafeFile, shortage_of
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES, written_at
from mimikit.protocol.watch import LastingThread

_logger = logging.getLogger(__name__)

_AT_ONCE = 64
"""Files that are read in one go; between two such slices others have their turn."""
_PAUSE_S = 0.005
_LOOK_SHARE = 50
"""A whole look is given at most one in so many parts of the time."""
_NAP_S = 1.0
"""The longest sleep while something waits for its time: the wall clock may jump meanwhile."""


class QueueEntry(NamedTuple):
    """What the storage knows of a waiting file without knowing what it holds."""

    order: Any
    """Its place, smaller first: any values of one kind that can be compared."""
    ready_at: float | None = None
    """Not to be taken before; seconds since 1970. None: at once."""
    fill: bytes | None = None
    """What shall lie in `running/` in place of the file's own bytes, where those are not whole."""


class WaitingFile(NamedTuple):
    """A waiting file: its name, its entry, and when it was first seen."""

    name: str
    entry: QueueEntry
    seen_at: datetime


Inspect: TypeAlias = Callable[[str, bytes, datetime], QueueEntry]
"""(name, data, seen_at) → the entry; raises BadRecord with the reason."""
Glance: TypeAlias = Callable[[str, bytes], QueueEntry | None]
"""(name, data) → the entry of a file that is surely well-formed, fast; None: inspect it."""

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""`seen_at` where it does not matter, since the file says itself when it was made."""


class QueueIndex:
    """Which file is next. The caller holds a lock. Units: seconds since 1970.

    It is made for 100,000 names: what is kept for each is small, and mostly nothing the garbage
    collector has to walk through again and again.
    """

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
        """When a name was first seen; NEVER where that does not matter."""
        return self._seen.get(name, NEVER)

    def add(self, waiting: WaitingFile) -> None:
        """Put a file in its place; a name that is known moves to the new one."""
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
        """Forget a name; with `only`, unless it has another entry by now."""
        if only is None or self._entries.get(name) is only:
            self._entries.pop(name, None)
            self._seen.pop(name, None)

    def first(self, now: float) -> WaitingFile | None:
        """The first that may go at `now`, left in its place."""
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
                # It was put off, or the clock set back, after it had come up.
                heapq.heappush(self._due, (entry.ready_at, name))
            heapq.heappop(self._ready)
        return None

    def pop(self, now: float) -> WaitingFile | None:
        """Take the first that may go at `now`; None when none may."""
        waiting = self.first(now)
        if waiting is not None:
            heapq.heappop(self._ready)
            self.discard(waiting.name)
        return waiting

    def upcoming(self, most: int) -> list[str]:
        """The names that come first, in their order; after them those that wait for their time.

        It goes down both heaps only as far as it must: the length of the queue makes no difference.
        """
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
        """When the earliest of those that wait for their time may go."""
        while self._due:
            ready_at, name = self._due[0]
            entry = self._entries.get(name)
            if entry is not None and entry.ready_at == ready_at:
                return ready_at
            heapq.heappop(self._due)
        return None


class _Suspect(NamedTuple):
    """A file that could not be used so far. Units: seconds of the steady clock."""

    reason: str
    bad: bool
    """Its content is; else the disk could not read it, and it stays where it is."""
    seen: FileStat | None
    since: float


class QueueFolder:
    """Waiting files in their order, for several threads.

    inspect: what a file means; `glance` the same for a whole folder of undoubted files, faster.
    by_name: the names give the order: a file is read only after it was found to be unusable.
    settle_s: a file that can not be used is looked at again until it was unchanged for so long,
        then it is quarantined. That is a janitor's work, on a thread of its own that lives only
        while there are such files: the good ones never wait for the bad.
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
        """Know nothing yet; `look(None)` builds the index."""
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
        """While this is set nothing is handed out; `wake` tells those who wait of a change."""
        self._expected: set[str] = set()
        self._suspects: dict[str, _Suspect] = {}
        self._heard: dict[str, None] = {}
        """Names that were told and not looked at yet."""
        self._is_whole_heard = False
        """Whether the whole folder is to be looked at."""
        self._intake = LastingThread(f"intake {path}")
        self.closed = threading.Event()
        self._janitor = LastingThread(f"janitor {path}")

    def __len__(self) -> int:
        """How many wait, as far as known: costs nothing."""
        return len(self._index)

    def upcoming(self, most: int) -> list[str]:
        """The names of those that are next, whether they may go by now or not."""
        with self._changed:
            return self._index.upcoming(most)

    # ---- handing out --------------------------------------------------------------------

    def take(self) -> WaitingFile | None:
        """The first that may go now; it leaves the index, and is this thread's to claim."""
        with self._changed:
            if self.paused or self.closed.is_set():
                return None
            return self._index.pop(self._now())

    def wait(self, timeout_s: float, wakes: int) -> None:
        """Sleep until something may be taken or time is up; not at all when `wakes` has changed."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._man()
            while self.wakes == wakes and not self.has_ready():
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                due = None if self.paused else self._index.next_due()
                if due is not None:
                    left = min(left, _NAP_S, max(0.0, due - self._now()))
                self._idle += 1
                self._changed.wait(left)
                self._idle -= 1

    def has_ready(self) -> bool:
        """Whether `take` would give something."""
        with self._changed:
            if self.paused or self.closed.is_set():
                return False
            return self._index.first(self._now()) is not None

    def wake(self) -> None:
        """End every wait that is going on."""
        with self._changed:
            self.wakes += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Hand out nothing any more, and end every wait."""
        self.closed.set()
        self.wake()

    # ---- finding ------------------------------------------------------------------------

    def hear(self, names: list[str] | None) -> None:
        """Look soon at these names, or (None) at the whole folder: what a FolderWatch calls.

        A few are looked at here; many, or all, by a thread of its own, in slices: the news of other
        folders, and whoever needs the interpreter, never wait behind fifty thousand files.
        """
        with self._changed:
            is_small = names is not None and len(names) <= _AT_ONCE
            if not is_small:
                self._heard.update(dict.fromkeys(names or ()))
                self._is_whole_heard |= names is None
                self._man()
        if is_small:
            self.look(names)

    def _man(self) -> None:
        """Start the threads that are needed and not there. The caller holds the lock."""
        if self.closed.is_set():
            return
        if self._heard or self._is_whole_heard:
            self._intake.begin(self._take_in)
        if self._suspects:
            self._janitor.begin(self._clean)

    def _take_in(self) -> None:
        """The thread that looks at what was heard: until nothing is left."""
        rest_until = 0.0
        while not self.closed.is_set():
            with self._changed:
                names = list(itertools.islice(self._heard, _AT_ONCE))
                for name in names:
                    del self._heard[name]
                is_whole = self._is_whole_heard and not names
                if not names and not is_whole:
                    self._intake.thread = None
                    return
                began = time.monotonic()
                is_whole = is_whole and began >= rest_until
                self._is_whole_heard &= not is_whole
            try:
                if names or is_whole:
                    self.look(names or None, pause_s=_PAUSE_S)
            except StorageError as error:
                _logger.warning("%s: could not be looked at: %s", self.path, error)
            except Exception as error:
                if shortage_of(error):
                    raise
                _logger.exception("%s: could not be looked at", self.path)
            if is_whole:
                rest_until = began + (time.monotonic() - began) * _LOOK_SHARE
            self.closed.wait(_PAUSE_S if names else 20 * _PAUSE_S)

    def look(self, names: list[str] | None, *, pause_s: float = 0.0) -> None:
        """Look at these names, or (None) at the whole folder; `pause_s`: after each slice."""
        if names is not None:
            told = [name for name in names if name.endswith(".json") and not name.startswith(".")]
            # Of our own writes `add` tells what they are.
            own = self._expected.intersection(told)
            self._expected -= own
            self._put(self._read(name) for name in told if name not in own)
            return
        with self._changed:
            before = self._index.entries()
            expected = set(self._expected)
        listed = self._files.names(self.path)
        fresh = [name for name in listed if name not in before and name not in self._suspects]
        for at in range(0, len(fresh), _AT_ONCE):
            self._put(self._read(name, hurry=True) for name in fresh[at : at + _AT_ONCE])
            if self.closed.wait(pause_s):
                return
        present = set(listed)
        with self._changed:
            # News of own writes that did not come by now are lost: nothing waits for them.
            self._expected -= expected
            for name, entry in before.items():
                if name not in present:
                    self._index.discard(name, only=entry)

    def expect(self, name: str) -> None:
        """Our own write is coming: the watch's news of this name will be no news."""
        self._expected.add(name)

    def add(self, name: str, entry: QueueEntry) -> None:
        """Our own write is done."""
        self._put([WaitingFile(name, entry, NEVER)])

    def doubt(self, name: str, error: BadRecord | StorageError) -> None:
        """A file can not be used, perhaps because it is half written: to the janitor with it."""
        bad = isinstance(error, BadRecord | UnsafeFile)
        try:
            seen = self._files.stat(f"{self.path}/{name}")
        except StorageError:
            seen = None
        with self._changed:
            self._index.discard(name)
            self._suspects[name] = _Suspect(str(error), bad, seen, time.monotonic())
            self._man()

    def _read(self, name: str, *, hurry: bool = False) -> WaitingFile | None:
        """What a file is; None when it is gone, or was handed to the janitor."""
        if self._by_name and name not in self._suspects:
            return WaitingFile(name, QueueEntry(name), NEVER)
        try:
            data = self._files.read(f"{self.path}/{name}", most=MAX_RECORD_BYTES)
            if data is None:
                return None
            entry = self._glance(name, data) if hurry and self._glance is not None else None
            if entry is not None:
                return WaitingFile(name, entry, NEVER)
            seen_at = self._index.seen_at(name)
            if seen_at is NEVER:
                # Should the time it was seen matter: its own time is that.
                now = self._clock.now()
                found = self._files.stat(f"{self.path}/{name}")
                written = written_at(found) if found else now
                seen_at = min(written, now)
            entry = self.inspect(name, data, seen_at)
            if entry.fill is None:
                return WaitingFile(name, entry, NEVER)
            # The bytes are made again when it is claimed: there may be very many.
            return WaitingFile(name, entry._replace(fill=None), seen_at)
        except (BadRecord, StorageError) as error:
            self.doubt(name, error)
            return None

    def _put(self, found: Iterable[WaitingFile | None]) -> None:
        """Take these into the index, at once: none is handed out before the last was read."""
        ready = [waiting for waiting in found if waiting is not None]
        with self._changed:
            for waiting in ready:
                self._suspects.pop(waiting.name, None)
                self._index.add(waiting)
            if self._idle:
                self._changed.notify(len(ready))

    def _now(self) -> float:
        return 0.0 if self._by_name else self._clock.now().timestamp()

    # ---- the bad ones -------------------------------------------------------------------

    def _clean(self) -> None:
        """The janitor's thread: until no suspect is left."""
        while True:
            with self._changed:
                if not self._suspects or self.closed.is_set():
                    self._janitor.thread = None
                    return
                suspects = list(self._suspects.items())
            look_at = min(suspect.since for _, suspect in suspects) + self._settle_s
            if self.closed.wait(max(0.0, min(look_at - time.monotonic(), self._settle_s))):
                continue
            for name, suspect in suspects:
                if time.monotonic() >= suspect.since + self._settle_s:
                    self._settle(name, suspect)

    def _settle(self, name: str, suspect: _Suspect) -> None:
        """Look again at a file that had its time: is it good now, changed, gone, or bad?"""
        path = f"{self.path}/{name}"
        try:
            found = self._files.stat(path)
            self._put([self._read(name)])  # makes a fresh suspect of it when it is still bad
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
        except Exception as error:
            if shortage_of(error):
                raise
            _logger.exception("%s: could not be moved to corrupt/", path)
