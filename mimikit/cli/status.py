"""`mimikit status`, `usage` and `logs`."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo
from typing import Any, cast, get_args

import click

from mimikit.cli import client, render, terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_cli_and_json, pass_state_and_json
from mimikit.cli.options import Decorator, NumberRange, parse_past
from mimikit.log import log_tails
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.records import whole_lines
from mimikit.state import ReadOnlyState
from mimikit.tasks.usage import day_of
from mimikit.views.status import overview
from mimikit.views.usage import UsageBy, UsageReader


@click.command(cls=LeafCommand)
@pass_state_and_json
def status(state: ReadOnlyState, as_json: bool) -> None:
    """Show what runs and waits, the models, the open question and errors."""
    consumer = client.read_consumer(state)
    here = client.situation(state, consumer)
    workspace, settings = str(state.workspace), state.settings
    view = overview(state.files, consumer, here, workspace=workspace, settings=settings)
    render.show(view, state, as_json=as_json)


# ---- the log

_TAIL_BYTES = 4 * 2**20
_PART_BYTES = 2**20
_LOG_KEYS = ("timestamp", "type", "event")
_COLOURS = {"error": "red", "audit": "yellow"}


@click.command(cls=LeafCommand)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines.")
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

    with client.StateWatch(state, [paths.ROOT]) as watcher:
        stat = files.stat(paths.LOG)
        offset = stat.size if stat else 0
        for line in _last_lines(files, lines, type_):
            print_line(line)
        while follow:
            stat = files.stat(paths.LOG)
            if stat is None or stat.size < offset:  # the file was rotated
                offset = 0
            begin = offset
            for end, line in whole_lines(files.part(paths.LOG, begin, _PART_BYTES)):
                print_line(line)
                offset = begin + end
            watcher.pause()


def _last_lines(files: ReadOnlyFiles, count: int, type_: str | None) -> list[dict[str, Any]]:
    last: list[dict[str, Any]] = []
    for lines in log_tails(files, _TAIL_BYTES):
        last = [line for line in lines if type_ is None or line.get("type") == type_] + last
        if len(last) >= count:
            break
    return last[len(last) - count :] if count < len(last) else last


def _line_text(line: dict[str, Any], now: datetime, zone: tzinfo) -> str:
    try:
        when = terminal.moment(datetime.fromisoformat(str(line.get("timestamp"))), now, zone)
    except ValueError:
        when = "?"
    type_ = str(line.get("type", ""))
    head = click.style(type_.ljust(5), fg=_COLOURS.get(type_))
    event = terminal.one_line(str(line.get("event")))
    shown = f"{terminal.dim(when)}  {head}  {event}  "
    for key, value in line.items():
        if key not in _LOG_KEYS and value != "":
            text = terminal.one_line(str(value))
            shown += f"{key}={json.dumps(text, ensure_ascii=False) if ' ' in text else text}  "
    return shown.rstrip()


# ---- usage


def _cap(text: str) -> int:
    """A type of options: tokens; 0 for `none`."""
    plain = text.strip().lower().replace(",", "").replace("_", "")
    if plain == "none":
        return 0
    if not plain.isascii() or not plain.isdigit() or not 0 < int(plain[:18]) < 10**15:
        raise click.BadParameter(f"expected a number of tokens above 0, or none; got {text[:40]!r}")
    return int(plain)


def _cap_option(name: str, field: str, text: str) -> Decorator:
    return click.option(name, field, type=_cap, metavar="TOKENS", help=text)


@click.command(cls=LeafCommand)
@click.option("--by", type=click.Choice(get_args(UsageBy)), default="day", show_default=True)
@click.option("--since", metavar="DAY", help="From then on: 2026-11-01, 7d. Else of 30 days.")
@_cap_option("--set-daily", "daily_tokens", "Cap for a day; `none` removes it.")
@_cap_option("--set-per-task", "per_task_tokens", "Cap for a task, over its attempts.")
@_cap_option("--set-per-trigger", "per_trigger_daily_tokens", "Cap for a trigger in a day.")
@pass_cli_and_json
def usage(cli: CliContext, by: str, since: str | None, as_json: bool, **caps: int | None) -> None:
    """Show token usage, and costs where a price is set; or set caps."""
    if given := {name: cap or None for name, cap in caps.items() if cap is not None}:
        keeper = cli.open_writable(create=True)
        result = client.change_settings(keeper, "budget_set", args=given)
        terminal.note(terminal.sentence(result.message))
        return
    state = cli.open()
    now, zone = state.clock.now(), state.settings.zone
    first = day_of(parse_past(since, now, zone), zone) if since else None
    reader = UsageReader(state.files, state.settings)
    report = reader.report(cast("UsageBy", by), first, now, client.read_consumer(state).current)
    render.show(report, state, as_json=as_json)
