"""`mimikit triggers`: list, show, explain, edit, pause, resume, run, remove."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any

import click

from mimikit.cli import client, terminal
from mimikit.cli.frame import (
    CliContext,
    LeafCommand,
    PlainGroup,
    pass_frame_and_json,
    pass_state_and_json,
)
from mimikit.cli.options import (
    Duration,
    NumberRange,
    TimingOptions,
    WordOption,
    clock_options,
    notify_option,
    timing_options,
)
from mimikit.errors import BadInput
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import REMINDER, Record
from mimikit.protocol.notify import told_words
from mimikit.protocol.triggers import Trigger
from mimikit.state import ReadOnlyState
from mimikit.tools import requests, world
from mimikit.tools.requests import TaskRequest
from mimikit.triggers import registry, schedule
from mimikit.triggers.explain import Explanation, SlotExplanation, trigger_words
from mimikit.triggers.facts import TriggerGroup
from mimikit.views import triggers as shown

_EXAMPLES = """\b
Examples:
  mimikit remind "call mum" --at "tomorrow 9:00"
  mimikit remind "drink water" --every 2h
  mimikit remind "stand-up" --cron "30 9 * * 1-5" --tz Europe/Berlin
"""


@click.group(cls=PlainGroup)
def triggers() -> None:
    """What runs by itself: at a time, again and again, when something happens."""


@triggers.command("list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List every trigger with its last and next run: what needs you first."""
    found = shown.listed(state.files, client.situation(state))
    found.sort(key=lambda trigger: shown.GROUPS.index(trigger.group))
    now, short = state.clock.now(), terminal.room() is not None
    most = 44 if short else sys.maxsize
    rows = [
        (
            client.short_id(trigger.id) if short else trigger.id,
            terminal.state(_state(trigger)),
            terminal.clip(terminal.one_line(trigger.words["en"]), most),
            terminal.ago(trigger.last_run_at, now) if trigger.last_run_at else "never",
            terminal.ago(trigger.next_run_at, now)
            if trigger.enabled and trigger.next_run_at
            else "-",
            str(trigger.fire_count),
            ("reminder: " if trigger.profile == REMINDER else "")
            + terminal.one_line(trigger.title),
        )
        for trigger in found
    ]
    empty = 'No triggers. `mimikit enqueue --command "date" --every 10m` makes one.'
    lines = terminal.table(("ID", "STATE", "WHEN", "LAST", "NEXT", "RUNS", "WHAT"), rows, empty)
    if found:
        lines = [lines[0], *_grouped(found, lines[1:])]
    terminal.show(shown.TriggerList(triggers=found), lines, as_json=as_json)


_GROUPS: dict[TriggerGroup, str] = {
    "attention": "Needs attention",
    "active": "Active",
    "paused": "Paused",
    "step": "Steps of chains",
}


def _grouped(found: list[shown.TriggerView], lines: list[str]) -> Iterator[str]:
    """Their lines below the names of their groups; below a line what it needs."""
    before = None
    for trigger, line in zip(found, lines, strict=True):
        if trigger.group != before:
            yield ""
            yield terminal.bold(_GROUPS[trigger.group])
        before = trigger.group
        yield line
        if trigger.needs:
            yield f"  {terminal.one_line(trigger.needs['en'])}"


def _state(trigger: shown.TriggerView) -> str:
    if trigger.broken:
        return "broken"
    if trigger.blocked_by:
        return "blocked"
    return "active" if trigger.enabled else "paused"


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@pass_state_and_json
def show(state: ReadOnlyState, trigger_id: str, as_json: bool) -> None:
    """Show a trigger: what it does, when, and how that went."""
    id_ = client.find_trigger(state.files, trigger_id)
    found = shown.find(state.files, id_, client.situation(state))
    if found is None:
        raise client.gone("trigger", id_)
    head = f"{terminal.bold(terminal.one_line(id_))}  {terminal.state(_state(found))}"
    lines = [head, *terminal.facts(facts(found, state.clock.now(), state.settings.zone))]
    if found.prompt:
        lines.append(f"\n{terminal.bold('Prompt')}\n{terminal.indented(found.prompt)}")
    terminal.show(found, lines, as_json=as_json)


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@pass_state_and_json
def explain(state: ReadOnlyState, trigger_id: str, as_json: bool) -> None:
    """Explain why a trigger did or did not fire; also one that is gone."""
    id_ = client.find_trigger_ever(state.files, trigger_id)
    found = shown.explained(state.files, id_, client.situation(state))
    if as_json:
        terminal.print_json(found.model_dump(mode="json", by_alias=True))
        return
    for line in explained(terminal.one_line(id_), found, state.clock.now(), state.settings.zone):
        terminal.out(line)


