"""The conversation with the inbox laid over it, and the open question."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from mimikit.conversation import history, inbox
from mimikit.errors import BadRecord, UnsafeFile
from mimikit.language.reasons import reason_words
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.json import Json
from mimikit.protocol.models import (
    FileRef,
    InboxItem,
    Instant,
    Message,
    Question,
    TurnAttempt,
    Usage,
)
from mimikit.views.base import Render, Title, View, Words
from mimikit.views.jobs import JobView
from mimikit.views.turns import TurnHits

_DAYS_SEARCHED = 3
_MOST_FOLDED = 1000
_LOOKED_BACK = 50
_MAX_WAITING = 500
RESULTS = paths.result_inbox_id("")
"""How the names of results in the inbox begin: the page has no use for them."""


class AnsweredView(View):
    """A question with its answer; without one it was let go."""

    question_id: str
    question: str
    options: list[str]
    default: str | None
    answer: str | None
    by_user: bool
    """Else the time was over, and the default was taken."""


class SentFileView(View):
    """A file that the user sent, as its message names it."""

    id: str
    name: Title
    media_type: str
    size: int
    width: int | None
    height: int | None
    kept: bool
    """It can still be had; what no message needs any more goes after its time."""

    @classmethod
    def all_of(cls, files: ReadOnlyFiles, refs: Sequence[FileRef]) -> list[SentFileView]:
        return [cls.of(ref, kept=files.exists(paths.file_record(ref.id))) for ref in refs]


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
    edits: str | None
    """The earlier message that this one says anew."""
    engine: str | None
    reminder: str | None
    """The words of the reminder that it tells, whose task `task_ids` names."""
    job_id: str | None
    """The job that it speaks of, of which the first such message shows the card."""
    files: list[SentFileView]
    """What the user sent with it."""
    memory: int
    """How many hits of memory its turn was given."""
    ended: Literal["stopped", "failed"] | None
    """How its turn ended, of which no whole reply came: of the user's message, of what had been
    said of the reply, and of the system's line, for which the user's message stands."""
    why: Words | None
    """Of a user's message: why it could not be answered."""
    retry_of: str | None
    """Of a user's message: the one that it has answered again."""
    question_id: str | None
    """The question that it asks; what answers that shows it as well."""
    answered: AnsweredView | None

    trigger_id: str | None
    """The trigger whose runs it tells, and nothing else."""
    repeats: list[str]
    """Messages of that trigger before this one, which stands for them: their ids, oldest first."""
    since: Instant | None
    """When the oldest of them was said."""


class MessagesPage(View):
    """Some messages, oldest first, and the cursors of those before and after them."""

    messages: list[MessageView]
    before: str | None
    after: str | None
    jobs: list[JobView]
    """Those that they speak of."""


class FiringPage(View):
    """What runs of a trigger told, each by itself, oldest first."""

    messages: list[MessageView]
    before: Instant | None
    """When the one before these was told; null at the first."""


class InboxItemView(View):
    """What the user sent and no message shows yet."""

    id: str
    kind: Literal["user_input", "answer"]
    text: str
    created_at: Instant
    quote: str | None
    edits: str | None
    retry_of: str | None
    files: list[SentFileView]
    state: Literal["queued", "answering"]


class QuestionView(View):
    """The question that waits for an answer."""

    question_id: str
    question: str
    options: list[str] | None
    default: str | None
    created_at: Instant
    expires_at: Instant


class ReplyReport(View):
    """What came of a message."""

    id: str
    messages: list[Message]
    task_ids: list[str]
    """Tasks that the reply started."""
    question: Question | None


