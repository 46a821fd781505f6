"""The conversation with the inbox laid over it, and the open question."""

from __future__ import annotations

import threading
from datetime import date, datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from mimikit.conversation import history, inbox
from mimikit.errors import BadRecord, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import InboxItem, Instant, Message, Question, TurnAttempt, Usage
from mimikit.views.base import Render, View

_TAILS = (2**16, 2**20, 2**24)
_DAYS_SEARCHED = 3
_MAX_WAITING = 500
_MOST_COUNTS = 4_000
_RESULTS = paths.result_inbox_id("")


class MessageView(View):
    id: str
    role: Literal["user", "agent", "system"]
    text: str
    html: str | None
    """Rendered and sanitised by the server; null for what a user wrote, which is no markdown."""
    created_at: Instant
    turn_id: str | None
    in_reply_to: list[str]
    task_ids: list[str]
    usage: Usage | None
    duration_ms: int | None
    quote: str | None
    engine: str | None
    memory: int
    """How many hits of memory its turn was given."""


class MessagesPage(View):
    """Some messages, oldest first, and the cursor of those before them."""

    messages: list[MessageView]
    before: str | None


class InboxItemView(View):
    """What the user sent and no message shows yet."""

    id: str
    kind: Literal["user_input", "answer"]
    text: str
    created_at: Instant
    quote: str | None
    state: Literal["queued", "answering"]


class QuestionView(View):
    """The question that waits for an answer."""

    question_id: str
    question: str
    options: list[str] | None
    default: str | None
    created_at: Instant
    expires_at: Instant


class UsageView(View):
    """Tokens of the conversation since midnight UTC."""

    input_tokens: int = 0
    output_tokens: int = 0


class TurnHit(View):
    """A passage that a turn was given; of an earlier format its source alone is known."""

    source: str
    text: str | None = None
    line: int | None = None
    day: str | None = None
    kind: str | None = None


class TurnHitList(View):
    hits: list[TurnHit]


class ReplyReport(View):
    """What came of a message."""

    id: str
    messages: list[Message]
    task_ids: list[str]
    """Tasks that the reply started."""
    question: Question | None


class ConversationReader:
    def __init__(self, files: ReadOnlyFiles, render: Render) -> None:
        self._files = files
        self._render = render
        self._hits = TurnHits(files)

    def page(self, before: str | None, limit: int) -> MessagesPage:
        found = history.page(self._files, before, limit)
        return MessagesPage(messages=[self._view(m) for m in found.messages], before=found.before)

    def find(self, message_id: str) -> MessageView | None:
        """A message by its id, looked for from the newest on."""
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")[-_DAYS_SEARCHED:]
        for limit in _TAILS:
            for name in reversed(names):
                for line in reversed(self._files.tail(f"{paths.TRANSCRIPT}/{name}", limit)):
                    if line.get("id") == message_id:
                        return self._parsed(line)
        return None

    def _view(self, message: Message) -> MessageView:
        is_agent = message.role == "agent"
        return MessageView(
            id=message.id,
            role=message.role,
            text=message.text,
            html=None if message.role == "user" else self._render(message.text),
            created_at=message.created_at,
            turn_id=message.turn_id,
            in_reply_to=message.in_reply_to,
            task_ids=message.task_ids,
            usage=message.usage,
            duration_ms=message.duration_ms,
            quote=message.quote,
            engine=message.engine,
            memory=self._hits.count(message.turn_id) if is_agent else 0,
        )

    def _parsed(self, line: dict[str, Json]) -> MessageView | None:
        try:
            return self._view(Message.model_validate(line, strict=False))
        except ValidationError:
            return None


# ---- what is not in the conversation yet


def waiting(files: ReadOnlyFiles) -> list[InboxItemView]:
    """What the user sent and no message shows yet, oldest first."""
    frozen = being_answered(files)
    mine = [name for name in files.names(paths.INBOX) if not name.startswith(_RESULTS)]
    items = (files.peek(f"{paths.INBOX}/{name}", InboxItem) for name in mine[:_MAX_WAITING])
    found = [view for item in items if item and (view := _inbox_view(item, frozen))]
    return sorted(found, key=lambda view: (view.created_at, view.id))


def waiting_item(files: ReadOnlyFiles, item_id: str) -> tuple[bool, InboxItemView | None]:
    """Whether an inbox entry concerns the page, and the entry if it is still there."""
    if item_id.startswith(_RESULTS):
        return False, None
    item = files.peek(paths.inbox(item_id), InboxItem)
    return True, _inbox_view(item, being_answered(files)) if item else None


