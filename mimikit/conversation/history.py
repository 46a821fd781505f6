"""The conversation: the transcript that never loses a message, and the working set beside it."""

from __future__ import annotations

import contextlib
import re
import sys
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from pydantic import ValidationError

from mimikit.clock import A_DAY, Clock
from mimikit.errors import BadInput, BadRecord, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json
from mimikit.protocol.models import END_OF_TIME, History, Message
from mimikit.protocol.records import id_in_line

SOFT_CAP = 200
_CURSOR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}:[0-9]{1,18}")
_MANY = 100
_RECORD_BYTES = 450
"""What a message takes in history.json, apart from its text."""


@dataclass(frozen=True, slots=True)
class HistoryCaps:
    """How much the working set may hold; only what is archived is ever taken out of it."""

    soft: int = SOFT_CAP
    hard: int = 300
    hard_bytes: int = 10 * 2**20


class HistoryStore:
    """Adds messages; the supervisor's alone. Readers use the functions below."""

    def __init__(self, files: Files, clock: Clock | None = None) -> None:
        """Without a `clock` what is said of a time to come is believed."""
        self._files, self.caps, self._clock = files, HistoryCaps(), clock
        history = files.load(paths.HISTORY, History) or History()
        self.messages: list[Message] = list(history.messages)
        self._days: dict[date, MessageIds] = {}
        """Of the days looked at last: the ids that stand there."""
        self._newest = _newest_day(files)

    def add(self, messages: Iterable[Message]) -> list[Message]:
        """Append those not yet there, transcript first; gives the ones that were new.

        Crash: a message is in the transcript, or in both, or (its turn being unapplied) in neither;
        a replay of the turn finds it by its id.
        """
        fresh, added = list(messages), list[Message]()
        for message in fresh:
            # They stand as they came, whatever the clock said; none begins a day to come.
            at = min(message.created_at, self._clock.now() + A_DAY if self._clock else END_OF_TIME)
            day = max(at.date(), self._newest)
            if any(self._stands(message.id, d) for d in {day, at.date()}):
                continue
            try:
                self._files.append(paths.transcript(day), message.to_dict())
            except StorageError:
                # The line may be there all the same (its flush failed): look before trying again.
                self._days.pop(day, None)
                raise
            self._day(day).add(message.id)
            self._newest = day
            added.append(message)
        have = {message.id for message in self.messages}
        missing = [m for m in {m.id: m for m in fresh}.values() if m.id not in have]
        if missing:
            self._save(self.messages + missing)
        return added

    def change(self, changes: Mapping[str, Mapping[str, object]]) -> int:
        """Change fields of messages in the working set, by their ids; gives how many it has.

        What became archived may leave the working set at once, so it must stand in memory by now.
        Crash: all are changed, or none.
        """
        count = sum(message.id in changes for message in self.messages)
        if count:
            changed = (m.model_copy(update=changes.get(m.id)) for m in self.messages)
            self._save(list(changed))
        return count

    def trim(self) -> bool:
        """Take out archived messages beyond the caps; gives whether there were any."""
        kept = capped(self.messages, self.caps)
        was_over = len(kept) < len(self.messages)
        if was_over:
            self._save(kept)
        return was_over

    def is_over(self) -> bool:
        """Whether more is left than the hard cap allows, as none of it is archived."""
        caps = self.caps
        return len(self.messages) > caps.hard or _size(self.messages) > caps.hard_bytes

    def _save(self, messages: list[Message]) -> None:
        kept = capped(messages, self.caps)
        try:
            self._files.save(paths.HISTORY, History(messages=kept))
        except BadRecord as error:  # of no one message, nor of its turn: that stays as it is
            raise StorageError(f"{paths.HISTORY}: {error}") from None
        self.messages = kept

    def has(self, message_id: str, day: date) -> bool:
        """Whether it was said: in the working set, or on that day or the one before."""
        is_recent = any(message.id == message_id for message in self.messages)
        days = {day, day - timedelta(days=1), max(day, self._newest)}
        return is_recent or any(self._stands(message_id, d) for d in days)

    def _stands(self, message_id: str, day: date) -> bool:
        path = paths.transcript(day)
        return message_id in self._day(day) and line_of(self._files, path, message_id) is not None

    def _day(self, day: date) -> MessageIds:
        if day not in self._days:
            self._days[day] = MessageIds()
            self._days[day].learn(self._files, paths.transcript(day))
            for old in sorted(self._days.keys() - {day})[:-3]:
                del self._days[old]
        return self._days[day]


class MessageIds:
    """The ids that stand in a transcript: a number for each, of a hundred thousand in a megabyte.

    What it has may be missing there all the same (another id has its number, a line is torn): who
    needs to know reads `line_of`. What it has not is not there.
    """

    def __init__(self) -> None:
        self._marks = array("q")
        self.upto = 0
        """The offset up to which it was read."""

    def __contains__(self, message_id: str) -> bool:
        mark = hash(message_id)
        at = bisect_left(self._marks, mark)
        return at < len(self._marks) and self._marks[at] == mark

    def add(self, message_id: str) -> None:
        insort(self._marks, hash(message_id))

    def learn(self, files: Files, path: str) -> None:
        """Read what the file has more by now."""
        fresh = array("q")
        for end, id_ in files.lines(path, offset=self.upto, read=id_in_line):
            fresh.append(hash(id_))
            self.upto = end
        if len(fresh) > _MANY:
            self._marks = array("q", sorted(chain(self._marks, fresh)))
        else:
            for mark in fresh:
                insort(self._marks, mark)


def line_of(files: Files, path: str, message_id: str) -> dict[str, Json] | None:
    """The newest line of a transcript that has this id."""
    found = files.lines_back(path, holding=message_id.encode())
    return next((line for _, line in found if line.get("id") == message_id), None)