def in_lines(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages as they are shown: what tells runs of one trigger is one line, where the newest is.

    What the user says begins anew. The page does the same where its pages meet.
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
    def __init__(
        self, files: ReadOnlyFiles, render: Render, job_id: Callable[[str], str | None]
    ) -> None:
        """`job_id` gives the job of a task."""
        self._files = files
        self._render = render
        self._job_id = job_id
        self._hits = TurnHits(files)

    def page(self, before: str | None, limit: int) -> MessagesPage:
        """So many lines, where they can be had of the last MOST_FOLDED messages."""
        found = history.page(self._files, before, limit)
        while found.before and len(in_lines(found.messages)) < limit:
            left = _MOST_FOLDED - len(found.messages)
            if left <= 0:
                break
            older = history.page(self._files, found.before, min(left, 4 * limit))
            both = older.messages + found.messages
            found = history.HistoryPage(both, older.before, found.after)
        return self._shown(found)

    def page_after(self, after: str, limit: int) -> MessagesPage:
        return self._shown(history.page_after(self._files, after, limit))

    def page_around(self, message_id: str, limit: int, day: date | None) -> MessagesPage | None:
        """A message amid others; None when it was never said. `day`: about when, if known."""
        found = history.page_around(self._files, message_id, limit, day)
        return found and self._shown(found)

    def firings(self, trigger_id: str, until: datetime, limit: int) -> FiringPage:
        """What runs of a trigger told, up to a time."""
        found = history.firings(self._files, trigger_id, until, limit + 1)
        before = found[0].created_at if len(found) > limit else None
        return FiringPage(messages=[self._view(one) for one in found[-limit:]], before=before)

    def _shown(self, found: history.HistoryPage) -> MessagesPage:
        lines = [self._view(*said) for said in in_lines(found.messages)]
        return MessagesPage(messages=lines, before=found.before, after=found.after, jobs=[])

    def find(self, message_id: str) -> MessageView | None:
        """A message by its id, of the last days; the line that it ends, if it ends one."""
        message = said(self._files, message_id, _DAYS_SEARCHED)
        if message is None or message.trigger_id is None:
            return message and self._view(message)
        newest = history.page(self._files, None, _LOOKED_BACK).messages
        ends = (line for line in in_lines(newest) if line[-1].id == message_id)
        return self._view(*next(ends, [message]))

    def _view(self, *line: Message) -> MessageView:
        """One line of the conversation: the newest of these, which stands for the others."""
        *repeats, message = line
        is_plain = message.role == "user" or message.reminder is not None
        return MessageView.of(
            message,
            html=None if is_plain else self._render(message.text),
            job_id=self._job_of(message),
            files=SentFileView.all_of(self._files, message.files),
            memory=self._hits.count(message.turn_id) if message.role == "agent" else 0,
            repeats=[one.id for one in repeats],
            since=repeats[0].created_at if repeats else None,
            answered=message.answered and AnsweredView.of(message.answered),
            why=_why(message),
        )

    def _job_of(self, message: Message) -> str | None:
        """The job of the task that it names last; a reminder is its own, and no work."""
        named = [] if message.reminder is not None else message.task_ids[::-1]
        found = next((job_id for id_ in named if (job_id := self._job_id(id_))), None)
        return found or message.trigger_id  # its runs may be gone, with what they were


def _why(message: Message) -> dict[str, str] | None:
    """Why it was not answered; an earlier version kept what code said in English alone."""
    both = message.why
    if both is None or both.get("en") != both.get("zh"):
        return both
    return reason_words(both.get("en")) or both


def said(files: ReadOnlyFiles, message_id: str, days: int) -> Message | None:
    """A message by its id, looked for from the newest on, in so many of the last transcripts."""
    for name in reversed(files.names(paths.TRANSCRIPT, suffix=".jsonl")[-days:]):
        line = history.line_of(files, f"{paths.TRANSCRIPT}/{name}", message_id)
        if line is not None:
            with contextlib.suppress(ValidationError):
                return Message.model_validate(line, strict=False)
            return None
    return None


# ---- what is not in the conversation yet


def waiting(files: ReadOnlyFiles) -> list[InboxItemView]:
    """What the user sent and no message shows yet, oldest first."""
    frozen = _being_answered(files)
    names = [name for name in files.names(paths.INBOX) if not name.startswith(RESULTS)]
    ids = (name.removesuffix(".json") for name in names[:_MAX_WAITING])
    found = [view for id_ in ids if (view := _inbox_view(files, id_, frozen))]
    return sorted(found, key=lambda view: (view.created_at, view.id))


def waiting_item(files: ReadOnlyFiles, item_id: str) -> InboxItemView | None:
    """An inbox entry if it is still there, and of the user's."""
    return _inbox_view(files, item_id, _being_answered(files))


def _item(files: ReadOnlyFiles, item_id: str) -> InboxItem | None:
    with contextlib.suppress(BadRecord, UnsafeFile):
        return inbox.read(files, item_id)
    return None


def _being_answered(files: ReadOnlyFiles) -> frozenset[str]:
    """Inbox ids that a turn in progress has frozen."""
    names = files.names(paths.TURNS, suffix=".started")
    marks = (files.peek(f"{paths.TURNS}/{name}", TurnAttempt) for name in names)
    return frozenset(id_ for mark in marks if mark and not mark.stopped for id_ in mark.inputs)


def _inbox_view(files: ReadOnlyFiles, item_id: str, frozen: frozenset[str]) -> InboxItemView | None:
    item = _item(files, item_id)
    if item is None or item.kind == "task_result":
        return None
    state = "answering" if item.id in frozen else "queued"
    return InboxItemView.of(item, state=state, files=SentFileView.all_of(files, item.files))


def open_question(files: Files) -> QuestionView | None:
    found = inbox.pending_question(files)
    return found and QuestionView.of(found)


# ---- what is read once


def mark_of(text: str, quote: Json, files: Json = None) -> int:
    """What tells in this process whether the same is said again, at the cost of a number.

    files: as they stand in a record.
    """
    given = files if isinstance(files, list) else []
    ids = [str(file.get("id")) for file in given if isinstance(file, dict)]
    return hash((text, str(quote or ""), *ids))


class KnownIds:
    """What was said under which id in the last days, so that one sent twice is taken once."""

    def __init__(self, files: ReadOnlyFiles, days: int = 14) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._days = timedelta(days=days)
        self._ids: dict[str, history.MessageIds] = {}
        """By file."""

    def mark(self, message_id: str, now: datetime) -> int | None:
        """The mark of what the transcript holds under this id; None: nothing."""
        oldest = (now - self._days).date().isoformat()
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")
        with self._lock:
            for name in [name for name in self._ids if name < oldest or name not in names]:
                del self._ids[name]
            for name in names:
                if name >= oldest:
                    self._learn(name)
            days = [name for name, ids in self._ids.items() if message_id in ids]
        for name in days:
            line = history.line_of(self._files, f"{paths.TRANSCRIPT}/{name}", message_id)
            if line is not None:
                return mark_of(str(line.get("text")), line.get("quote"), line.get("files"))
        return None

    def _learn(self, name: str) -> None:
        """Read what a day's file has more than when it was read last."""
        path = f"{paths.TRANSCRIPT}/{name}"
        stat, ids = self._files.stat(path), self._ids.setdefault(name, history.MessageIds())
        if stat is not None and stat.size < ids.upto:  # another file, as of a backup: read it all
            ids = self._ids[name] = history.MessageIds()
        if stat is not None and stat.size > ids.upto:
            ids.learn(self._files, path)
