"""The log for people (`log.jsonl`), and the change feed for the page (`events.jsonl`).

Losing either loses no message, task or result.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.language.plain_text import plain, utf16_length
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.ids import new_id
from mimikit.protocol.json import Json
from mimikit.protocol.models import time_text

SEGMENT_BYTES = 4 * 2**20
_ROTATED = re.compile(r"log\.(\d{4}-\d\d-\d\d)(?:\.(\d+))?\.jsonl")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_BLOCKS = TypeAdapter(list[tuple[int, str]])


class EventLog:
    """Appends to `log.jsonl`; ignores storage errors."""

    def __init__(self, files: Files, clock: Clock, *, rotate_bytes: int = 10 * 2**20) -> None:
        """Also logs what `files` quarantines."""
        self._files, self._clock, self._rotate_bytes = files, clock, rotate_bytes
        self._day = ""
        """The day of the file's first line; "": unknown."""
        self.secrets: list[str] = []
        """Values masked in every line."""
        files.on_event = lambda event, facts: self.write("audit", event, **facts)

    def write(self, type_: str, event: str, **facts: object) -> None:
        """Write one line: timestamp, type (task, audit, error…), event, and its facts."""
        now = self._clock.now()
        line: dict[str, object] = {"timestamp": time_text(now), "type": type_, "event": event}
        line |= {key: self._clean(value) for key, value in facts.items() if value is not None}
        with contextlib.suppress(StorageError):
            self._rotate(f"{now:%Y-%m-%d}")
        with contextlib.suppress(StorageError):
            self._files.append(paths.LOG, line, sync=False)

    def _rotate(self, today: str) -> None:
        """Begin a new file each day (UTC) and at `rotate_bytes`.

        Several processes write this log; the one that gets the lock rotates it.
        """
        stat = self._files.stat(paths.LOG)
        if stat is None or (self._day == today and stat.size <= self._rotate_bytes):
            return
        lock = self._files.lock(paths.LOG_LOCK)
        if lock is None:
            return
        try:
            stat = self._files.stat(paths.LOG)  # another process may have rotated before the lock
            first = next(self._files.lines(paths.LOG, limit=2**16), None)
            day = str(first[1].get("timestamp"))[: len(today)] if first else today
            day = day if _DAY.fullmatch(day) else today
            if stat is not None and (stat.size > self._rotate_bytes or day < today):
                self._files.move(paths.LOG, self._free_name(day))
            self._day = today
        finally:
            lock.release()

    def _free_name(self, day: str) -> str:
        taken = rotated_logs(self._files)
        numbered = (f"log.{day}.{number}.jsonl" for number in itertools.count(1))
        names = itertools.chain([f"log.{day}.jsonl"], numbered)
        return next(name for name in names if name not in taken)

    def _clean(self, value: object) -> object:
        if isinstance(value, (int, float, bool)):
            return value
        if isinstance(value, datetime):
            return time_text(value)
        text = plain(str(value).encode(errors="backslashreplace").decode())[:2000]
        for secret in self.secrets:
            text = text.replace(secret, "•••")
        return text


def rotated_logs(files: Files) -> list[str]:
    """The names of the older log files, oldest first."""
    found = filter(None, map(_ROTATED.fullmatch, files.names(paths.ROOT, suffix=".jsonl")))
    return [match[0] for match in sorted(found, key=lambda m: (m[1], int(m[2] or 0)))]


def log_tails(files: ReadOnlyFiles, limit: int) -> Iterator[list[dict[str, Json]]]:
    """The last lines of each log file within `limit` bytes, newest file first."""
    for name in (paths.LOG, *reversed(rotated_logs(files))):
        stat = files.stat(name)
        start = max(stat.size - limit, 0) if stat else 0
        yield [line for _, line in files.lines(name, offset=start, limit=limit)]


@dataclass(frozen=True, slots=True)
class FeedChanges:
    cursor: str
    events: list[dict[str, object]]
    reset: bool = False
    """The cursor is unknown: reload everything."""


class ChangeFeed:
    """Writes `events.jsonl`: change events for open pages."""

    def __init__(self, files: Files, clock: Clock) -> None:
        self._files, self._clock = files, clock
        self._size = 0
        self._lock = threading.Lock()

    def publish(self, kind: str, **facts: object) -> None:
        """Append a change event: the kind of thing that changed, its id, a few facts."""
        with self._lock, contextlib.suppress(StorageError):
            if self._size == 0 or self._size > SEGMENT_BYTES:
                stat = self._files.stat(paths.EVENTS)
                if stat is not None and stat.size > SEGMENT_BYTES:
                    self._files.move(paths.EVENTS, paths.OLD_EVENTS)
                    stat = None
                if stat is None:
                    segment = new_id("seg", self._clock.now())
                    self._files.append(paths.EVENTS, {"segment": segment}, sync=False)
            line: dict[str, object] = {"kind": kind, **facts}
            self._size = self._files.append(paths.EVENTS, line, sync=False) + 1


def read_changes(files: Files, cursor: str | None) -> FeedChanges:
    """The events after `cursor`; None: only the current end."""
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
    if offset >= 0 and segment == _segment(files, paths.OLD_EVENTS):
        old = _after(files, paths.OLD_EVENTS, segment, offset)
        new = _after(files, paths.EVENTS, name, 0)
        return FeedChanges(new.cursor, old.events + new.events)
    return FeedChanges(f"{name}:{size}", [], reset=True)


def streamed_reply(files: Files, turn_id: str) -> tuple[str, int, list[tuple[int, str]]]:
    """What the current attempt of a turn streamed, the offset of what comes next, the blocks."""
    pieces: list[str] = []
    blocks: list[tuple[int, str]] = []
    end: int | None = None
    for path in (paths.EVENTS, paths.OLD_EVENTS):
        for _, event in files.lines_back(path, holding=turn_id.encode()):
            if event.get("turnId") != turn_id:
                continue
            is_delta, offset = event["kind"] == "delta", event.get("offset")
            text = event.get("text")
            if is_delta and isinstance(text, str):
                pieces.append(text)
                blocks += blocks_of(event)
                if end is None and isinstance(offset, int):
                    end = offset + utf16_length(text)
            if not is_delta or event.get("reset") is True or offset == 0:
                return "".join(reversed(pieces)), end or 0, blocks[::-1]
    return "".join(reversed(pieces)), end or 0, blocks[::-1]


def blocks_of(event: Mapping[str, object]) -> list[tuple[int, str]]:
    """The complete blocks of a reply that a delta ends, each with its offset."""
    with contextlib.suppress(ValidationError):
        return _BLOCKS.validate_python(event.get("blocks", []))
    return []


def _after(files: Files, path: str, segment: str, offset: int) -> FeedChanges:
    events: list[dict[str, object]] = []
    for end, line in files.lines(path, offset=offset):
        offset = end
        if "kind" in line:
            events.append({**line, "cursor": f"{segment}:{end}"})
    return FeedChanges(f"{segment}:{offset}", events)


def _segment(files: Files, path: str) -> str | None:
    for _, line in files.lines(path, limit=4096):
        name = line.get("segment")
        return name if isinstance(name, str) else None
    return None
