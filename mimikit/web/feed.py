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
LOOK_S = 1.0
RETRY_MS = 2000
MAX_EVENTS = 1000
_KEPT = 500
_CURSOR = re.compile(r"[A-Za-z0-9._-]{1,128}:[0-9]{1,15}")
# Of these only the last one counts: each carries the whole fresh thing.
_WHOLE = frozenset({"message", "inbox", "task", "trigger", "question", "status"})


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
        change: Callable[[Hint], Change | None],
        state: Callable[[], str],
        *,
        max_streams: int,
    ) -> None:
        """`change` makes a hint whole; `state` tells of a consumer that can no longer hint."""
        self._files, self._change, self._state = files, change, state
        self._max = max_streams
        self._kept: OrderedDict[str, Change | None] = OrderedDict()
        self._making = threading.Lock()
        self._news = threading.Condition()
        self._places: list[StreamPlace] = []
        self._tailer: threading.Thread | None = None
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
        made = ((str(hint["cursor"]), self._made(hint)) for hint in hints)
        return Batch(changes.cursor, [(cursor, change) for cursor, change in made if change])

    def _made(self, hint: Hint) -> Change | None:
        if hint["kind"] not in _WHOLE:
            return self._change(hint)
        cursor = str(hint["cursor"])
        with self._making:
            if cursor not in self._kept:
                self._kept[cursor] = self._change(hint)
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
            if self._tailer is None:
                self._tailer = threading.Thread(target=self._tail, name="feed", daemon=True)
                self._tailer.start()
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
                if status := self._change({"kind": "status"}):
                    parts.append(_frame("change", status.to_json()))
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
                    self._tailer = None
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
