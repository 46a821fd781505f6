"""The inbox: one file for each thing the Teller has not answered, created exclusively.

Beside it the door for people and programs (`inbox.json`, claimed by rename, taken in once, removed)
and the one question that waits for the user.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

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
from mimikit.protocol.records import MAX_RECORD_BYTES, check_name, decode, most_bytes, written_at

SETTLE_S = 2.0
"""A file that is not whole may still be being written: it is judged after so long unchanged."""
MOST_HELD = {"said": 1000, "for a mind": 1000, "result": 1000, "by hand": 100}
"""So many of each kind are known at a time, however many are in the inbox: what came by page or
terminal, results that need a mind, other results, files made by hand. Where there are as many by
hand, what came by page or terminal goes before them."""
MOST_AT_ONCE = 300
"""Files that one look reads; the next goes on."""
_MOST_GATHERED = timedelta(minutes=1)
_TAKING = ".taking.json"
_RESULTS = paths.result_inbox_id("")
_BY_PROGRAM = re.compile(rf"msg-[0-9A-Za-z-]{{26,36}}|{_RESULTS}.*")
"""So those are named that page, terminal and consumer put in. A script may do so, too: whatever
they are named, only so many are known at a time."""


def put(files: Files, item: InboxItem) -> bool:
    """Accept an item; False when it is there already. Once this returns it is on disk."""
    return files.save_new(paths.inbox(item.id), item)


def read(files: Files, item_id: str) -> InboxItem | None:
    """One item, and of a hand-made one (`{"text": "hello"}`) what it leaves out filled in.

    Its id is the file's stem, its time the file's own, so that reading it again gives the same.

    Raises:
        BadRecord: it is none. UnsafeFile: no file of ours stands there.
    """
    path = paths.inbox(item_id)
    stat, data = files.stat(path), files.read(path, most=most_bytes(InboxItem))
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
    """One item; None when it is gone, is not whole yet, or was set aside with the reason."""
    try:
        return read(files, item_id)
    except (BadRecord, UnsafeFile) as error:
        path = paths.inbox(item_id)
        # What is no JSON (its complaint names no field) may be half written by a hand.
        is_half = isinstance(error, BadRecord) and error.field is None
        if not is_half or _is_settled(files.stat(path), now):
            files.set_aside(path, str(error))
        return None


def _is_settled(stat: FileStat | None, now: datetime) -> bool:
    """Whether a file was left alone for a while; a time to come says nothing."""
    return stat is None or not 0 <= now.timestamp() - stat.mtime_ns / 1e9 < SETTLE_S


def take_out(files: Files, item_id: str) -> None:
    """Remove an item whose turn is committed and applied."""
    files.remove(paths.inbox(item_id))


def take_in_dropped(files: Files, now: datetime) -> bool:
    """Take a dropped `inbox.json` in; gives whether there was one.

    Crash: the claimed file stays, and its entries' ids follow from its name, so taking it in again
    adds none twice.
    """
    if _is_ready(files, now):
        files.move(paths.DROPPED_INBOX, new_id("inbox", now) + _TAKING)
    claimed = [n for n in files.names(paths.ROOT) if n.endswith(_TAKING)]
    for name in claimed:
        try:
            for item in _items(files.read(name, most=MAX_RECORD_BYTES) or b"", name, now):
                put(files, item)
        except (BadInput, UnsafeFile) as error:
            files.set_aside(name, str(error))
        else:
            files.remove(name)
    return bool(claimed)


def _is_ready(files: Files, now: datetime) -> bool:
    """Whether an `inbox.json` lies there, whole; what is no list is given time to be one."""
    path = paths.DROPPED_INBOX
    stat = files.stat(path)
    if stat is None:
        return False
    try:
        with contextlib.suppress(BadRecord):  # perhaps half written
            if isinstance(parse_json(files.read(path, most=MAX_RECORD_BYTES) or b""), list):
                return True
    except UnsafeFile as error:
        files.set_aside(path, str(error))
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
            # A millisecond apart: they are answered in the order they were written in.
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
    """What is unanswered; of very many files only some: there are more when these are told."""

    def __init__(self, files: Files, conversation: HistoryStore, feed: ChangeFeed) -> None:
        """`feed` tells the page of new arrivals."""
        self._files, self._conversation, self._feed = files, conversation, feed
        self._items: dict[str, InboxItem] = {}
        self._locale = "en"
        """Of whoever said one last."""
        self.is_told = False
        """Whether somebody tells what comes: then the folder is not looked at each time."""
        self._guard = threading.Lock()
        self._heard: set[str] | None = None
        """Ids of what came since the last look; None: the folder is to be looked at."""
        self._left: dict[str, list[str]] = {kind: [] for kind in MOST_HELD}
        """Heaps of what there was no room for, each kind's own: names alone."""
        self._kinds: Counter[str] = Counter()
        """How many of each are known."""
        self._judged: dict[str, bool] = {}
        """By id: whether what the user said is what is picked out; each is judged once."""

    def __len__(self) -> int:
        return len(self._items)

    def hear(self, names: list[str] | None) -> None:
        """These have come, or (None) anything may have; what a FolderWatch calls, on its thread."""
        told = [name.removesuffix(".json") for name in names or () if name.endswith(".json")]
        with self._guard:
            # What has no id for a name is found, and set aside, by a look at the whole folder.
            if names is None or not all(map(is_id, told)):
                self._heard = None
            elif self._heard is not None:
                self._heard.update(told)

    def refresh(self, now: datetime) -> bool:
        """Know what is there now: by what was heard since, where that is told, else by a look.

        Gives whether more is to be read, for which there was no time.
        """
        with self._guard:
            heard, self._heard = self._heard, set[str]() if self.is_told else None
        try:
            if heard is None:
                heard = {name.removesuffix(".json") for name in self._files.names(paths.INBOX)}
                for gone in self._items.keys() - heard:
                    self._drop(gone)
                for heap in self._left.values():
                    heap.clear()
            return self._take_up(heard - self._items.keys(), now)
        except BaseException:
            self.hear(None)
            raise

    def _take_up(self, fresh: set[str], now: datetime) -> bool:
        for new in fresh:
            self._left[_kind_by_name(new)].append(new)
        left, most = MOST_AT_ONCE, MOST_HELD
        for kind, heap in self._left.items():
            heapify(heap)
            while heap and left and self._kinds[kind] < most[kind]:
                self._read_in(heappop(heap), now)
                left -= 1
        return not left

    def _load(self, new: str, now: datetime) -> InboxItem | None:
        """One that is to be known, if it is a new one."""
        item = load(self._files, new, now)
        if item is None:
            if self._files.exists(paths.inbox(new)):  # not whole yet
                self.hear([f"{new}.json"])
            return None
        is_result = item.kind == "task_result"
        if not is_result and self._conversation.has(new, item.created_at.date()):
            take_out(self._files, new)  # repeated by a client that had not heard of the first
            return None
        return item

    def _read_in(self, new: str, now: datetime) -> None:
        # It may be heard of twice.
        if new in self._items or (item := self._load(new, now)) is None:
            return
        if self._kinds[kind := _kind(item)] >= MOST_HELD[kind]:  # its name did not tell
            heappush(self._left[kind], new)
            return
        self._keep(item)
        self._locale = item.locale or self._locale
        if item.kind != "task_result":
            self._feed.tell("inbox", id=new)

    def _keep(self, item: InboxItem) -> None:
        self._items[item.id] = item
        self._kinds[_kind(item)] += 1

    def _drop(self, item_id: str) -> None:
        if (item := self._items.pop(item_id, None)) is not None:
            self._kinds[_kind(item)] -= 1

    def waiting(
        self, *, for_teller: bool, has_mind: bool = True, now: datetime | None = None
    ) -> Iterator[InboxItem]:
        """What the Teller is to answer, or what code tells without it; oldest first.

        has_mind: whether the Teller has one; without, code tells every result.
        now: what is gathered until later is left out.

        A result counts once its task's end is complete: repeated, that would enter it anew.
        """
        is_heap = self._kinds["by hand"] >= MOST_HELD["by hand"]
        items = sorted(self._items.values(), key=_age)
        for item in sorted(items, key=lambda item: is_heap and _kind(item) == "by hand"):
            is_plain = item.kind == "task_result" and not has_mind
            needs_mind = _needs_mind(item) and not is_plain
            is_gathered = now is not None and _is_gathered(item, now)
            if needs_mind == for_teller and not is_gathered and _is_over(self._files, item):
                yield item

    def pick(self, is_wanted: Callable[[str], bool], now: datetime) -> tuple[list[InboxItem], bool]:
        """What the user said that is wanted by its text, oldest first; also of what is not held.

        And whether more is to be read, for which there was no time.
        """
        left = [id_ for kind in ("said", "by hand") for id_ in self._left[kind]]
        there = self._items.keys() | set(left)
        self._judged = {id_: wanted for id_, wanted in self._judged.items() if id_ in there}
        fresh = [id_ for id_ in there if id_ not in self._judged]
        for id_ in fresh[:MOST_AT_ONCE]:
            if (item := self._items.get(id_) or self._load(id_, now)) is None:
                continue  # not whole yet
            self._judged[id_] = wanted = item.kind == "user_input" and is_wanted(item.text)
            if wanted and id_ not in self._items:
                self._keep(item)
        found = [it for id_, it in self._items.items() if self._judged.get(id_)]
        return sorted(found, key=_age), len(fresh) > MOST_AT_ONCE

    @property
    def for_mind(self) -> int:
        """How many messages and results there are for the Teller, also of what is not read yet."""
        kinds = ("said", "for a mind", "by hand")
        return sum(self._kinds[kind] + len(self._left.get(kind, ())) for kind in kinds)

    @property
    def newest(self) -> str:
        """The id of what a user said last, of what is known; "" where nothing is."""
        said = (item for item in self._items.values() if item.kind != "task_result")
        newest = max(said, key=_age, default=None)
        return newest.id if newest else ""

    def of(self, ids: Sequence[str]) -> list[InboxItem]:
        """These, oldest first; none when one of them is gone."""
        for id_ in ids:
            with contextlib.suppress(BadRecord, UnsafeFile):
                if id_ not in self._items and (item := read(self._files, id_)) is not None:
                    self._keep(item)
        found = [self._items[id_] for id_ in ids if id_ in self._items]
        return sorted(found, key=_age) if len(found) == len(ids) else []

    def answers_to(self, question_id: str) -> list[InboxItem]:
        """Oldest first."""
        found = [item for item in self._items.values() if item.question_id == question_id]
        return sorted((item for item in found if item.kind == "answer"), key=_age)

    def take_out(self, ids: Iterable[str]) -> None:
        """These are answered."""
        for id_ in ids:
            take_out(self._files, id_)
            self._drop(id_)

    def language(self, text: str | None = None) -> Language:
        """The language of a text, or of what the user said last."""
        if text is None:
            waiting = [item for item in self._items.values() if item.kind == "user_input"]
            said = (m.text for m in reversed(self._conversation.messages) if m.role == "user")
            text = max(waiting, key=_age).text if waiting else next(said, "")
        return phrases.language(text, self._locale)


