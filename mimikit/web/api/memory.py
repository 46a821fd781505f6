"""Memory files: listed, read, and saved where nobody else changed them meanwhile."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, request
from pydantic import StringConstraints
from werkzeug.exceptions import RequestEntityTooLarge

from mimikit.errors import BadInput, Conflict, NotFound, Refused
from mimikit.memory import notes
from mimikit.views import hits
from mimikit.views.memory import MAX_EDITED_BYTES, Named, named
from mimikit.web.api.asked import Asked, body, path_id, query
from mimikit.web.guard import Denied
from mimikit.web.site import Site, answer, error_dict, site

routes = Blueprint("memory", __name__)

# A character of the text may take six bytes of JSON.
_MAX_BODY_BYTES = 6 * MAX_EDITED_BYTES + 4096

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Save(Asked):
    """A new text, and the hash of the text it was made from; null for a new file."""

    text: str
    hash: Hash | None


@routes.get("/api/memory")
def listed() -> Response:
    """Every memory file and document, and how the search index is."""
    query(Asked)
    here = site()
    return answer({"files": here.library.listed(), "index": hits.index_of(here.search())})


@routes.get("/api/memory/<path:path>")
def show(path: str) -> Response:
    """One file: its text, and that as HTML."""
    query(Asked)
    found = site().library.shown(_known(path))
    if found is None:
        raise _no_file(path)
    return answer(found)


@routes.put("/api/memory/<path:path>")
def save(path: str) -> Response:
    """Replace a file's text, or make a file; refused where it changed meanwhile."""
    known, here = _known(path), site()
    if known.kind == "docs":
        raise Refused(f"{path}: the workspace's docs are only shown here; edit them in place")
    asked = _asked()
    if asked.hash is None and not known.may_be_made:
        raise BadInput(
            "path: expected memory.md or memory/YYYY-MM-DD-a-name.md for a new file, "
            f"got {path[:80]!r}",
            field="path",
        )
    _check_size(here, known)
    try:
        note = notes.replace(here.files, known.path, asked.text, asked.hash)
    except Conflict as error:
        return _conflict(here, known, asked, error)
    return answer(here.library.saved(known, note))


@routes.get("/api/turns/<turn_id>/memory")
def of_turn(turn_id: str) -> Response:
    """What a turn was given of memory."""
    query(Asked)
    found = hits.of_turn(site().files, path_id(turn_id))
    if found is None:
        raise NotFound(f"there is no record of turn {turn_id[:128]}", field="id")
    return answer({"hits": found})


def _known(path: str) -> Named:
    known = named(path)
    if known is None:
        raise _no_file(path)
    return known


def _no_file(path: str) -> NotFound:
    return NotFound(f"there is no memory file {path[:80]!r}", field="path")


def _asked() -> Save:
    request.max_content_length = _MAX_BODY_BYTES
    try:
        asked = body(Save)
    except RequestEntityTooLarge:
        raise _too_long("more") from None
    size = len(asked.text.encode())
    if size > MAX_EDITED_BYTES:
        raise _too_long(f"{size} bytes")
    if "\x00" in asked.text:
        raise BadInput("text: expected text, got a NUL character in it", field="text")
    return asked


def _too_long(got: str) -> Denied:
    return Denied(
        413,
        f"text: expected at most {MAX_EDITED_BYTES // 1024} KiB, got {got}; "
        "divide it into more files",
        reason="too large",
        field="text",
    )


def _check_size(here: Site, known: Named) -> None:
    size = here.library.size(known.path)
    if size is not None and size > MAX_EDITED_BYTES:
        raise Refused(
            f"{known.path}: at {size // 1024} KiB it is too large to be edited here; "
            "use an editor on the machine"
        )


def _conflict(here: Site, known: Named, asked: Save, error: Conflict) -> Response:
    """The file as it is now; a save that came twice is none."""
    current = here.library.shown(known)
    if current is not None and current["text"] == asked.text:
        return answer(current)
    return answer({"error": error_dict(str(error), error.field), "current": current}, 409)
