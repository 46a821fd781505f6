"""The conversation with the inbox laid over it, and the open question."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from mimikit.conversation import history, inbox
from mimikit.conversation.turn_prompts import TurnPrompt
from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import (
    EndStatus,
    InboxItem,
    Instant,
    Message,
    Question,
    Role,
    TurnAttempt,
    Usage,
)
from mimikit.views.base import Render, View

_DAYS_SEARCHED = 3
_MAX_WAITING = 500
_MOST_COUNTS = 4_000
RESULTS = paths.result_inbox_id("")
"""How the names of results in the inbox begin: the page has no use for them."""


class MessageView(View):
    id: str
    role: Literal["user", "agent", "system"]
    text: str
    html: str | None
    """Rendered and sanitised by the server; null for a user's words, which are no markdown."""
    created_at: Instant
    turn_id: str | None
    in_reply_to: list[str]
    task_ids: list[str]
    usage: Usage | None
    duration_ms: int | None
    quote: str | None
    engine: str | None
    reminder: str | None
    """The words of the reminder that it tells, whose task `task_ids` names."""
    memory: int
    """How many hits of memory its turn was given."""

    trigger_id: str | None
    """The trigger whose runs it tells, and nothing else."""
    repeats: list[str]
    """Messages of that trigger before this one, which stands for them: their ids, oldest first."""
    since: Instant | None
    """When the oldest of them was said."""


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


class TurnHit(View):
    """A passage that a turn was given; of an earlier format its source alone is known."""

    source: str
    text: str | None = None
    line: int | None = None
    day: str | None = None
    kind: str | None = None


class TurnHitList(View):
    hits: list[TurnHit]


class ToolUseView(View):
    """One call of a tool; what it was given and replied is cut."""

    name: str
    ok: bool
    arguments: str
    reply: str


class TurnPromptView(View):
    """What a run was told, whole, and what it called."""

    id: str
    role: Role
    engine: str
    model: str | None
    attempt: int
    status: EndStatus
    at: Instant
    """When it ended."""
    instructions: str
    prompt: str
    tools: list[str]
    """Those it was offered."""
    calls: list[ToolUseView]
    hits: list[TurnHit]
    requests: int | None
    """How often a model was asked, where the engine counts it."""
    usage: Usage


class ReplyReport(View):
    """What came of a message."""

    id: str
    messages: list[Message]
    task_ids: list[str]
    """Tasks that the reply started."""
    question: Question | None


