"""`mimikit engine`: set up engines and the order they are used in."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mimikit.cli import client, render, terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_cli, pass_state_and_json
from mimikit.config import Settings
from mimikit.engine_settings import EndpointSettings
from mimikit.engines import setup
from mimikit.engines.setup import EndpointTest, Facts
from mimikit.errors import BadInput, NotFound
from mimikit.protocol import paths
from mimikit.state import ReadOnlyState

if TYPE_CHECKING:
    from mimikit.engines.base import Engine
    from mimikit.protocol.models import EngineStatus

_SHOWN_MODELS = 40
_KEY_BYTES = 10_000


@click.group(cls=PlainGroup)
def engine() -> None:
    """Set up an endpoint, choose which engine is used, retry one."""


@engine.command()
@click.argument("name", required=False)
@click.option("--type", "kind", type=click.Choice(["openai"]), default="openai", show_default=True)
@click.option("--base-url", metavar="URL", help="Its address, such as http://127.0.0.1:11434/v1.")
@click.option(
    "--model",
    "models",
    metavar="MODEL",
    multiple=True,
    help="The model to ask; a second one becomes NAME-2, the fallback. Without it they are listed.",
)
@click.option("--key-env", metavar="VAR", help="The variable of mimikit that holds the key.")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--effort", metavar="WORD", help="Reasoning effort, where it knows that.")
@click.option("--temperature", type=float, metavar="N", help="Sampling temperature, 0 to 2.")
@click.option("--max-tokens", type=int, metavar="N", help="Output limit, thinking included.")
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="One more request header.")
@click.option("--query", multiple=True, metavar="NAME=VALUE", help="One more query parameter.")
@click.option("--price-in", type=float, metavar="N", help="Price of a million tokens read.")
@click.option("--price-out", type=float, metavar="N", help="Price of a million tokens written.")
@click.option("--no-test", is_flag=True, help="Do not test it with a turn.")
@click.option("--use", "first", is_flag=True, help="Use it first, before the engines used now.")
@pass_cli
def add(
    cli: CliContext,
    name: str | None,
    kind: str,
    base_url: str | None,
    models: tuple[str, ...],
    key_env: str | None,
    key_stdin: bool,
    no_test: bool,
    first: bool,
    header: tuple[str, ...],
    query: tuple[str, ...],
    **more: str | float | None,
) -> None:
    """Set up or change the endpoint NAME, with any server of OpenAI's protocol.

    Prompts for missing options. The key is stored in secrets/, or stays in a variable. The address
    of these names is known: ollama, llamacpp, vllm, lmstudio, openai, deepseek, qwen, kimi, glm,
    minimax, mistral, gemini, openrouter.
    """
    state = cli.open_writable(create=True)
    used = state.settings.engine_order
    interactive = sys.stdin.isatty() and not key_stdin
    name = setup.checked_name(name or _prompt("Name", interactive, "deepseek", "NAME"))
    known = state.settings.engines.get(name)
    base_url = (
        base_url
        or (known and known.base_url)
        or setup.provider_address(name)
        or _prompt("Address", interactive, _URL, "--base-url")
    )
    key = _key_to_store(key_env, key_stdin, interactive, known)
    facts: Facts = {"type": kind, "base_url": base_url, **setup.default_facts(base_url)}
    facts |= _pairs("headers", "--header", header) | _pairs("query", "--query", query)
    facts |= setup.key_facts(name, base_url, key, key_env, known)
    facts |= _price(more.pop("price_in"), more.pop("price_out"))
    facts |= {fact: value for fact, value in more.items() if value is not None}
    trial = setup.EndpointTrial(name=name, facts=facts, key=key)
    usual = known.model if known else None
    chosen, *others = models or [_chosen_model(trial, state.path, usual, interactive)]
    facts["model"] = trial.facts["model"] = chosen
    setup.with_endpoint(setup.settings_text(state.files), name, facts)  # raises what is wrong
    if not no_test:
        _show_test(trial.turn(state.path))
    if key is not None:
        state.files.write(f"{paths.SECRETS}/{facts['api_key_file']}", f"{key}\n".encode())
    client.change_settings(state, "engine_set", name, dict(facts))
    terminal.out(f"Set up {name}: {facts['model']} at {base_url}.")
    names = [name, *(f"{name}-{number}" for number in range(2, len(others) + 2))]
    for other, fallback in zip(others, names[1:], strict=True):
        client.change_settings(state, "engine_set", fallback, {**facts, "model": other})
        terminal.out(f"Set up {fallback}: {other} at {base_url}.")
    for one in reversed(names if first else []):
        client.change_settings(state, "engine_use", one, {"first": True})
    if not first and state.settings.engine_order != ["auto"] and name not in used:
        terminal.note(f"`mimikit engine use {name}` uses it.")


def _pairs(fact: str, option: str, words: Sequence[str]) -> Facts:
    pairs: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        if not key or not value:
            raise BadInput(f"expected {option} NAME=VALUE, got {word!r}")
        pairs[key] = value
    return {fact: pairs} if pairs else {}


def _price(input_: str | float | None, output: str | float | None) -> Facts:
    if input_ is None and output is None:
        return {}
    if not isinstance(input_, float) or not isinstance(output, float):
        raise BadInput("expected --price-in and --price-out, got one of them")
    return {"price": {"input": input_, "output": output}}


_CODE = "builtin"
_OWN_WORDS = {"local": "a small model here, basic mode", _CODE: "no model: plain sentences"}
_URL = "http://127.0.0.1:11434/v1"


@engine.command(name="list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the engines that are set up, their state, and the order they are used in."""
    from mimikit import app

    engines = {one.name: one for one in app.engines_of(state)}
    ordered = ("codex", "opencode", *state.settings.engines, "local", "builtin")
    names = [name for name in ordered if name in engines]
    consumer = client.read_consumer(state).current
    known = consumer.by_engine if consumer else {}
    lines = [_line(name, engines[name], known.get(name), state.settings) for name in names]
    orders = setup.orders(state.settings)
    if as_json:
        terminal.print_json({"engines": lines, "orders": orders})
        return
    for line in lines:
        about = "  ".join(filter(None, (line["what"], terminal.dim(line["reason"] or "ready"))))
        name = "none" if line["name"] == _CODE else line["name"]
        terminal.out(f"{terminal.heading(name)} {about}")
    for role, order in orders.items():
        what = "used" if role == "all" else f"used for {role}"
        terminal.out(f"{what}: {', then '.join(order)}")


