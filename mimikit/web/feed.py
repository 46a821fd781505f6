"""Server-sent events: every stream reads `events.jsonl` from its own cursor.

A stream polls the file twenty times a second.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from mimikit.clock import Clock
from mimikit.errors import MimikitError, StorageError
from mimikit.log import blocks_of, read_changes
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.views.snapshot import Change

Event = dict[str, object]
"""A line of `events.jsonl`: the kind and id of an object that changed."""

POLL_S = 0.05
HEARTBEAT_S = 15.0
RECHECK_S = 1.0
RETRY_MS = 2000
MAX_EVENTS = 1000
_CURSOR = re.compile(r"[A-Za-z0-9._-]{1,128}:[0-9]{1,15}")
# Of several events about one object only the last is sent, as each has the whole object.
_OBJECT_KINDS = frozenset({"message", "inbox", "task", "trigger", "question", "status"})


@dataclass(eq=False, slots=True)
class StreamSlot:
    tab: str | None
    zone: ZoneInfo | None
    """The time zone of its reader."""
    ended: threading.Event = field(default_factory=threading.Event)
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
        change: Callable[[Event, ZoneInfo | None], Change | None],
        state: Callable[[], str],
        *,
        max_streams: int,
    ) -> None:
        """`change` looks up the object of an event; `state` returns the consumer's state."""
        self._files, self._change, self._state = files, change, state
        self._max = max_streams
        self._lock = threading.Lock()
        self._slots: list[StreamSlot] = []
        self._stopped = False

    def read(self, since: str | None, zone: ZoneInfo | None) -> Batch:
        """The changes after a cursor; an unknown cursor gives a reset."""
        if since and not _CURSOR.fullmatch(since):
            return Batch(read_changes(self._files, None).cursor, [], reset=True)
        changes = read_changes(self._files, since)
        events = _merged([e for e in changes.events if isinstance(e["kind"], str)])
        if changes.reset or len(events) > MAX_EVENTS:
            return Batch(changes.cursor, [], reset=True)
        found = ((str(event["cursor"]), self._change(event, zone)) for event in events)
        return Batch(changes.cursor, [(cursor, change) for cursor, change in found if change])

    def enter(self, tab: str | None, zone: ZoneInfo | None) -> StreamSlot:
        """Register a stream and end the tab's old one; MimikitError when there are too many."""
        with self._lock:
            for old in [t for t in self._slots if tab is not None and t.tab == tab]:
                self._drop(old)
            if self._stopped or len(self._slots) >= self._max:
                raise MimikitError(f"{self._max} streams are open already; poll /api/changes")
            slot = StreamSlot(tab, zone)
            self._slots.append(slot)
            return slot

    def leave(self, slot: StreamSlot) -> None:
        """Unregister a stream; does nothing the second time."""
        with self._lock:
            self._drop(slot)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for slot in list(self._slots):
                self._drop(slot)

    def stream(
        self,
        slot: StreamSlot,
        since: str | None,
        clock: Clock,
        *,
        life_s: float,
        is_allowed: Callable[[], bool],
        is_connected: Callable[[], bool],
    ) -> Iterator[str]:
        """The text of an event stream, until its time is over or a check fails."""
        yield f"retry: {RETRY_MS}\n\n"
        beat = clock.monotonic()
        cursor, end = since, beat + life_s
        while not slot.ended.is_set():
            stat = self._stat()
            text, cursor = self._next_text(slot, cursor)
            now = clock.monotonic()
            if not text and now - beat >= HEARTBEAT_S:
                text = ": beat\n\n"
            if text:
                beat = now
                yield text
            if now >= end or not is_connected():
                return
            # A disk error does not end a session.
            with contextlib.suppress(StorageError):
                if not is_allowed():
                    return
            self._wait(slot, stat)

    def _wait(self, slot: StreamSlot, stat: FileStat | None) -> None:
        """Sleep until the file changes or the slot ends, for at most RECHECK_S."""
        for _ in range(round(RECHECK_S / POLL_S)):
            if slot.ended.wait(POLL_S) or self._stat() != stat:
                return

    def _stat(self) -> FileStat | None:
        with contextlib.suppress(StorageError):
            return self._files.stat(paths.EVENTS)
        return None

    def _next_text(self, slot: StreamSlot, cursor: str | None) -> tuple[str, str | None]:
        """The text to send now, and the next cursor; nothing while the disk fails."""
        try:
            batch = self.read(cursor, slot.zone)
            parts = [_frame("change", change.to_json(), id_) for id_, change in batch.changes]
            if batch.reset:
                parts.append(_frame("reset", b"{}", batch.cursor))
            # No event reports that the consumer started, ended or hangs.
            state = self._state()
            if state != slot.last_state:
                slot.last_state = state
                if status := self._change({"kind": "status"}, slot.zone):
                    parts.append(_frame("change", status.to_json()))
        except StorageError:
            return "", cursor
        return "".join(parts), batch.cursor

    def _drop(self, slot: StreamSlot) -> None:
        slot.ended.set()
        if slot in self._slots:
            self._slots.remove(slot)


def _frame(name: str, data: bytes, id_: str | None = None) -> str:
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {name}\ndata: {data.decode()}\n\n"


def _merged(events: list[Event]) -> list[Event]:
    """Drop events that a later one supersedes; join consecutive deltas."""
    last = {
        (e["kind"], str(e.get("id"))): i for i, e in enumerate(events) if e["kind"] in _OBJECT_KINDS
    }
    merged: list[Event] = []
    for i, event in enumerate(events):
        kind = event["kind"]
        if kind in _OBJECT_KINDS and last[kind, str(event.get("id"))] != i:
            continue
        before = merged[-1] if merged else {}
        if kind == before.get("kind") == "delta" and event.get("turnId") == before.get("turnId"):
            if event.get("reset"):
                merged[-1] = event
            else:
                text = f"{before.get('text', '')}{event.get('text', '')}"
                blocks = [*blocks_of(before), *blocks_of(event)]
                merged[-1] = {**before, "text": text, "blocks": blocks}
        else:
            merged.append(event)
    return merged


def connection_check(sock: socket.socket | None) -> Callable[[], bool]:
    """A check whether the browser is still connected; always true without a socket."""
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
