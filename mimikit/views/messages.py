"""The conversation, the inbox, the open question, and what turns were given."""

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
RESULTS = paths.result_inbox_id("")
"""Prefix of the names of results in the inbox, which the page does not show."""


class MessageView(View):
    id: str
    role: Literal["user", "agent", "system"]
    text: str
    html: str | None
    """Rendered and sanitised by the server; null for a user's message, which is plain text."""
    created_at: Instant
    turn_id: str | None
    in_reply_to: list[str]
    task_ids: list[str]
    usage: Usage | None
    duration_ms: int | None
    quote: str | None
    engine: str | None
    reminder: str | None
    """The text of the reminder it delivers; its task is in `task_ids`."""
    memory: int
    """Number of memory hits its turn was given."""

    trigger_id: str | None
    """The trigger, where it reports runs of one and nothing else."""
    repeats: list[str]
    """Ids of earlier messages of that trigger, which this one replaces; oldest first."""
    since: Instant | None
    """When the oldest of them was sent."""


class MessagesPage(View):
    """Some messages, oldest first, and the cursor of those before them."""

    messages: list[MessageView]
    before: str | None


class InboxItemView(View):
    """A message of the user's that is not in the conversation yet."""

    id: str
    kind: Literal["user_input", "answer"]
    text: str
    created_at: Instant
    quote: str | None
    state: Literal["queued", "answering"]


class QuestionView(View):
    question_id: str
    question: str
    options: list[str] | None
    default: str | None
    created_at: Instant
    expires_at: Instant


class TurnHit(View):
    """A passage that a turn was given; records of an earlier format have its source alone."""

    source: str
    text: str | None = None
    line: int | None = None
    day: str | None = None
    kind: str | None = None


class TurnHitList(View):
    hits: list[TurnHit]


class ToolUseView(View):
    """One tool call; long arguments and replies are cut."""

    name: str
    ok: bool
    arguments: str
    reply: str


class TurnPromptView(View):
    """The whole prompt of a run, and the tools it called."""

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
    """The tools it was offered."""
    calls: list[ToolUseView]
    hits: list[TurnHit]
    requests: int | None
    """Number of model requests, where the engine counts them."""
    usage: Usage


class ReplyReport(View):
    id: str
    messages: list[Message]
    task_ids: list[str]
    """Tasks that the reply started."""
    question: Question | None


def group_by_trigger(messages: Sequence[Message]) -> list[list[Message]]:
    """Group messages: those about runs of one trigger are one line, at the newest of them.

    A message of the user's starts new groups. The page does the same with later messages.
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

    def page(self, before: str | None, limit: int) -> MessagesPage:
        history_page = history.page(self._files, before, limit)
        lines = [self._view(*group) for group in group_by_trigger(history_page.messages)]
        return MessagesPage(messages=lines, before=history_page.before)

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
        """One line of the conversation: the newest message of the group."""
        *repeats, message = line
        is_plain = message.role == "user" or message.reminder is not None
        return MessageView.of(
            message,
            html=None if is_plain else self._render(message.text),
            memory=self._count_hits(message.turn_id) if message.role == "agent" else 0,
            repeats=[one.id for one in repeats],
            since=repeats[0].created_at if repeats else None,
        )

    def _count_hits(self, turn_id: str | None) -> int:
        hits = turn_hits(self._files, turn_id) if turn_id and is_id(turn_id) else None
        return len(hits or ())


# ---- the inbox


def waiting(files: ReadOnlyFiles) -> list[InboxItemView]:
    """Messages of the user's that are not in the conversation yet, oldest first."""
    frozen = _being_answered(files)
    names = [name for name in files.names(paths.INBOX) if not name.startswith(RESULTS)]
    ids = (name.removesuffix(".json") for name in names[:_MAX_WAITING])
    views = [view for id_ in ids if (view := _inbox_view(_item(files, id_), frozen))]
    return sorted(views, key=lambda view: (view.created_at, view.id))


