"""`mimikit engine`: what does the thinking, how it is set up, and who serves what."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mimikit import app, config, config_file
from mimikit.cli import client, terminal
from mimikit.cli.client import look_at_consumer
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame, pass_state_and_json
from mimikit.config import Settings
from mimikit.engine_settings import EndpointSettings
from mimikit.engines import setup
from mimikit.engines.setup import EndpointTest, Facts
from mimikit.errors import BadInput
from mimikit.protocol import paths
from mimikit.state import ReadOnlyState

if TYPE_CHECKING:
    from mimikit.engines.base import Engine
    from mimikit.protocol.models import EngineStatus

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
    served = state.settings.engine_order
    asks = sys.stdin.isatty() and not key_stdin
    name = setup.checked_name(name or _asked("Name", asks, "deepseek", "NAME"))
    known = state.settings.engines.get(name)
    base_url = base_url or (known and known.base_url) or _asked("Address", asks, _URL, "--base-url")
    key = _given_key(key_env, key_stdin, asks, known)
    facts: Facts = {"type": kind, "base_url": base_url}
    facts |= setup.key_facts(name, base_url, key, key_env, known)
    facts |= _price(more.pop("price_in"), more.pop("price_out"))
    facts |= {fact: value for fact, value in more.items() if value is not None}
    trial = setup.EndpointTrial(name, facts, key, state.path)
    chosen = model or _chosen_model(trial, known.model if known else None, asks)
    facts["model"] = trial.facts["model"] = chosen

    def changed(text: str) -> str:
        made = setup.with_endpoint(text, name, facts)
        if not first:
            return made
        order = config.parsed(text, Path(paths.CONFIG)).engine_order
        return setup.with_order(made, [name, *(one for one in order if one != name)])

    changed(config_file.text_of(state.files))  # what can not be written is said before the test
    if not no_test:
        _show_test(trial.turn())
    if key is not None:
        state.files.write(f"{paths.SECRETS}/{facts['api_key_file']}", f"{key}\n".encode())
    config_file.rewrite(state.files, changed)
    setup.forget(state.files, name)
    terminal.out(f"Set up {name}: {facts['model']} at {base_url}.")
    client.settings_changed(state, "engine_use")
    if not first and state.settings.engine_order != ["auto"] and name not in served:
        terminal.note(f"`mimikit engine use {name}` has it serve.")


def _price(read: str | float | None, written: str | float | None) -> Facts:
    if read is None and written is None:
        return {}
    if not isinstance(read, float) or not isinstance(written, float):
        raise BadInput("expected --price-in and --price-out, got one of them")
    return {"price": {"input": read, "output": written}}


_WHAT = {"local": "a small model here, basic mode", "builtin": "no model: plain sentences"}
_SERVED = ", ".join(f"{seat} ({terminal.served_words(seat)})" for seat in setup.SEATS)
_URL = "http://127.0.0.1:11434/v1"


@engine.command(name="list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the engines that are set up, whether each can serve, and who serves what."""
    found = {one.name: one for one in app.engines_of(state)}
    ordered = ("codex", "opencode", *state.settings.engines, "local", "builtin")
    names = [name for name in ordered if name in found]
    consumer = look_at_consumer(state).current
    minds = consumer.minds if consumer else {}
    lines = [_line(name, found[name], minds.get(name), state.settings) for name in names]
    orders = setup.orders(state.settings)
    if as_json:
        terminal.print_json({"engines": lines, "orders": orders})
        return
    for line in lines:
        about = "  ".join(filter(None, (line["what"], terminal.dim(line["reason"] or "ready"))))
        terminal.out(f"{terminal.heading(line['name'])} {about}")
    for seat, order in orders.items():
        who = "serves" if seat == "all" else f"serves {terminal.served_words(seat)}"
        terminal.out(f"{who}: {', then '.join(order)}")


def _line(name: str, one: Engine, mind: EngineStatus | None, settings: Settings) -> dict[str, str]:
    """`mind`: how a running consumer finds it, which has asked it."""
    endpoint = settings.engines.get(name)
    what = f"{endpoint.model} at {endpoint.base_url}" if endpoint else ""
    what = _WHAT.get(name, what)
    reason = mind.reason if mind and mind.state == "waiting" else one.unavailable()
    return {"name": name, "what": what, "reason": reason or ""}