def _kind_by_name(item_id: str) -> str:
    if not _BY_PROGRAM.fullmatch(item_id):
        return "by hand"
    return "result" if item_id.startswith(_RESULTS) else "said"


def _kind(item: InboxItem) -> str:
    """What it is one of in MOST_HELD."""
    if item.kind == "task_result":
        return "for a mind" if _needs_mind(item) else "result"
    return "said" if _kind_by_name(item.id) == "said" else "by hand"


def _age(item: InboxItem) -> tuple[datetime, str]:
    return item.created_at, item.id


def _needs_mind(item: InboxItem) -> bool:
    return item.kind != "task_result" or item.notify == "teller"


def _is_gathered(item: InboxItem, now: datetime) -> bool:
    """Whether a result is told later; never much later, also where the clock was set back."""
    return item.not_before is not None and now < item.not_before <= now + _MOST_GATHERED


def _is_over(files: Files, item: InboxItem) -> bool:
    if item.task_id is None or item.seat is None:
        return True
    left = [paths.running(item.seat, item.task_id)]
    left += [paths.result("planner", item.task_id)] if item.seat == "planner" else []
    return not any(map(files.exists, left))


# ---- the question


def pending_question(files: Files) -> Question | None:
    return files.load(paths.PENDING_QUESTION, Question)


def ask(files: Files, question: Question) -> bool:
    """Have a question wait; False when one does already."""
    return files.save_new(paths.PENDING_QUESTION, question)


def close_question(files: Files, question_id: str) -> None:
    current = pending_question(files)
    if current is not None and current.question_id == question_id:
        files.remove(paths.PENDING_QUESTION)


def is_expired(question: Question, now: datetime) -> bool:
    return now >= question.expires_at
