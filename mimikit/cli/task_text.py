"""One task with all that belongs to it, as data for programs and as text for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, tzinfo
from types import TracebackType
from typing import Any, Self

import click

from mimikit.cli import client, terminal
from mimikit.cli.client import HINT, Watcher, live_runs, look_at_consumer
from mimikit.errors import NotFound
from mimikit.protocol import paths
from mimikit.protocol.models import TaskResult
from mimikit.state import ReadOnlyState
from mimikit.tasks.queue import TaskSnapshot
from mimikit.views import chains
from mimikit.views import tasks as shown

_MOST_EVENTS = 30
_HEAD = 11
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


def collect(state: ReadOnlyState, task_id: str) -> dict[str, Any]:
    """Task, result, events, and the tasks it belongs with: the shape of the HTTP answer."""
    files, live = state.files, live_runs(state)
    view = shown.find_view(files, task_id)
    if view is None:
        raise NotFound(f"expected a task, got {task_id!r}, which is gone meanwhile")
    trace = shown.in_trace(files, view.task.trace_id, live, view)
    chain = chains.around(files, view.task.trace_id, trace, live)
    return {
        "task": shown.task_view(files, view, live).to_dict(),
        "result": result_of(view),
        "events": [event.to_dict() for event in shown.events_of(files, view.task)],
        "trace": [task.to_dict() for task in trace],
        "graph": chains.draw(chain, view.task.id).to_dict(),
    }


def result_of(view: TaskSnapshot) -> dict[str, Any] | None:
    outcome = view.result or view.plan
    if outcome is None:
        return None
    is_run = isinstance(outcome, TaskResult)
    return {
        "status": outcome.status,
        "text": outcome.text if is_run else outcome.summary or "",
        "error": outcome.error,
        "failureReason": outcome.failure_reason,
        "exitCode": outcome.exit_code if is_run else None,
        "data": {k: v for k, v in outcome.result.items() if k != "text"} if is_run else {},
        "engine": outcome.engine,
        "usage": outcome.usage.to_dict(),
    }


def lines(whole: dict[str, Any], now: datetime, zone: tzinfo) -> Iterator[str]:
    task, result = whole["task"], whole["result"]
    yield f"{terminal.bold(task['id'])}  {terminal.state(task['state'])}"
    for head, text in _facts(task, result, now, zone):
        yield f"  {terminal.dim(head.ljust(_HEAD))}{terminal.one_line(text)}"
    yield from _section("Prompt", task["prompt"])
    if result is not None:
        error = result["error"] or ""
        text = result["text"] if result["text"] != error else ""
        yield from _section("Result", text)
        reason = result["failureReason"]
        yield from _section(f"Error ({reason})" if reason else "Error", error)
    yield from _events(whole["events"], now, zone)
    yield from _chain(whole["trace"], task["id"])


def _facts(
    task: dict[str, Any], result: dict[str, Any] | None, now: datetime, zone: tzinfo
) -> Iterator[tuple[str, str]]:
    created = datetime.fromisoformat(task["createdAt"])
    if task["title"] != task["prompt"].strip():
        yield "title", task["title"]
    what = "planner" if task["seat"] == "planner" else f"worker, profile {task['profile']}"
    yield "for", f"{what}, priority {task['priority']}"
    yield "from", ", ".join(_origins(task))
    yield "queued", f"{terminal.moment(created, now, zone)}, {terminal.ago(created, now)}"
    if task["notBefore"] and task["state"] == "queued":
        yield "not before", terminal.moment(datetime.fromisoformat(task["notBefore"]), now, zone)
    if task["waitMs"] is not None and task["waitMs"] >= _WORTH_TELLING_MS:
        yield "waited", terminal.span(task["waitMs"] / 1000)
    if task["state"] == "running" and task["startedAt"]:
        since = (now - datetime.fromisoformat(task["startedAt"])).total_seconds()
        yield "running", f"for {terminal.span(since)}{_attempts(task)}"
    if task["runMs"] is not None:
        yield "ran", f"{terminal.span(task['runMs'] / 1000)}{_attempts(task)}"
    if task["headline"]:
        yield "now", task["headline"]
    if result is not None:
        yield from _outcome_facts(result)


def _origins(task: dict[str, Any]) -> Iterator[str]:
    if origin := _ORIGINS.get(task["origin"], task["origin"]):
        yield origin
    for key, word in (
        ("sourceTriggerId", "trigger"),
        ("parentTaskId", "follows"),
        ("retryOf", "retry of"),
    ):
        if task[key]:
            yield f"{word} {task[key]}"


def _attempts(task: dict[str, Any]) -> str:
    if task["maxAttempts"] == 1 and task["attempts"] <= 1:
        return ""
    return f", attempt {task['attempts']} of {task['maxAttempts']}"


def _outcome_facts(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if result["engine"]:
        usage = result["usage"]
        used = usage["inputTokens"] + usage["outputTokens"]
        tokens = f", {usage['inputTokens']} tokens in, {usage['outputTokens']} out" if used else ""
        yield "engine", result["engine"] + tokens
    if result["exitCode"] is not None:
        yield "exit code", str(result["exitCode"])
    for key, value in result["data"].items():
        yield key, str(value)


def _section(heading: str, text: str) -> Iterator[str]:
    if text.strip():
        yield ""
        yield terminal.bold(heading)
        yield terminal.indented(text)


def _events(events: list[dict[str, Any]], now: datetime, zone: tzinfo) -> Iterator[str]:
    if not events:
        return
    yield ""
    yield terminal.bold("Events")
    for event in events[-_MOST_EVENTS:]:
        when = terminal.moment(datetime.fromisoformat(event["at"]), now, zone)
        facts = [
            str(event[key])
            for key in ("status", "failureReason", "state", "reason")
            if event.get(key)
        ]
        if event.get("attempt"):
            facts.append(f"attempt {event['attempt']}")
        what = " ".join([str(event["event"]), *([f"({', '.join(facts)})"] if facts else [])])
        yield f"  {when}  {terminal.one_line(what)}"


def _chain(trace: list[dict[str, Any]], own_id: str) -> Iterator[str]:
    if len(trace) < 2:
        return
    yield ""
    yield terminal.bold("Chain")
    rows = [
        (
            "  →" if task["id"] == own_id else "   ",
            client.short_id(task["id"]),
            terminal.state(task["state"]),
            "planner" if task["seat"] == "planner" else task["profile"],
            terminal.clip(terminal.one_line(task["title"]), 60),
        )
        for task in trace
    ]
    yield from terminal.aligned(rows)


class EventPrinter:
    """Prints a run's events one after the other, as one readable text."""

    def __init__(self) -> None:
        self._deltas = ""
        self._at_line_start = True
        self.printed_anything = False

    def event(self, event: dict[str, Any]) -> None:
        kind, text = event["type"], terminal.safe(event["text"])
        match kind:
            case "delta":
                self._deltas += text
                self._write(text)
            case "message":
                self._message(text)
            case "output":
                stream = event["stream"] or event["data"].get("stream")
                self._write(text, err=stream == "stderr")
            case "started" if event["data"].get("attempt", 1) > 1:
                self._line(terminal.dim(f"— attempt {event['data']['attempt']} —"))
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

    def _message(self, text: str) -> None:
        """A whole message; what was streamed of it already is not said twice."""
        if text.strip() != self._deltas.strip():
            self.end()
            self._write(text)
        self.end()

    def _line(self, text: str) -> None:
        self.end()
        self._write(text + "\n")

    def _write(self, text: str, *, err: bool = False) -> None:
        if not text:
            return
        click.echo(text, nl=False, err=err)
        self.printed_anything = True
        self._at_line_start = text.endswith("\n")


