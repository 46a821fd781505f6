"""Engines: which there are and how each is, trying and setting up endpoints, who serves what.

A key goes one way: into `secrets/`, or to the trial. No answer, command, log or address holds one.
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


_MEANT = {
    "base_url": (
        "baseUrl",
        "expected an address such as http://127.0.0.1:11434/v1, without a name, a key or a query",
    ),
    "api_key_env": ("keyEnv", "expected the name of a variable, such as DEEPSEEK_API_KEY"),
}
"""The field of the input, and what is said of it: not what was got, a key may be in it."""


class UseInput(Input):
    """Who serves, the best first; the client may name its command: sent twice it is one."""

    use: Annotated[str, StringConstraints(min_length=1, max_length=400)]
    """Names of engines, with blanks between them."""
    seat: Annotated[str, StringConstraints(max_length=32)] | None = None
    """A role or profile; without it whatever names none of its own."""
    id: ClientId | None = None


class EngineTryInput(Input):
    """Which engine to try now; without one each that is waited for."""

    may_be_empty = True

    engine: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    id: ClientId | None = None


class EndpointInput(Input):
    """An endpoint. Of one that is known its key stays unless another one is given."""

    base_url: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    key: Annotated[str, StringConstraints(max_length=2000)] = ""
    key_env: Annotated[str, StringConstraints(max_length=200)] = ""
    """The consumer's variable that holds the key."""
    id: ClientId | None = None


class TrialInput(EndpointInput):
    """The same to be tried: without a model only its models are listed."""

    name: Annotated[str, StringConstraints(max_length=64)]


class TrialView(View):
    """What came of a trial; `message` and `field` where it failed."""

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
"""What needs no table; but for builtin it is told of once it served, or is meant to."""


class EngineView(View):
    """One engine."""

    name: str
    kind: Literal["program", "local", "endpoint", "builtin"]
    base_url: str
    model: str
    key: Literal["none", "kept", "variable"]
    key_env: str
    """The variable that holds the key."""
    state: Literal["ready", "waiting", "unknown"]
    """Unknown while no consumer runs, and of what was never used."""
    want: EngineWant | None
    reason: str | None
    until: Instant | None
    tasks: int
    """So many wait for it."""
    serves: list[str]
    """The roles and profiles that it serves now."""


class EngineList(View):
    """The programs, the endpoints in the order of the settings, what this machine has."""

    engines: list[EngineView]
    orders: dict[str, list[str]]
    """Who is to serve, the best first: `all`, and each role or profile that says so itself."""


@area.route("GET", "/api/engines", EngineList, query=Input)
def listed(_: Input) -> EngineList:
    """Each engine that is set up, how it is, and who serves what; nobody is asked for it."""
    here = site()
    status = here.state.status()
    is_there = status.consumer == "ok"
    seats = status.engines if is_there else {}
    return _engine_list(_settings(here), seats, status.minds)


@area.route("POST", "/api/engines", COMMAND_ANSWERS, body=UseInput)
def use(asked: UseInput) -> Answer:
    """Say who serves, everything or one role or profile; it is written into the settings."""
    here = site()
    names = asked.use.split()
    with bad_value("use"):
        if not names:
            raise BadInput("expected the name of an engine, got blanks")
        setup.check_seat(asked.seat)
        setup.with_order(_text(here), names, asked.seat)
    args = {"seat": asked.seat} if asked.seat else None
    return give_command(here, "engine_use", " ".join(names), command_id=asked.id, args=args)


@area.route("POST", "/api/engines/try", COMMAND_ANSWERS, body=EngineTryInput)
def try_now(asked: EngineTryInput) -> Answer:
    """Have an engine that is waited for tried now, however long it was to rest."""
    return give_command(site(), "engine_try", asked.engine or "", command_id=asked.id)


@area.route("POST", "/api/engines/trial", TrialView, body=TrialInput)
def try_out(asked: TrialInput) -> TrialView:
    """Ask an endpoint for its models and, with a model, for a turn; nothing is kept of it."""
    here = site()
    facts, key = _facts(here, setup.checked_name(asked.name), asked)
    request = TrialRequest(name=asked.name, facts=facts, key=key)
    found = here.trial(request, Path(here.files.fs.root))
    test = found.test
    return TrialView(
        ok=not found.message,
        models=found.models,
        api=test.api if test else None,
        text=test.text if test else "",
        calls_tools=test is not None and test.calls_tools,
        took_s=test.took_s if test else 0.0,
        message=found.message,
        field=found.field,
    )


