"""`mimikit status`, how it goes; `mimikit logs`, what happened; `mimikit prompt`, why."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo
from typing import Any

import click

from mimikit.cli import client, render, terminal
from mimikit.cli.frame import LeafCommand, pass_state_and_json
from mimikit.cli.options import NumberRange
from mimikit.errors import NotFound
from mimikit.log import log_tails
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.records import whole_lines
from mimikit.state import ReadOnlyState
from mimikit.views.messages import turn_prompt
from mimikit.views.status import overview


@click.command(cls=LeafCommand)
@pass_state_and_json
def status(state: ReadOnlyState, as_json: bool) -> None:
    """Show how it goes: consumer, seats, queues, engines, question, errors."""
    consumer = client.look_at_consumer(state)
    here = client.situation(state, consumer)
    workspace, settings = str(state.workspace), state.settings
    seen = overview(state.files, consumer, here, workspace=workspace, settings=settings)
    render.show(seen, render.RenderContext.of(state), as_json=as_json)


# ---- the log

_TAIL_BYTES = 4 * 2**20
_PART_BYTES = 2**20
_LOG_HEADS = ("timestamp", "type", "event")
_COLOURS = {"error": "red", "audit": "yellow"}


@click.command(cls=LeafCommand)
@click.argument("turn", metavar="[TURN or TASK]", required=False)
@pass_state_and_json
def prompt(state: ReadOnlyState, turn: str | None, as_json: bool) -> None:
    """Print what a turn or a task's run was told, the last one's without an id."""
    found = turn_prompt(state.files, client.find_prompt(state.files, turn))
    if found is None:
        raise NotFound(f"the prompt of {turn} can not be read")
    render.show(found, render.RenderContext.of(state), as_json=as_json)


@click.command(cls=LeafCommand)
@click.option("-f", "--follow", is_flag=True, help="Go on printing what happens.")
@click.option("--type", "type_", metavar="T", help="Lines of one type: task, audit, error…")
@click.option(
    "-n", "--lines", type=NumberRange(0, 100_000), default=30, help="How many to begin with."
)
@pass_state_and_json
def logs(state: ReadOnlyState, follow: bool, type_: str | None, lines: int, as_json: bool) -> None:
    """Print what happened, newest last, from log.jsonl."""
    files = state.files

    def print_line(line: dict[str, Any]) -> None:
        if type_ is None or line.get("type") == type_:
            if as_json:
                terminal.out(terminal.json_text(line))
            else:
                terminal.out(_line_text(line, state.clock.now(), state.settings.zone))

    with client.Watcher(state, [paths.ROOT]) as watcher:
        stat = files.stat(paths.LOG)
        offset = stat.size if stat else 0
        for line in _last_lines(files, lines, type_):
            print_line(line)
        while follow:
            stat = files.stat(paths.LOG)
            begin = offset if stat is not None and stat.size >= offset else 0  # of a fresh file
            offset = begin
            for end, line in whole_lines(files.part(paths.LOG, begin, _PART_BYTES)):
                print_line(line)
                offset = begin + end
            watcher.pause()


def _last_lines(files: ReadOnlyFiles, count: int, type_: str | None) -> list[dict[str, Any]]:
    """The last lines of a type, also those of rotated files."""
    found: list[dict[str, Any]] = []
    for there in log_tails(files, _TAIL_BYTES):
        found = [line for line in there if type_ is None or line.get("type") == type_] + found
        if len(found) >= count:
            break
    return found[len(found) - count :] if count < len(found) else found


def _line_text(line: dict[str, Any], now: datetime, zone: tzinfo) -> str:
    try:
        when = terminal.moment(datetime.fromisoformat(str(line.get("timestamp"))), now, zone)
    except ValueError:
        when = "?"
    type_ = str(line.get("type", ""))
    head = click.style(type_.ljust(5), fg=_COLOURS.get(type_))
    event = terminal.one_line(str(line.get("event")))
    said = f"{terminal.dim(when)}  {head}  {event}  "
    for key, value in line.items():
        if key not in _LOG_HEADS and value != "":
            text = terminal.one_line(str(value))
            said += f"{key}={json.dumps(text, ensure_ascii=False) if ' ' in text else text}  "
    return said.rstrip()
