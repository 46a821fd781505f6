"""`mimikit logs`."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo
from typing import Any

import click

from mimikit.cli import terminal
from mimikit.cli.client import Watcher
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.options import NumberRange
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles, whole_lines

_TAIL_BYTES = 4 * 2**20
_PART_BYTES = 2**20
_HEADS = ("timestamp", "type", "event")
_COLOURS = {"error": "red", "audit": "yellow"}


@click.command(cls=LeafCommand)
@click.option("-f", "--follow", is_flag=True, help="Go on printing what happens.")
@click.option("--type", "type_", metavar="T", help="Lines of one type: task, audit, error…")
@click.option(
    "-n", "--lines", type=NumberRange(0, 100_000), default=30, help="How many to begin with."
)
@json_option
@pass_frame
def logs(frame: Frame, follow: bool, type_: str | None, lines: int, as_json: bool) -> None:
    """Print what happened, newest last, from log.jsonl."""
    state = frame.open()
    files = state.files

    def show(line: dict[str, Any]) -> None:
        if type_ is None or line.get("type") == type_:
            if as_json:
                click.echo(json.dumps(line, ensure_ascii=False))
            else:
                terminal.out(_text(line, state.clock.now(), state.settings.zone))

    with Watcher(state, [paths.ROOT]) as watcher:
        stat = files.stat(paths.LOG)
        offset = stat.size if stat else 0
        for line in _last(files, lines, type_):
            show(line)
        while follow:
            offset = _print_after(files, offset, show)
            watcher.pause()


def _last(files: ReadOnlyFiles, count: int, type_: str | None) -> list[dict[str, Any]]:
    """The last lines of a type, also those of rotated files."""
    names = [name for name in files.names(paths.ROOT, suffix=".jsonl") if name.startswith("log.2")]
    found: list[dict[str, Any]] = []
    for name in [paths.LOG, *reversed(names)]:
        if len(found) >= count:
            break
        there: list[dict[str, Any]] = list(files.tail(name, _TAIL_BYTES))
        found = [line for line in there if type_ is None or line.get("type") == type_] + found
    return found[len(found) - count :] if count < len(found) else found


def _print_after(files: ReadOnlyFiles, offset: int, show: Any) -> int:
    """Print what came after an offset; gives the new one. A fresh file is read from its start."""
    stat = files.stat(paths.LOG)
    if stat is None or stat.size < offset:
        offset = 0
    data = files.part(paths.LOG, offset, _PART_BYTES)
    printed = 0
    for end, line in whole_lines(data):
        show(line)
        printed = end
    return offset + printed


def _text(line: dict[str, Any], now: datetime, zone: tzinfo) -> str:
    try:
        when = terminal.moment(datetime.fromisoformat(str(line.get("timestamp"))), now, zone)
    except ValueError:
        when = "?"
    type_ = str(line.get("type", ""))
    facts = "  ".join(f"{k}={_value(v)}" for k, v in line.items() if k not in _HEADS and v != "")
    head = click.style(type_.ljust(5), fg=_COLOURS.get(type_))
    event = terminal.one_line(str(line.get("event")))
    return f"{terminal.dim(when)}  {head}  {event}  {facts}".rstrip()


def _value(value: object) -> str:
    text = terminal.one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text else text
