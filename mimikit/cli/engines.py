"""`mimikit engine`: what does the thinking, how it is set up, and who serves what."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mimikit import app, config
from mimikit.cli import client, terminal
from mimikit.cli.client import look_at_consumer
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame, pass_state_and_json
from mimikit.config import OWN_ENGINES, EndpointSettings, Settings
from mimikit.engines import setup
from mimikit.engines.setup import EndpointTest
from mimikit.errors import BadInput, BadSettings, NotFound
from mimikit.protocol import paths
from mimikit.state import ReadOnlyState, State

if TYPE_CHECKING:
    from mimikit.engines.base import Engine

_SHOWN_MODELS = 40
_KEY_BYTES = 10_000


@click.group(cls=PlainGroup)
def engine() -> None:
    """What does the thinking: set up an endpoint, say who serves, go on without one."""


@engine.command()
@click.argument("name", required=False)
@click.option("--type", "kind", type=click.Choice(["openai"]), default="openai", show_default=True)
@click.option("--base-url", metavar="URL", help="Its address, such as http://127.0.0.1:11434/v1.")
@click.option("--model", metavar="MODEL", help="The model to ask; without it they are listed.")
@click.option("--key-env", metavar="VAR", help="The consumer's variable that holds the key.")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--effort", metavar="WORD", help="How much it is to think, where it knows that.")
@click.option("--price-in", type=float, metavar="N", help="Price of a million tokens read.")
@click.option("--price-out", type=float, metavar="N", help="Price of a million tokens written.")
@click.option("--no-test", is_flag=True, help="Do not try a turn.")
@click.option("--use", "first", is_flag=True, help="Have it serve first, before what serves now.")
@pass_frame
def add(
    frame: CliContext,
    name: str | None,
    kind: str,
    base_url: str | None,
    model: str | None,
    key_env: str | None,
    key_stdin: bool,
    no_test: bool,
    first: bool,
    **more: str | float | None,
) -> None:
    """Set up the endpoint NAME, or change it: any that speaks OpenAI's protocol.

    What is not given is asked for. The key is kept in secrets/, or stays in a variable.
    """
    state = frame.open_as_keeper(create=True)
    asks = sys.stdin.isatty() and not key_stdin
    name = name or _asked("Name", asks, "deepseek")
    if name in OWN_ENGINES:
        raise BadInput(f"NAME: expected a name of your own, {name!r} is taken")
    known = state.settings.engines.get(name)
    base_url = base_url or (known and known.base_url) or _asked("Address (base URL)", asks, _URL)
    key = _given_key(key_env, key_stdin, asks, known)
    facts = {"type": kind, "base_url": base_url, **_key_facts(name, key, key_env, known)}
    facts |= {fact: value for fact, value in more.items() if value is not None}
    trial = setup.EndpointTrial(name, facts, key, state.path)
    chosen = model or _chosen_model(trial, known.model if known else None, asks)
    facts["model"] = trial.facts["model"] = chosen
    text = setup.with_endpoint(_config_text(state), name, facts)
    if not no_test:
        _show_test(trial.turn())
    if key is not None:
        state.files.write(f"{paths.SECRETS}/{facts['api_key_file']}", f"{key}\n".encode())
    if first:
        order = [one for one in state.settings.engine_order if one != name]
        text = setup.with_order(text, [name, *order])
    state.files.write(paths.CONFIG, text.encode())
    setup.forget(name, state.path)
    terminal.out(f"Set up {name}: {facts['model']} at {base_url}.")
    _tell_consumer(state)
    if not first and state.settings.engine_order != ["auto"]:
        terminal.note(f"`mimikit engine use {name}` has it serve.")


_URL = "http://127.0.0.1:11434/v1"


@engine.command(name="list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the engines that are set up, whether each can serve, and who serves what."""
    found = {one.name: one for one in app.engines_of(state)}
    names = [name for name in ("codex", *state.settings.engines, "builtin") if name in found]
    lines = [_line(name, found[name], state.settings) for name in names]
    orders = setup.orders(state.settings)
    if as_json:
        terminal.print_json({"engines": lines, "orders": orders})
        return
    for line in lines:
        how = line["reason"] or "ready"
        terminal.out(f"{terminal.heading(line['name'])} {line['what']}  {terminal.dim(how)}")
    for seat, order in orders.items():
        who = "serves" if seat == "all" else f"serves {seat}"
        terminal.out(f"{who}: {', then '.join(order)}")


def _line(name: str, one: Engine, settings: Settings) -> dict[str, str]:
    endpoint = settings.engines.get(name)
    what = f"{endpoint.model} at {endpoint.base_url}" if endpoint else ""
    return {"name": name, "what": what, "reason": one.unavailable() or ""}


@engine.command()
@click.argument("name")
@pass_frame
def test(frame: CliContext, name: str) -> None:
    """Try a turn with NAME, and list what models it has."""
    state = frame.open_as_keeper()
    settings = _endpoint(state.settings, name)
    facts = settings.model_dump(exclude_none=True)
    trial = setup.EndpointTrial(name, facts, None, state.path)
    terminal.out(f"Models: {_some(trial.models())}")
    _show_test(trial.turn())


