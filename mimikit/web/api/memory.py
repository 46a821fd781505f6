"""Memory files (edited with a content hash), search, backlog."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from mimikit.errors import BadInput, Conflict, Refused
from mimikit.memory import notes
from mimikit.protocol.records import check_text
from mimikit.views import memory as views
from mimikit.views.backlog import BacklogView, backlog_view
from mimikit.web.api import routing
from mimikit.web.api.routing import (
    Answer,
    EndpointRegistry,
    ErrorDetail,
    Input,
    bad_value,
    current_site,
    existing,
    read_time,
)
from mimikit.web.guard import RequestDenied

memory = EndpointRegistry("memory")
searching = EndpointRegistry("searching")
backlog = EndpointRegistry("backlog")

MAX_BODY_BYTES = 6 * views.MAX_EDITED_BYTES + 4096
"""A character of the text may take six bytes of JSON."""

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Time = Annotated[str, StringConstraints(max_length=40)]


class NoteInput(Input):
    """A new text, and the hash of the old one; null for a new file."""

    text: str
    hash: Hash | None


class NoteConflict(routing.ErrorView):
    """Another text was saved meanwhile; null: the file was removed."""

    current: views.NoteView | None


class SearchQuery(Input):
    """A search. `after` (inclusive) and `before` (exclusive) are days or times."""

    q: Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    after: Time | None = None
    before: Time | None = None
    scope: Literal["all", "memory"] = "all"


class BacklogInput(Input):
    """A change of an item; refused if the list does not have this hash any more."""

    action: notes.Action
    item: Annotated[str, StringConstraints(min_length=1, max_length=notes.MAX_ITEM)]
    hash: Hash | None = None


class BacklogConflict(routing.ErrorView):
    current: BacklogView


# ---- files


@memory.route("GET", "/api/memory", views.MemoryList, query=Input)
def listed(_: Input) -> views.MemoryList:
    """Every memory file and document, and the state of the search index."""
    site = current_site()
    return views.MemoryList(files=site.library.listed(), index=views.index_view(site.search()))


@memory.route("GET", "/api/memory/<path:path>", views.NoteView, query=Input)
def show(_: Input, path: str) -> views.NoteView:
    """A file as text and HTML."""
    return existing(current_site().library.read(_memory_path(path)), *_named(path))


@memory.route(
    "PUT",
    "/api/memory/<path:path>",
    {200: views.NoteView, 409: NoteConflict},
    body=NoteInput,
    max_bytes=MAX_BODY_BYTES,
)
def save(note: NoteInput, path: str) -> Answer:
    """Replace a file's text, or create a file; refused if it changed meanwhile."""
    target, site = _memory_path(path), current_site()
    if target.kind == "docs":
        message = f"{path}: the workspace's docs are only shown here; edit them in place"
        raise Refused(message, code="docs_read_only")
    limit = views.MAX_EDITED_BYTES // 1024
    if (size := len(note.text.encode())) > views.MAX_EDITED_BYTES:
        message = f"text: expected at most {limit} KiB, got {size} bytes; divide it into more files"
        raise RequestDenied(
            413, message, field="text", code="body_too_large", params={"max": limit}
        )
    if "\x00" in note.text:
        raise BadInput("text: expected text, got a NUL character in it", field="text")
    if note.hash is None and not target.may_be_created:
        raise BadInput(
            "path: expected memory.md or memory/YYYY-MM-DD-a-name.md for a new file, "
            f"got {path[:80]!r}",
            field="path",
            code="bad_note_name",
        )
    size = site.library.size(target.path)
    if size is not None and size > views.MAX_EDITED_BYTES:
        raise Refused(
            f"{target.path}: at {size // 1024} KiB it is too large to be edited here; "
            "use an editor on the machine",
            code="body_too_large",
            params={"max": limit},
        )
    try:
        saved = notes.replace(site.files, target.path, note.text, note.hash)
    except Conflict as error:
        current = site.library.read(target)
        if current is not None and current.text == note.text:
            return current  # a repeated request is no conflict
        return NoteConflict(error=ErrorDetail.of(error, message=str(error)), current=current), 409
    return site.library.view(target, saved)


def _memory_path(path: str) -> views.MemoryPath:
    return existing(views.parse_path(path), *_named(path))


def _named(path: str) -> tuple[str, str]:
    return f"memory file {path[:80]!r}", "path"


# ---- search


@searching.route("GET", "/api/search", views.SearchAnswer, query=SearchQuery)
def search(query: SearchQuery) -> views.SearchAnswer:
    """Search the memory; the best hits first."""
    site = current_site()
    check_text(query.q, "q")
    zone = site.settings.zone
    after, before = read_time(query.after, "after", zone), read_time(query.before, "before", zone)
    began, engine = time.monotonic(), site.search()
    hits = engine.find(
        query.q, limit=query.limit, after=after, before=before, everywhere=query.scope == "all"
    )
    took_ms = round((time.monotonic() - began) * 1000, 1)
    return views.SearchAnswer(
        query=query.q,
        hits=[views.hit_view(hit, query.q) for hit in hits],
        took_ms=took_ms,
        fallback=engine.fallback,
    )


# ---- backlog


@backlog.route("GET", "/api/backlog", BacklogView, query=Input)
def items(_: Input) -> BacklogView:
    """Every item, in the file's order."""
    return backlog_view(notes.load_backlog(current_site().files))


@backlog.route("POST", "/api/backlog", {200: BacklogView, 409: BacklogConflict}, body=BacklogInput)
def change(body: BacklogInput) -> Answer:
    """Add, tick, reopen or remove an item."""
    files = current_site().files
    check_text(notes.plain_item(body.item), "item")
    try:
        with bad_value():
            return backlog_view(notes.change_backlog(files, body.action, body.item, body.hash))
    except Conflict as error:
        current = backlog_view(notes.load_backlog(files))
        detail = ErrorDetail.of(error, message=str(error))
        return BacklogConflict(error=detail, current=current), 409