def being_answered(files: ReadOnlyFiles) -> frozenset[str]:
    """Inbox ids that a turn in progress has frozen."""
    frozen: set[str] = set()
    for name in files.names(paths.TURNS, suffix=".started"):
        mark = files.peek(f"{paths.TURNS}/{name}", TurnAttempt)
        if mark is not None:
            frozen.update(mark.inputs)
    return frozenset(frozen)


def _inbox_view(item: InboxItem, frozen: frozenset[str]) -> InboxItemView | None:
    if item.kind == "task_result":
        return None
    return InboxItemView(
        id=item.id,
        kind=item.kind,
        text=item.text,
        created_at=item.created_at,
        quote=item.quote,
        state="answering" if item.id in frozen else "queued",
    )


def open_question(files: Files) -> QuestionView | None:
    found = inbox.pending_question(files)
    return found and QuestionView(
        question_id=found.question_id,
        question=found.question,
        options=found.options,
        default=found.default,
        created_at=found.created_at,
        expires_at=found.expires_at,
    )


# ---- what is read once


class UsageCounter:
    """Tokens of the conversation today; reads each line of the transcript once."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._day = date.min
        self._offset = 0
        self._sum = UsageView()

    def today(self, now: datetime) -> UsageView:
        with self._lock:
            if now.date() != self._day:
                self._day, self._offset, self._sum = now.date(), 0, UsageView()
            for end, line in self._files.lines(paths.transcript(self._day), offset=self._offset):
                self._offset = end
                usage = line.get("usage")
                if isinstance(usage, dict):
                    self._sum = UsageView(
                        input_tokens=self._sum.input_tokens + _amount(usage, "inputTokens"),
                        output_tokens=self._sum.output_tokens + _amount(usage, "outputTokens"),
                    )
            return self._sum


def _amount(usage: dict[str, Json], key: str) -> int:
    amount = usage.get(key)
    return amount if isinstance(amount, int) else 0


class KnownIds:
    """Ids of messages of the last days, so that one sent twice is taken once."""

    def __init__(self, files: ReadOnlyFiles, days: int = 14) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._days = timedelta(days=days)
        self._read: dict[str, int] = {}
        self._ids: dict[str, set[str]] = {}

    def has(self, message_id: str, now: datetime) -> bool:
        """Whether the transcript holds a message with this id."""
        oldest = (now - self._days).date().isoformat()
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")
        with self._lock:
            for name in names:
                if name >= oldest:
                    self._learn(name)
            for name in [name for name in self._ids if name < oldest]:
                del self._ids[name], self._read[name]
            return any(message_id in ids for ids in self._ids.values())

    def _learn(self, name: str) -> None:
        path = f"{paths.TRANSCRIPT}/{name}"
        ids, offset = self._ids.setdefault(name, set()), self._read.get(name, 0)
        stat = self._files.stat(path)
        if stat is None or stat.size <= offset:
            return
        for end, line in self._files.lines(path, offset=offset):
            ids.add(str(line.get("id")))
            offset = end
        self._read[name] = offset


# ---- what a turn was given of memory


def turn_hits(files: ReadOnlyFiles, turn_id: str) -> list[TurnHit] | None:
    """What a turn was given of memory; None when nothing is known of that turn."""
    # As JSON, not as a record: its messages and tasks need not be read for this.
    for path in (paths.turn_done(turn_id), paths.turn_new(turn_id), paths.turn_done(turn_id)):
        try:
            data = files.read(path)
            record = parse_object(data) if data is not None else None
        except (BadRecord, StorageError):
            return None
        if record is not None:
            injected = record.get("injected")
            given = injected if isinstance(injected, list) else []
            return [hit for one in given if (hit := _turn_hit(one))]
    return None


def _turn_hit(given: Json) -> TurnHit | None:
    if isinstance(given, str):  # an earlier format kept the sources alone
        return TurnHit(source=given)
    source = given.get("source") if isinstance(given, dict) else None
    if not isinstance(source, str):
        return None
    try:
        return TurnHit.model_validate(given)
    except ValidationError:
        return TurnHit(source=source)


class TurnHits:
    """How many memory hits turns were given; a record is read once, as it never changes."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._known: dict[str, int] = {}

    def count(self, turn_id: str | None) -> int:
        """The number of hits of a turn; 0 when it is not known."""
        if turn_id is None or not is_id(turn_id):
            return 0
        with self._lock:
            if turn_id in self._known:
                return self._known[turn_id]
        hits = turn_hits(self._files, turn_id)
        if hits is None:
            return 0
        with self._lock:
            if len(self._known) >= _MOST_COUNTS:
                del self._known[next(iter(self._known))]
            self._known[turn_id] = len(hits)
        return len(hits)