class RunFollower:
    def __init__(self, state: ReadOnlyState, task_id: str, *, as_json: bool = False) -> None:
        self._state, self._id, self._as_json = state, task_id, as_json
        folders = [paths.RUNS, *(f"{seat}/results" for seat in paths.QUEUES)]
        self._watcher = Watcher(state, folders)
        self._printer = EventPrinter()
        self._offset = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._printer.end()
        self._watcher.__exit__(kind, error, trace)

    @property
    def printed_anything(self) -> bool:
        return self._printer.printed_anything

    def print_present(self) -> None:
        at_end = False
        while not at_end:
            views, self._offset, at_end = shown.output(self._state.files, self._id, self._offset)
            events = [view.to_dict() for view in views]
            for event in events:
                if self._as_json:
                    click.echo(json.dumps(event, ensure_ascii=False))
                else:
                    self._printer.event(event)

    def print_until_end(self) -> None:
        told = False
        while True:
            # Asked before reading: what a run wrote before it ended is then surely read.
            view = shown.find_view(self._state.files, self._id)
            has_ended = view is None or view.completed_at is not None
            self.print_present()
            if has_ended:
                break
            if not told and not look_at_consumer(self._state).is_there:
                terminal.note(f"It waits: {HINT}.")
                told = True
            self._watcher.pause()
        self._printer.end()
        if view is not None and not self._as_json:
            terminal.note(f"Ended: {view.state}{': ' + view.error if view.error else ''}")
