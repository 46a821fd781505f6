"""Tasks: lists that stay quick however many there are, one task with its trace, live output."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles, whole_lines
from mimikit.protocol.json import Json
from mimikit.protocol.models import LiveRun, Task, TaskResult, time_text, to_utc
from mimikit.tasks import ledger, queue, task_file
from mimikit.tasks.queue import TaskSnapshot
from mimikit.views.base import Render

MAX_LIVE = 200
MAX_ENDED = 50
MAX_TRACE = 100
MAX_EVENTS = 500
_OUTPUT_PART = 2**18
_OUTPUT_LINE = 2**24
_ENDED = frozenset({"done", "failed", "canceled"})
_EVENT_TYPES_HIDDEN = frozenset({"process"})


def shown(files: ReadOnlyFiles, view: TaskSnapshot, live: dict[str, LiveRun]) -> dict[str, Any]:
    """One task."""
    task, outcome = view.task, view.result or view.plan
    run = live.get(task.id) if view.state == "running" else None
    started = view.started_at or _began(files, view, run)
    ended = view.completed_at if view.state in _ENDED else None
    return {
        "id": task.id,
        "seat": view.seat,
        "state": view.state,
        "title": task.title or _first_line(task.prompt),
        "prompt": task.prompt,
        "profile": task.profile,
        "priority": task.priority,
        "origin": task.origin,
        "createdAt": time_text(task.created_at),
        "startedAt": time_text(started) if started else None,
        "completedAt": time_text(ended) if ended else None,
        "notBefore": time_text(task.not_before) if task.not_before else None,
        "attempts": outcome.attempts if outcome else task.attempts + (view.state == "running"),
        "maxAttempts": task.max_attempts,
        "failureReason": outcome.failure_reason if outcome else None,
        "error": plain(view.error) if view.error else None,
        "traceId": task.trace_id,
        "parentTaskId": task.parent_task_id,
        "sourceTriggerId": task.source_trigger_id,
        "retryOf": task.retry_of,
        "upstream": task.upstream,
        "internal": task.internal,
        "headline": run.headline if run else "",
        "waitMs": _ms(task.created_at, started),
        "runMs": _ms(started, ended),
    }


def find(files: ReadOnlyFiles, task_id: str, live: dict[str, LiveRun]) -> dict[str, Any] | None:
    """One task by its id; None when no folder has it."""
    view = find_view(files, task_id)
    return None if view is None else shown(files, view, live)


def find_view(files: ReadOnlyFiles, task_id: str) -> TaskSnapshot | None:
    """Looked for twice: a task on its way back to the queue is seen by the second look."""
    return queue.show(files, task_id) or queue.show(files, task_id)


def listed(
    files: ReadOnlyFiles, live: dict[str, LiveRun], state: str | None, limit: int
) -> list[dict[str, Any]]:
    """Tasks of one state, or running, queued and then ended ones, newest end first."""
    wanted = {state} if state else {"queued", "running"} | _ENDED
    found: list[TaskSnapshot] = []
    if wanted & {"queued", "running"}:
        found += [view for view in live_views(files) if view.state in wanted][: limit or MAX_LIVE]
    if wanted & _ENDED:
        ids = ledger.ended_ids(files, limit or MAX_ENDED, wanted)
        found += [view for id_ in ids if (view := find_view(files, id_)) and view.state in wanted]
    return [shown(files, view, live) for view in found]


def live_views(files: ReadOnlyFiles) -> list[TaskSnapshot]:
    """Running and queued tasks, in the order they are taken; of a long queue its first by name."""
    found: list[TaskSnapshot] = []
    for seat in paths.QUEUES:
        for name in _names(files, f"{seat}/running")[:MAX_LIVE]:
            if task := files.peek(f"{seat}/running/{name}", Task):
                found.append(TaskSnapshot(task, seat, "running"))
        for name in _names(files, f"{seat}/queue")[:MAX_LIVE]:
            if task := files.peek(f"{seat}/queue/{name}", Task):
                found.append(TaskSnapshot(task, seat, "queued"))
    # Plans whose question waits for its answer stand in no queue any more.
    for name in _names(files, "planner/results")[:MAX_LIVE]:
        view = queue.show(files, name.removesuffix(".json"))
        if view is not None and view.state == "running":
            found.append(view)
    unique = {view.task.id: view for view in found}
    return sorted(
        unique.values(), key=lambda v: (v.state != "running", *task_file.order_of(v.task))
    )


def trace_of(
    files: ReadOnlyFiles, view: TaskSnapshot, live: dict[str, LiveRun]
) -> list[dict[str, Any]]:
    """Every task of the same trace that can be found quickly, oldest first."""
    return in_trace(files, view.task.trace_id, live, view)


def in_trace(
    files: ReadOnlyFiles, trace_id: str, live: dict[str, LiveRun], *known: TaskSnapshot
) -> list[dict[str, Any]]:
    """Every task of a trace that can be found quickly, those known among them, oldest first."""
    found = {view.task.id: view for view in known}
    for other in live_views(files):
        if other.task.trace_id == trace_id:
            found[other.task.id] = other
    for id_ in ledger.trace_ids(files, trace_id):
        if len(found) >= MAX_TRACE:
            break
        if id_ not in found and (other := find_view(files, id_)):
            found[id_] = other
    ordered = sorted(found.values(), key=lambda v: (v.task.created_at, v.task.id))
    return [shown(files, other, live) for other in ordered]


def events_of(files: ReadOnlyFiles, view: TaskSnapshot) -> list[dict[str, Any]]:
    """The ledger's lines about one task, oldest first."""
    events = ledger.events_of(files, view.task.id, since=view.task.created_at)
    return [{"type": line.get("event"), **line} for line in islice(events, MAX_EVENTS)]


