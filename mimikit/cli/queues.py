"""`mimikit pause` and `mimikit resume`."""

from __future__ import annotations

import click

from mimikit.cli import terminal
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.waiting import order


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def pause(frame: Frame, as_json: bool) -> None:
    """Let the queues rest: what runs goes on, nothing new starts."""
    _give(frame, "pause", as_json=as_json)


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def resume(frame: Frame, as_json: bool) -> None:
    """Let the queues go on."""
    _give(frame, "resume", as_json=as_json)


def _give(frame: Frame, action: str, *, as_json: bool) -> None:
    outcome = order(frame.open(), action)
    if as_json:
        terminal.print_json(outcome.to_dict())
    else:
        terminal.out(terminal.sentence(outcome.message))
