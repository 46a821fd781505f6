"""Declares routes with the models of their inputs and answers.

webui/openapi.json, docs/http.md and the page's types are generated from these declarations. A
handler gets validated input and ids, and returns a view.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast
from zoneinfo import ZoneInfo

from flask import Blueprint, Response, current_app, request
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel
from werkzeug.exceptions import BadRequest

from mimikit import config
from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.engines import setup
from mimikit.engines.setup import EndpointTrial, TrialReport
from mimikit.errors import BadInput, BadRecord, Conflict, ErrorCode, MimikitError, NotFound
from mimikit.language.phrases import named_zone
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import ID_PATTERN, check_id
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import Record, to_utc
from mimikit.protocol.records import bad_record
from mimikit.roles.worktree import Worktrees
from mimikit.views.base import View
from mimikit.views.memory import MemoryReader
from mimikit.views.snapshot import StateReader
from mimikit.web.feed import Feed
from mimikit.web.guard import Guard, RateLimit, RequestDenied

if TYPE_CHECKING:
    from mimikit.memory.search import MemorySearch

ClientId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]


class Input(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=False
    )


class ErrorDetail(View):
    """An error by its code and what the words for it fill in, and in plain English."""

    code: ErrorCode
    field: str | None
    params: dict[str, str | int | float]
    message: str


class ErrorView(View):
    error: ErrorDetail


T = TypeVar("T")
I = TypeVar("I", bound=Input)  # noqa: E741 - reads best beside View's V
Shown = View | Record
Answer = Shown | tuple[Shown, int] | Response
Handler = TypeVar("Handler", bound=Callable[..., Answer])


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    method: str
    path: str
    """As OpenAPI writes it: `/api/tasks/{task_id}`."""
    name: str
    text: str
    query: type[Input] | None
    body: type[Input] | None
    answers: Mapping[int, type[Shown] | None]
    """By status; None: not JSON."""


class EndpointRegistry:
    def __init__(self, name: str) -> None:
        self.blueprint = Blueprint(name, __name__)
        self.table: list[Endpoint] = []

    def route(
        self,
        method: str,
        rule: str,
        answers: type[Shown] | Mapping[int, type[Shown] | None],
        *,
        query: type[Input] | None = None,
        body: type[Input] | None = None,
        max_bytes: int | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare a route. The handler gets the query or body, and the ids of the address.

        answers: the view of a 200, or views by status, the default first.
        query: without it the query is ignored.
        max_bytes: a size limit of the body instead of the default.
        """
        by_status = answers if isinstance(answers, Mapping) else {200: answers}
        default = next(iter(by_status))

        def declare(handler: Handler) -> Handler:
            @functools.wraps(handler)
            def endpoint(**address: str) -> Response:
                for name, text in address.items():
                    if name != "path":
                        check_id(text)
                if max_bytes is not None:
                    request.max_content_length = max_bytes
                inputs = [read_query(query)] if query else []
                inputs += [read_body(body)] if body else []
                result = handler(*inputs, **address)
                if isinstance(result, Response):
                    return result
                view, status = result if isinstance(result, tuple) else (result, default)
                return answer(view, status)

            self.blueprint.add_url_rule(rule, view_func=endpoint, methods=[method])
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule)
            text = (handler.__doc__ or "").strip()
            name = f"{self.blueprint.name}.{handler.__name__}"
            self.table.append(Endpoint(method, path, name, text, query, body, by_status))
            return handler

        return declare


EXTENSION = "mimikit"
Trial = Callable[[EndpointTrial, Path], TrialReport]


@dataclass(frozen=True, slots=True)
class Site:
    files: ReadOnlyFiles
    settings: Settings
    clock: Clock
    log: EventLog
    guard: Guard
    state: StateReader
    feed: Feed
    inputs: RateLimit
    library: MemoryReader
    search: Callable[[], MemorySearch]
    trial: Trial
    workspace: Path
    worktrees: Worktrees
    is_local: bool
    """Whether the page listens at a loopback address."""

    @property
    def is_remote(self) -> bool:
        """Whether input from this page may not run commands, even later."""
        return not self.is_local and not self.settings.web.allow_commands

    @property
    def reader(self) -> ZoneInfo | None:
        """The time zone of the page that asks; None: unknown."""
        return named_zone(request.headers.get("X-Mimikit-Zone"))

    def take_input(self) -> None:
        """Count a message or a file; RequestDenied when there are too many in a minute."""
        if not self.inputs.take():
            seconds = int(self.inputs.wait_s()) + 1
            message = f"too many messages in a minute; try again in {seconds} s"
            raise RequestDenied(429, message, code="too_many", params={"seconds": seconds})


def current_site() -> Site:
    return cast("Site", current_app.extensions[EXTENSION])


def current_settings(site: Site) -> Settings:
    """The settings as they are now; those of the start may be outdated. Raises BadSettings."""
    return config.parsed(setup.settings_text(site.files), Path(paths.CONFIG))


def answer(view: Shown, status: int = 200) -> Response:
    return Response(view.model_dump_json(by_alias=True), status, mimetype="application/json")


def error_answer(status: int, error: MimikitError) -> Response:
    return answer(ErrorView(error=ErrorDetail.of(error, message=str(error))), status)


def read_body(model: type[I]) -> I:
    """The request's JSON body, by default `{}`; BadRequest for other data, else BadInput."""
    try:
        values = parse_object(request.get_data(cache=False) or b"{}")
    except BadRecord as error:
        raise BadRequest(str(error)) from None
    return _checked(model, values)


def read_query(model: type[I]) -> I:
    """The request's query; BadInput for unknown and repeated names."""
    values: dict[str, Json] = {}
    for name, texts in request.args.lists():
        if len(texts) > 1:
            raise BadInput(f"{name[:40]}: expected one value, got {len(texts)}", field=name[:40])
        values[name] = texts[0]
    return _checked(model, values, strict=False)


def read_time(text: str | None, field: str, zone: ZoneInfo) -> datetime | None:
    """A day or time, by default in `zone`; BadInput for other text."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return to_utc(time if time.tzinfo else time.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        message = f"{field}: expected a time such as 2026-12-01 or 2026-12-01T09:00:00Z, got "
        raise BadInput(f"{message}{text[:40]!r}", field=field, code="bad_time") from None


def existing(found: T | None, what: str, field: str = "id") -> T:
    """What was looked up; NotFound when there is no such thing."""
    if found is None:
        raise NotFound(f"there is no {what}", field=field)
    return found


def id_taken(id_: str, kind: str) -> Conflict:
    text = f"id: expected a free one, got {id_!r}, which is another {kind}'s; take a new one"
    return Conflict(text, field="id", code="id_taken")


@contextlib.contextmanager
def bad_value(field: str | None = None) -> Generator[None]:
    """Make an error of the input name `field`, and answer 422 for an unknown id."""
    try:
        yield
    except Conflict:
        raise
    except (BadInput, ValidationError) as error:
        told = bad_record(error) if isinstance(error, ValidationError) else error
        field = field or told.field
        raise BadInput(str(told), field=field, code=told.code, params=told.params) from None


def _checked(model: type[I], values: dict[str, Json], *, strict: bool = True) -> I:
    try:
        return model.model_validate(values, strict=strict)
    except ValidationError as error:
        raise bad_record(error) from None
