"""Home, the last hours and the log, as the page shows them; and what can be taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from flask import Response
from pydantic import Field, StringConstraints

from mimikit.errors import BadInput, NotFound
from mimikit.self_awake_settings import ImprovementKind
from mimikit.tasks.queue import dismissal_id
from mimikit.views import export, tasks
from mimikit.views.home import HomeView
from mimikit.views.logs import MOST_LINES, LogFilter, LogPage, log_page
from mimikit.views.self_awake import SelfAwakeView, self_awake_view
from mimikit.views.timeline import MOST_HOURS, TimelineView
from mimikit.web.api.routing import Answer, ClientId, EndpointRegistry, Input, site
from mimikit.web.api.tasks import COMMAND_ANSWERS, Action, give_command

area = EndpointRegistry("home")

Cursor = Annotated[str, StringConstraints(max_length=64)]


class TimelineQuery(Input):
    """How far back."""

    hours: Annotated[int, Field(ge=1, le=MOST_HOURS)] = 24


class LogsQuery(Input):
    """Which lines, and from where: before a cursor, after one, or the newest."""

    type: Annotated[str, StringConstraints(max_length=32)] = ""
    q: Annotated[str, StringConstraints(max_length=200)] = ""
    id: ClientId | None = None
    """Of a task, turn, trigger or trace."""
    before: Cursor | None = None
    after: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_LINES)] = 100


class ExportQuery(Input):
    """What, and as what."""

    what: Literal["chat", "trace"] = "chat"
    id: ClientId | None = None
    """Of the trace."""
    format: Literal["md", "json"] = "md"


class SelfAwakeInput(Input):
    """To be switched on or off, or one improvement at once."""

    action: Literal["on", "off", "run"]
    item: ImprovementKind | None = None
    """Of `run`: this one; without it the first that is due."""
    id: ClientId | None = None


class DismissInput(Input):
    may_be_empty = True


@area.route("GET", "/api/home", HomeView, query=Input)
def home(_: Input) -> HomeView:
    """What needs its user, what runs, what fires next, usage of today, health."""
    return site().home.home()


@area.route("GET", "/api/self-awake", SelfAwakeView, query=Input)
def show_self_awake(_: Input) -> SelfAwakeView:
    """Whether it is on, the improvement in progress, and those before it with their branches."""
    here = site()
    return self_awake_view(here.files, here.settings)


@area.route("POST", "/api/self-awake", COMMAND_ANSWERS, body=SelfAwakeInput)
def change_self_awake(asked: SelfAwakeInput) -> Answer:
    """Switch it on or off, or have one improvement made at once."""
    if asked.item is not None and asked.action != "run":
        raise BadInput("item: expected none but for run", field="item")
    actions: dict[str, Action] = {
        "on": "self_awake_on",
        "off": "self_awake_off",
        "run": "self_awake_run",
    }
    return give_command(site(), actions[asked.action], asked.item or "", command_id=asked.id)


@area.route("GET", "/api/timeline", TimelineView, query=TimelineQuery)
def timeline(asked: TimelineQuery) -> TimelineView:
    """The runs of the last hours, waiting apart from running; of very many some hundred bars."""
    return site().home.timeline(asked.hours)


@area.route("POST", "/api/tasks/<task_id>/dismiss", COMMAND_ANSWERS, body=DismissInput)
def dismiss(_: DismissInput, task_id: str) -> Answer:
    """A failure was looked at: home speaks of it no more."""
    here = site()
    if tasks.find_view(here.files, task_id) is None:
        raise NotFound(f"there is no task {task_id[:128]}", field="id", code="no_work")
    return give_command(here, "dismiss", task_id, command_id=dismissal_id(task_id))


@area.route("GET", "/api/logs", LogPage, query=LogsQuery)
def logs(asked: LogsQuery) -> LogPage:
    """What happened, a page at a time; `after` of one answer goes on where it ended."""
    if asked.before is not None and asked.after is not None:
        raise BadInput("expected before or after, got both", field="after")
    here = site()
    wanted = LogFilter(type=asked.type, text=asked.q, id=asked.id or "")
    return log_page(
        here.files,
        wanted,
        here.clock.now(),
        limit=asked.limit,
        before=asked.before,
        after=asked.after,
    )


@area.route("GET", "/api/export", {200: None}, query=ExportQuery)
def take(asked: ExportQuery) -> Response:
    """The whole conversation, or all that came of one request, as Markdown or JSON."""
    here = site()
    zone = here.settings.zone
    if asked.what == "chat":
        said = export.conversation(here.state.files)
        is_markdown = asked.format == "md"
        body = export.chat_markdown(said, zone) if is_markdown else export.chat_json(said)
        return _download(body, f"mimikit-chat.{asked.format}")
    if asked.id is None:
        raise BadInput("id: expected the id of a trace, got none", field="id", code="missing")
    found = export.trace(here.files, asked.id, here.state.consumer().live)
    if found is None:
        raise NotFound(f"there is no trace {asked.id}", field="id", code="no_work")
    body = export.trace_markdown(found, zone) if asked.format == "md" else [found.to_json()]
    return _download(body, f"mimikit-{asked.id}.{asked.format}")


def _download(body: Iterable[str | bytes], name: str) -> Response:
    """Sent piece by piece, however much there is."""

    def pieces() -> Iterator[bytes]:
        for piece in body:
            yield piece.encode() if isinstance(piece, str) else piece

    type_ = "application/json" if name.endswith(".json") else "text/markdown"
    response = Response(pieces(), mimetype=type_)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
