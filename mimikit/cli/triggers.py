"""`mimikit triggers`: list, show, explain, edit, pause, resume, run, remove."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from mimikit.cli import durations, naming, terminal, trigger_text
from mimikit.cli.frame import Frame, PlainGroup, json_option, pass_frame
from mimikit.cli.guest import GuestState
from mimikit.cli.timing import Times, timing_options
from mimikit.cli.values import Duration, OneOf, Whole
from mimikit.cli.waiting import order
from mimikit.errors import BadInput, NotFound
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Trigger
from mimikit.tools import making
from mimikit.tools.making import Wanted
from mimikit.triggers import definition, registry
from mimikit.web.shown import triggers as shown

_HEAD = 11
_WHEN = 44


@click.group(cls=PlainGroup)
def triggers() -> None:
    """What runs by itself: at a time, again and again, when something happens."""


@triggers.command("list")
@json_option
@pass_frame
def list_(frame: Frame, as_json: bool) -> None:
    """List every trigger with its last and next run."""
    state = frame.open()
    found = shown.listed(state.files, trigger_text.situation(state))
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
            terminal.clip(_when(trigger), _WHEN) if short else _when(trigger),
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


def _when(trigger: dict[str, Any]) -> str:
    return terminal.one_line(trigger["words"]["en"])


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
    found = shown.find(state.files, id_, trigger_text.situation(state))
    if found is None:
        raise _gone(id_)
    if as_json:
        terminal.print_json(found)
        return
    terminal.out(f"{terminal.bold(terminal.one_line(id_))}  {terminal.state(_state(found))}")
    for head, text in trigger_text.facts(found, state.clock.now(), state.settings.zone):
        terminal.out(f"  {terminal.dim(head.ljust(_HEAD))}{terminal.one_line(text)}")
    if found["prompt"]:
        terminal.out(f"\n{terminal.bold('Prompt')}\n{terminal.indented(found['prompt'])}")


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@json_option
@pass_frame
def explain(frame: Frame, trigger_id: str, as_json: bool) -> None:
    """Explain why a trigger did or did not fire; also one that is gone."""
    state = frame.open()
    id_ = naming.find_trigger_ever(state.files, trigger_id)
    found = shown.explained(state.files, id_, trigger_text.situation(state))
    if as_json:
        terminal.print_json(found.to_dict())
        return
    zone, now = state.settings.zone, state.clock.now()
    for line in trigger_text.explained(terminal.one_line(id_), found, now, zone):
        terminal.out(line)


# ---- changing


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@click.option("--title", help="A short name for lists.")
@click.option("--prompt", help="What is to be done.")
@click.option("--profile", metavar="PROFILE", help="Who does it.")
@click.option("--priority", type=Whole(0, 10), help="0 to 10, higher first.")
@click.option("--timeout", type=Duration(), help="End a run after this long: 90s, 10m, 2h.")
@click.option(
    "--overlap", type=OneOf(("skip", "queue")), help="While a run is not over: skip, queue."
)
@timing_options
@click.option("--once/--no-once", default=None, help="Be gone after firing once, or stay.")
@json_option
@pass_frame
def edit(
    frame: Frame,
    trigger_id: str,
    title: str | None,
    prompt: str | None,
    profile: str | None,
    priority: int | None,
    timeout: float | None,
    overlap: str | None,
    as_json: bool,
    **timing: Any,
) -> None:
    """Change a trigger; what no option names stays as it is."""
    times = Times(**timing)
    times.check(is_edit=True)
    state = frame.open()
    trigger = _definition(state, naming.find_trigger(state.files, trigger_id))
    given = {
        "title": title, "prompt": prompt, "profile": profile, "priority": priority,
        "timeout": timeout, "overlap": overlap,
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    changes |= _new_times(state, trigger, times)
    if not changes:
        raise click.UsageError("expected an option that says what to change, got none")
    new = _checked(state, trigger, changes)
    outcome = order(state, "trigger_edit", trigger.id, changes)
    if as_json:
        terminal.print_json(outcome.to_dict())
        return
    terminal.out(terminal.sentence(outcome.message))
    for text in trigger_text.promises(state, new):
        terminal.note(terminal.sentence(text))


def _definition(state: GuestState, trigger_id: str) -> Trigger:
    trigger, broken = shown.active(state.files, trigger_id)
    if broken is not None:
        raise BadInput(f"the file of {trigger_id} is broken: {broken}; mend it there")
    if trigger is None:
        raise _gone(trigger_id)
    return trigger


def _new_times(state: GuestState, trigger: Trigger, times: Times) -> dict[str, Any]:
    """What the timing options change, by the names on disk."""
    fields = times.build(state, state.clock.now())
    if "schedule" in fields and trigger.condition is not None and trigger.once:
        fields["once"] = False  # it was meant of the condition that goes
    if times.tz is not None and not times.clock:
        if trigger.schedule is None or trigger.schedule.interval is not None:
            raise BadInput("--tz: expected a trigger with a time of day, got one without")
        fields["schedule"] = trigger.schedule.but(timezone=times.zone())
    return {
        name: value.to_dict() if name in ("schedule", "condition") else value
        for name, value in fields.items()
    }


def _checked(state: GuestState, trigger: Trigger, changes: dict[str, Any]) -> Trigger:
    """The trigger as it will be, if it can be."""
    new = definition.edited(trigger, changes)
    wanted = Wanted(prompt=new.prompt, origin="cli", profile=new.profile)
    making.check_wanted(wanted, type(state.settings.profiles).model_fields)
    registry.check_new(state.files, new)
    return new


def _ordering(name: str, text: str) -> Callable[..., None]:
    """A command that gives the order `trigger_{name}`."""

    @triggers.command(name, help=text)
    @click.argument("trigger_id", metavar="ID")
    @json_option
    @pass_frame
    def command(frame: Frame, trigger_id: str, as_json: bool) -> None:
        state = frame.open()
        _give(state, name, naming.find_trigger(state.files, trigger_id), as_json=as_json)

    return command


def _give(state: GuestState, name: str, trigger_id: str, *, as_json: bool) -> None:
    outcome = order(state, f"trigger_{name}", trigger_id)
    if as_json:
        terminal.print_json(outcome.to_dict())
    else:
        terminal.out(terminal.sentence(outcome.message))


pause = _ordering("pause", "Let a trigger not fire until it is resumed.")
resume = _ordering("resume", "Let a paused trigger fire again.")
run = _ordering("run", "Run a trigger once, now; its times stay as they are.")


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@json_option
@pass_frame
def remove(frame: Frame, trigger_id: str, as_json: bool) -> None:
    """Remove a trigger, also a broken file by its name; past runs stay."""
    state = frame.open()
    id_ = naming.find_trigger(state.files, trigger_id)
    if is_id(id_):
        _give(state, "remove", id_, as_json=as_json)
        return
    # No order can name it, and nothing ever ran under that name: it is a stray file.
    registry.remove(state.files, id_)
    message = f"removed the file {id_!r}, which was no trigger"
    if as_json:
        terminal.print_json({"ok": True, "message": message})
    else:
        terminal.out(terminal.sentence(message))


def _gone(trigger_id: str) -> NotFound:
    return NotFound(f"expected a trigger, got {trigger_id!r}, which is gone meanwhile")
