"""`mimikit status`, how it goes; `mimikit logs`, what happened; `mimikit prompt`, why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any

import click

from mimikit import __version__
from mimikit.cli import client, terminal
from mimikit.cli.chat import without_answer
from mimikit.cli.frame import LeafCommand, pass_state_and_json
from mimikit.cli.job_lines import work_words
from mimikit.cli.needs import need_lines, needs_of
from mimikit.cli.options import NumberRange
from mimikit.cli.usage import usage_words
from mimikit.errors import NotFound
from mimikit.language.plain_text import plain
from mimikit.log import log_tails
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import LiveRun
from mimikit.protocol.records import whole_lines
from mimikit.state import ReadOnlyState
from mimikit.views.needs import NeedView
from mimikit.views.status import Consumer, StateOverview, overview
from mimikit.views.triggers import TriggerView
from mimikit.views.turns import TurnPromptView, turn_prompt

_NEEDS = "needs you"
_QUEUES = {"planner": "planning", "worker": "work"}
_WRAPPED = (_NEEDS, "consumer", "engines", "usage", "question")


@click.command(cls=LeafCommand)
@pass_state_and_json
def status(state: ReadOnlyState, as_json: bool) -> None:
    """Show how it goes: consumer, seats, queues, engines, question, errors."""
    seen = look(state)
    found = needs_of(state, seen)
    if as_json:
        terminal.print_json(seen.to_dict() | {"needs": [need.to_dict() for need in found]})
        return
    terminal.out(f"{terminal.bold('mimikit ' + __version__)}  {seen.workspace}")
    for head, text in (*_needs(found, seen), *lines(seen)):
        lead = f"  {terminal.heading(head)}"
        if head in _WRAPPED:
            for number, part in enumerate(text.split("\n")):
                lead = f"  {terminal.heading('' if number else head)}"
                terminal.out("\n".join(terminal.hanging(lead, part)))
        else:
            room = (terminal.room() or 10_000) - terminal.width(lead)
            terminal.out(f"{lead}{terminal.clip(text, room)}".rstrip())


def look(state: ReadOnlyState) -> StateOverview:
    consumer = client.look_at_consumer(state)
    here = client.situation(state, consumer)
    workspace, settings = str(state.workspace), state.settings
    return overview(state.files, consumer, here, workspace=workspace, settings=settings)


def _needs(found: list[NeedView], seen: StateOverview) -> Iterator[tuple[str, str]]:
    """What waits for its user; of what stands in other lines anyway these tell."""
    text = "\n".join(need_lines(found, seen))
    if text:
        yield _NEEDS, text


def lines(seen: StateOverview) -> Iterator[tuple[str, str]]:
    """Heading and text of each; one without a heading goes on with the last."""
    yield "consumer", _consumer_words(seen.consumer, seen.now)
    if seen.consumer.state != "down":
        yield from _runs(seen)
    paused = f"  {terminal.state('paused')}: `mimikit resume` lets them go on"
    counts = ", ".join(f"{word} {seen.queues.get(seat, 0)}" for seat, word in _QUEUES.items())
    yield "queues", counts + (paused if seen.paused else "")
    if work := work_words(seen.jobs):
        yield "work", work
    if seen.unanswered:
        yield "inbox", f"{terminal.plural(seen.unanswered, 'message')} not answered yet"
    if seen.orders_waiting:
        yield "commands", f"{terminal.plural(seen.orders_waiting, 'command')} not carried out yet"
    yield "triggers", _trigger_words(seen.listed, seen.now)
    if seen.consumer.health is not None and seen.consumer.state != "down":
        shown = terminal.engine_lines(seen.consumer.health.engines)
        yield "engines", "\n".join(terminal.one_line(line.text) for line in shown)
    yield "usage", usage_words(seen.usage)
    if question := seen.question:
        yield "question", terminal.one_line(question.question)
        options = enumerate(map(terminal.one_line, question.options), 1)
        if question.options:
            yield "", "  ".join(f"[{number}] {text}" for number, text in options)
        how = f"`mimikit chat` answers it; {without_answer(question, seen.now)}"
        yield "", terminal.dim(how)
    if seen.quarantined:
        number = terminal.plural(seen.quarantined, "file")
        text = f"{number} that could not be read; `mimikit doctor` says why"
        yield terminal.state("corrupt"), text
    yield from _troubles(seen)


def _consumer_words(consumer: Consumer, now: datetime) -> str:
    word, health = terminal.state(consumer.state), consumer.health
    if consumer.state == "down":
        return f"{word}: `mimikit up` starts it with the page, `mimikit consumer` alone"
    text = f"{word}, process {health.pid if health else consumer.pid or 0}"
    if health is None or consumer.state == "starting":
        return text
    if consumer.state == "stuck":
        return f"{text}: last heard of {terminal.ago(health.beat_at, now)}; restart it"
    text += f", for {terminal.span((now - health.started_at).total_seconds())}"
    return text + (f"; trouble: {terminal.one_line(health.degraded)}" if health.degraded else "")


def _runs(seen: StateOverview) -> Iterator[tuple[str, str]]:
    live = seen.consumer.live.values()
    for heading, role in (("replies", "teller"), ("planning", "planner")):
        run = next((run for run in live if run.role == role), None)
        yield heading, _run_words(run, seen.now) if run else "idle"
    workers = [run for run in live if run.role == "worker"]
    most = seen.consumer.health.worker_seats if seen.consumer.health else 0
    yield "at work", f"{len(workers)} of {most} busy"
    for run in workers:
        yield "", f"{client.short_id(run.id)}  {_run_words(run, seen.now)}"


def _run_words(run: LiveRun, now: datetime) -> str:
    what = terminal.one_line(": ".join(part for part in (run.title, run.headline) if part))
    return f"{terminal.short_span((now - run.started_at).total_seconds())}  {what}"


def _trigger_words(triggers: list[TriggerView], now: datetime) -> str:
    if not triggers:
        return "none"
    active = [trigger for trigger in triggers if trigger.enabled and not trigger.broken]
    text = f"{len(active)} active"
    broken = sum(bool(trigger.broken) for trigger in triggers)
    paused = len(triggers) - len(active) - broken
    for word, number in (("paused", paused), ("broken", broken)):
        if number:
            text += f", {number} {terminal.state(word)}"
    coming = [(trigger.next_run_at, trigger.title) for trigger in active if trigger.next_run_at]
    if coming:
        when, title = min(coming)
        text += f"; next {terminal.ago(when, now)}: {terminal.one_line(title)}"
    return text


def _troubles(seen: StateOverview) -> Iterator[tuple[str, str]]:
    """Errors of the last day, as the log has them."""
    for number, line in enumerate(seen.errors):
        when = terminal.ago(datetime.fromisoformat(str(line["timestamp"])), seen.now)
        facts = {k: v for k, v in line.items() if k not in ("timestamp", "type", "event")}
        what = terminal.one_line(" ".join(map(str, facts.values())))
        yield "" if number else "errors", f"{when}  {line.get('event')}  {what}"


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
    found = turn_prompt(state.files, state.settings, client.find_prompt(state.files, turn))
    if found is None:
        raise NotFound(f"the prompt of {turn} can not be read")
    terminal.show(found, _prompt_lines(found, state), as_json=as_json)


def _prompt_lines(found: TurnPromptView, state: ReadOnlyState) -> Iterator[str]:
    used, asked = found.usage, found.requests
    tokens = f"{used.input_tokens:,} in ({used.cached_input_tokens:,} cached)"
    times = "" if asked is None else f" · {asked} {'request' if asked == 1 else 'requests'}"
    yield terminal.bold(found.id)
    yield from terminal.facts([
        ("role", f"{found.role}, attempt {found.attempt}: {found.status}"),
        ("engine", f"{found.engine} {found.model or ''}".strip() or "code: no model was asked"),
        ("when", terminal.moment(found.at, state.clock.now(), state.settings.zone)),
        ("usage", f"{tokens} · {used.output_tokens:,} out{times}"),
        *(("called", f"{one.name} {one.arguments} → {one.reply}") for one in found.calls),
        *(("memory", hit.source) for hit in found.hits),
    ])  # fmt: skip
    if not found.is_kept:
        yield from ("", "What it was told is not kept.")
        return
    for head, text in (("Instructions", found.instructions), ("Prompt", found.prompt)):
        yield from ("", terminal.bold(head), *plain(text).splitlines())


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

    def show(line: dict[str, Any]) -> None:
        if type_ is None or line.get("type") == type_:
            if as_json:
                terminal.out(terminal.json_text(line))
            else:
                terminal.out(_line_text(line, state.clock.now(), state.settings.zone))

    with client.Watcher(state, [paths.ROOT]) as watcher:
        stat = files.stat(paths.LOG)
        offset = stat.size if stat else 0
        for line in _last_lines(files, lines, type_):
            show(line)
        while follow:
            stat = files.stat(paths.LOG)
            begin = offset if stat is not None and stat.size >= offset else 0  # of a fresh file
            offset = begin
            for end, line in whole_lines(files.part(paths.LOG, begin, _PART_BYTES)):
                show(line)
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