@engine.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--for", "seat", type=click.Choice(list(setup.SEATS)), help="A role or profile.")
@pass_frame
def order(frame: CliContext, names: Sequence[str], seat: str | None) -> None:
    """Say who serves, the best first; the next one does while those before it can not.

    `auto` among them is codex, then each endpoint, then builtin where there is no other.
    """
    state = frame.open_as_keeper()
    text = setup.with_order(_config_text(state), names, seat)
    if seat is None:
        client.carry_out(state, "engine_use", " ".join(names), as_json=False)
        return
    state.files.write(paths.CONFIG, text.encode())
    terminal.out(f"{seat}: {', then '.join(names)}.")
    _tell_consumer(state)


@engine.command()
@click.argument("name")
@pass_frame
def remove(frame: CliContext, name: str) -> None:
    """Forget the endpoint NAME and its key."""
    state = frame.open_as_keeper()
    endpoint = _endpoint(state.settings, name)
    text = setup.without_endpoint(_config_text(state), name)
    state.files.write(paths.CONFIG, text.encode())
    if endpoint.api_key_file == _key_file(name):
        state.files.remove(f"{paths.SECRETS}/{endpoint.api_key_file}")
    setup.forget(name, state.path)
    terminal.out(f"Removed {name}.")
    _tell_consumer(state)


@engine.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@pass_state_and_json
def use(state: ReadOnlyState, names: Sequence[str], as_json: bool) -> None:
    """Have NAME serve whatever the settings give no other: auto, codex, builtin or an endpoint.

    It is written into the settings. `builtin` needs no model: what waits for one goes on without
    it, as far as code can. `auto` takes the first model that can serve, and waits for it. Of
    several names the first that can serve is used.
    """
    setup.with_order(_config_text(state), names)  # what is wrong with it is said here
    client.carry_out(state, "engine_use", " ".join(names), as_json=as_json)


# ---- what `add` finds out


def _asked(what: str, asks: bool, such_as: str) -> str:
    if not asks:
        raise BadInput(f"expected {what.lower()} (such as {such_as}), got nothing")
    return str(click.prompt(what, default=such_as)).strip()


def _given_key(
    variable: str | None, from_stdin: bool, asks: bool, known: EndpointSettings | None
) -> str | None:
    """The key to be kept; None where none is given, or it stays where it is.

    Raises:
        BadInput: it is none.
    """
    if variable and from_stdin:
        raise BadInput("expected --key-env or --key-stdin, got both")
    if variable:
        if not os.environ.get(variable):
            terminal.note(f"{variable} is not set here; the consumer will need it.")
        return None
    if from_stdin:
        key = sys.stdin.read(_KEY_BYTES).strip()
    elif asks:
        label = "Key (empty: none is needed)" if known is None else "Key (empty: as it is)"
        key = str(click.prompt(label, default="", hide_input=True, show_default=False)).strip()
        if not key:
            return None
    else:
        return None
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise BadInput("expected a key of visible ASCII characters in one line, got something else")
    return key


def _key_facts(
    name: str, key: str | None, variable: str | None, known: EndpointSettings | None
) -> dict[str, str | float]:
    if variable:
        return {"api_key_env": variable}
    if key is not None:
        return {"api_key_file": _key_file(name)}
    facts = known.model_dump(include={"api_key_env", "api_key_file"}) if known else {}
    return {fact: value for fact, value in facts.items() if value is not None}


def _key_file(name: str) -> str:
    return f"engine-{name}.key"


def _chosen_model(trial: setup.EndpointTrial, known: str | None, asks: bool) -> str:
    """The model that is asked for, from what the endpoint lists."""
    if known and not asks:
        return known
    listed = trial.models()
    if not asks:
        raise BadInput(f"expected --model, got none; it has {_some(listed)}")
    terminal.out(f"Models: {_some(listed)}")
    default = known or (listed[0] if listed else None)
    return str(click.prompt("Model", default=default)).strip()


def _some(models: Sequence[str]) -> str:
    more = f" and {len(models) - _SHOWN_MODELS} more" if len(models) > _SHOWN_MODELS else ""
    return (", ".join(models[:_SHOWN_MODELS]) or "none it tells of") + more


def _show_test(found: EndpointTest) -> None:
    said = terminal.one_line(found.text)[:60]
    api = {"responses": "Responses", "chat": "Chat Completions"}[found.api]
    terminal.out(f"It answers by {api}, in {found.took_s:.1f} s: {said}")
    if not found.calls_tools:
        terminal.note("It did not call the tool it was asked to: it may only talk, not work.")


# ---- the settings


def _config_text(state: State) -> str:
    try:
        return (state.files.read(paths.CONFIG) or b"").decode()
    except UnicodeDecodeError as error:
        raise BadSettings(f"{paths.CONFIG}: {error}") from None


def _endpoint(settings: Settings, name: str) -> EndpointSettings:
    if name not in settings.engines:
        known = ", ".join(settings.engines) or "none yet"
        raise NotFound(f"expected an endpoint that is set up ({known}), got {name!r}")
    return settings.engines[name]


def _tell_consumer(state: State) -> None:
    """Have a running consumer read the engines anew."""
    config.load(state.path)
    if look_at_consumer(state).is_there:
        client.give_command(state, "engine_use")
