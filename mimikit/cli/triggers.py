"""`mimikit triggers`: list, show, explain, edit, pause, resume, run, remove."""

from __future__ import annotations

import sys
from typing import Any

import click

from mimikit.cli import client, frame, options, render, terminal
from mimikit.cli.frame import CliContext, LeafCommand, PlainGroup
from mimikit.errors import BadInput
from mimikit.protocol.models import REMINDER, Record, Task
from mimikit.protocol.notify import notify_words
from mimikit.protocol.triggers import Trigger
from mimikit.state import ReadOnlyState
from mimikit.tools import requests, world
from mimikit.tools.requests import TaskRequest
from mimikit.triggers import registry, schedule
from mimikit.triggers.explain import trigger_words
from mimikit.triggers.workspace import FolderWorkspace
from mimikit.views import triggers as trigger_views
from mimikit.views.triggers import TriggerList

_EXAMPLES = """\b
Examples:
  mimikit remind "call mum" --at "tomorrow 9:00"
  mimikit remind "drink water" --every 2h
  mimikit remind "stand-up" --cron "30 9 * * 1-5" --tz Europe/Berlin
"""


@click.group(cls=PlainGroup)
def triggers() -> None:
    """What runs by itself: at a time, repeatedly, or when something happens."""


@triggers.command("list")
@frame.pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List every trigger with its last and next run."""
    listed = trigger_views.listed(state.files, client.situation(state))
    render.show(TriggerList(triggers=listed), state, as_json=as_json)


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@frame.pass_state_and_json
def show(state: ReadOnlyState, trigger_id: str, as_json: bool) -> None:
    """Show a trigger: what it does, when, and its last run."""
    id_ = client.find_trigger(state.files, trigger_id)
    view = trigger_views.find(state.files, id_, client.situation(state))
    if view is None:
        raise client.was_removed("trigger", id_)
    render.show(view, state, as_json=as_json)


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@frame.pass_state_and_json
def explain(state: ReadOnlyState, trigger_id: str, as_json: bool) -> None:
    """Explain why a trigger did or did not fire; also a removed one."""
    id_ = client.find_trigger(state.files, trigger_id, removed=True)
    explanation = trigger_views.explained(state.files, id_, client.situation(state))
    if not as_json:
        terminal.out(
            f"{terminal.bold(terminal.one_line(id_))}  {terminal.state(explanation.state)}"
        )
    render.show(explanation, state, as_json=as_json)


# ---- changing


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@click.option("--title", help="A short name for lists.")
@click.option("--prompt", help="What to do.")
@click.option("--profile", type=options.profile, help="Who does it.")
@click.option("--priority", type=options.NumberRange(0, 10), help="Higher first.")
@click.option("--timeout", type=options.duration, help="End a run after this long: 90s, 10m, 2h.")
@click.option(
    "--overlap",
    type=options.WordOption(("skip", "queue")),
    help="What to do while a run is not over.",
)
@options.notify_option
@options.timing_options
@click.option("--once/--no-once", default=None, help="Remove it after it fired once, or keep it.")
@frame.pass_cli_and_json
def edit(cli: CliContext, trigger_id: str, as_json: bool, **values: Any) -> None:
    """Change a trigger; what no option names stays as it is."""
    times = options.TimingOptions.pop_from(values)
    times.check(is_edit=True)
    state = cli.open()
    id_ = client.find_trigger(state.files, trigger_id)
    trigger, error = world.active(state.files, id_)
    if error is not None:
        raise BadInput(f"the file of {id_} is broken: {error}; fix it there")
    if trigger is None:
        raise client.was_removed("trigger", id_)
    changes = {name: value for name, value in values.items() if value is not None}
    changes |= _new_times(state, trigger, times)
    if not changes:
        raise click.UsageError("expected an option that says what to change, got none")
    new = registry.edited(trigger, changes)
    request = TaskRequest(prompt=new.prompt, origin="cli", profile=new.profile)
    requests.check_request(request, requests.TRIGGER_PROFILES)
    registry.check_new(state.files, new)
    render.show(client.submit_command(state, "trigger_edit", id_, changes), state, as_json=as_json)
    if not as_json:
        for text in trigger_notes(state, new):
            terminal.note(terminal.sentence(text))


def _new_times(
    state: ReadOnlyState, trigger: Trigger, times: options.TimingOptions
) -> dict[str, Any]:
    """The changes by the timing options, under their JSON names."""
    fields = times.build(state, state.clock.now())
    if "schedule" in fields:
        fields["schedule"] = schedule.with_limits_of(trigger.schedule, fields["schedule"])
    if "schedule" in fields and trigger.condition is not None and trigger.once:
        fields["once"] = False  # it applies to conditions
    if times.tz is not None and not times.clock:
        if trigger.schedule is None or trigger.schedule.interval is not None:
            raise BadInput("--tz: expected a trigger with a time of day, got one without")
        fields["schedule"] = trigger.schedule.but(timezone=times.zone())
    if not times.clock and (limits := times.limits(state.clock.now(), state.settings.zone)):
        plan = fields.get("schedule", trigger.schedule)
        if plan is None:
            raise BadInput("--until: expected a trigger with a schedule, got one without")
        fields["schedule"] = plan.but(**limits)
    return {
        name: value.to_dict() if isinstance(value, Record) else value
        for name, value in fields.items()
    }


for _action, _text in (
    ("trigger_pause", "Pause triggers."),
    ("trigger_resume", "Resume paused triggers."),
    ("trigger_run", "Run triggers once, now; their times stay as they are."),
    ("trigger_remove", "Remove triggers, also one with a broken file; past runs stay."),
):
    triggers.add_command(client.action_command(_action, _text, client.find_trigger))


@click.command(cls=LeafCommand, epilog=_EXAMPLES)
@click.argument("text")
@options.schedule_options
@frame.pass_cli_and_json
def remind(cli: CliContext, text: str, as_json: bool, **values: Any) -> None:
    """Get TEXT as a reminder at a time; `-` reads it from the input."""
    times = options.TimingOptions.pop_from(values)
    times.check()
    if not times.clock:
        raise click.UsageError("expected one of --at, --every, --cron; got none of them")
    state = cli.open()
    prompt = sys.stdin.read().strip("\n") if text == "-" else text
    request = TaskRequest(prompt=prompt, origin="cli", profile=REMINDER)
    create_trigger(state, request, times, as_json=as_json)


def create_trigger(
    state: ReadOnlyState, request: TaskRequest, times: options.TimingOptions, *, as_json: bool
) -> None:
    requests.check_request(request, requests.TRIGGER_PROFILES)
    now = state.clock.now()
    trigger = requests.new_trigger(state.files, request, times.build(state, now), now)
    registry.create(state.files, trigger)
    print_new(state, trigger, trigger_notes(state, trigger), as_json=as_json)


def print_new(
    state: ReadOnlyState, new: Task | Trigger, notes: list[str], *, as_json: bool
) -> None:
    if as_json:
        terminal.print_json(new.to_dict())
        return
    terminal.out(new.id)
    for text in notes:
        terminal.note(terminal.sentence(text))
    if not client.read_consumer(state).is_up:
        terminal.note(f"It waits: {client.START_HINT}.")


def trigger_notes(state: ReadOnlyState, trigger: Trigger) -> list[str]:
    context = client.situation(state)
    is_reminder = trigger.profile == REMINDER
    verb = "reminds you" if is_reminder else "runs"
    what = f"{verb} {trigger_words(trigger, context)['en']}"
    plan = trigger.schedule
    times = schedule.upcoming(plan, now=context.now, zone=context.zone) if plan else []
    if times:
        wait = terminal.span((times[0] - context.now).total_seconds())
        what += f", first in {wait}" if plan and plan.run_at is None else f", in {wait}"
    notes = [what]
    if len(times) > 1:
        moments = [terminal.moment(time, context.now, context.zone) for time in times]
        notes.append(f"the next times: {', '.join(moments)}")
    if not is_reminder:
        notes.append(notify_words(trigger)["en"])
    every_s = state.settings.triggers.llm_eval_interval_s
    found = trigger_views.matches_now(trigger, FolderWorkspace(state.workspace, state.path))
    found += trigger_views.notes(trigger, context, asked_every_s=every_s)
    return notes + [note["en"] for note in found]
