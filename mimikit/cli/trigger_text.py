"""Triggers as text for a person: what a new one will do, one with its facts, why it waits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any

from mimikit.cli import durations, naming, terminal
from mimikit.cli.guest import GuestState
from mimikit.cli.waiting import look_at_consumer
from mimikit.protocol import paths
from mimikit.protocol.models import Runtime, Trigger
from mimikit.triggers import schedule, words
from mimikit.triggers.explain import Explanation, Situation
from mimikit.web.shown import triggers as shown

_MARKS = {True: ("✓", "ok"), False: ("✗", "failed"), None: ("?", "paused")}
_STATES = {"ran": "done", "skipped": "paused", "missed": "failed"}


def situation(state: GuestState) -> Situation:
    """What triggers are explained by, as this terminal finds it."""
    consumer = look_at_consumer(state)
    health = consumer.health if consumer.is_there else None
    runtime = state.files.peek(paths.RUNTIME, Runtime)
    return shown.situation(
        state.files,
        now=state.clock.now(),
        zone=state.settings.zone,
        consumer_up=consumer.is_there,
        health=health,
        paused=health.paused if health else bool(runtime and runtime.paused),
    )


def promises(state: GuestState, trigger: Trigger) -> list[str]:
    """When a new trigger will run, in sentences, and what it costs."""
    here = situation(state)
    said = f"runs {words.of_trigger(trigger, here.title_of)['en']}"
    plan = trigger.schedule
    times = schedule.upcoming(plan, now=here.now, zone=here.zone) if plan else []
    if times:
        wait = durations.words((times[0] - here.now).total_seconds())
        said += f", first in {wait}" if plan and plan.run_at is None else f", in {wait}"
    told = [said]
    if len(times) > 1:
        shown_times = [durations.at(time, here.now, here.zone) for time in times]
        told.append(f"the next times: {', '.join(shown_times)}")
    every_s = state.settings.triggers.llm_eval_interval_s
    return told + [note["en"] for note in shown.notes(trigger, here, asked_every_s=every_s)]


def facts(trigger: dict[str, Any], now: datetime, zone: tzinfo) -> Iterator[tuple[str, str]]:
    """What there is to say about one, each with its heading."""

    def moment(text: str) -> str:
        when = datetime.fromisoformat(text)
        return f"{durations.at(when, now, zone)}, {durations.ago(when, now)}"

    if trigger["type"] == "broken":
        yield "broken", f"{trigger['broken']}; it was never good: mend the file, or remove it"
        return
    if trigger["broken"]:
        yield "broken", f"{trigger['broken']}; the last good definition stays in force"
    if trigger["title"] != trigger["prompt"]:
        yield "title", trigger["title"]
    yield "when", trigger["words"]["en"]
    yield "now", trigger["headline"]["en"]
    yield "profile", trigger["profile"]
    yield "made", moment(trigger["createdAt"])
    yield "last run", moment(trigger["lastRunAt"]) if trigger["lastRunAt"] else "never"
    if trigger["nextRunAt"] and trigger["enabled"]:
        yield "next run", moment(trigger["nextRunAt"])
    if trigger["cooldown"]:
        yield "cooldown", durations.words(trigger["cooldown"])
    yield "runs", str(trigger["fireCount"])
    if trigger["failureStreak"]:
        yield "failing", f"the last {trigger['failureStreak']} failed"
    if trigger["lastTaskId"]:
        yield "last task", trigger["lastTaskId"]
    if trigger["blockedBy"]:
        yield "blocked by", trigger["blockedBy"]


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
        since = f" ({durations.at(node.at, now, zone)})" if node.at else ""
        lead = f"  {'  ' * node.depth}{terminal.coloured(mark, colour)} "
        text = f"{node.words['en']}: {node.why['en']}{since}"
        yield from terminal.hanging(lead, terminal.one_line(text))
    if found.slots:
        yield ""
        yield terminal.bold("Slots")
        rows = [_slot(slot, now, zone) for slot in found.slots]
        head = tuple(terminal.dim(text) for text in ("AT", "STATE", "TASK", "WHY"))
        yield from (f"  {line}" for line in terminal.aligned([head, *rows]))


def _slot(slot: dict[str, Any], now: datetime, zone: tzinfo) -> tuple[str, str, str, str]:
    said = [slot["reason"]["en"]] if slot["reason"] else []
    if slot["plannedAt"]:
        said.append(f"planned for {durations.at(_time(slot['plannedAt']), now, zone)}")
    state = str(slot["state"])
    if slot["missed"] and state != "ran":  # beside a run they have a row of their own
        said.append(f"{slot['missed']} later")
    return (
        durations.at(_time(slot["at"]), now, zone),
        terminal.coloured(state, _STATES.get(state, "")),
        naming.short(slot["taskId"]) if slot["taskId"] else "-",
        terminal.one_line("; ".join(said)),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
