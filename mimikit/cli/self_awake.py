"""`mimikit self-awake`: improvements while nobody needs anything, each on a branch of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import get_args
from zoneinfo import ZoneInfo

import click

from mimikit.cli import client, terminal
from mimikit.cli.frame import PlainGroup, pass_state_and_json
from mimikit.language.phrases import local_time
from mimikit.self_awake_settings import ImprovementKind
from mimikit.state import ReadOnlyState
from mimikit.views.self_awake import PastImprovementView, SelfAwakeView, self_awake_view

STAGES = {
    "look": "looks for the repository",
    "plan": "has its task written",
    "make": "makes a worktree",
    "work": "works",
    "inspect": "sees what changed",
    "check": "runs the checks",
    "weigh": "sees what changed",
    "review": "has it reviewed",
    "commit": "commits",
    "tidy": "tidies up",
    "remove": "removes what it made",
    "tell": "ends",
}
ENDS = {
    "committed": "committed",
    "proposed": "proposed in the chat",
    "nothing": "nothing to be done",
    "dropped": "dropped",
}


@click.group(cls=PlainGroup, name="self-awake")
def self_awake() -> None:
    """Improvements while nobody needs anything, each on a branch of its own. Off by default."""


@self_awake.command()
@pass_state_and_json
def status(state: ReadOnlyState, as_json: bool) -> None:
    """Show whether it is on, what it does now, and what it did."""
    view = self_awake_view(state.files, state.settings)
    lines = _lines(view, state.settings.zone, state.clock.now())
    terminal.show(view, lines, as_json=as_json)


@self_awake.command()
@pass_state_and_json
def on(state: ReadOnlyState, as_json: bool) -> None:
    """Let it improve the repository of the workspace while nobody needs anything."""
    client.carry_out(state, "self_awake_on", as_json=as_json)


@self_awake.command()
@pass_state_and_json
def off(state: ReadOnlyState, as_json: bool) -> None:
    """Let it do nothing by itself; an improvement in progress is dropped."""
    client.carry_out(state, "self_awake_off", as_json=as_json)


@self_awake.command()
@click.argument("item", required=False, type=click.Choice(get_args(ImprovementKind)))
@pass_state_and_json
def run(state: ReadOnlyState, item: str | None, as_json: bool) -> None:
    """Have one improvement made at once, also when it is off: ITEM, or the first that is due."""
    client.carry_out(state, "self_awake_run", item or "", as_json=as_json)


def _lines(view: SelfAwakeView, zone: ZoneInfo, now: datetime) -> Iterator[str]:
    if view.enabled:
        minutes = f"{view.idle_minutes:g} minute{'' if view.idle_minutes == 1 else 's'}"
        yield f"on: after {minutes} in which nothing was said or ran, one improvement"
    else:
        yield "off; `mimikit self-awake on` has it improve the repository while nothing else is up"
    yield f"checks: {', '.join(view.checks) or 'none'}"
    if (run := view.run) is not None:
        what = terminal.one_line(run.title) or run.kind
        yield f"now: {what} ({run.kind}) – {STAGES[run.stage]}"
    if view.blocked and view.blocked_at:
        at = f"{local_time(view.blocked_at, zone):%Y-%m-%d %H:%M}"
        yield f"could not begin at {at}: {terminal.one_line(view.blocked)}"
    for path in view.left:
        yield f"left, as somebody may work there: {terminal.one_line(path)}"
    if view.past:
        yield ""
        heads = ["when", "item", "what came of it", "branch or reason"]
        rows = [_row(one, zone) for one in view.past]
        yield from terminal.table(heads, rows, "", flexible=3)


def _row(one: PastImprovementView, zone: ZoneInfo) -> list[str]:
    when = f"{local_time(one.ended_at, zone):%Y-%m-%d %H:%M}"
    title = terminal.one_line(one.title)
    end = f"{ENDS[one.end]}: {title}" if one.end == "committed" else ENDS[one.end]
    return [when, one.kind, end, one.branch or terminal.one_line(one.why)]
