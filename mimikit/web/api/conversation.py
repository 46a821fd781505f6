"""The conversation: snapshot, older messages, sending, answering, prompts of turns."""

from __future__ import annotations

import contextlib
import threading
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, StringConstraints

from mimikit.conversation import inbox
from mimikit.errors import BadInput, BadRecord, Conflict, NotFound, UnsafeFile
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, InboxItem
from mimikit.views.base import View
from mimikit.views.messages import MessagesPage, TurnPromptView, message_hash, turn_prompt
from mimikit.views.snapshot import SnapshotView
from mimikit.web.api.routing import ClientId, EndpointRegistry, Input, Site, id_taken, site
from mimikit.web.guard import RequestDenied

area = EndpointRegistry("conversation")

MESSAGE_ID_PATTERN = r"^msg-[A-Za-z0-9._-]{1,124}$"
MessageId = Annotated[str, StringConstraints(pattern=MESSAGE_ID_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Zone = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")]
Locale = Annotated[str, StringConstraints(max_length=35, pattern=r"^[A-Za-z0-9_-]*$")]


class MessagesQuery(Input):
    """Which messages: those before a cursor that an earlier page gave."""

    before: Annotated[str, StringConstraints(max_length=60)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class MessageInput(Input):
    """A message of the user's; sent twice under one id it is one message.

    Another text under that id is refused (409) while the first waits, and 14 days after.
    """

    id: MessageId | None = None
    text: Text
    quote: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    timezone: Zone | None = None
    locale: Locale | None = None


class AnswerInput(Input):
    id: MessageId
    question_id: ClientId
    text: Text


class AcceptedView(View):
    """The message lies in the inbox."""

    id: str
    state: str = "queued"


@area.route("GET", "/api/snapshot", SnapshotView)
def snapshot() -> SnapshotView:
    """All a page needs at its start."""
    return site().state.snapshot()


@area.route("GET", "/api/messages", MessagesPage, query=MessagesQuery)
def messages(query: MessagesQuery) -> MessagesPage:
    """A page of the conversation, going back."""
    return site().state.conversation.page(query.before, query.limit)


@area.route("POST", "/api/input", {202: AcceptedView}, body=MessageInput)
def send(body: MessageInput) -> AcceptedView:
    """Take a message; it is on disk before this answers."""
    here = site()
    now = here.clock.now()
    try:
        zone = str(ZoneInfo(body.timezone)) if body.timezone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone = None  # a message is not refused for a zone this machine does not know
    item = InboxItem(
        id=body.id or new_id("msg", now),
        text=_not_blank(body.text),
        created_at=now,
        timezone=zone,
        locale=body.locale or None,
        quote=body.quote,
        remote=here.is_remote,
    )
    return _accept(here, item)


@area.route("POST", "/api/answer", {202: AcceptedView}, body=AnswerInput)
def answer_question(body: AnswerInput) -> AcceptedView:
    """Take the answer to the question that is open now."""
    here = site()
    item = InboxItem(
        id=body.id,
        kind="answer",
        text=_not_blank(body.text),
        created_at=here.clock.now(),
        question_id=body.question_id,
        remote=here.is_remote,
    )
    return _accept(here, item)


@area.route("GET", "/api/turns/<turn_id>", TurnPromptView, query=Input)
def show_turn(_: Input, turn_id: str) -> TurnPromptView:
    """The prompt of a turn or a task's run, and the tools it called; of the last 200 runs."""
    prompt = turn_prompt(site().files, turn_id)
    if prompt is None:
        raise NotFound(f"there is no prompt of {turn_id[:128]}; the last 200 are kept", field="id")
    return prompt


_LOCKS = [threading.Lock() for _ in range(64)]
"""One request with an id at a time, so that a repeat sees what the first did."""


def _accept(here: Site, item: InboxItem) -> AcceptedView:
    """Put an item into the inbox unless it is, or was, there."""
    accepted = AcceptedView(id=item.id)
    with _LOCKS[hash(item.id) % len(_LOCKS)]:
        if _is_repeated(here, item):
            return accepted
        if item.kind == "answer":
            question = inbox.pending_question(here.files)
            if question is None or question.question_id != item.question_id:
                raise Conflict("that question is no longer open", field="questionId")
            if inbox.is_expired(question, item.created_at):
                raise Conflict("the time to answer that question is over", field="questionId")
        if not here.inputs.take():
            wait = here.inputs.wait_s()
            message = f"too many messages in a minute; try again in {int(wait) + 1} s"
            raise RequestDenied(429, message, reason="too many inputs", wait_s=wait)
        if not inbox.put(here.files, item):
            _is_repeated(here, item)  # another page put it there at the same time
    return accepted


def _is_repeated(here: Site, item: InboxItem) -> bool:
    """Whether it is in the inbox or the transcript of the last 14 days.

    An item leaves the inbox only after the transcript has it: looking in this order misses neither.
    Raises Conflict when its id is another message's.
    """
    known: int | None = 0
    with contextlib.suppress(BadRecord, UnsafeFile):  # a broken file still holds the id
        if waiting := inbox.read(here.files, item.id):
            known = message_hash(waiting.text, waiting.quote)
        else:
            known = here.known_ids.hash_of(item.id, item.created_at)
    if known not in (None, message_hash(item.text, item.quote)):
        raise id_taken(item.id, "message")
    return known is not None


def _not_blank(text: str) -> str:
    if not text.strip():
        raise BadInput("text: expected some text, got only blanks", field="text")
    return text