@engine.command()
@click.argument("name")
@pass_frame
def test(frame: CliContext, name: str) -> None:
    """Try a turn with NAME, and list what models it has."""
    state = frame.open_as_keeper()
    settings = client.set_up(state.settings.engines, "an endpoint", name)
    facts = settings.model_dump(exclude_none=True)
    trial = setup.EndpointTrial(name, facts, None, state.path)
    terminal.out(f"Models: {_some(_listed(trial))}")
    _show_test(trial.turn())


@engine.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--for", "seat", type=click.Choice(list(setup.SEATS)), help=f"For whom: {_SERVED}.")
@pass_frame
def order(frame: CliContext, names: Sequence[str], seat: str | None) -> None:
    """Say who serves, the best first; the next one does while those before it can not.

    `auto` among them is codex, then opencode, then each endpoint, then local, then builtin where
    there is no other.
    """
    state = frame.open_as_keeper()
    if seat is None:
        setup.with_order(config_file.text_of(state.files), names)  # what is wrong is said here
        client.carry_out(state, "engine_use", " ".join(names), as_json=False)
        return
    config_file.rewrite(state.files, lambda text: setup.with_order(text, names, seat))
    terminal.out(f"{terminal.served_words(seat)}: {', then '.join(names)}.")
    client.settings_changed(state, "engine_use")


@engine.command()
@click.argument("name")
@pass_frame
def remove(frame: CliContext, name: str) -> None:
    """Forget the endpoint NAME and its key."""
    state = frame.open_as_keeper()
    client.set_up(state.settings.engines, "an endpoint", name)
    config_file.rewrite(state.files, lambda text: setup.without_endpoint(text, name))
    setup.forget(state.files, name)
    terminal.out(f"Removed {name}.")
    client.settings_changed(state, "engine_use")


@engine.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@pass_state_and_json
def use(state: ReadOnlyState, names: Sequence[str], as_json: bool) -> None:
    """Have NAME serve whatever the settings give no other: auto, codex, builtin or an endpoint.

    It is written into the settings. `builtin` needs no model: what waits for one goes on without
    it, as far as code can. `auto` takes the first model that can serve, and waits for it. Of
    several names the first that can serve is used.
    """
    setup.with_order(config_file.text_of(state.files), names)  # what is wrong with it is said here
    client.carry_out(state, "engine_use", " ".join(names), as_json=as_json)


@engine.command(name="try")
@click.argument("name", default="")
@pass_state_and_json
def try_(state: ReadOnlyState, name: str, as_json: bool) -> None:
    """Have NAME, or each engine that is waited for, tried now: what it lacked is there again."""
    client.carry_out(state, "engine_try", name, as_json=as_json)


# ---- what `add` finds out


def _asked(what: str, asks: bool, such_as: str, option: str) -> str:
    if not asks:
        raise BadInput(f"expected {option} (such as {such_as}), got nothing")
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
    return config_file.checked_secret(key)


def _chosen_model(trial: setup.EndpointTrial, known: str | None, asks: bool) -> str:
    """The model that is asked for, from what the endpoint lists."""
    if known and not asks:
        return known
    if not asks:
        raise BadInput(f"expected --model, got none; it has {_some(trial.models())}")
    listed = _listed(trial)
    terminal.out(f"Models: {_some(listed)}")
    default = known or (listed[0] if listed else None)
    return str(click.prompt("Model", default=default)).strip()


def _listed(trial: setup.EndpointTrial) -> list[str]:
    """What it has, as far as it tells: many an endpoint can not list it, and answers."""
    try:
        return trial.models()
    except BadInput as error:
        terminal.note(str(error))
        return []


def _some(models: Sequence[str]) -> str:
    more = f" and {len(models) - _SHOWN_MODELS} more" if len(models) > _SHOWN_MODELS else ""
    return (", ".join(models[:_SHOWN_MODELS]) or "none it tells of") + more


def _show_test(found: EndpointTest) -> None:
    api = {"responses": "Responses", "chat": "Chat Completions"}[found.api]
    said = f": {terminal.one_line(found.text)[:60]}"
    how = " and calls tools." if found.calls_tools else said
    terminal.out(f"It answers by {api} in {found.took_s:.1f} s{how}")
    if not found.calls_tools:
        terminal.note("It did not call the tool it was asked to: it may only talk, not work.")