def result_of(view: TaskSnapshot, render: Render) -> dict[str, Any] | None:
    """How it ended, with its text; a command's output is no markdown."""
    outcome = view.result or view.plan
    if outcome is None:
        return None
    if isinstance(outcome, TaskResult):
        text, data = plain(outcome.text), outcome.result
        kind, exit_code = outcome.result_type, outcome.exit_code
    else:
        text, data = outcome.summary or outcome.error or "", dict[str, Any]()
        kind, exit_code = "text", None
    is_output = view.task.profile == "command" and view.seat == "worker"
    return {
        "text": text,
        "html": None if is_output or not text else render(text),
        "exitCode": exit_code,
        "resultType": kind,
        "data": {key: value for key, value in data.items() if key != "text"},
        "status": outcome.status,
        "error": plain(outcome.error) if outcome.error else None,
        "failureReason": outcome.failure_reason,
        "engine": outcome.engine,
        "usage": outcome.usage.to_dict(),
        "completedAt": time_text(outcome.completed_at),
    }


def output(
    files: ReadOnlyFiles, run_id: str, offset: int
) -> tuple[list[dict[str, Any]], int, bool]:
    """A run's events from an offset on, where to go on, and whether the file's end is reached."""
    path = paths.run_output(run_id)
    limit = _OUTPUT_PART
    while True:
        data = files.part(path, offset, limit)
        if b"\n" in data or len(data) < limit or limit >= _OUTPUT_LINE:
            break
        limit *= 4
    end = data.rfind(b"\n") + 1
    if end == 0 and limit >= _OUTPUT_LINE:
        end = len(data)  # one endless line: nobody reads it, go past it
    events = [_event(line) for _, line in whole_lines(data[:end])]
    shown_events = [event for event in events if event["type"] not in _EVENT_TYPES_HIDDEN]
    return shown_events, offset + end, len(data) < limit


def _event(line: dict[str, Json]) -> dict[str, Any]:
    data = line.get("data")
    more = data if isinstance(data, dict) else {}
    return {
        "at": str(line.get("at") or ""),
        "type": str(line.get("type") or "note"),
        "text": plain(str(line.get("text") or "")),
        "stream": line.get("stream") or more.get("stream"),
        "data": more,
    }


def _began(files: ReadOnlyFiles, view: TaskSnapshot, run: LiveRun | None) -> datetime | None:
    """When a running task's attempt began: from the heartbeat, else from its output."""
    if view.state != "running":
        return None
    if run is not None:
        return run.started_at
    for _, line in files.head_lines(paths.run_output(view.task.id)):
        at = line.get("at")
        try:
            return to_utc(datetime.fromisoformat(at)) if isinstance(at, str) else None
        except ValueError:
            return None
    return None


def _names(files: ReadOnlyFiles, folder: str, suffix: str = ".json") -> list[str]:
    return files.names(folder, suffix=suffix)


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:80] + ("…" if len(line) > 80 else "")


def _ms(start: datetime | None, end: datetime | None) -> int | None:
    if start is None or end is None:
        return None
    return max(int((end - start).total_seconds() * 1000), 0)
