"""The backlog: its checkboxes, and one change at a time."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response
from pydantic import StringConstraints

from mimikit.errors import BadInput, Conflict, NotFound
from mimikit.memory import backlog
from mimikit.memory.backlog import Backlog
from mimikit.web.api.asked import Asked, body, query
from mimikit.web.api.memory import Hash
from mimikit.web.site import answer, error_dict, site

routes = Blueprint("backlog", __name__)

ItemText = Annotated[str, StringConstraints(min_length=1, max_length=backlog.MAX_ITEM)]


class Change(Asked):
    """What is to be done with an item; with a hash only if the list is still that one."""

    action: backlog.Action
    item: ItemText
    hash: Hash | None = None


@routes.get("/api/backlog")
def listed() -> Response:
    """Every item, in the file's order."""
    query(Asked)
    return answer(_shown(backlog.load(site().files)))


@routes.post("/api/backlog")
def change() -> Response:
    """Add, tick, open again or remove an item."""
    asked, files = body(Change), site().files
    if not backlog.plain(asked.item):
        raise BadInput("item: expected some text, got only blanks", field="item")
    try:
        return answer(_shown(backlog.change(files, asked.action, asked.item, asked.hash)))
    except NotFound as error:
        raise BadInput(str(error), field=error.field) from None
    except Conflict as error:
        current = _shown(backlog.load(files))
        return answer({"error": error_dict(str(error), error.field), "current": current}, 409)


def _shown(found: Backlog) -> dict[str, Any]:
    items = [{"text": item.text, "done": item.done} for item in found.items]
    return {"items": items, "hash": found.hash}
