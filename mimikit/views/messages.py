"""The conversation, the inbox, the open question, and the prompts of turns."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import date
from typing import Literal

from pydantic import Field, ValidationError

from mimikit.conversation import history, inbox
from mimikit.conversation.turn_prompts import TurnPrompt
from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json
from mimikit.protocol.models import (
    FileRef,
    Hit,
    Instant,
    Message,
    Question,
    TurnRecord,
    Usage,
)
from mimikit.protocol.runtime import TurnAttempt
from mimikit.views.base import Render, View
from mimikit.views.job_views import JobView

_SEARCHED_DAYS = 14
_MAX_WAITING = 500
RESULTS = paths.result_inbox_id("")
"""The prefix of task results in the inbox, which the page does not show."""


class MessageView(View):
    id: str
    role: Literal["user", "agent", "system"]
    text: str
    html: str | None
    """Sanitised HTML; null for a user's message, which is plain text."""
    created_at: Instant
    turn_id: str | None
    in_reply_to: list[str]
    task_ids: list[str]
    usage: Usage | None
    duration_ms: int | None
    quote: str | None
    files: list[FileRef]
    engine: str | None
    failed: bool
    stopped: bool
    error: str | None
    question_id: str | None
    """The question that it asks, or answers."""
    options: list[str]
    reminder: str | None
    """The text of the reminder that it delivers."""
    memory: int
    """Number of memory hits in its prompt."""
    trigger_id: str | None
    """The trigger that it is only about."""
    repeats: list[str]
    """Ids of earlier messages of that trigger, which this one replaces; oldest first."""
    since: Instant | None
    """When the oldest of them was sent."""


class MessagesPage(View):
    """Messages, oldest first, the jobs they asked for, and the cursor of the page before."""

    messages: list[MessageView]
    jobs: list[JobView] = Field(default_factory=list[JobView])
    before: str | None


class InboxItemView(View):
    """A user's message that is not in the conversation yet."""

    id: str
    kind: Literal["user_input", "answer"]
    text: str
    created_at: Instant
    quote: str | None
    files: list[FileRef]
    state: Literal["queued", "answering"]


class QuestionView(View):
    question_id: str
    question: str
    options: list[str] | None
    default: str | None
    created_at: Instant
    expires_at: Instant


class TurnHit(View):
    """A passage in a turn's prompt; old records have only the source."""

    source: str
    text: str | None = None
    line: int | None = None
    day: date | None = None
    kind: str | None = None


class TurnReport(View):
    hits: list[TurnHit]
    """The passages of memory that it was given."""
    run: TurnPrompt | None
    """Null where no model answered, and beyond the last 200 runs."""
    cost: dict[str, float]


class ReplyReport(View):
    id: str
    messages: list[Message]
    task_ids: list[str]
    question: Question | None


def group_by_trigger(messages: Sequence[Message]) -> list[list[Message]]:
    """Group the messages about one trigger, at the place of the newest of them.

    A user's message starts new groups of what a model wrote. The page groups later messages in
    the same way.
    """
    groups: list[list[Message]] = []
    open_groups: dict[str, list[Message]] = {}
    for message in messages:
        if message.role == "user":
            open_groups = {k: it for k, it in open_groups.items() if it[-1].role == "system"}
        group: list[Message] = []
        if message.trigger_id is not None:
            group = open_groups.setdefault(message.trigger_id, group)
            groups = [other for other in groups if other is not group]
        group.append(message)
        groups.append(group)
    return groups


class ConversationReader:
    def __init__(self, files: ReadOnlyFiles, render: Render) -> None:
        self._files = files
        self._render = render

    def page(self, before: str | None, limit: int) -> MessagesPage:
        history_page = history.page(self._files, before, limit, triggers_once=True)
        views = [self._view(*group) for group in group_by_trigger(history_page.messages)]
        return MessagesPage(messages=views, before=history_page.before)

    def find(self, message_id: str) -> MessageView | None:
        line = sent_message(self._files, message_id)
        with contextlib.suppress(ValidationError):
            return self._view(Message.model_validate(line, strict=False)) if line else None
        return None

    def _view(self, *group: Message) -> MessageView:
        *repeats, message = group
        is_plain = message.role == "user" or message.reminder is not None
        turn_id = message.turn_id if message.role == "agent" else None
        hits = turn_hits(self._files, turn_id) if turn_id else None
        return MessageView.of(
            message,
            html=None if is_plain else self._render(message.text),
            memory=len(hits or ()),
            repeats=[one.id for one in repeats],
            since=repeats[0].created_at if repeats else None,
        )


# ---- the inbox


def waiting(files: ReadOnlyFiles) -> list[InboxItemView]:
    """User's messages that are not in the conversation yet, oldest first."""
    answering = _being_answered(files)
    names = [name for name in files.names(paths.INBOX) if not name.startswith(RESULTS)]
    ids = (name.removesuffix(".json") for name in names[:_MAX_WAITING])
    views = [view for id_ in ids if (view := waiting_item(files, id_, answering))]
    return sorted(views, key=lambda view: (view.created_at, view.id))


def waiting_item(
    files: ReadOnlyFiles, item_id: str, answering: frozenset[str] | None = None
) -> InboxItemView | None:
    """None when it has left the inbox, and for a task's result."""
    answering = _being_answered(files) if answering is None else answering
    with contextlib.suppress(BadRecord, UnsafeFile):
        item = inbox.read(files, item_id)
        if item is not None and item.kind != "task_result":
            return InboxItemView.of(item, state="answering" if item.id in answering else "queued")
    return None


def _being_answered(files: ReadOnlyFiles) -> frozenset[str]:
    names = files.names(paths.TURNS, suffix=".started")
    marks = (files.peek(f"{paths.TURNS}/{name}", TurnAttempt) for name in names)
    return frozenset(id_ for mark in marks if mark and not mark.stopped for id_ in mark.inputs)


def open_question(files: Files) -> QuestionView | None:
    question = inbox.pending_question(files)
    return question and QuestionView.of(question)


def sent_message(files: ReadOnlyFiles, message_id: str) -> dict[str, Json] | None:
    """The transcript's line of a message of the last 14 days that have any."""
    for name in files.names(paths.TRANSCRIPT, suffix=".jsonl")[: -_SEARCHED_DAYS - 1 : -1]:
        path = f"{paths.TRANSCRIPT}/{name}"
        for _, line in files.lines_back(path, holding=message_id.encode()):
            if line.get("id") == message_id:
                return line
    return None


# ---- turns


def turn_hits(files: ReadOnlyFiles, turn_id: str) -> list[TurnHit] | None:
    """The memory hits in a turn's prompt; None for an unknown turn."""
    # done/ is read twice, as the record may move there meanwhile.
    for path in (paths.turn_done(turn_id), paths.turn_new(turn_id), paths.turn_done(turn_id)):
        with contextlib.suppress(StorageError):
            if record := files.peek(path, TurnRecord):
                return [
                    TurnHit.of(hit) if isinstance(hit, Hit) else TurnHit(source=hit)
                    for hit in record.injected
                ]
    return None


def turn_prompt(files: Files, run_id: str) -> TurnPrompt | None:
    return files.peek(paths.turn_prompt(run_id), TurnPrompt) if is_id(run_id) else None