# ---- changing


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@click.option("--title", help="A short name for lists.")
@click.option("--prompt", help="What is to be done.")
@click.option("--profile", metavar="PROFILE", help="Who does it.")
@click.option("--priority", type=NumberRange(0, 10), help="Higher first.")
@click.option("--timeout", type=Duration(), help="End a run after this long: 90s, 10m, 2h.")
@click.option(
    "--overlap", type=WordOption(("skip", "queue")), help="What to do while a run is not over."
)
@notify_option
@timing_options
@click.option("--once/--no-once", default=None, help="Be gone after firing once, or stay.")
@pass_frame_and_json
def edit(frame: CliContext, trigger_id: str, as_json: bool, **options: Any) -> None:
    """Change a trigger; what no option names stays as it is."""
    times = TimingOptions.take(options)
    times.check(is_edit=True)
    state = frame.open()
    id_ = client.find_trigger(state.files, trigger_id)
    trigger, error = world.active(state.files, id_)
    if error is not None:
        raise BadInput(f"the file of {id_} is broken: {error}; mend it there")
    if trigger is None:
        raise client.gone("trigger", id_)
    changes = {name: value for name, value in options.items() if value is not None}
    changes |= _new_times(state, trigger, times)
    if not changes:
        raise click.UsageError("expected an option that says what to change, got none")
    new = registry.edited(trigger, changes)
    wanted = TaskRequest(prompt=new.prompt, origin="cli", profile=new.profile)
    requests.check_request(wanted, requests.TRIGGER_PROFILES)
    registry.check_new(state.files, new)
    outcome = client.give_command(state, "trigger_edit", id_, changes)
    terminal.show(outcome, [terminal.sentence(outcome.message)], as_json=as_json)
    if not as_json:
        for text in promises(state, new):
            terminal.note(terminal.sentence(text))


def _new_times(state: ReadOnlyState, trigger: Trigger, times: TimingOptions) -> dict[str, Any]:
    """What the timing options change, by the names on disk."""
    fields = times.build(state, state.clock.now())
    if "schedule" in fields and trigger.condition is not None and trigger.once:
        fields["once"] = False  # it was meant of the condition that goes
    if times.tz is not None and not times.clock:
        if trigger.schedule is None or trigger.schedule.interval is not None:
            raise BadInput("--tz: expected a trigger with a time of day, got one without")
        fields["schedule"] = trigger.schedule.but(timezone=times.zone())
    return {
        name: value.to_dict() if isinstance(value, Record) else value
        for name, value in fields.items()
    }


def _changing(name: str, text: str) -> None:
    @triggers.command(name, help=text)
    @click.argument("trigger_id", metavar="ID")
    @pass_state_and_json
    def command(state: ReadOnlyState, trigger_id: str, as_json: bool) -> None:
        id_ = client.find_trigger(state.files, trigger_id)
        client.carry_out(state, f"trigger_{name}", id_, as_json=as_json)


_changing("pause", "Let a trigger not fire until it is resumed.")
_changing("resume", "Let a paused trigger fire again.")
_changing("run", "Run a trigger once, now; its times stay as they are.")


@triggers.command()
@click.argument("trigger_id", metavar="ID")
@pass_state_and_json
def remove(state: ReadOnlyState, trigger_id: str, as_json: bool) -> None:
    """Remove a trigger, also a broken file by its name; past runs stay."""
    id_ = client.find_trigger(state.files, trigger_id)
    if is_id(id_):
        client.carry_out(state, "trigger_remove", id_, as_json=as_json)
        return
    # No command can name it, and nothing ever ran under that name: it is a stray file.
    registry.remove(state.files, id_)
    message = f"removed the file {id_!r}, which was no trigger"
    if as_json:
        terminal.print_json({"ok": True, "message": message})
    else:
        terminal.out(terminal.sentence(message))


@click.command(cls=LeafCommand, epilog=_EXAMPLES)
@click.argument("text")
@clock_options
@pass_frame_and_json
def remind(frame: CliContext, text: str, as_json: bool, **options: Any) -> None:
    """Have yourself told TEXT, just so, at a time; `-` reads it from the input."""
    times = TimingOptions.take(options)
    times.check()
    if not times.clock:
        raise click.UsageError("expected one of --at, --every, --cron; got none of them")
    state = frame.open()
    prompt = sys.stdin.read().strip("\n") if text == "-" else text
    wanted = TaskRequest(prompt=prompt, origin="cli", profile=REMINDER)
    requests.check_request(wanted, requests.TRIGGER_PROFILES)
    now = state.clock.now()
    made = requests.new_trigger(state.files, wanted, times.build(state, now), now)
    registry.create(state.files, made)
    if as_json:
        terminal.print_json(made.to_dict())
        return
    terminal.out(made.id)
    for line in promises(state, made):
        terminal.note(terminal.sentence(line))
    if not client.look_at_consumer(state).is_there:
        terminal.note(f"It waits: {client.HINT}.")


