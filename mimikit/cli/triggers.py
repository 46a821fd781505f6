"""`mimikit triggers`: list, show, pause, resume, run, remove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from typing import Any

import click

from mimikit.cli import durations, naming, terminal
from mimikit.cli.frame import Frame, PlainGroup, json_option, pass_frame
from mimikit.cli.waiting import order
from mimikit.errors import NotFound
from mimikit.web.shown import triggers as shown

_HEAD = 11


@click.group(cls=PlainGroup)
def triggers() -> None:
    """What repeats by itself."""


@triggers.command("list")
@json_option
@pass_frame
def list_(frame: Frame, as_json: bool) -> None:
    """List every trigger with its last and next run."""
    state = frame.open()
    found = shown.listed(state.files)
    if as_json:
        terminal.print_json({"triggers": found})
        return
    if not found:
        terminal.out('No triggers. `mimikit enqueue --command "date" --every 10m` makes one.')
        return
    now, short = state.clock.now(), terminal.room() is not None
    rows = [
        (
            naming.short(trigger["id"]) if short else trigger["id"],
            terminal.state(_state(trigger)),
            trigger["words"]["en"],
            _moment(trigger["lastRunAt"], now) or "never",
            _next(trigger, now),
            str(trigger["fireCount"]),
            terminal.one_line(trigger["title"]),
        )
        for trigger in found
    ]
    terminal.table(("ID", "STATE", "WHEN", "LAST", "NEXT", "RUNS", "WHAT"), rows)


def _state(trigger: dict[str, Any]) -> str:
    if trigger["broken"]:
        return "broken"
    if trigger["blockedBy"]:
        return "blocked"
    return "active" if trigger["enabled"] else "paused"


def _moment(text: str | None, now: datetime) -> str:
    return durations.ago(datetime.fromisoformat(text), now) if text else ""


def _next(trigger: dict[str, Any], now: datetime) -> str:
    if not trigger["enabled"] or not trigger["nextRunAt"]:
        return "-"
    return _moment(trigger["nextRunAt"], now)


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@json_option
@pass_frame
def show(frame: Frame, trigger_id: str, as_json: bool) -> None:
    """Show a trigger: what it does, when, and how that went."""
    state = frame.open()
    id_ = naming.find_trigger(state.files, trigger_id)
    found = shown.find(state.files, id_)
    if found is None:
        raise NotFound(f"expected a trigger, got {id_!r}, which is gone meanwhile")
    if as_json:
        terminal.print_json(found)
        return
    terminal.out(f"{terminal.bold(id_)}  {terminal.state(_state(found))}")
    for head, text in _facts(found, state.clock.now(), state.settings.zone):
        terminal.out(f"  {terminal.dim(head.ljust(_HEAD))}{terminal.one_line(text)}")
    terminal.out(f"\n{terminal.bold('Prompt')}\n{terminal.indented(found['prompt'])}")


def _facts(trigger: dict[str, Any], now: datetime, zone: tzinfo) -> Iterator[tuple[str, str]]:
    def moment(text: str) -> str:
        when = datetime.fromisoformat(text)
        return f"{durations.at(when, now, zone)}, {durations.ago(when, now)}"

    if trigger["broken"]:
        yield "broken", f"{trigger['broken']}; the last good definition stays in force"
    if trigger["title"] != trigger["prompt"]:
        yield "title", trigger["title"]
    yield "when", trigger["words"]["en"]
    yield "profile", trigger["profile"]
    if trigger["createdAt"]:
        yield "made", moment(trigger["createdAt"])
    yield "last run", moment(trigger["lastRunAt"]) if trigger["lastRunAt"] else "never"
    if trigger["nextRunAt"] and trigger["enabled"]:
        yield "next run", moment(trigger["nextRunAt"])
    yield "runs", str(trigger["fireCount"])
    if trigger["failureStreak"]:
        yield "failing", f"the last {trigger['failureStreak']} failed"
    if trigger["lastTaskId"]:
        yield "last task", trigger["lastTaskId"]
    if trigger["blockedBy"]:
        yield "blocked by", trigger["blockedBy"]


def _ordering(name: str, text: str) -> Callable[..., None]:
    """A command that gives the order `trigger_{name}`."""

    @triggers.command(name, help=text)
    @click.argument("trigger_id", metavar="ID")
    @json_option
    @pass_frame
    def command(frame: Frame, trigger_id: str, as_json: bool) -> None:
        state = frame.open()
        outcome = order(state, f"trigger_{name}", naming.find_trigger(state.files, trigger_id))
        if as_json:
            terminal.print_json(outcome.to_dict())
        else:
            terminal.out(terminal.sentence(outcome.message))

    return command


pause = _ordering("pause", "Let a trigger not fire until it is resumed.")
resume = _ordering("resume", "Let a paused trigger fire again.")
run = _ordering("run", "Run a trigger once, now; its times stay as they are.")
remove = _ordering("remove", "Remove a trigger; its past runs stay.")
