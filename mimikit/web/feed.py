"""Changes as they happen: every stream follows `events.jsonl` from its own cursor.

The file is the queue: a slow reader loses nothing and costs no memory. One thread looks whether the
file grew, ten times a second, and only while a stream is open. What a hint stands for is looked up
once and shared by all streams.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mimikit.clock import Clock
from mimikit.conversation.drafts import units
from mimikit.errors import MimikitError, StorageError
from mimikit.log import read_changes
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.watch import LastingThread
from mimikit.views.snapshot import Change, JobChange

Hint = dict[str, object]
"""A line of `events.jsonl`: what changed, by its id."""

POLL_S = 0.1
HEARTBEAT_S = 15.0
LOOK_S = 1.0
RETRY_MS = 2000
MAX_EVENTS = 1000
_KEPT = 500
_CURSOR = re.compile(r"[A-Za-z0-9._-]{1,128}:[0-9]{1,15}")
# Of these only the last one counts: each carries the whole fresh thing.
_WHOLE = frozenset({"message", "inbox", "task", "job", "trigger", "question", "status"})


class StreamsFull(MimikitError):
    """As many streams are open as are allowed."""


@dataclass(eq=False, slots=True)
class StreamPlace:
    """One open stream."""

    tab: str | None
    over: bool = False
    last_state: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What came after a cursor: (its cursor, the change) each, and where to go on."""

    cursor: str
    changes: list[tuple[str, Change]]
    reset: bool = False