def waiting_item(files: ReadOnlyFiles, item_id: str) -> InboxItemView | None:
    """One of them; None when it is gone or is a task's result."""
    return _inbox_view(_item(files, item_id), _being_answered(files))


def _item(files: ReadOnlyFiles, item_id: str) -> InboxItem | None:
    with contextlib.suppress(BadRecord, UnsafeFile):
        return inbox.read(files, item_id)
    return None


def _being_answered(files: ReadOnlyFiles) -> frozenset[str]:
    """Inbox ids that a turn in progress answers."""
    names = files.names(paths.TURNS, suffix=".started")
    marks = (files.peek(f"{paths.TURNS}/{name}", TurnAttempt) for name in names)
    return frozenset(id_ for mark in marks if mark and not mark.stopped for id_ in mark.inputs)


def _inbox_view(item: InboxItem | None, frozen: frozenset[str]) -> InboxItemView | None:
    if item is None or item.kind == "task_result":
        return None
    return InboxItemView.of(item, state="answering" if item.id in frozen else "queued")


def open_question(files: Files) -> QuestionView | None:
    question = inbox.pending_question(files)
    return question and QuestionView.of(question)


def message_hash(text: str, quote: Json) -> int:
    """Tells in this process whether a message is the same; takes little memory."""
    return hash((text, str(quote or "")))


class KnownIds:
    """The messages of the last days by id, so that one sent twice is taken once."""

    def __init__(self, files: ReadOnlyFiles, days: int = 14) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._days = timedelta(days=days)
        self._read: dict[str, int] = {}
        self._ids: dict[str, dict[str, int]] = {}

    def hash_of(self, message_id: str, now: datetime) -> int | None:
        """The hash of what the transcript holds under this id; None: nothing."""
        oldest = (now - self._days).date().isoformat()
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")
        with self._lock:
            for name in [name for name in self._ids if name < oldest or name not in names]:
                del self._ids[name], self._read[name]
            for name in names:
                if name >= oldest:
                    self._learn(name)
            marks = (ids.get(message_id) for ids in self._ids.values())
            return next((mark for mark in marks if mark is not None), None)

    def _learn(self, name: str) -> None:
        """Read what a day's file has more than when it was read last."""
        path = f"{paths.TRANSCRIPT}/{name}"
        ids, offset = self._ids.setdefault(name, {}), self._read.setdefault(name, 0)
        stat = self._files.stat(path)
        if stat is not None and stat.size < offset:  # another file, as of a backup: read it all
            ids, offset = self._ids[name], self._read[name] = {}, 0
        if stat is not None and stat.size > offset:
            for end, line in self._files.lines(path, offset=offset):
                ids[str(line.get("id"))] = message_hash(str(line.get("text")), line.get("quote"))
                self._read[name] = end


# ---- turns


def turn_hits(files: ReadOnlyFiles, turn_id: str) -> list[TurnHit] | None:
    """The memory hits a turn was given; None when the turn is unknown."""
    # Twice in done/: it may move there between the two looks. As JSON: the rest is not needed.
    for path in (paths.turn_done(turn_id), paths.turn_new(turn_id), paths.turn_done(turn_id)):
        try:
            data = files.read(path)
            record = parse_object(data) if data is not None else None
        except (BadRecord, StorageError):
            return None
        if record is not None:
            given = record.get("injected")
            return [
                hit for one in (given if isinstance(given, list) else ()) if (hit := _turn_hit(one))
            ]
    return None


def turn_prompt(files: Files, run_id: str) -> TurnPromptView | None:
    """The prompt of a turn or a task's run; None when it is not kept."""
    prompt = files.peek(paths.turn_prompt(run_id), TurnPrompt) if is_id(run_id) else None
    return prompt and TurnPromptView.model_validate(prompt.to_dict())


def _turn_hit(value: Json) -> TurnHit | None:
    if isinstance(value, str):  # an earlier format kept the sources alone
        return TurnHit(source=value)
    source = value.get("source") if isinstance(value, dict) else None
    if not isinstance(source, str):
        return None
    try:
        return TurnHit.model_validate(value)
    except ValidationError:
        return TurnHit(source=source)
