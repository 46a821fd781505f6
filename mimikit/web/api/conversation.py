"""The conversation: snapshot, messages, sending, answering, and prompts of turns."""

from __future__ import annotations

import contextlib
import threading
from typing import Annotated
from urllib.parse import quote

from flask import Response, request
from pydantic import Field, StringConstraints

from mimikit.conversation import attachments, inbox
from mimikit.errors import BadRecord, Conflict, UnsafeFile
from mimikit.language.phrases import named_zone
from mimikit.protocol.ids import new_id
from mimikit.protocol.json import table_of, tables_of
from mimikit.protocol.models import MAX_TEXT, FileRef, InboxItem
from mimikit.protocol.records import check_text
from mimikit.views.base import View
from mimikit.views.messages import MessagesPage, TurnReport, sent_message, turn_hits, turn_prompt
from mimikit.views.snapshot import SnapshotView
from mimikit.web.api import routing
from mimikit.web.api.routing import ClientId, EndpointRegistry, Input, Site, current_site, id_taken

area = EndpointRegistry("conversation")
files_area = EndpointRegistry("files")

MESSAGE_ID_PATTERN = r"^msg-[A-Za-z0-9._-]{1,124}$"
MessageId = Annotated[str, StringConstraints(pattern=MESSAGE_ID_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Zone = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")]
Locale = Annotated[str, StringConstraints(max_length=35, pattern=r"^[A-Za-z0-9_-]*$")]


class MessagesQuery(Input):
    """A page of messages: those before the cursor of another page."""

    before: Annotated[str, StringConstraints(max_length=60)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class MessageInput(Input):
    """A user's message; idempotent by id.

    Another text under the same id is refused (409), until 14 days after the first was read.
    """

    id: MessageId | None = None
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = ""
    """It may be empty beside files."""
    files: list[str] = Field(default_factory=list[str])
    """Ids of files that were sent before."""
    quote: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    timezone: Zone | None = None
    locale: Locale | None = None


class AnswerInput(Input):
    id: MessageId
    question_id: ClientId
    text: Text


class AcceptedView(View):
    id: str
    state: str = "queued"


@area.route("GET", "/api/snapshot", SnapshotView)
def snapshot() -> SnapshotView:
    """Everything that the page shows first."""
    site = current_site()
    return site.state.snapshot(site.reader)


@area.route("GET", "/api/messages", MessagesPage, query=MessagesQuery)
def messages(query: MessagesQuery) -> MessagesPage:
    """A page of the conversation."""
    return current_site().state.messages(query.before, query.limit)


@area.route("POST", "/api/input", {202: AcceptedView}, body=MessageInput)
def send(body: MessageInput) -> AcceptedView:
    """Send a message; it is on disk before the answer."""
    site = current_site()
    now = site.clock.now()
    zone = named_zone(body.timezone)  # an unknown zone does not refuse the message
    item = InboxItem(
        id=body.id or new_id("msg", now),
        text=body.text if body.files else check_text(body.text, "text"),
        created_at=now,
        files=attachments.named(site.files, body.files),
        timezone=zone and zone.key,
        locale=body.locale or None,
        quote=body.quote,
        remote=site.is_remote,
    )
    return _accept(site, item)


@area.route("POST", "/api/answer", {202: AcceptedView}, body=AnswerInput)
def answer_question(body: AnswerInput) -> AcceptedView:
    """Answer the open question."""
    site = current_site()
    item = InboxItem(
        id=body.id,
        kind="answer",
        text=check_text(body.text, "text"),
        created_at=site.clock.now(),
        question_id=body.question_id,
        remote=site.is_remote,
    )
    return _accept(site, item)


@area.route("GET", "/api/turns/<turn_id>", TurnReport, query=Input)
def show_turn(_: Input, turn_id: str) -> TurnReport:
    """What a turn or a task's run was given, what it called, and its cost."""
    site = current_site()
    hits, run = turn_hits(site.files, turn_id), turn_prompt(site.files, turn_id)
    routing.existing(run or hits, f"record of turn {turn_id[:128]}")
    cost = site.state.usage.of_task(turn_id, run.at).cost if run else {}
    return TurnReport(hits=hits or [], run=run, cost=cost)


_LOCKS = [threading.Lock() for _ in range(64)]
"""Serialise requests with the same id."""


def _accept(site: Site, item: InboxItem) -> AcceptedView:
    """Put an item into the inbox, unless it is a repeat."""
    accepted = AcceptedView(id=item.id)
    with _LOCKS[hash(item.id) % len(_LOCKS)]:
        if _is_repeated(site, item):
            return accepted
        if item.kind == "answer":
            question = inbox.pending_question(site.files)
            if question is None or question.question_id != item.question_id:
                raise _closed("that question is no longer open")
            if inbox.is_expired(question, item.created_at):
                raise _closed("the time to answer that question is over")
        site.take_input()
        if not inbox.put(site.files, item):
            _is_repeated(site, item)  # a concurrent request
    return accepted


def _is_repeated(site: Site, item: InboxItem) -> bool:
    """Whether the item is in the inbox or the transcript of the last 14 days.

    Searched in this order, as an item leaves the inbox once it is in the transcript. Raises
    Conflict for another message with this id.
    """
    known: tuple[object, ...] | None = ()
    with contextlib.suppress(BadRecord, UnsafeFile):  # a broken file still has the id
        if waiting := inbox.read(site.files, item.id):
            known = waiting.text, waiting.quote or "", [ref.id for ref in waiting.files]
        elif line := sent_message(site.files, item.id):
            ids = [table_of(ref).get("id") for ref in tables_of(line.get("files"))]
            known = line.get("text"), line.get("quote") or "", ids
        else:
            known = None
    if known is None:
        return False
    if known != (item.text, item.quote or "", [ref.id for ref in item.files]):
        raise id_taken(item.id, "message")
    return True


def _closed(message: str) -> Conflict:
    return Conflict(message, field="questionId", code="question_closed")


# ---- files


class FileQuery(Input):
    name: Annotated[str, StringConstraints(max_length=1000)] = ""


@files_area.route("POST", "/api/files", FileRef, query=FileQuery)
def upload(query: FileQuery) -> FileRef:
    """Store a file (the body, whole) for a message; it is on disk before the answer."""
    site = current_site()
    site.take_input()
    request.max_content_length = attachments.MAX_FILE_BYTES
    data = request.get_data(cache=False)
    return attachments.keep(site.files, data, query.name, site.settings.files)


@files_area.route("GET", "/api/files/<file_id>", {200: None}, query=Input)
def download(_: Input, file_id: str) -> Response:
    """A file as it was sent, to be saved."""
    files = current_site().files
    ref = routing.existing(attachments.find(files, file_id), f"file {file_id}")
    data = routing.existing(attachments.content(files, ref), f"file {file_id}")
    response = Response(data, content_type=attachments.media_type(file_id))
    name = quote(ref.name, safe="")
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response