def _newest_day(files: Files) -> date:
    """The day of the newest transcript."""
    names = files.names(paths.TRANSCRIPT, suffix=".jsonl")
    return date.fromisoformat(names[-1].removesuffix(".jsonl")) if names else date.min


def capped(messages: list[Message], caps: HistoryCaps) -> list[Message]:
    """Without the oldest archived messages beyond the caps; an unarchived one is never dropped."""
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
    """About how many bytes they take in history.json; rather more than less."""
    return sum(
        _RECORD_BYTES + len(message.text) * (1 if message.text.isascii() else 3)
        for message in messages
    )


class HistoryPage(NamedTuple):
    """Some messages, oldest first, and the cursors of those before and after them.

    A cursor is a place between two messages, so each leads both ways.
    """

    messages: list[Message]
    before: str | None
    after: str | None


def page(files: Files, before: str | None = None, limit: int = 50) -> HistoryPage:
    """The messages before a cursor, or the newest.

    Raises:
        BadInput: the cursor is not one of ours.
    """
    upto_day, upto_offset = ("", 0) if before is None else _place(before, "before")
    found = list(islice(_newest_first(files, upto_day, upto_offset), limit + 1))
    cursor = found[limit - 1][0] if len(found) > limit else None
    return HistoryPage([message for _, message in reversed(found[:limit])], cursor, before)


def page_after(files: Files, after: str, limit: int = 50) -> HistoryPage:
    """The messages after a cursor.

    Raises:
        BadInput: the cursor is not one of ours.
    """
    found = list(islice(_oldest_first(files, *_place(after, "after")), limit + 1))
    cursor = found[limit - 1][0] if len(found) > limit else None
    return HistoryPage([message for _, message in found[:limit]], after, cursor)


def page_around(
    files: Files, message_id: str, limit: int = 50, day: date | None = None
) -> HistoryPage | None:
    """A message with as many before it as after it; None when it was never said.

    It is looked for from `day` on, to both sides, else from the newest back: who knows about when
    it was said waits for no months of others.
    """
    needle = message_id.encode()
    for name in _nearest_first(files, day):
        for start, line in files.lines_back(f"{paths.TRANSCRIPT}/{name}", holding=needle):
            if line.get("id") == message_id:
                place = f"{name.removesuffix('.jsonl')}:{start}"
                older = page(files, place, limit // 2)
                newer = page_after(files, place, limit - limit // 2)
                return HistoryPage(older.messages + newer.messages, older.before, newer.after)
    return None


def _nearest_first(files: Files, day: date | None) -> list[str]:
    """The names of the transcripts: that of a day and those around it first, else the newest."""
    names = files.names(paths.TRANSCRIPT, suffix=".jsonl")
    upto = len(names) if day is None else bisect_right(names, f"{day}.jsonl")
    by_turns = zip_longest(names[:upto][::-1], names[upto:])
    return [*filter(None, chain.from_iterable(by_turns))]


def _place(cursor: str, field: str) -> tuple[str, int]:
    """The day and the offset in its transcript."""
    if not _CURSOR.fullmatch(cursor):
        message = f"{field}: expected a cursor from an earlier answer, got something else"
        raise BadInput(message, field=field)
    day, _, offset = cursor.partition(":")
    return day, int(offset)


def firings(files: Files, trigger_id: str, until: datetime, limit: int) -> list[Message]:
    """What was told of a trigger's runs alone, up to a time: the last ones, oldest first."""
    found: list[Message] = []
    newest = (until.date() + timedelta(days=1)).isoformat()
    names = [
        name for name in files.names(paths.TRANSCRIPT, suffix=".jsonl") if name <= newest + "z"
    ]
    for name in reversed(names):
        path = f"{paths.TRANSCRIPT}/{name}"
        for _, line in files.lines_back(path, holding=trigger_id.encode()):
            with contextlib.suppress(ValidationError):
                message = Message.model_validate(line, strict=False)
                if message.trigger_id == trigger_id and message.created_at <= until:
                    found.append(message)
            if len(found) == limit:
                return found[::-1]
    return found[::-1]


def _newest_first(files: Files, upto_day: str, upto_offset: int) -> Iterator[tuple[str, Message]]:
    """The messages before an offset in a day's transcript, or all, each with its own cursor."""
    for name in reversed(files.names(paths.TRANSCRIPT, suffix=".jsonl")):
        day = name.removesuffix(".jsonl")
        if upto_day and day > upto_day:
            continue
        upto = upto_offset if day == upto_day else sys.maxsize
        for start, line in files.lines_back(f"{paths.TRANSCRIPT}/{name}", upto=upto):
            with contextlib.suppress(ValidationError):
                yield f"{day}:{start}", Message.model_validate(line, strict=False)


def _oldest_first(files: Files, from_day: str, from_offset: int) -> Iterator[tuple[str, Message]]:
    """The messages from an offset in a day's transcript on, each with the cursor behind it."""
    for name in files.names(paths.TRANSCRIPT, suffix=".jsonl"):
        day = name.removesuffix(".jsonl")
        if day < from_day:
            continue
        offset = from_offset if day == from_day else 0
        for end, line in files.lines(f"{paths.TRANSCRIPT}/{name}", offset=offset):
            with contextlib.suppress(ValidationError):
                yield f"{day}:{end}", Message.model_validate(line, strict=False)


def every_message(files: Files) -> Iterator[Message]:
    """The whole transcript, oldest first; a line that a crash had written twice comes twice."""
    for name in files.names(paths.TRANSCRIPT, suffix=".jsonl"):
        for _, line in files.lines(f"{paths.TRANSCRIPT}/{name}"):
            with contextlib.suppress(ValidationError):
                yield Message.model_validate(line, strict=False)
