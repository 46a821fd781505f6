"""Changes: as a stream, or asked for now and then."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, g, request
from pydantic import StringConstraints

from mimikit.web.api.asked import Asked, query
from mimikit.web.feed import Rules, connection_check, stream
from mimikit.web.site import answer, site

routes = Blueprint("feed", __name__)


class Since(Asked):
    """What is known already, and which tab asks."""

    since: Annotated[str, StringConstraints(max_length=200)] | None = None
    tab: Annotated[str, StringConstraints(max_length=64)] | None = None


@routes.get("/api/events")
def events() -> Response:
    """Changes as they happen, until the browser goes or some minutes have passed."""
    asked, here = query(Since), site()
    since = request.headers.get("Last-Event-ID") or asked.since
    rules = Rules(
        life_s=here.settings.web.stream_minutes * 60,
        is_allowed=here.guard.still_valid(g.caller),
        is_connected=connection_check(request.environ.get("gunicorn.socket")),
    )
    ticket = here.feed.enter(asked.tab or request.headers.get("X-Mimikit-Tab"))
    response = Response(
        stream(here.feed, ticket, since, here.clock, rules), mimetype="text/event-stream"
    )
    response.call_on_close(lambda: here.feed.leave(ticket))
    response.headers["Cache-Control"] = "no-store, no-transform"
    response.headers["X-Accel-Buffering"] = "no"
    return response


@routes.get("/api/changes")
def changes() -> Response:
    """What changed since a cursor, for a page that has no stream; the status with it each time."""
    asked, here = query(Since), site()
    batch = here.feed.read(asked.since)
    found = [event for _, event in batch.events]
    if not any(event["kind"] == "status" for event in found):
        found.append({"kind": "status", "status": here.shown.status()})
    return answer({"cursor": batch.cursor, "reset": batch.reset, "events": found})