_MARKS = {True: ("✓", "ok"), False: ("✗", "failed"), None: ("?", "paused")}
_STATES = {"ran": "done", "skipped": "paused", "missed": "failed"}


def promises(state: ReadOnlyState, trigger: Trigger) -> list[str]:
    """When a new trigger will run, in sentences, and what it costs."""
    here = client.situation(state)
    is_reminder = trigger.profile == REMINDER
    verb = "reminds you" if is_reminder else "runs"
    said = f"{verb} {trigger_words(trigger, here.title_of)['en']}"
    plan = trigger.schedule
    times = schedule.upcoming(plan, now=here.now, zone=here.zone) if plan else []
    if times:
        wait = terminal.span((times[0] - here.now).total_seconds())
        said += f", first in {wait}" if plan and plan.run_at is None else f", in {wait}"
    told = [said]
    if len(times) > 1:
        shown_times = [terminal.moment(time, here.now, here.zone) for time in times]
        told.append(f"the next times: {', '.join(shown_times)}")
    if not is_reminder:
        told.append(told_words(trigger)["en"])
    every_s = state.settings.triggers.llm_eval_interval_s
    return told + [note["en"] for note in shown.notes(trigger, here, asked_every_s=every_s)]


def facts(trigger: shown.TriggerView, now: datetime, zone: tzinfo) -> Iterator[tuple[str, str]]:
    def moment(when: datetime) -> str:
        return f"{terminal.moment(when, now, zone)}, {terminal.ago(when, now)}"

    if trigger.type == "broken":
        yield "broken", f"{trigger.broken}; it was never good: mend the file, or remove it"
        return
    if trigger.broken:
        yield "broken", f"{trigger.broken}; the last good definition stays in force"
    if trigger.title != trigger.prompt:
        yield "title", trigger.title
    yield "reminds you" if trigger.profile == REMINDER else "when", trigger.words["en"]
    yield "now", trigger.headline["en"]
    if trigger.profile != REMINDER:
        yield "profile", trigger.profile
    yield "made", moment(trigger.created_at or now)  # only a broken one does not tell
    yield "last run", moment(trigger.last_run_at) if trigger.last_run_at else "never"
    if trigger.last:
        yield "how it went", trigger.last["en"]
    if trigger.next_run_at and trigger.enabled:
        yield "next run", moment(trigger.next_run_at)
    if trigger.cooldown:
        yield "cooldown", terminal.span(trigger.cooldown)
    yield "runs", str(trigger.fire_count)
    yield "told", trigger.told["en"]
    if trigger.failure_streak:
        alike = " alike" if trigger.failure_streak > 1 else ""
        yield "failing", f"the last {trigger.failure_streak} failed{alike}"
    if trigger.last_task_id:
        yield "last task", trigger.last_task_id
    if trigger.blocked_by:
        yield "blocked by", trigger.blocked_by


def explained(trigger_id: str, found: Explanation, now: datetime, zone: tzinfo) -> Iterator[str]:
    """Why it did or did not fire: what it does now, its condition, its slots."""
    yield f"{terminal.bold(trigger_id)}  {terminal.state(found.state)}"
    for text in (found.headline, *found.lines):
        yield from terminal.hanging("  ", terminal.one_line(text["en"]))
    if found.nodes:
        yield ""
        yield terminal.bold("Condition")
    for node in found.nodes:
        mark, colour = _MARKS[node.holds]
        since = f" ({terminal.moment(node.at, now, zone)})" if node.at else ""
        lead = f"  {'  ' * node.depth}{terminal.coloured(mark, colour)} "
        text = f"{node.words['en']}: {node.why['en']}{since}"
        yield from terminal.hanging(lead, terminal.one_line(text))
    if found.slots:
        yield ""
        yield terminal.bold("Slots")
        rows = [_slot(slot, now, zone) for slot in found.slots]
        head = tuple(terminal.dim(text) for text in ("AT", "STATE", "TASK", "WHY"))
        yield from (f"  {line}" for line in terminal.aligned([head, *rows]))


def _slot(slot: SlotExplanation, now: datetime, zone: tzinfo) -> tuple[str, str, str, str]:
    said = [slot.reason["en"]] if slot.reason else []
    if slot.planned_at:
        said.append(
            f"planned for {terminal.moment(datetime.fromisoformat(slot.planned_at), now, zone)}"
        )
    state = str(slot.state)
    if slot.missed and state != "ran":  # beside a run they have a row of their own
        said.append(f"{slot.missed} later")
    return (
        terminal.moment(datetime.fromisoformat(slot.at), now, zone),
        terminal.coloured(state, _STATES.get(state, "")),
        client.short_id(slot.task_id) if slot.task_id else "-",
        terminal.one_line("; ".join(said)),
    )
