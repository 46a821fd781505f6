"""Talking: the snapshot, older messages, sending, answering."""

from __future__ import annotations

import contextlib
import threading
import zlib
from datetime import date
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, StringConstraints

from mimikit.conversation import attachments, inbox
from mimikit.errors import BadInput, BadRecord, Conflict, NotFound, UnsafeFile
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, MOST_FILES, FileId, InboxItem
from mimikit.views.base import View
from mimikit.views.messages import MessagesPage, mark_of, said
from mimikit.views.snapshot import SnapshotView
from mimikit.views.turns import TurnPromptView, turn_prompt
from mimikit.web.api.routing import ClientId, EndpointRegistry, Input, Site, site, taken
from mimikit.web.guard import RequestDenied

area = EndpointRegistry("conversation")
_RETRY_DAYS = 60

MESSAGE_ID_PATTERN = r"^msg-[A-Za-z0-9._-]{1,124}$"
MessageId = Annotated[str, StringConstraints(pattern=MESSAGE_ID_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
FileIds = Annotated[list[FileId], Field(max_length=MOST_FILES)]
Cursor = Annotated[str, StringConstraints(max_length=60)]
Zone = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")]
Locale = Annotated[str, StringConstraints(max_length=35, pattern=r"^[A-Za-z0-9_-]*$")]


class MessagesQuery(Input):
    """Which messages: the newest, those before or after a cursor, or one amid those around it.

    A cursor is what an earlier page gave.
    """

    day: date | None = None
    """About when the one amid those around it was said: there it is looked for first."""
    before: Cursor | None = None
    after: Cursor | None = None
    around: ClientId | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class MessageInput(Input):
    """A message of the user's; with an id of the client's, sending it twice is one message.

    Another text under that id is refused (409) as long as the first waits, and 14 days after.
    """

    id: MessageId | None = None
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = ""
    """May be left out beside files."""
    files: FileIds = Field(default_factory=list[str])
    """Their ids, as `POST /api/files` answered them."""
    quote: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    edits: ClientId | None = None
    """The earlier message that this one says anew; `quote` has its words."""
    timezone: Zone | None = None
    locale: Locale | None = None


class RetryInput(Input):
    """With an id of the client's, asking twice is asking once."""

    may_be_empty = True
    id: MessageId | None = None
    timezone: Zone | None = None
    locale: Locale | None = None


class AnswerInput(Input):
    """An answer to the open question."""

    id: MessageId
    question_id: ClientId
    text: Text


class AcceptedView(View):
    """The message lies in the inbox."""

    id: str
    state: str = "queued"


@area.route("GET", "/api/snapshot", SnapshotView)
def snapshot() -> SnapshotView:
    """All a page needs to begin."""
    return site().state.snapshot()


@area.route("GET", "/api/messages", MessagesPage, query=MessagesQuery)
def messages(asked: MessagesQuery) -> MessagesPage:
    """A page of the conversation."""
    state = site().state
    said = state.conversation
    if asked.around is not None:
        found = said.page_around(asked.around, asked.limit, asked.day)
        if found is None:
            raise NotFound(f"there is no message {asked.around[:128]}", field="around")
        return state.with_jobs(found)
    if asked.after is not None:
        return state.with_jobs(said.page_after(asked.after, asked.limit))
    return state.with_jobs(said.page(asked.before, asked.limit))


@area.route("POST", "/api/input", {202: AcceptedView}, body=MessageInput)
def send(asked: MessageInput) -> AcceptedView:
    """Take a message; it is on disk before this answers."""
    here = site()
    now = here.clock.now()
    item = InboxItem(
        id=asked.id or new_id("msg", now),
        text=asked.text if asked.files else _said(asked.text),
        files=attachments.named(here.files, asked.files, now),
        created_at=now,
        timezone=_known_zone(asked.timezone),
        locale=asked.locale or None,
        quote=asked.quote,
        edits=asked.edits,
        remote=here.is_remote,
    )
    return _accept(here, item)


@area.route("POST", "/api/messages/<message_id>/retry", {202: AcceptedView}, body=RetryInput)
def retry(asked: RetryInput, message_id: str) -> AcceptedView:
    """Have a message of the user's answered again; what was said of it before stays."""
    here = site()
    now = here.clock.now()
    found = said(here.files, message_id, _RETRY_DAYS)
    if found is None or found.role != "user":
        expected = f"expected a message that the user sent in the last {_RETRY_DAYS} days"
        raise NotFound(f"{expected}, got {message_id[:128]}; send its words again", field="id")
    for ref in found.files:  # one that has gone is named all the same: the reply says so
        attachments.use(here.files, ref.id, now)
    item = InboxItem(
        id=asked.id or new_id("msg", now),
        text=found.text,
        created_at=now,
        timezone=_known_zone(asked.timezone),
        locale=asked.locale or None,
        quote=found.quote,
        files=found.files,
        retry_of=found.retry_of or found.id,
        hook=found.hook,
        remote=here.is_remote,
    )
    return _accept(here, item)


@area.route("POST", "/api/answer", {202: AcceptedView}, body=AnswerInput)
def answer_question(asked: AnswerInput) -> AcceptedView:
    """Take the answer to the question that is open now."""
    here = site()
    item = InboxItem(
        id=asked.id,
        kind="answer",
        text=_said(asked.text),
        created_at=here.clock.now(),
        question_id=asked.question_id,
        remote=here.is_remote,
    )
    return _accept(here, item)


@area.route("GET", "/api/turns/<turn_id>", TurnPromptView, query=Input)
def show_turn(_: Input, turn_id: str) -> TurnPromptView:
    """What a turn, or a task's run, was told and what it called: why it says what it says.

    What it was told is kept of the last 200 that a model served; of other turns the rest is told.
    """
    here = site()
    found = turn_prompt(here.files, here.settings, turn_id)
    if found is None:
        raise NotFound(f"nothing is kept of {turn_id[:128]}", field="id", code="no_turn")
    return found


_LOCKS = [threading.Lock() for _ in range(64)]
"""One request with an id at a time, so that a repeat sees what the first did."""


def _accept(here: Site, item: InboxItem) -> AcceptedView:
    """Put an item into the inbox unless it is, or was, there."""
    accepted = AcceptedView(id=item.id)
    # Not `hash`: which ids share a lock is the same in each process, so what several senders do can
    # be run again.
    with _LOCKS[zlib.crc32(item.id.encode()) % len(_LOCKS)]:
        if _is_repeated(here, item):
            return accepted
        if item.kind == "answer":
            question = inbox.pending_question(here.files)
            if question is None or question.question_id != item.question_id:
                raise Conflict(
                    "that question is no longer open", field="questionId", code="question_closed"
                )
            if inbox.is_expired(question, item.created_at):
                raise Conflict(
                    "the time to answer that question is over",
                    field="questionId",
                    code="question_closed",
                )
        if not here.inputs.take(""):
            wait = here.inputs.wait_s("")
            message = f"too many messages in a minute; try again in {int(wait) + 1} s"
            raise RequestDenied(429, message, reason="too many inputs", wait_s=wait)
        if not inbox.put(here.files, item):
            _is_repeated(here, item)  # by another page of this state, at the same time
    return accepted


def _is_repeated(here: Site, item: InboxItem) -> bool:
    """Whether this was taken before, as far as the inbox and the transcript of 14 days know.

    An item leaves the inbox only after the transcript has it: looking in this order misses neither.
    Raises Conflict when something else was said under its id.
    """
    known: int | None = 0
    with contextlib.suppress(BadRecord, UnsafeFile):  # what no message is has the id all the same
        if waiting := inbox.read(here.files, item.id):
            known = _mark(waiting)
        else:
            known = here.known_ids.mark(item.id, item.created_at)
    if known not in (None, _mark(item)):
        raise taken(item.id, "message")
    return known is not None


def _known_zone(name: str | None) -> str | None:
    """No message is refused for a zone that this machine does not know."""
    try:
        return str(ZoneInfo(name)) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _mark(item: InboxItem) -> int:
    return mark_of(item.text, item.quote, [file.to_dict() for file in item.files])


def _said(text: str) -> str:
    if not text.strip():
        raise BadInput("text: expected some text, got only blanks", field="text", code="missing")
    return text
