"""The conversation: the complete transcript, and the working set of recent messages."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import History, Message

_CURSOR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}:[0-9]{1,18}")
_MOST_ON_PAGE = 500
_RECORD_BYTES = 450
"""Of a message in history.json, without its text; an upper estimate."""


@dataclass(frozen=True, slots=True)
class HistoryCaps:
    """Limits of the working set, from which only archived messages are removed."""

    soft: int = 200
    hard: int = 300
    hard_bytes: int = 10 * 2**20


class HistoryStore:
    """Writes the conversation. Not thread-safe: for the supervisor's thread only."""

    def __init__(self, files: Files) -> None:
        self._files, self.caps = files, HistoryCaps()
        history = files.load(paths.HISTORY, History) or History()
        self.messages: list[Message] = list(history.messages)
        self.schema_version = history.schema_version
        self._days: dict[date, set[str]] = {}
        names = files.names(paths.TRANSCRIPT, suffix=".jsonl")
        self._newest = date.fromisoformat(names[-1].removesuffix(".jsonl")) if names else date.min

    def add(self, messages: Iterable[Message]) -> list[Message]:
        """Append messages, to the transcript first; returns those that were new.

        Crash: a replay of the turn finds by its id what is in the transcript already.
        """
        fresh, added = list(messages), list[Message]()
        for message in fresh:
            # In order of arrival, even when the clock was set back.
            sent_on = message.created_at.date()
            day = max(sent_on, self._newest)
            if any(message.id in self._ids_of_day(d) for d in {day, sent_on}):
                continue
            try:
                self._files.append(paths.transcript(day), message.to_dict())
            except StorageError:
                # The line may be there nevertheless (only its flush failed).
                self._days.pop(day, None)
                raise
            self._ids_of_day(day).add(message.id)
            self._newest = day
            added.append(message)
        have = {message.id for message in self.messages}
        missing = [m for m in {m.id: m for m in fresh}.values() if m.id not in have]
        if missing:
            self._save(self.messages + missing)
        return added

    def change(self, changes: Mapping[str, Mapping[str, object]]) -> int:
        """Change fields of messages in the working set, by id; returns how many were found.

        Messages marked as archived may be removed, so they must be in memory before.
        Crash: all are changed, or none.
        """
        count = sum(message.id in changes for message in self.messages)
        if count:
            changed = (m.model_copy(update=changes.get(m.id)) for m in self.messages)
            self._save(list(changed))
        return count

    def trim(self) -> bool:
        """Remove archived messages beyond the caps; returns whether there were any."""
        kept = capped(self.messages, self.caps)
        was_over = len(kept) < len(self.messages)
        if was_over:
            self._save(kept)
        return was_over

    def is_over(self) -> bool:
        caps = self.caps
        return len(self.messages) > caps.hard or _size(self.messages) > caps.hard_bytes

    def _save(self, messages: list[Message]) -> None:
        kept = capped(messages, self.caps)
        try:
            self._files.save(paths.HISTORY, History(messages=kept))
        except BadRecord as error:  # not an error of the turn, which is retried
            raise StorageError(f"{paths.HISTORY}: {error}") from None
        self.messages = kept

    def has(self, message_id: str, day: date) -> bool:
        """Whether it is in the working set, or in the transcript around that day."""
        is_recent = any(message.id == message_id for message in self.messages)
        days = {day, day - timedelta(days=1), max(day, self._newest)}
        return is_recent or any(message_id in self._ids_of_day(d) for d in days)

    def _ids_of_day(self, day: date) -> set[str]:
        """The ids in a day's transcript; cached for a few days."""
        if day not in self._days:
            lines = self._files.lines_back(paths.transcript(day))
            self._days[day] = {str(line.get("id")) for _, line in lines}
            for old in sorted(self._days.keys() - {day})[:-3]:
                del self._days[old]
        return self._days[day]


def capped(messages: list[Message], caps: HistoryCaps) -> list[Message]:
    """The messages without the oldest archived ones beyond the caps."""
    surplus, bytes_ = len(messages) - caps.soft, _size(messages) - caps.hard_bytes
    if surplus <= 0 and bytes_ <= 0:
        return messages
    kept: list[Message] = []
    for message in messages:
        if message.archived is True and (surplus > 0 or bytes_ > 0):
            surplus -= 1
            bytes_ -= _size([message])
        else:
            kept.append(message)
    return kept


def _size(messages: Iterable[Message]) -> int:
    """Their bytes in history.json, an upper estimate."""
    return sum(
        _RECORD_BYTES + len(message.text) * (1 if message.text.isascii() else 3)
        for message in messages
    )


class HistoryPage(NamedTuple):
    """Messages, oldest first, and the cursor of the page before."""

    messages: list[Message]
    before: str | None


def page(
    files: Files, before: str | None = None, limit: int = 50, *, triggers_once: bool = False
) -> HistoryPage:
    """The messages before a cursor, or the newest.

    triggers_once: messages about one trigger count as one.

    Raises:
        BadInput: the cursor is not valid.
    """
    upto_day, upto_offset = "", 0
    if before is not None:
        upto_day, _, offset = before.partition(":")
        if not _CURSOR.fullmatch(before):
            message = "before: expected a cursor from an earlier answer, got something else"
            raise BadInput(message, field="before")
        upto_offset = int(offset)
    found: list[tuple[str, Message]] = []
    entries: set[str] = set()
    for cursor, message in _newest_first(files, upto_day, upto_offset):
        entries.add((triggers_once and message.trigger_id) or cursor)
        if len(entries) > limit or len(found) == _MOST_ON_PAGE:
            return HistoryPage([message for _, message in reversed(found)], found[-1][0])
        found.append((cursor, message))
    return HistoryPage([message for _, message in reversed(found)], None)


def _newest_first(files: Files, upto_day: str, upto_offset: int) -> Iterator[tuple[str, Message]]:
    """The messages before an offset in a day's transcript, or all; each with its cursor."""
    for name in reversed(files.names(paths.TRANSCRIPT, suffix=".jsonl")):
        day = name.removesuffix(".jsonl")
        if upto_day and day > upto_day:
            continue
        upto = upto_offset if day == upto_day else sys.maxsize
        for start, line in files.lines_back(f"{paths.TRANSCRIPT}/{name}", upto=upto):
            with contextlib.suppress(ValidationError):
                yield f"{day}:{start}", Message.model_validate(line, strict=False)
