"""Engines: their state, testing and setting up endpoints, and the order they are used in.

A key is only ever written to `secrets/` or handed to the trial: no answer, command or log has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints, ValidationError

from mimikit import config, permission
from mimikit.config import EndpointSettings, Settings
from mimikit.engines import setup
from mimikit.engines.setup import TrialRequest
from mimikit.errors import BadInput, BadSettings, Conflict, NotFound
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, EngineWant, Instant
from mimikit.protocol.records import bad_record
from mimikit.views.base import View
from mimikit.web.api.routing import Answer, ClientId, EndpointRegistry, Input, Site, bad_value, site
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandInput, give_command

area = EndpointRegistry("engines")


_FIELD_ERRORS = {
    "base_url": (
        "baseUrl",
        "expected an address such as http://127.0.0.1:11434/v1, without a name, a key or a query",
    ),
    "api_key_env": ("keyEnv", "expected the name of a variable, such as DEEPSEEK_API_KEY"),
}
"""The field of the input and its error, without what was got: a key may be in it."""


class UseInput(Input):
    """The engines to use, the best first; sent twice under one id it is one command."""

    use: Annotated[str, StringConstraints(min_length=1, max_length=400)]
    """Names of engines, with blanks between them."""
    seat: Annotated[str, StringConstraints(max_length=32)] | None = None
    """A role or profile; without it the default order."""
    id: ClientId | None = None


class EngineTryInput(Input):
    """Which engine to retry now; without one each that something waits for."""

    may_be_empty = True

    engine: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    id: ClientId | None = None


class EndpointInput(Input):
    """An endpoint. A known one keeps its key unless another is given."""

    base_url: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    key: Annotated[str, StringConstraints(max_length=2000)] = ""
    key_env: Annotated[str, StringConstraints(max_length=200)] = ""
    """The consumer's variable that holds the key."""
    id: ClientId | None = None


class TrialInput(EndpointInput):
    """An endpoint to be tested: without a model only its models are listed."""

    name: Annotated[str, StringConstraints(max_length=64)]


class TrialView(View):
    """The result of a trial; `message` and `field` where it failed."""

    ok: bool
    models: list[str]
    api: str | None
    """`responses` or `chat`, once a turn was tried."""
    text: str
    """What the model said."""
    calls_tools: bool
    took_s: float
    message: str
    field: str | None


_OWN: dict[str, Literal["program", "local", "builtin"]] = {
    "codex": "program",
    "opencode": "program",
    "local": "local",
    "builtin": "builtin",
}
"""Engines without a table; all but builtin are listed once they were used or are ordered."""


class EngineView(View):
    name: str
    kind: Literal["program", "local", "endpoint", "builtin"]
    base_url: str
    model: str
    key: Literal["none", "kept", "variable"]
    key_env: str
    """The variable that holds the key."""
    state: Literal["ready", "waiting", "unknown"]
    """Unknown while no consumer runs, and for an engine that was never used."""
    want: EngineWant | None
    reason: str | None
    until: Instant | None
    tasks: int
    """How many wait for it."""
    serves: list[str]
    """The roles and profiles that use it now."""


class EngineList(View):
    """The programs, the endpoints in the order of the settings, then local and builtin."""

    engines: list[EngineView]
    orders: dict[str, list[str]]
    """The order they are used in: `all`, and each role or profile with an order of its own."""


@area.route("GET", "/api/engines", EngineList, query=Input)
def listed(_: Input) -> EngineList:
    """Each engine that is set up, its state, and which is used for what."""
    here = site()
    status = here.state.status()
    seats = status.engines if status.consumer == "ok" else {}
    settings, known = _settings(here), status.minds
    orders = setup.orders(settings)
    ordered = {name for order in orders.values() for name in order}
    names = ["codex", "opencode", *settings.engines, "local", "builtin"]
    return EngineList(
        engines=[
            _view(name, settings, seats, known.get(name))
            for name in names
            if name not in ("codex", "opencode", "local") or name in known or name in ordered
        ],
        orders=orders,
    )


@area.route("POST", "/api/engines", COMMAND_ANSWERS, body=UseInput)
def use(body: UseInput) -> Answer:
    """Set the order of engines, by default or for one role or profile."""
    here = site()
    names = body.use.split()
    with bad_value("use"):
        if not names:
            raise BadInput("expected the name of an engine, got blanks")
        setup.check_seat(body.seat)
        setup.with_order(_text(here), names, body.seat)
    args = {"seat": body.seat} if body.seat else None
    return give_command(here, "engine_use", " ".join(names), command_id=body.id, args=args)