def in_lines(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages as they are shown: what tells runs of one trigger is one line, where the newest is.

    What the user says begins anew. The page does the same with what it hears later.
    """
    lines: list[list[Message]] = []
    open_lines: dict[str, list[Message]] = {}
    for message in messages:
        if message.role == "user":
            open_lines.clear()
        before: list[Message] = []
        if message.trigger_id is not None:
            before = open_lines.get(message.trigger_id, before)
            lines = [line for line in lines if line is not before]
            open_lines[message.trigger_id] = before
        before.append(message)
        lines.append(before)
    return lines


class ConversationReader:
    def __init__(self, files: ReadOnlyFiles, render: Render) -> None:
        self._files = files
        self._render = render
        self._hits = TurnHits(files)

    def page(self, before: str | None, limit: int) -> MessagesPage:
        found = history.page(self._files, before, limit)
        lines = [self._view(*said) for said in in_lines(found.messages)]
        return MessagesPage(messages=lines, before=found.before)

    def find(self, message_id: str) -> MessageView | None:
        """A message by its id, looked for from the newest on."""
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")[-_DAYS_SEARCHED:]
        for name in reversed(names):
            path = f"{paths.TRANSCRIPT}/{name}"
            for _, line in self._files.lines_back(path, holding=message_id.encode()):
                if line.get("id") == message_id:
                    with contextlib.suppress(ValidationError):
                        return self._view(Message.model_validate(line, strict=False))
                    return None
        return None

    def _view(self, *line: Message) -> MessageView:
        """One line of the conversation: the newest of these, which stands for the others."""
        *repeats, message = line
        is_plain = message.role == "user" or message.reminder is not None
        return MessageView.of(
            message,
            html=None if is_plain else self._render(message.text),
            memory=self._hits.count(message.turn_id) if message.role == "agent" else 0,
            repeats=[one.id for one in repeats],
            since=repeats[0].created_at if repeats else None,
        )


# ---- what is not in the conversation yet


def waiting(files: ReadOnlyFiles) -> list[InboxItemView]:
    """What the user sent and no message shows yet, oldest first."""
    frozen = _being_answered(files)
    names = [name for name in files.names(paths.INBOX) if not name.startswith(RESULTS)]
    ids = (name.removesuffix(".json") for name in names[:_MAX_WAITING])
    found = [view for id_ in ids if (view := _inbox_view(_item(files, id_), frozen))]
    return sorted(found, key=lambda view: (view.created_at, view.id))


def waiting_item(files: ReadOnlyFiles, item_id: str) -> InboxItemView | None:
    """An inbox entry if it is still there, and of the user's."""
    return _inbox_view(_item(files, item_id), _being_answered(files))


def _item(files: ReadOnlyFiles, item_id: str) -> InboxItem | None:
    with contextlib.suppress(BadRecord, UnsafeFile):
        return inbox.read(files, item_id)
    return None


def _being_answered(files: ReadOnlyFiles) -> frozenset[str]:
    """Inbox ids that a turn in progress has frozen."""
    names = files.names(paths.TURNS, suffix=".started")
    marks = (files.peek(f"{paths.TURNS}/{name}", TurnAttempt) for name in names)
    return frozenset(id_ for mark in marks if mark and not mark.stopped for id_ in mark.inputs)


def _inbox_view(item: InboxItem | None, frozen: frozenset[str]) -> InboxItemView | None:
    if item is None or item.kind == "task_result":
        return None
    return InboxItemView.of(item, state="answering" if item.id in frozen else "queued")


def open_question(files: Files) -> QuestionView | None:
    found = inbox.pending_question(files)
    return found and QuestionView.of(found)


# ---- what is read once


def mark_of(text: str, quote: Json) -> int:
    """What tells in this process whether the same is said again, at the cost of a number."""
    return hash((text, str(quote or "")))


class KnownIds:
    """What was said under which id in the last days, so that one sent twice is taken once."""

    def __init__(self, files: ReadOnlyFiles, days: int = 14) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._days = timedelta(days=days)
        self._read: dict[str, int] = {}
        self._ids: dict[str, dict[str, int]] = {}

    def mark(self, message_id: str, now: datetime) -> int | None:
        """The mark of what the transcript holds under this id; None: nothing."""
        oldest = (now - self._days).date().isoformat()
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")
        with self._lock:
            for name in [name for name in self._ids if name < oldest or name not in names]:
                del self._ids[name], self._read[name]
            for name in names:
                if name >= oldest:
                    self._learn(name)
            found = (ids.get(message_id) for ids in self._ids.values())
            return next((mark for mark in found if mark is not None), None)

    def _learn(self, name: str) -> None:
        """Read what a day's file has more than when it was read last."""
        path = f"{paths.TRANSCRIPT}/{name}"
        ids, offset = self._ids.setdefault(name, {}), self._read.setdefault(name, 0)
        stat = self._files.stat(path)
        if stat is not None and stat.size < offset:  # another file, as of a backup: read it all
            ids, offset = self._ids[name], self._read[name] = {}, 0
        if stat is not None and stat.size > offset:
            for end, line in self._files.lines(path, offset=offset):
                ids[str(line.get("id"))] = mark_of(str(line.get("text")), line.get("quote"))
                self._read[name] = end


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


def turn_prompt(files: Files, run_id: str) -> TurnPromptView | None:
    """What a turn, or a task's run, was told; None when that is not kept, or no longer."""
    found = files.peek(paths.turn_prompt(run_id), TurnPrompt) if is_id(run_id) else None
    return found and TurnPromptView.model_validate(found.to_dict())


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
