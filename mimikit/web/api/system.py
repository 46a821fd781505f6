"""Login, status, usage, the change feed, and the description of this API."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from flask import Response, g, request
from pydantic import Field, StringConstraints

from mimikit.config import asset_folder
from mimikit.errors import BadInput
from mimikit.views.base import View
from mimikit.views.home import HomeView
from mimikit.views.snapshot import ChangeList, StatusChange
from mimikit.views.status import HealthzView, StatusView
from mimikit.views.usage import UsageBy, UsageReport
from mimikit.web.api.routing import EndpointRegistry, Input, current_site
from mimikit.web.feed import connection_check

session = EndpointRegistry("session")
status_area = EndpointRegistry("status")
feed = EndpointRegistry("feed")

Secret = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class LoginInput(Input):
    token: Secret | None = None
    code: Secret | None = None


class ChangesQuery(Input):
    """The cursor of the last known change, and the browser tab."""

    since: Annotated[str, StringConstraints(max_length=200)] | None = None
    tab: Annotated[str, StringConstraints(max_length=64)] | None = None


class UsageQuery(Input):
    by: UsageBy = "day"
    since: Annotated[date, Field(ge=date(2020, 1, 1))] | None = None


class SessionView(View):
    ok: Literal[True] = True


class LoginView(SessionView):
    key: str
    """To be sent with each request as `X-Mimikit-Session`."""


@session.route("POST", "/api/login", LoginView, body=LoginInput)
def login(body: LoginInput) -> LoginView:
    """Begin a browser session. Scripts send the token instead."""
    if (body.token is None) == (body.code is None):
        raise BadInput("expected a token or a code, one of them", field="token")
    return LoginView(key=current_site().guard.log_in(token=body.token, code=body.code))


@session.route("POST", "/api/logout", SessionView, body=Input)
def logout(_: Input) -> SessionView:
    """End the session."""
    current_site().guard.log_out(g.key)
    return SessionView()


@status_area.route("GET", "/api/status", StatusView, query=Input)
def status(_: Input) -> StatusView:
    """The whole status."""
    return current_site().state.status()


@status_area.route("GET", "/api/home", HomeView, query=Input)
def home(_: Input) -> HomeView:
    """What needs you, what runs, what fires next, the runs of the last 24 hours, today's usage."""
    site = current_site()
    return site.state.home(site.reader)


@status_area.route("GET", "/api/usage", UsageReport, query=UsageQuery)
def usage(query: UsageQuery) -> UsageReport:
    """Token usage and costs by day, engine, model, role, trigger, task or message.

    By default of the last 30 days; single runs are stored for `retention.days`.
    """
    site = current_site()
    health = site.state.consumer().current
    return site.state.usage.report(query.by, query.since, site.clock.now(), health)


@status_area.route("GET", "/healthz", {200: HealthzView, 503: HealthzView})
def healthz() -> tuple[HealthzView, int]:
    """Whether web and consumer work and the disk has room; needs no login."""
    site = current_site()
    state, is_full = site.state.consumer().page_state, site.files.fs.is_full()
    ok = state == "ok" and not is_full
    view = HealthzView(ok=ok, consumer=state, disk="full" if is_full else "ok")
    return view, 200 if ok else 503


@status_area.route("GET", "/api/openapi.json", {200: None}, query=Input)
def describe(_: Input) -> Response:
    """This API as OpenAPI 3.1."""
    document = asset_folder("webui") / "openapi.json"  # written by scripts/make_http_docs.py
    return Response(document.read_bytes(), mimetype="application/json")


@feed.route("GET", "/api/events", {200: None}, query=ChangesQuery)
def events(query: ChangesQuery) -> Response:
    """Changes as server-sent events, for some minutes.

    `change` has a change as in `/api/changes`, `reset` asks to load a new snapshot.
    `Last-Event-ID` is the cursor to continue at.
    """
    site = current_site()
    is_allowed = site.guard.still_valid(g.key)
    is_connected = connection_check(request.environ.get("gunicorn.socket"))
    slot = site.feed.enter(query.tab or request.headers.get("X-Mimikit-Tab"), site.reader)
    text = site.feed.stream(
        slot,
        request.headers.get("Last-Event-ID") or query.since,
        site.clock,
        life_s=site.settings.web.stream_minutes * 60,
        is_allowed=is_allowed,
        is_connected=is_connected,
    )
    response = Response(text, mimetype="text/event-stream")
    response.call_on_close(lambda: site.feed.leave(slot))
    response.headers["Cache-Control"] = "no-store, no-transform"
    response.headers["X-Accel-Buffering"] = "no"
    return response


@feed.route("GET", "/api/changes", ChangeList, query=ChangesQuery)
def changes(query: ChangesQuery) -> ChangeList:
    """Changes since a cursor, for a page without a stream; always with the status."""
    site = current_site()
    batch = site.feed.read(query.since, site.reader)
    events = [change for _, change in batch.changes]
    if not any(isinstance(change, StatusChange) for change in events):
        events.append(StatusChange(status=site.state.status()))
    return ChangeList(cursor=batch.cursor, reset=batch.reset, events=events)
