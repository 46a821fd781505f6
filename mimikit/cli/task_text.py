"""A task with all that belongs to it, and what its run does, as text for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, tzinfo

import click

from mimikit.cli import client, terminal
from mimikit.cli.client import HINT, Watcher, look_at_consumer
from mimikit.protocol import paths
from mimikit.state import ReadOnlyState
from mimikit.views import tasks as shown
from mimikit.views.chains import TaskReport
from mimikit.views.tasks import LedgerEvent, OutputEvent, TaskOutcome, TaskView

_MOST_EVENTS = 30
_WORTH_TELLING_MS = 100
_ORIGINS = {
    "teller": "the Teller",
    "planner": "the Planner",
    "cli": "the terminal",
    "http": "HTTP",
    "trigger": "",
    "supervisor": "the supervisor",
    "file": "a file",
    "builtin": "the built-in engine",
    "self_awake": "mimikit itself",
}


def lines(report: TaskReport, now: datetime, zone: tzinfo) -> Iterator[str]:
    task, result = report.task, report.result
    yield f"{terminal.bold(task.id)}  {terminal.state(task.state)}"
    yield from terminal.facts(_facts(task, now, zone))
    yield from terminal.facts(_outcome_facts(result) if result else ())
    yield from _section("Prompt", task.prompt)
    if result is not None:
        yield from _section("Result", result.text if result.text != result.error else "")
        reason = result.failure_reason
        yield from _section(f"Error ({reason})" if reason else "Error", result.error or "")
    if report.events:
        yield ""
        yield terminal.bold("Events")
        yield from (_event(event, now, zone) for event in report.events[-_MOST_EVENTS:])
    if len(report.trace) > 1:
        yield ""
        yield terminal.bold("Chain")
        rows = [
            (
                "  →" if one.id == task.id else "   ",
                client.short_id(one.id),
                terminal.state(one.state),
                "planner" if one.seat == "planner" else one.profile,
                terminal.clip(terminal.one_line(one.title), 60),
            )
            for one in report.trace
        ]
        yield from terminal.aligned(rows)


def _facts(task: TaskView, now: datetime, zone: tzinfo) -> Iterator[tuple[str, str]]:
    created = task.created_at
    attempts = f", attempt {task.attempts} of {task.max_attempts}"
    if task.max_attempts == 1 and task.attempts <= 1:
        attempts = ""
    if task.title != task.prompt.strip():
        yield "title", task.title
    what = "planner" if task.seat == "planner" else f"worker, profile {task.profile}"
    yield "for", f"{what}, priority {task.priority}"
    origins = {
        "": _ORIGINS.get(task.origin, task.origin),
        "trigger ": task.source_trigger_id,
        "follows ": task.parent_task_id,
        "retry of ": task.retry_of,
    }
    yield "from", ", ".join(f"{word}{origin}" for word, origin in origins.items() if origin)
    yield "queued", f"{terminal.moment(created, now, zone)}, {terminal.ago(created, now)}"
    if task.not_before and task.state == "queued":
        yield "not before", terminal.moment(task.not_before, now, zone)
    if task.wait_ms is not None and task.wait_ms >= _WORTH_TELLING_MS:
        yield "waited", terminal.span(task.wait_ms / 1000)
    if task.state == "running" and task.started_at:
        since = (now - task.started_at).total_seconds()
        yield "running", f"for {terminal.span(since)}{attempts}"
    if task.run_ms is not None:
        yield "ran", f"{terminal.span(task.run_ms / 1000)}{attempts}"
    if task.headline:
        yield "now", task.headline


def _outcome_facts(result: TaskOutcome) -> Iterator[tuple[str, str]]:
    if result.engine:
        used, made = result.usage.input_tokens, result.usage.output_tokens
        tokens = f", {used} tokens in, {made} out" if used + made else ""
        yield "engine", result.engine + tokens
    if result.exit_code is not None:
        yield "exit code", str(result.exit_code)
    for key, value in result.data.items():
        yield key, str(value)


def _section(heading: str, text: str) -> Iterator[str]:
    if text.strip():
        yield ""
        yield terminal.bold(heading)
        yield terminal.indented(text)


def _event(event: LedgerEvent, now: datetime, zone: tzinfo) -> str:
    line = event.model_extra or {}
    when = terminal.moment(datetime.fromisoformat(str(line["at"])), now, zone)
    keys = ("status", "failureReason", "state", "reason")
    facts = [str(line[key]) for key in keys if line.get(key)]
    if line.get("attempt"):
        facts.append(f"attempt {line['attempt']}")
    what = f"{line['event']} ({', '.join(facts)})" if facts else str(line["event"])
    return f"  {when}  {terminal.one_line(what)}"


class EventPrinter:
    """Prints a run's events one after the other, as one readable text."""

    def __init__(self) -> None:
        self._deltas = ""
        self._at_line_start = True
        self.printed_anything = False

    def event(self, event: OutputEvent) -> None:
        text = terminal.safe(event.text)
        match event.type:
            case "delta":
                self._deltas += text
                self._write(text)
            case "message":
                # What was streamed of it already is not said twice.
                if text.strip() != self._deltas.strip():
                    self.end()
                    self._write(text)
                self.end()
            case "output":
                self._write(text, err=event.stream == "stderr")
            case "started" if event.data.get("attempt", 1) > 1:
                self._line(terminal.dim(f"— attempt {event.data['attempt']} —"))
            case "command":
                self._line(terminal.dim(f"$ {terminal.one_line(text)}"))
            case "tool" | "file" | "note":
                self._line(terminal.dim(f"· {terminal.one_line(text)}"))
            case "error":
                self._line(click.style(terminal.one_line(text), fg="red"))
            case _:
                return

    def end(self) -> None:
        if not self._at_line_start:
            self._write("\n")
        self._deltas = ""

    def _line(self, text: str) -> None:
        self.end()
        self._write(text + "\n")

    def _write(self, text: str, *, err: bool = False) -> None:
        if not text:
            return
        click.echo(text, nl=False, err=err)
        self.printed_anything = True
        self._at_line_start = text.endswith("\n")


def print_output(state: ReadOnlyState, task_id: str, *, follow: bool, as_json: bool) -> None:
    """Print what a task's run did and wrote so far, or until it has ended when it is followed."""
    printer = EventPrinter()
    offset, told = 0, False
    with Watcher(state, [paths.RUNS, *(f"{seat}/results" for seat in paths.QUEUES)]) as watcher:
        try:
            while True:
                # Asked before reading: what a run wrote before it ended is then surely read.
                view = shown.find_view(state.files, task_id)
                at_end = False
                while not at_end:
                    events, offset, at_end = shown.output(state.files, task_id, offset)
                    for event in events:
                        if as_json:
                            click.echo(json.dumps(event.to_dict(), ensure_ascii=False))
                        else:
                            printer.event(event)
                if not follow or view is None or view.completed_at is not None:
                    break
                if not told and not look_at_consumer(state).is_there:
                    terminal.note(f"It waits: {HINT}.")
                    told = True
                watcher.pause()
        finally:
            printer.end()
    if as_json:
        return
    if follow and view is not None:
        terminal.note(f"Ended: {view.state}{': ' + view.error if view.error else ''}")
    if not follow and not printer.printed_anything:
        has_ended = view is not None and view.completed_at is not None
        terminal.note("It wrote nothing." if has_ended else "No output yet.")