@area.route("POST", "/api/engines/try", COMMAND_ANSWERS, body=EngineTryInput)
def try_now(body: EngineTryInput) -> Answer:
    """Retry an engine that something waits for now, whatever its back-off."""
    return give_command(site(), "engine_try", body.engine or "", command_id=body.id)


@area.route("POST", "/api/engines/trial", TrialView, body=TrialInput)
def try_out(body: TrialInput) -> TrialView:
    """Ask an endpoint for its models and, with a model, for a turn; nothing is stored."""
    here = site()
    facts, key = _facts(here, setup.checked_name(body.name), body)
    request = TrialRequest(name=body.name, facts=facts, key=key)
    report = here.trial(request, Path(here.files.fs.root))
    test = report.test
    return TrialView(
        ok=not report.message,
        models=report.models,
        api=test.api if test else None,
        text=test.text if test else "",
        calls_tools=test is not None and test.calls_tools,
        took_s=test.took_s if test else 0.0,
        message=report.message,
        field=report.field,
    )


@area.route("PUT", "/api/engines/<name>", COMMAND_ANSWERS, body=EndpointInput)
def keep(body: EndpointInput, name: str) -> Answer:
    """Set up an endpoint, or change it. A key that is given is stored first.

    Crash: a key may be stored for an endpoint that is not; the next time it is replaced.
    """
    here = site()
    facts, key = _facts(here, setup.checked_name(name), body)
    if "model" not in facts:
        raise BadInput("expected the name of a model, got nothing", field="model")
    with bad_value():
        setup.with_endpoint(_text(here), name, facts)
    if key is not None:
        here.files.write(f"{paths.SECRETS}/{setup.key_file(name)}", f"{key}\n".encode())
    return give_command(here, "engine_set", name, command_id=body.id, args=dict(facts))


@area.route("DELETE", "/api/engines/<name>", COMMAND_ANSWERS, body=CommandInput)
def remove(body: CommandInput, name: str) -> Answer:
    """Forget an endpoint and its key."""
    here = site()
    if name not in _settings(here).engines:
        raise NotFound(f"there is no endpoint {name}", field="name")
    with bad_value("name"):
        setup.without_endpoint(_text(here), name)
    return give_command(here, "engine_remove", name, command_id=body.id)


def _facts(here: Site, name: str, body: EndpointInput) -> tuple[setup.Facts, str | None]:
    """The endpoint's settings, and a key that is not stored yet."""
    known = _settings(here).engines.get(name)
    key = setup.checked_key(body.key) if body.key else None
    if key and body.key_env:
        raise BadInput("expected a key or the name of its variable, got both", field="key")
    if body.key_env and (refusal := permission.variable_refusal(remote=here.is_remote)):
        raise BadInput(refusal, field="keyEnv")
    facts: setup.Facts = {"base_url": body.base_url}
    if body.model:
        facts["model"] = body.model
    facts |= setup.key_facts(name, body.base_url, key, body.key_env or None, known)
    try:
        checked = EndpointSettings.model_validate({"model": "unknown", **facts})
    except ValidationError as error:
        problem = bad_record(error)
        field, message = _FIELD_ERRORS.get(problem.field or "", (problem.field, str(problem)))
        raise BadInput(message, field=field) from None
    facts["base_url"] = checked.base_url
    return facts, key


def _settings(here: Site) -> Settings:
    """As they are now; those read at the start may be old."""
    try:
        return config.parsed(_text(here), Path(paths.CONFIG))
    except BadSettings as error:
        raise Conflict(f"the settings cannot be read: {error}") from None


def _text(here: Site) -> str:
    try:
        return setup.settings_text(here.files)
    except BadSettings as error:
        raise Conflict(f"the settings cannot be read: {error}") from None


def _view(
    name: str, settings: Settings, seats: Mapping[str, EngineStatus], status: EngineStatus | None
) -> EngineView:
    """`seats`: the engine of each role and profile; empty: no consumer runs."""
    endpoint = settings.engines.get(name)
    key = "none"
    if endpoint is not None and (endpoint.api_key_env or endpoint.api_key_file):
        key = "variable" if endpoint.api_key_env else "kept"
    state = status.state if status else "unknown"
    return EngineView(
        name=name,
        kind="endpoint" if endpoint else _OWN[name],
        base_url=endpoint.base_url if endpoint else "",
        model=endpoint.model if endpoint else "",
        key=key,
        key_env=(endpoint.api_key_env if endpoint else None) or "",
        state="ready" if name == "builtin" and seats else state,
        want=status.want if status else None,
        reason=status.reason if status else None,
        until=status.until if status else None,
        tasks=status.tasks if status else 0,
        serves=[seat for seat, used in seats.items() if used.engine == name],
    )
