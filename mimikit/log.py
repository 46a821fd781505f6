"""What happened, for people (`log.jsonl`), and what changed, for the page (`events.jsonl`).

Neither is truth: losing either loses no message, task or result.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from datetime import datetime

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import time_text

SEGMENT_BYTES = 4 * 2**20
_OLD_EVENTS = "events.1.jsonl"


class EventLog:
    """Appends to `log.jsonl`; a disk that refuses never stops the caller."""

    def __init__(self, files: Files, clock: Clock, *, rotate_bytes: int = 10 * 2**20) -> None:
        """Write through `files`, hear of its quarantines; begin a new file at `rotate_bytes`."""
        self._files, self._clock, self._rotate_bytes = files, clock, rotate_bytes
        self.secrets: list[str] = []
        """Values that are blotted out wherever they would appear."""
        files.on_event(lambda event, facts: self.write("audit", event, **facts))

    def write(self, type_: str, event: str, **facts: object) -> None:
        """One line: when, what kind (task, audit, error…), what, and its facts."""
        now = self._clock.now()
        line: dict[str, object] = {"timestamp": time_text(now), "type": type_, "event": event}
        line |= {key: self._clean(value) for key, value in facts.items() if value is not None}
        with contextlib.suppress(StorageError):
            self._files.append(paths.LOG, line, sync=False)
            stat = self._files.stat(paths.LOG)
            if stat is not None and stat.size > self._rotate_bytes:
                self._files.move(paths.LOG, f"log.{now:%Y-%m-%d}.{now:%H%M%S%f}.jsonl")

    def _clean(self, value: object) -> object:
        if isinstance(value, (int, float, bool)):
            return value
        if isinstance(value, datetime):
            return time_text(value)
        text = plain(str(value))[:2000]
        for secret in self.secrets:
            text = text.replace(secret, "•••")
        return text


@dataclass(frozen=True, slots=True)
class FeedChanges:
    """What changed after a cursor."""

    cursor: str
    events: list[dict[str, object]]
    reset: bool = False
    """The cursor is unknown: the reader must load everything anew."""


class ChangeFeed:
    """Writes `events.jsonl`, the consumer's hints to every open page."""

    def __init__(self, files: Files, clock: Clock) -> None:
        self._files, self._clock = files, clock
        self._size = 0
        self._lock = threading.Lock()

    def tell(self, kind: str, **facts: object) -> None:
        """One hint: the kind of thing that changed, its id, a few facts."""
        with self._lock, contextlib.suppress(StorageError):
            if self._size == 0 or self._size > SEGMENT_BYTES:
                stat = self._files.stat(paths.EVENTS)
                if stat is not None and stat.size > SEGMENT_BYTES:
                    self._files.move(paths.EVENTS, _OLD_EVENTS)
                    stat = None
                if stat is None:
                    segment = new_id("seg", self._clock.now())
                    self._files.append(paths.EVENTS, {"segment": segment}, sync=False)
            line: dict[str, object] = {"kind": kind, **facts}
            self._size = self._files.append(paths.EVENTS, line, sync=False) + 1


def read_changes(files: Files, cursor: str | None) -> FeedChanges:
    """What the feed holds after `cursor`; None gives the present end and nothing before it."""
    name = _segment(files, paths.EVENTS)
    if name is None:
        return FeedChanges("", [], reset=bool(cursor))
    stat = files.stat(paths.EVENTS)
    size = stat.size if stat else 0
    if cursor is None:
        return FeedChanges(f"{name}:{size}", [])
    segment, _, offset_text = cursor.partition(":")
    offset = int(offset_text) if offset_text.isascii() and offset_text.isdigit() else -1
    if segment == name and 0 <= offset <= size:
        return _after(files, paths.EVENTS, name, offset)
    if cursor == "":
        return _after(files, paths.EVENTS, name, 0)
    if offset >= 0 and segment == _segment(files, _OLD_EVENTS):
        old = _after(files, _OLD_EVENTS, segment, offset)
        new = _after(files, paths.EVENTS, name, 0)
        return FeedChanges(new.cursor, old.events + new.events)
    return FeedChanges(f"{name}:{size}", [], reset=True)


def _after(files: Files, path: str, segment: str, offset: int) -> FeedChanges:
    events: list[dict[str, object]] = []
    for end, line in files.lines(path, offset=offset):
        offset = end
        if "kind" in line:
            events.append({**line, "cursor": f"{segment}:{end}"})
    return FeedChanges(f"{segment}:{offset}", events)


def _segment(files: Files, path: str) -> str | None:
    """The name of the segment a file holds, from its first line."""
    for _, line in files.lines(path, limit=4096):
        name = line.get("segment")
        return name if isinstance(name, str) else None
    return None