@area.route("PUT", "/api/engines/<name>", COMMAND_ANSWERS, body=EndpointInput)
def keep(asked: EndpointInput, name: str) -> Answer:
    """Set up an endpoint, or change it. A key that is given is written first, for its owner alone.

    Crash: a key may be kept for an endpoint that is not; the next time it is replaced.
    """
    here = site()
    facts, key = _facts(here, setup.checked_name(name), asked)
    if "model" not in facts:
        raise BadInput("expected the name of a model, got nothing", field="model")
    with bad_value():
        setup.with_endpoint(_text(here), name, facts)
    if key is not None:
        here.files.write(f"{paths.SECRETS}/{setup.key_file(name)}", f"{key}\n".encode())
    return give_command(here, "engine_set", name, command_id=asked.id, args=dict(facts))


@area.route("DELETE", "/api/engines/<name>", COMMAND_ANSWERS, body=CommandInput)
def remove(asked: CommandInput, name: str) -> Answer:
    """Forget an endpoint and its key."""
    here = site()
    if name not in _settings(here).engines:
        raise NotFound(f"there is no endpoint {name}", field="name")
    with bad_value("name"):
        setup.without_endpoint(_text(here), name)
    return give_command(here, "engine_remove", name, command_id=asked.id)


def _facts(here: Site, name: str, asked: EndpointInput) -> tuple[setup.Facts, str | None]:
    """What the settings are to say of it, and a key that is not kept yet."""
    known = _settings(here).engines.get(name)
    key = setup.checked_key(asked.key) if asked.key else None
    if key and asked.key_env:
        raise BadInput("expected a key or the name of its variable, got both", field="key")
    if asked.key_env and (refusal := permission.variable_refusal(remote=here.is_remote)):
        raise BadInput(refusal, field="keyEnv")
    facts: setup.Facts = {"base_url": asked.base_url}
    if asked.model:
        facts["model"] = asked.model
    facts |= setup.key_facts(name, asked.base_url, key, asked.key_env or None, known)
    try:
        checked = EndpointSettings.model_validate({"model": "unknown", **facts})
    except ValidationError as error:
        told = bad_record(error)
        field, said = _MEANT.get(told.field or "", (told.field, str(told)))
        raise BadInput(said, field=field) from None
    facts["base_url"] = checked.base_url
    return facts, key


def _settings(here: Site) -> Settings:
    """As they are now: those of the start may be old."""
    try:
        return config.parsed(_text(here), Path(paths.CONFIG))
    except BadSettings as error:
        raise Conflict(f"the settings can not be read: {error}") from None


def _text(here: Site) -> str:
    try:
        return setup.settings_text(here.files)
    except BadSettings as error:
        raise Conflict(f"the settings can not be read: {error}") from None


def _engine_list(
    settings: Settings, seats: Mapping[str, EngineStatus], minds: Mapping[str, EngineStatus]
) -> EngineList:
    """`seats`: who serves each role or profile; `minds`: how each mind is; empty: nobody knows."""
    orders = setup.orders(settings)
    named = {name for order in orders.values() for name in order}
    serves: dict[str, list[str]] = {}
    for seat, status in seats.items():
        serves.setdefault(status.engine, []).append(seat)
    names = ["codex", "opencode", *settings.engines, "local", "builtin"]
    found = [
        _view(name, settings.engines.get(name), minds.get(name), serves.get(name, []), bool(seats))
        for name in names
        if name not in ("codex", "opencode", "local") or name in minds or name in named
    ]
    return EngineList(engines=found, orders=orders)


def _view(
    name: str,
    endpoint: EndpointSettings | None,
    mind: EngineStatus | None,
    serves: list[str],
    is_known: bool,
) -> EngineView:
    state = mind.state if mind else "unknown"
    if name == "builtin" and is_known:
        state = "ready"
    key = "none"
    if endpoint is not None and (endpoint.api_key_env or endpoint.api_key_file):
        key = "variable" if endpoint.api_key_env else "kept"
    return EngineView(
        name=name,
        kind="endpoint" if endpoint else _OWN[name],
        base_url=endpoint.base_url if endpoint else "",
        model=endpoint.model if endpoint else "",
        key=key,
        key_env=(endpoint.api_key_env if endpoint else None) or "",
        state=state,
        want=mind.want if mind else None,
        reason=mind.reason if mind else None,
        until=mind.until if mind else None,
        tasks=mind.tasks if mind else 0,
        serves=serves,
    )
