"""The conversation: the transcript that never loses a message, and the working set beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from pydantic import ValidationError

from mimikit.errors import BadInput, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import History, Message

SOFT_CAP = 200


class Conversation:
    """Adds messages; the supervisor's alone. Readers use the functions below."""

    def __init__(self, files: Files) -> None:
        """Read the working set."""
        self._files = files
        history = files.load(paths.HISTORY, History) or History()
        self.messages: list[Message] = list(history.messages)
        self._days: dict[date, set[str]] = {}

    def add(self, messages: Iterable[Message]) -> list[Message]:
        """Append those not yet there, transcript first; gives the ones that were new.

        Crash: a message is in the transcript, or in both, or (its turn being unapplied) in neither;
        a replay of the turn finds it by its id.
        """
        fresh = list(messages)
        added: list[Message] = []
        for message in fresh:
            if message.id not in self._day(message.created_at.date()):
                self._append(message)
                added.append(message)
        have = {message.id for message in self.messages}
        missing = [m for m in {m.id: m for m in fresh}.values() if m.id not in have]
        if missing:
            messages = _capped(self.messages + missing)
            self._files.save(paths.HISTORY, History(messages=messages))
            self.messages = messages
        return added

    def has(self, message_id: str, day: date) -> bool:
        """Whether it was said: in the working set, or on that day or the one before."""
        if any(message.id == message_id for message in self.messages):
            return True
        return any(message_id in self._day(d) for d in (day, day - timedelta(days=1)))

    def _append(self, message: Message) -> None:
        day = message.created_at.date()
        try:
            self._files.append(paths.transcript(day), message.to_dict())
        except StorageError:
            # The line may be there all the same (a flush that failed): look before trying again.
            self._days.pop(day, None)
            raise
        self._day(day).add(message.id)

    def _day(self, day: date) -> set[str]:
        if day not in self._days:
            path = paths.transcript(day)
            self._days[day] = {str(line.get("id")) for _, line in self._files.lines(path)}
            for old in sorted(self._days.keys() - {day})[:-3]:
                del self._days[old]
        return self._days[day]


def _capped(messages: list[Message]) -> list[Message]:
    """Drop the oldest archived messages beyond the soft cap; an unarchived one is never dropped."""
    surplus = len(messages) - SOFT_CAP
    kept: list[Message] = []
    for message in messages:
        if surplus > 0 and message.archived is True:
            surplus -= 1
        else:
            kept.append(message)
    return kept


@dataclass(frozen=True, slots=True)
class Page:
    """Some messages, oldest first, and the cursor of those before them."""

    messages: list[Message]
    before: str | None


def page(files: Files, before: str | None = None, limit: int = 50) -> Page:
    """The messages before a cursor, or the newest.

    Raises:
        BadInput: the cursor is not one of ours.
    """
    upto_day, upto_offset = _parse_cursor(before)
    found: list[tuple[str, int, Message]] = []
    days = [name.removesuffix(".jsonl") for name in files.names(paths.TRANSCRIPT, suffix=".jsonl")]
    for day in sorted(days, reverse=True):
        if upto_day and day > upto_day:
            continue
        end = upto_offset if day == upto_day else None
        found = _of_day(files, day, end) + found
        if len(found) > limit:
            break
    more = len(found) > limit
    found = found[-limit:]
    cursor = f"{found[0][0]}:{found[0][1]}" if more and found else None
    return Page([message for _, _, message in found], cursor)


def _of_day(files: Files, day: str, end: int | None) -> list[tuple[str, int, Message]]:
    found: list[tuple[str, int, Message]] = []
    start = 0
    for offset, line in files.lines(f"{paths.TRANSCRIPT}/{day}.jsonl"):
        if end is not None and start >= end:
            break
        with contextlib.suppress(ValidationError):
            found.append((day, start, Message.model_validate(line, strict=False)))
        start = offset
    return found


def _parse_cursor(cursor: str | None) -> tuple[str, int | None]:
    if cursor is None:
        return "", None
    day, _, offset = cursor.partition(":")
    try:
        date.fromisoformat(day)
        return day, int(offset)
    except ValueError:
        raise BadInput(
            "before: expected a cursor from an earlier answer, got something else", field="before"
        ) from None