def _line(
    name: str, engine: Engine, status: EngineStatus | None, settings: Settings
) -> dict[str, str]:
    """`status`: from the consumer's heartbeat."""
    endpoint = settings.engines.get(name)
    what = f"{endpoint.model} at {endpoint.base_url}" if endpoint else ""
    what = _OWN_WORDS.get(name, what)
    is_waiting = status is not None and status.state == "waiting"
    reason = status.reason if status and is_waiting else engine.unavailable()
    return {"name": name, "what": what, "reason": reason or ""}


@engine.command()
@click.argument("name")
@pass_cli
def test(cli: CliContext, name: str) -> None:
    """Test NAME with a turn, and list its models."""
    state = cli.open_writable()
    settings = _endpoint(state.settings, name)
    facts = settings.model_dump(exclude_none=True)
    trial = setup.EndpointTrial(name=name, facts=facts)
    terminal.out(f"Models: {_model_list(trial.models(state.path))}")
    _show_test(trial.turn(state.path))


@engine.command()
@click.argument("name")
@pass_cli
def remove(cli: CliContext, name: str) -> None:
    """Remove the endpoint NAME and its key."""
    state = cli.open()
    _endpoint(state.settings, name)
    result = client.change_settings(state, "engine_remove", name)
    terminal.out(terminal.sentence(result.message))


@engine.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--for", "role", type=click.Choice(list(setup.SEATS)), help="A role or profile.")
@pass_state_and_json
def use(state: ReadOnlyState, names: Sequence[str], role: str | None, as_json: bool) -> None:
    """Use these engines by default, the best first; the next one is the fallback.

    It is written into the settings. `none` goes on without a model, as far as code can. `auto` is
    codex, then opencode, then each endpoint, then local; it waits for the first that is set up.
    """
    names = [_CODE if name == "none" else name for name in names]
    setup.with_order(setup.settings_text(state.files), names, role)  # raises what is wrong
    args = {"seat": role} if role else None
    outcome = client.change_settings(state, "engine_use", " ".join(names), args)
    render.show(outcome, state, as_json=as_json)


engine.add_command(use, "order")


@engine.command(name="try")
@click.argument("name", default="")
@pass_state_and_json
def try_(state: ReadOnlyState, name: str, as_json: bool) -> None:
    """Retry NAME, or each engine that something waits for, now."""
    render.show(client.submit_command(state, "engine_try", name), state, as_json=as_json)


# ---- what `add` asks for


def _prompt(what: str, interactive: bool, such_as: str, option: str) -> str:
    if not interactive:
        raise BadInput(f"expected {option} (such as {such_as}), got nothing")
    return str(click.prompt(what, default=such_as)).strip()


def _key_to_store(
    variable: str | None, from_stdin: bool, interactive: bool, known: EndpointSettings | None
) -> str | None:
    """The key to store; None for none, and to keep the stored one."""
    if variable and from_stdin:
        raise BadInput("expected --key-env or --key-stdin, got both")
    if variable:
        if not os.environ.get(variable):
            terminal.note(f"{variable} is not set here; mimikit will need it when it starts.")
        return None
    if from_stdin:
        key = sys.stdin.read(_KEY_BYTES).strip()
    elif interactive:
        label = "Key (empty: none is needed)" if known is None else "Key (empty: as it is)"
        key = str(click.prompt(label, default="", hide_input=True, show_default=False)).strip()
        if not key:
            return None
    else:
        return None
    return setup.checked_key(key)


def _chosen_model(
    trial: setup.EndpointTrial, state: Path, known: str | None, interactive: bool
) -> str:
    if known and not interactive:
        return known
    listed = trial.models(state)
    if not interactive:
        raise BadInput(f"expected --model, got none; it has {_model_list(listed)}")
    terminal.out(f"Models: {_model_list(listed)}")
    default = known or (listed[0] if listed else None)
    return str(click.prompt("Model", default=default)).strip()


def _model_list(models: Sequence[str]) -> str:
    more = f" and {len(models) - _SHOWN_MODELS} more" if len(models) > _SHOWN_MODELS else ""
    return (", ".join(models[:_SHOWN_MODELS]) or "none listed") + more


def _show_test(test: EndpointTest) -> None:
    api = {"responses": "Responses", "chat": "Chat Completions"}[test.api]
    text = f": {terminal.one_line(test.text)[:60]}"
    how = " and calls tools." if test.calls_tools else text
    terminal.out(f"It answers by {api} in {test.took_s:.1f} s{how}")
    if not test.calls_tools:
        terminal.note("It did not call the tool it was asked to: it can talk, but maybe not work.")


def _endpoint(settings: Settings, name: str) -> EndpointSettings:
    if name not in settings.engines:
        known = ", ".join(settings.engines) or "none yet"
        raise NotFound(f"expected an endpoint that is set up ({known}), got {name!r}")
    return settings.engines[name]
