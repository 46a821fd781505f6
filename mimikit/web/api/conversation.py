"""Talking: the snapshot, older messages, sending, answering."""

from __future__ import annotations

import threading
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flask import Blueprint, Response
from pydantic import Field, StringConstraints

from mimikit.conversation import inbox, questions
from mimikit.errors import BadInput, Conflict
from mimikit.protocol import paths
from mimikit.protocol.models import MAX_TEXT, InboxItem
from mimikit.web.api.asked import Asked, ClientId, MessageId, body, query
from mimikit.web.guard import Denied
from mimikit.web.site import Site, answer, site

routes = Blueprint("conversation", __name__)

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Zone = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")]
Locale = Annotated[str, StringConstraints(max_length=35, pattern=r"^[A-Za-z0-9_-]*$")]


class Page(Asked):
    """Which messages."""

    before: Annotated[str, StringConstraints(max_length=60)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Input(Asked):
    """A message of the user's; the client makes its id, so that sending it twice is one message."""

    id: MessageId
    text: Text
    quote: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    timezone: Zone | None = None
    locale: Locale | None = None


class Answer(Asked):
    """An answer to the open question."""

    id: MessageId
    question_id: ClientId
    text: Text


@routes.get("/api/snapshot")
def snapshot() -> Response:
    """All a page needs to begin."""
    return answer(site().shown.snapshot())


@routes.get("/api/messages")
def messages() -> Response:
    """A page of the conversation, going back."""
    asked = query(Page)
    return answer(site().shown.conversation.page(asked.before, asked.limit))


@routes.post("/api/input")
def send() -> Response:
    """Take a message; it is on disk before this answers."""
    asked = body(Input)
    here = site()
    item = InboxItem(
        id=asked.id,
        text=_said(asked.text),
        created_at=here.clock.now(),
        timezone=_known_zone(asked.timezone),
        locale=asked.locale or None,
        quote=asked.quote,
    )
    _accept(here, item)
    return answer({"id": item.id, "state": "queued"}, 202)


@routes.post("/api/answer")
def answer_question() -> Response:
    """Take the answer to the question that is open now."""
    asked = body(Answer)
    here = site()
    item = InboxItem(
        id=asked.id,
        kind="answer",
        text=_said(asked.text),
        created_at=here.clock.now(),
        question_id=asked.question_id,
    )
    _accept(here, item)
    return answer({"id": item.id, "state": "queued"}, 202)


class _Doors:
    """Lets one request with an id through at a time, so that a repeat sees what the first did."""

    def __init__(self, count: int = 64) -> None:
        self._locks = [threading.Lock() for _ in range(count)]

    def of(self, item_id: str) -> threading.Lock:
        """The lock of an id, shared with some others."""
        return self._locks[hash(item_id) % len(self._locks)]


_doors = _Doors()


def _accept(here: Site, item: InboxItem) -> None:
    """Put an item into the inbox unless it is, or was, there.

    An item leaves the inbox only after the transcript has it: looking in this order misses neither.
    """
    with _doors.of(item.id):
        if here.files.exists(paths.inbox(item.id)):
            return
        if here.known_ids.has(item.id, item.created_at):
            return
        if item.kind == "answer":
            _check_open(here, item)
        _check_rate(here)
        inbox.put(here.files, item)


def _check_rate(here: Site) -> None:
    if not here.inputs.take(""):
        wait = here.inputs.wait_s("")
        message = f"too many messages in a minute; try again in {int(wait) + 1} s"
        raise Denied(429, message, reason="too many inputs", wait_s=wait)


def _check_open(here: Site, item: InboxItem) -> None:
    question = questions.pending(here.files)
    if question is None or question.question_id != item.question_id:
        raise Conflict("that question is no longer open", field="questionId")
    if questions.is_expired(question, item.created_at):
        raise Conflict("the time to answer that question is over", field="questionId")


def _said(text: str) -> str:
    if not text.strip():
        raise BadInput("text: expected some text, got only blanks", field="text")
    return text


def _known_zone(name: str | None) -> str | None:
    """The zone if this machine knows it; a message is not refused for a zone it does not."""
    try:
        return str(ZoneInfo(name)) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
