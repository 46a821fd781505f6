"""`mimikit usage`: how many tokens were used, by what, and how many may be."""

from __future__ import annotations

from typing import cast, get_args

import click

from mimikit.cli import render, terminal
from mimikit.cli.client import change_settings, look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame
from mimikit.cli.options import parse_past
from mimikit.errors import BadInput
from mimikit.tasks.usage import day_of
from mimikit.views.usage import UsageBy, UsageReader

_CAPS = {
    "set_daily": "daily_tokens",
    "set_per_task": "per_task_tokens",
    "set_per_trigger": "per_trigger_daily_tokens",
}


@click.command(cls=LeafCommand)
@click.option("--by", type=click.Choice(get_args(UsageBy)), default="day", show_default=True)
@click.option("--since", metavar="DAY", help="From then on: 2026-11-01, 7d. Else of 30 days.")
@click.option("--set-daily", metavar="TOKENS", help="So many may be used in a day; `none`: any.")
@click.option("--set-per-task", metavar="TOKENS", help="So many by a task, over its attempts.")
@click.option("--set-per-trigger", metavar="TOKENS", help="So many by a trigger in a day.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_frame
def usage(frame: CliContext, by: str, since: str | None, as_json: bool, **caps: str | None) -> None:
    """Show how many tokens were used, and what that cost where a price is set; or cap them."""
    given = {_CAPS[name]: _tokens(name, text) for name, text in caps.items() if text is not None}
    if given:
        keeper = frame.open_as_keeper(create=True)
        terminal.note(terminal.sentence(change_settings(keeper, "budget_set", args=given).message))
        return
    state = frame.open()
    now, zone = state.clock.now(), state.settings.zone
    first = day_of(parse_past(since, now, zone), zone) if since else None
    reader = UsageReader(state.files, state.settings)
    report = reader.report(cast("UsageBy", by), first, now, look_at_consumer(state).current)
    render.show(report, render.RenderContext(now, zone), as_json=as_json)


def _tokens(name: str, text: str) -> int | None:
    if text.strip().lower() == "none":
        return None
    plain = text.replace(",", "").replace("_", "")
    if not plain.isascii() or not plain.isdigit() or not 0 < int(plain[:18]) < 10**15:
        option = "--" + name.replace("_", "-")
        raise BadInput(f"{option}: expected a number of tokens above 0, or none; got {text[:40]!r}")
    return int(plain)
