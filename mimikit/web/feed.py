"""Server-sent events: every stream follows `events.jsonl` from its own cursor.

The file is the queue: a slow reader loses nothing and costs no memory. While a stream is open one
thread polls the file ten times a second. What a hint stands for is looked up once for all streams.
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
from mimikit.errors import MimikitError, StorageError
from mimikit.log import read_changes
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.views.snapshot import Change

Hint = dict[str, object]
"""A line of `events.jsonl`: what changed, by its id."""

POLL_S = 0.1
HEARTBEAT_S = 15.0
RECHECK_S = 1.0
RETRY_MS = 2000
MAX_EVENTS = 1000
_CACHED = 500
_CURSOR = re.compile(r"[A-Za-z0-9._-]{1,128}:[0-9]{1,15}")
# Of these only the last one is sent: each carries the whole object.
_WHOLE = frozenset({"message", "inbox", "task", "trigger", "question", "status"})


class StreamsFull(MimikitError):
    """As many streams are open as are allowed."""


@dataclass(eq=False, slots=True)
class StreamPlace:
    tab: str | None
    over: bool = False
    last_state: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The changes after a cursor, each with its own cursor, and the cursor after them."""

    cursor: str
    changes: list[tuple[str, Change]]
    reset: bool = False


class Feed:
    def __init__(
        self,
        files: ReadOnlyFiles,
        change: Callable[[Hint], Change | None],
        state: Callable[[], str],
        *,
        max_streams: int,
    ) -> None:
        """`change` looks up what a hint stands for; `state` is the consumer's now."""
        self._files, self._change, self._state = files, change, state
        self._max = max_streams
        self._cached: OrderedDict[str, Change | None] = OrderedDict()
        self._cache_lock = threading.Lock()
        self._changed = threading.Condition()
        self._places: list[StreamPlace] = []
        self._poller: threading.Thread | None = None
        self._stopped = False
        self.generation = 0
        """Moves on each time the file changed."""

    # ---- reading ------------------------------------------------------------------------------

    def read(self, since: str | None) -> Batch:
        """The changes after a cursor; an unknown cursor gives a reset."""
        if since and not _CURSOR.fullmatch(since):
            return Batch(read_changes(self._files, None).cursor, [], reset=True)
        changes = read_changes(self._files, since)
        hints = _merged([e for e in changes.events if isinstance(e["kind"], str)])
        if changes.reset or len(hints) > MAX_EVENTS:
            return Batch(changes.cursor, [], reset=True)
        whole = ((str(hint["cursor"]), self._whole(hint)) for hint in hints)
        return Batch(changes.cursor, [(cursor, change) for cursor, change in whole if change])

    def _whole(self, hint: Hint) -> Change | None:
        if hint["kind"] not in _WHOLE:
            return self._change(hint)
        cursor = str(hint["cursor"])
        with self._cache_lock:
            if cursor not in self._cached:
                self._cached[cursor] = self._change(hint)
                if len(self._cached) > _CACHED:
                    self._cached.popitem(last=False)
            return self._cached[cursor]

    # ---- streams ------------------------------------------------------------------------------

    def enter(self, tab: str | None) -> StreamPlace:
        """Take a place; the same tab's old stream ends. StreamsFull when there are too many."""
        with self._changed:
            for old in [t for t in self._places if tab is not None and t.tab == tab]:
                self._drop(old)
            if self._stopped or len(self._places) >= self._max:
                raise StreamsFull(f"{self._max} streams are open already; poll /api/changes")
            if self._poller is None:
                self._poller = threading.Thread(target=self._poll, name="feed", daemon=True)
                self._poller.start()
            place = StreamPlace(tab)
            self._places.append(place)
            return place

    def leave(self, place: StreamPlace) -> None:
        """Give a place back; a second time does nothing."""
        with self._changed:
            self._drop(place)

    def stop(self) -> None:
        """End every stream at once, and let none in."""
        with self._changed:
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
        """The text of one event stream, until its time is over or one of the two is False."""
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
            # While the disk does not answer, nobody is logged out.
            with contextlib.suppress(StorageError):
                if not is_allowed():
                    return
            self._wait(place, seen)

    def _wait(self, place: StreamPlace, seen: int) -> None:
        """Sleep until the file changed since generation `seen`, or the stream is over."""
        with self._changed:
            self._changed.wait_for(lambda: place.over or self.generation != seen, RECHECK_S)

    def _next_text(self, place: StreamPlace, cursor: str | None) -> tuple[str, str | None]:
        """What there is to send now, and the cursor after it; nothing while the disk fails."""
        try:
            batch = self.read(cursor)
            parts = [_frame("change", change.to_json(), id_) for id_, change in batch.changes]
            if batch.reset:
                parts.append(_frame("reset", b"{}", batch.cursor))
            # A consumer that started, ended or hung writes no event about it.
            state = self._state()
            if state != place.last_state:
                place.last_state = state
                if status := self._change({"kind": "status"}):
                    parts.append(_frame("change", status.to_json()))
        except StorageError:
            return "", cursor
        return "".join(parts), batch.cursor

    def _drop(self, place: StreamPlace) -> None:
        place.over = True
        if place in self._places:
            self._places.remove(place)
        self._changed.notify_all()

    def _poll(self) -> None:
        last: FileStat | None = None
        first = True
        while True:
            try:
                stat = self._files.stat(paths.EVENTS)
            except StorageError:
                stat = last
            with self._changed:
                if not self._places:
                    self._poller = None
                    return
                if stat != last or first:
                    self.generation += 1
                    self._changed.notify_all()
                last, first = stat, False
                self._changed.wait_for(lambda: not self._places, POLL_S)


def _frame(name: str, data: bytes, id_: str | None = None) -> str:
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {name}\ndata: {data.decode()}\n\n"


def _merged(events: list[Hint]) -> list[Hint]:
    """Drop events that a later one repeats; join consecutive pieces of text."""
    last = {(e["kind"], str(e.get("id"))): i for i, e in enumerate(events) if e["kind"] in _WHOLE}
    merged: list[Hint] = []
    for i, event in enumerate(events):
        kind = event["kind"]
        if kind in _WHOLE and last[kind, str(event.get("id"))] != i:
            continue
        before = merged[-1] if merged else {}
        if kind == before.get("kind") == "delta" and event.get("turnId") == before.get("turnId"):
            text = f"{before.get('text', '')}{event.get('text', '')}"
            merged[-1] = {**event, "text": text}
        else:
            merged.append(event)
    return merged


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
