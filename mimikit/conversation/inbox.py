"""The inbox: one file for each unanswered input or unreported result, created exclusively.

Also the drop file of people and programs (`inbox.json`, claimed by rename, read once, removed) and
the one open question to the user.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice

from mimikit.conversation.history import HistoryStore
from mimikit.errors import BadInput, BadRecord, UnsafeFile
from mimikit.language import phrases
from mimikit.language.phrases import Language
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id, derived_id, is_id, new_id
from mimikit.protocol.json import Json, dump_line, parse_json, parse_object
from mimikit.protocol.models import InboxItem, Question, time_text
from mimikit.protocol.records import (
    MAX_RECORD_BYTES,
    check_name,
    decode,
    max_record_bytes,
    written_at,
)

SETTLE_S = 2.0
"""An invalid file may still be being written: it is quarantined after this long unchanged."""
MOST_AT_ONCE = 300
"""Files read per refresh."""
_MOST_COALESCED = timedelta(minutes=1)
_TAKING = ".taking.json"


def put(files: Files, item: InboxItem) -> bool:
    """Accept an item; False: it is there already. It is on disk when this returns."""
    return files.save_new(paths.inbox(item.id), item)


def read(files: Files, item_id: str) -> InboxItem | None:
    """One item, with defaults for what a hand-made one (`{"text": "hello"}`) leaves out.

    Raises:
        BadRecord: not an item. UnsafeFile: not a plain file.
    """
    path = paths.inbox(item_id)
    stat, data = files.stat(path), files.read(path, max_bytes=max_record_bytes(InboxItem))
    if stat is None or data is None:
        return None
    given = parse_object(data)
    if None not in map(given.get, ("id", "createdAt")):
        item = decode(data, InboxItem)
    else:
        known: dict[str, Json] = {"id": item_id, "createdAt": time_text(written_at(stat))}
        missing = {key: value for key, value in known.items() if given.get(key) is None}
        item = decode(dump_line(given | missing), InboxItem)
        if not item.text.strip():
            raise BadRecord("text: expected some text, got none", field="text")
    check_name(item, path)
    return item


def load(files: Files, item_id: str, now: datetime) -> InboxItem | None:
    """One item; None: it is gone, incomplete, or was quarantined."""
    try:
        return read(files, item_id)
    except (BadRecord, UnsafeFile) as error:
        path = paths.inbox(item_id)
        # What is not JSON (the error names no field) may be incomplete.
        is_half = isinstance(error, BadRecord) and error.field is None
        if not is_half or _is_settled(files.stat(path), now):
            files.try_quarantine(path, str(error))
        return None


def _is_settled(stat: FileStat | None, now: datetime) -> bool:
    """Whether a file is unchanged for a while; a time in the future counts as that."""
    return stat is None or not 0 <= now.timestamp() - stat.mtime_ns / 1e9 < SETTLE_S


def remove(files: Files, item_id: str) -> None:
    files.remove(paths.inbox(item_id))


def read_drop_file(files: Files, now: datetime) -> bool:
    """Read a dropped `inbox.json` into the inbox; returns whether there was one.

    Crash: the claimed file stays and is read again; ids derived from its name prevent duplicates.
    """
    if _is_ready(files, now):
        files.move(paths.DROPPED_INBOX, new_id("inbox", now) + _TAKING)
    claimed = [n for n in files.names(paths.ROOT) if n.endswith(_TAKING)]
    for name in claimed:
        try:
            for item in _items(files.read(name, max_bytes=MAX_RECORD_BYTES) or b"", name, now):
                put(files, item)
        except (BadInput, UnsafeFile) as error:
            files.try_quarantine(name, str(error))
        else:
            files.remove(name)
    return bool(claimed)


def _is_ready(files: Files, now: datetime) -> bool:
    """Whether there is a complete `inbox.json`; an incomplete one gets time."""
    path = paths.DROPPED_INBOX
    stat = files.stat(path)
    if stat is None:
        return False
    try:
        with contextlib.suppress(BadRecord):  # perhaps half written
            if isinstance(parse_json(files.read(path, max_bytes=MAX_RECORD_BYTES) or b""), list):
                return True
    except UnsafeFile as error:
        files.try_quarantine(path, str(error))
        return False
    return _is_settled(stat, now)


def _items(data: bytes, name: str, now: datetime) -> list[InboxItem]:
    value = parse_json(data)
    if not isinstance(value, list):
        raise BadRecord('expected a list of texts or inputs, such as ["hello"]')
    items: list[InboxItem] = []
    for number, entry in enumerate(value):
        given = {"text": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict):
            raise BadRecord(f"entry {number}: expected a text or an input", field=str(number))
        base: dict[str, Json] = {
            "id": derived_id("msg", name, str(number)),
            # A millisecond apart, to keep their order.
            "createdAt": time_text(now - timedelta(milliseconds=len(value) - number)),
            "kind": "user_input",
        }
        item = decode(dump_line(base | given), InboxItem)
        check_id(item.id)
        if not item.text.strip():
            raise BadRecord(f"entry {number}: text: expected some text, got none", field="text")
        items.append(item)
    return items


# ---- in memory


class InboxIndex:
    """The unanswered items, by age; of very many files some are not read yet."""

    def __init__(self, files: Files, conversation: HistoryStore, feed: ChangeFeed) -> None:
        self._files, self._conversation, self._feed = files, conversation, feed
        self._items: dict[str, InboxItem] = {}
        self._by_age: list[tuple[datetime, str]] = []
        self._unread: dict[str, None] = {}
        """Ids of files to be read later, in order."""
        self._locale = "en"
        self.is_watched = False
        """Whether `notify` is called for new files; else each refresh lists the folder."""
        self._guard = threading.Lock()
        self._new: set[str] | None = None
        """Ids of files since the last refresh; None: list the folder."""
        self._picked: dict[str, bool] = {}
        """Results of `pick`, by id; each item is checked once."""

    def __len__(self) -> int:
        return len(self._items)

    def notify(self, names: list[str] | None) -> None:
        """Note new files; None: anything may have changed. Called on a FolderWatch's thread."""
        new = [name.removesuffix(".json") for name in names or () if name.endswith(".json")]
        with self._guard:
            # A name that is no id is quarantined by listing the folder.
            if names is None or not all(map(is_id, new)):
                self._new = None
            elif self._new is not None:
                self._new.update(new)

    def refresh(self, now: datetime) -> bool:
        """Read new items; returns whether there are more to read."""
        with self._guard:
            new_ids, self._new = self._new, set[str]() if self.is_watched else None
        try:
            if new_ids is None:
                new_ids = {name.removesuffix(".json") for name in self._files.names(paths.INBOX)}
                for gone in self._items.keys() - new_ids:
                    self._drop(gone)
                self._unread.clear()
            new = sorted(new_ids - self._items.keys())
            self._unread = dict.fromkeys([*new, *self._unread])  # the newest files first
            for item_id in list(islice(self._unread, MOST_AT_ONCE)):
                self._read(item_id, now)
                del self._unread[item_id]
        except BaseException:
            self.notify(None)
            raise
        return bool(self._unread)

    def _read(self, item_id: str, now: datetime) -> None:
        if (item := load(self._files, item_id, now)) is None:
            if self._files.exists(paths.inbox(item_id)):  # incomplete
                self.notify([f"{item_id}.json"])
            return
        is_result = item.kind == "task_result"
        if not is_result and self._conversation.has(item_id, item.created_at.date()):
            remove(self._files, item_id)  # a repeated request of a client
            return
        self._keep(item)
        self._locale = item.locale or self._locale
        if not is_result:
            self._feed.publish("inbox", id=item_id)

    def _keep(self, item: InboxItem) -> None:
        if item.id not in self._items:
            self._items[item.id] = item
            insort(self._by_age, _age(item))

    def _drop(self, item_id: str) -> None:
        if (item := self._items.pop(item_id, None)) is not None:
            del self._by_age[bisect_left(self._by_age, _age(item))]
            self._picked.pop(item_id, None)

    def _oldest_first(self) -> Iterator[InboxItem]:
        return (self._items[id_] for _, id_ in self._by_age)

    def _newest_first(self) -> Iterator[InboxItem]:
        return (self._items[id_] for _, id_ in reversed(self._by_age))

    def waiting(
        self, *, for_teller: bool, has_model: bool = True, now: datetime | None = None
    ) -> Iterator[InboxItem]:
        """What the Teller answers, or what code reports without a model; oldest first.

        has_model: whether the Teller has one; without, code reports every result.
        now: leave out what is coalesced until later.

        A result counts once the end of its task is applied, as a replay would add it again.
        """
        for item in self._oldest_first():
            is_plain = item.kind == "task_result" and not has_model
            needs_teller = _needs_teller(item) and not is_plain
            is_later = now is not None and _is_coalesced(item, now)
            if needs_teller == for_teller and not is_later and _is_end_applied(self._files, item):
                yield item

    def pick(self, is_wanted: Callable[[str], bool]) -> tuple[list[InboxItem], bool]:
        """The user's inputs that match, oldest first; and whether there are more to check."""
        new = [item for item in self._oldest_first() if item.id not in self._picked]
        for item in new[:MOST_AT_ONCE]:
            is_plain = item.kind == "user_input" and not item.files
            self._picked[item.id] = is_plain and is_wanted(item.text)
        found = [item for item in self._oldest_first() if self._picked.get(item.id)]
        return found, len(new) > MOST_AT_ONCE

    @property
    def for_teller(self) -> int:
        """How many items wait for the Teller, including those not read yet."""
        return sum(map(_needs_teller, self._items.values())) + len(self._unread)

    @property
    def newest(self) -> str:
        """The id of the user's newest input, else ""."""
        inputs = (item.id for item in self._newest_first() if item.kind != "task_result")
        return next(inputs, "")

    def of(self, ids: Sequence[str]) -> list[InboxItem]:
        """These items, oldest first; none if one of them is gone."""
        for id_ in ids:
            with contextlib.suppress(BadRecord, UnsafeFile):
                if id_ not in self._items and (item := read(self._files, id_)) is not None:
                    self._keep(item)
        found = [self._items[id_] for id_ in ids if id_ in self._items]
        return sorted(found, key=_age) if len(found) == len(ids) else []

    def answers_to(self, question_id: str) -> list[InboxItem]:
        answers = (item for item in self._oldest_first() if item.kind == "answer")
        return [item for item in answers if item.question_id == question_id]

    def remove(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            remove(self._files, id_)
            self._drop(id_)

    def language(self, text: str | None = None) -> Language:
        """The language of a text, or of the user's newest input."""
        if text is None:
            waiting = (item.text for item in self._newest_first() if item.kind == "user_input")
            sent = (m.text for m in reversed(self._conversation.messages) if m.role == "user")
            text = next(chain(waiting, sent), "")
        return phrases.language(text, self._locale)


def _age(item: InboxItem) -> tuple[datetime, str]:
    return item.created_at, item.id


def _needs_teller(item: InboxItem) -> bool:
    return item.kind != "task_result" or item.notify == "teller"


def _is_coalesced(item: InboxItem, now: datetime) -> bool:
    """Whether a result is reported later; a clock jump never delays it further."""
    return item.not_before is not None and now < item.not_before <= now + _MOST_COALESCED


def _is_end_applied(files: Files, item: InboxItem) -> bool:
    if item.task_id is None or item.seat is None:
        return True
    left = [paths.running(item.seat, item.task_id)]
    left += [paths.result("planner", item.task_id)] if item.seat == "planner" else []
    return not any(map(files.exists, left))


# ---- the question


def pending_question(files: Files) -> Question | None:
    return files.load(paths.PENDING_QUESTION, Question)


def ask(files: Files, question: Question) -> bool:
    """Open a question; False when one is open already."""
    return files.save_new(paths.PENDING_QUESTION, question)


def close_question(files: Files, question_id: str) -> None:
    current = pending_question(files)
    if current is not None and current.question_id == question_id:
        files.remove(paths.PENDING_QUESTION)


def is_expired(question: Question, now: datetime) -> bool:
    return now >= question.expires_at