class Feed:
    """The streams of one process."""

    def __init__(
        self,
        files: ReadOnlyFiles,
        changes: Callable[[], Callable[[Hint], list[Change]]],
        state: Callable[[], str],
        *,
        max_streams: int,
    ) -> None:
        """Of what makes a batch of hints whole, each by itself, and what tells of a consumer.

        changes: gives the former, for one batch. state: the latter, where it can no longer hint.
        """
        self._files, self._changes, self._state = files, changes, state
        self._max = max_streams
        self._kept: OrderedDict[str, list[Change]] = OrderedDict()
        self._making = threading.Lock()
        self._news = threading.Condition()
        self._places: list[StreamPlace] = []
        self._tailer = LastingThread("feed")
        self._stopped = False
        self.generation = 0
        """Moves on each time the file changed."""

    # ---- reading ------------------------------------------------------------------------------

    def read(self, since: str | None) -> Batch:
        """What came after a cursor; a cursor that is none of ours gives a reset."""
        if since and not _CURSOR.fullmatch(since):
            return Batch(read_changes(self._files, None).cursor, [], reset=True)
        changes = read_changes(self._files, since)
        hints = _merged([e for e in changes.events if isinstance(e["kind"], str)])
        if changes.reset or len(hints) > MAX_EVENTS:
            return Batch(changes.cursor, [], reset=True)
        make = self._changes()
        made = [(str(hint["cursor"]), one) for hint in hints for one in self._made(hint, make)]
        last = {one.job.id: i for i, (_, one) in enumerate(made) if isinstance(one, JobChange)}
        kept = (
            (cursor, one)
            for i, (cursor, one) in enumerate(made)
            if not isinstance(one, JobChange) or last[one.job.id] == i
        )
        return Batch(changes.cursor, list(kept))

    def _made(self, hint: Hint, make: Callable[[Hint], list[Change]]) -> list[Change]:
        if hint["kind"] not in _WHOLE:
            return make(hint)
        cursor = str(hint["cursor"])
        with self._making:
            if cursor not in self._kept:
                self._kept[cursor] = make(hint)
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return self._kept[cursor]

    # ---- streams ------------------------------------------------------------------------------

    def enter(self, tab: str | None) -> StreamPlace:
        """Take a place, that of the same tab's old stream first; StreamsFull when none is left."""
        with self._news:
            for old in [t for t in self._places if tab is not None and t.tab == tab]:
                self._drop(old)
            if self._stopped or len(self._places) >= self._max:
                raise StreamsFull(f"{self._max} streams are open already; poll /api/changes")
            self._tailer.begin(self._tail)  # may fail, and takes no place then
            place = StreamPlace(tab)
            self._places.append(place)
            return place

    def leave(self, place: StreamPlace) -> None:
        """Give a place back; harmless twice."""
        with self._news:
            self._drop(place)

    def stop(self) -> None:
        """End every stream at once, and let none in."""
        with self._news:
            self._stopped = True
            for place in list(self._places):
                self._drop(place)

    def stream(
        self,
        place: StreamPlace,
        since: str | None,
        clock: Clock,
        *,
        life_s: float,
        is_allowed: Callable[[], bool],
        is_connected: Callable[[], bool],
    ) -> Iterator[str]:
        """The text of one event stream, until its time is over or one of the two says no."""
        yield f"retry: {RETRY_MS}\n\n"
        beat = clock.monotonic()
        cursor, end = since, beat + life_s
        while not place.over:
            seen = self.generation
            text, cursor = self._next_text(place, cursor)
            now = clock.monotonic()
            if not text and now - beat >= HEARTBEAT_S:
                text = ": beat\n\n"
            if text:
                beat = now
                yield text
            if now >= end or not is_connected():
                return
            # While the disk does not answer nobody is put out: the next look decides.
            with contextlib.suppress(StorageError):
                if not is_allowed():
                    return
            self._wait(place, seen)

    def _wait(self, place: StreamPlace, seen: int) -> None:
        """Sleep until the file changed since generation `seen`, or the stream is over."""
        with self._news:
            self._news.wait_for(lambda: place.over or self.generation != seen, LOOK_S)

    def _next_text(self, place: StreamPlace, cursor: str | None) -> tuple[str, str | None]:
        """What there is to send now, and the cursor after it; nothing while the disk is silent."""
        try:
            batch = self.read(cursor)
            parts = [_frame("change", change.to_json(), id_) for id_, change in batch.changes]
            if batch.reset:
                parts.append(_frame("reset", b"{}", batch.cursor))
            # The consumer came, went or hung since this stream last heard: it can not hint itself.
            state = self._state()
            if state != place.last_state:
                place.last_state = state
                told = self._changes()({"kind": "status"})
                parts += [_frame("change", change.to_json()) for change in told]
        except StorageError:
            return "", cursor
        return "".join(parts), batch.cursor

    def _drop(self, place: StreamPlace) -> None:
        place.over = True
        if place in self._places:
            self._places.remove(place)
        self._news.notify_all()

    def _tail(self) -> None:
        last: FileStat | None = None
        first = True
        while True:
            try:
                stat = self._files.stat(paths.EVENTS)
            except StorageError:
                stat = last
            with self._news:
                if not self._places:
                    self._tailer.thread = None
                    return
                if stat != last or first:
                    self.generation += 1
                    self._news.notify_all()
                last, first = stat, False
                self._news.wait_for(lambda: not self._places, POLL_S)


def _frame(name: str, data: bytes, id_: str | None = None) -> str:
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {name}\ndata: {data.decode()}\n\n"


def _merged(events: list[Hint]) -> list[Hint]:
    """Without what a later event says again; pieces of text that follow one another as one."""
    last = {(e["kind"], str(e.get("id"))): i for i, e in enumerate(events) if e["kind"] in _WHOLE}
    merged: list[Hint] = []
    for i, event in enumerate(events):
        kind = event["kind"]
        if kind in _WHOLE and last[kind, str(event.get("id"))] != i:
            continue
        before = merged[-1] if merged else {}
        if kind == before.get("kind") == "delta" and _follows(before, event):
            text = f"{before.get('text', '')}{event.get('text', '')}"
            merged[-1] = {**event, "at": before["at"], "text": text}
        else:
            merged.append(event)
    return merged


def _follows(before: Hint, delta: Hint) -> bool:
    """Whether a piece of a reply goes on where the other ends."""
    at = before.get("at")
    is_same = all(before.get(key) == delta.get(key) for key in ("turnId", "part"))
    return is_same and isinstance(at, int) and delta.get("at") == at + units(str(before["text"]))


def connection_check(sock: socket.socket | None) -> Callable[[], bool]:
    """Whether the browser is still there, seen on the server's socket; always so without one."""
    if sock is None:
        return lambda: True

    def is_connected() -> bool:
        try:
            return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    return is_connected
