"""Engines: their state, setting up and testing endpoints, and the order of use.

A key is only written to `secrets/` or passed to the test: no answer, command or log contains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from mimikit import permission
from mimikit.config import EndpointSettings, Settings
from mimikit.engines import setup
from mimikit.engines.setup import EndpointTrial
from mimikit.errors import BadInput, BadRecord
from mimikit.protocol import paths
from mimikit.protocol.models import EngineProblem, EngineStatus, Instant
from mimikit.protocol.records import bad_record
from mimikit.views.base import View
from mimikit.web.api.routing import (
    Answer,
    ClientId,
    EndpointRegistry,
    Input,
    Site,
    bad_value,
    current_settings,
    current_site,
    existing,
)
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandInput, submit_command

area = EndpointRegistry("engines")


class UseInput(Input):
    """The engines to use, the best first; idempotent by id."""

    use: Annotated[str, StringConstraints(min_length=1, max_length=400)]
    """Names of engines, separated by spaces."""
    seat: Annotated[str, StringConstraints(max_length=32)] | None = None
    """A role or profile; by default the order of all."""
    id: ClientId | None = None


class EngineTryInput(Input):
    """The engine to retry; by default each that something waits for."""

    engine: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    id: ClientId | None = None


class EndpointInput(Input):
    """An endpoint. A known one keeps its key unless there is a new one."""

    base_url: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    key: Annotated[str, StringConstraints(max_length=2000)] = ""
    key_env: Annotated[str, StringConstraints(max_length=200)] = ""
    """The consumer's environment variable with the key."""
    id: ClientId | None = None


class TrialInput(EndpointInput):
    """An endpoint to test; without a model its models are listed."""

    name: Annotated[str, StringConstraints(max_length=64)]


class TrialView(View):
    ok: bool
    models: list[str]
    api: str | None = None
    """`responses` or `chat`; null without a turn."""
    text: str = ""
    calls_tools: bool = False
    took_s: float = 0
    message: str
    field: str | None
    trouble: str
    """What went wrong, as in `want` of an engine; empty: nothing, or something else."""


_OWN: dict[str, Literal["program", "local", "builtin"]] = {
    "codex": "program",
    "opencode": "program",
    "local": "local",
    "builtin": "builtin",
}
"""Engines without a settings table; listed when they were used or are in an order."""


class EngineView(View):
    name: str
    kind: Literal["program", "local", "endpoint", "builtin"]
    base_url: str
    model: str
    key: Literal["none", "kept", "variable"]
    key_env: str
    state: Literal["ready", "waiting", "unknown"]
    """Unknown without a consumer, and for an engine that was never used."""
    problem: EngineProblem | None = Field(serialization_alias="want")
    reason: str | None
    until: Instant | None
    tasks: int
    serves: list[str]
    """The roles and profiles that use it now."""


class EngineList(View):
    """The programs, the endpoints in the order of the settings, then local and builtin."""

    engines: list[EngineView]
    orders: dict[str, list[str]]
    """The order of use by role or profile; `all` is the default."""


@area.route("GET", "/api/engines", EngineList, query=Input)
def listed(_: Input) -> EngineList:
    """Every engine that is set up, its state, and its uses."""
    site = current_site()
    status = site.state.status()
    seats = status.engines if status.consumer == "ok" else {}
    settings, known = current_settings(site), status.by_engine
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
    site = current_site()
    names = body.use.split()
    with bad_value("use"):
        if not names:
            raise BadInput("expected the name of an engine, got blanks", code="missing")
        setup.check_seat(body.seat)
        setup.with_order(setup.settings_text(site.files), names, body.seat)
    args = {"seat": body.seat} if body.seat else None
    return submit_command(site, "engine_use", " ".join(names), command_id=body.id, args=args)


@area.route("POST", "/api/engines/try", COMMAND_ANSWERS, body=EngineTryInput)
def try_now(body: EngineTryInput) -> Answer:
    """Retry an engine without waiting for its back-off."""
    return submit_command(current_site(), "engine_try", body.engine or "", command_id=body.id)


