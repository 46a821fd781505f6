"""`mimikit engine`: what serves."""

from __future__ import annotations

from typing import get_args

import click

from mimikit.cli import client
from mimikit.cli.frame import PlainGroup, pass_state_and_json
from mimikit.cli.options import WordOption
from mimikit.config import UsedEngine
from mimikit.state import ReadOnlyState


@click.group(cls=PlainGroup)
def engine() -> None:
    """What does the thinking, and what to do without it."""


@engine.command()
@click.argument("name", type=WordOption(get_args(UsedEngine)))
@pass_state_and_json
def use(state: ReadOnlyState, name: str, as_json: bool) -> None:
    """Have NAME serve whatever the settings give no other: auto, codex or builtin.

    It is written into the settings. `builtin` needs no model: what waits for one goes on without
    it, as far as code can. `auto` takes the first model that can serve, and waits for it.
    """
    client.carry_out(state, "engine_use", name, as_json=as_json)