@area.route("POST", "/api/engines/trial", TrialView, body=TrialInput)
def try_out(body: TrialInput) -> TrialView:
    """Test an endpoint: list its models and, with a model, run a turn; nothing is stored."""
    site = current_site()
    facts, key = _facts(site, setup.checked_name(body.name), body)
    request = EndpointTrial(name=body.name, facts=facts, key=key)
    report = site.trial(request, Path(site.files.fs.root))
    test = asdict(report.test) if report.test else {}
    return TrialView.of(report, ok=not report.message, **test)


@area.route("PUT", "/api/engines/<name>", COMMAND_ANSWERS, body=EndpointInput)
def keep(body: EndpointInput, name: str) -> Answer:
    """Set up an endpoint, or change it. A new key is stored first.

    Crash: a stored key without an endpoint is replaced the next time.
    """
    site = current_site()
    facts, key = _facts(site, setup.checked_name(name), body)
    if "model" not in facts:
        message = "expected the name of a model, got nothing"
        raise BadInput(message, field="model", code="missing")
    with bad_value():
        setup.with_endpoint(setup.settings_text(site.files), name, facts)
    if key is not None:
        site.files.write(f"{paths.SECRETS}/{setup.key_file(name)}", f"{key}\n".encode())
    return submit_command(site, "engine_set", name, command_id=body.id, args=dict(facts))


@area.route("DELETE", "/api/engines/<name>", COMMAND_ANSWERS, body=CommandInput)
def remove(body: CommandInput, name: str) -> Answer:
    """Remove an endpoint and its key."""
    site = current_site()
    existing(current_settings(site).engines.get(name), f"endpoint {name}", field="name")
    with bad_value("name"):
        setup.without_endpoint(setup.settings_text(site.files), name)
    return submit_command(site, "engine_remove", name, command_id=body.id)


def _facts(site: Site, name: str, body: EndpointInput) -> tuple[setup.Facts, str | None]:
    known = current_settings(site).engines.get(name)
    key = setup.checked_key(body.key) if body.key else None
    if key and body.key_env:
        message = "expected a key or the name of its variable, got both"
        raise BadInput(message, field="key", code="bad_key")
    if body.key_env and (refusal := permission.variable_refusal(remote=site.is_remote)):
        raise BadInput(refusal, field="keyEnv", code="no_remote_variable")
    facts: setup.Facts = {"base_url": body.base_url}
    if body.model:
        facts["model"] = body.model
    facts |= setup.key_facts(name, body.base_url, key, body.key_env or None, known)
    try:
        checked = EndpointSettings.model_validate({"model": "unknown", **facts})
    except ValidationError as error:
        raise _without_value(bad_record(error)) from None
    facts["base_url"] = checked.base_url
    return facts, key


def _without_value(problem: BadRecord) -> BadInput:
    """The value may contain a key."""
    if problem.field == "base_url":
        message = "expected an address such as http://127.0.0.1:11434/v1"
        message = f"{message}, without a name, a key or a query"
        return BadInput(message, field="baseUrl", code="bad_address")
    if problem.field == "api_key_env":
        message = "expected the name of a variable, such as DEEPSEEK_API_KEY"
        return BadInput(message, field="keyEnv", code="bad_variable")
    return problem


def _view(
    name: str, settings: Settings, seats: Mapping[str, EngineStatus], status: EngineStatus | None
) -> EngineView:
    """`seats`: the engine of each role and profile; empty without a consumer."""
    endpoint = settings.engines.get(name)
    key = "none"
    if endpoint is not None and (endpoint.api_key_env or endpoint.api_key_file):
        key = "variable" if endpoint.api_key_env else "kept"
    state = status.state if status else "unknown"
    return EngineView.of(
        status or EngineStatus(engine=name),
        name=name,
        kind="endpoint" if endpoint else _OWN[name],
        base_url=endpoint.base_url if endpoint else "",
        model=endpoint.model if endpoint else "",
        key=key,
        key_env=(endpoint.api_key_env if endpoint else None) or "",
        state="ready" if name == "builtin" and seats else state,
        serves=[role for role, used in seats.items() if used.engine == name],
    )
