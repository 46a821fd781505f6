"""Tasks: lists, one task with its events and result, and live output."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from mimikit.language.plain_text import first_line, plain
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Instant, LiveRun, QueueName, Task, Usage, parse_time
from mimikit.protocol.records import whole_lines
from mimikit.protocol.results import ResultType, TaskResult
from mimikit.tasks import ledger, queue
from mimikit.tasks.queue import TaskSnapshot, TaskState
from mimikit.views.base import Render, Title, View

LIVE: frozenset[TaskState] = frozenset({"queued", "running", "asking"})
MAX_LIVE = 200
MAX_ENDED = 50
MAX_TRACE = 100
MAX_EVENTS = 500
_OUTPUT_PART = 2**18
_OUTPUT_LINE = 2**24
_EVENT_TYPES_HIDDEN = frozenset({"process", "usage"})


class TaskView(View):
    """A task and its state. Units: milliseconds."""

    id: str
    seat: QueueName
    state: TaskState
    title: Title
    prompt: str
    profile: str
    priority: int
    origin: str
    created_at: Instant
    started_at: Instant | None
    completed_at: Instant | None
    not_before: Instant | None
    waits_for: str | None
    attempts: int
    max_attempts: int
    failure_reason: str | None
    error: str | None
    trace_id: str
    parent_task_id: str | None
    source_trigger_id: str | None
    retry_of: str | None
    upstream: list[str]
    internal: bool
    headline: str
    wait_ms: int | None
    run_ms: int | None


class TaskList(View):
    tasks: list[TaskView]


class ResultView(View):
    status: str
    text: str
    html: str | None
    """Null without a text, and for the output of a command, which is plain text."""
    error: str | None
    failure_reason: str | None
    exit_code: int | None
    data: dict[str, Any]
    engine: str
    usage: Usage
    result_type: ResultType
    has_diff: bool
    """Whether files of the workspace changed; see `…/diff`."""
    completed_at: Instant


class LedgerEvent(View):
    """An entry of the ledger; further keys depend on its type."""

    model_config = ConfigDict(
        extra="allow", frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    type: str | None


class OutputEvent(View):
    at: str
    type: str
    text: str
    stream: str | None
    data: dict[str, Any]


class OutputView(View):
    """Events of a run from an offset on, the next offset, and whether the run has ended."""

    events: list[OutputEvent]
    offset: str
    ended: bool


def task_view(files: ReadOnlyFiles, snapshot: TaskSnapshot, live: dict[str, LiveRun]) -> TaskView:
    task, outcome = snapshot.task, snapshot.outcome
    is_running = snapshot.state == "running"
    run = live.get(task.id) if is_running else None
    started = None
    if outcome is not None:
        started = outcome.started_at
    elif run is not None:
        started = run.started_at
    elif is_running:
        started = _first_output_at(files, task.id)
    ended = outcome.completed_at if outcome and snapshot.state in ledger.ENDED else None
    return TaskView.of(
        task,
        seat=snapshot.seat,
        state=snapshot.state,
        title=task.title or first_line(task.prompt),
        started_at=started,
        completed_at=ended,
        attempts=outcome.attempts if outcome else task.attempts + is_running,
        failure_reason=outcome.failure_reason if outcome else None,
        error=plain(outcome.error) if outcome and outcome.error else None,
        headline=run.headline if run else "",
        wait_ms=_ms(task.created_at, started),
        run_ms=_ms(started, ended),
    )


def find(files: ReadOnlyFiles, task_id: str, live: dict[str, LiveRun]) -> TaskView | None:
    snapshot = find_snapshot(files, task_id)
    return snapshot and task_view(files, snapshot, live)


def find_snapshot(files: ReadOnlyFiles, task_id: str) -> TaskSnapshot | None:
    # Twice: a task that moves back to the queue may be missed once.
    return queue.show(files, task_id) or queue.show(files, task_id)


def listed(
    files: ReadOnlyFiles, live: dict[str, LiveRun], state: str | None, limit: int
) -> list[TaskView]:
    """Tasks of one state, or of all: running, queued, then ended ones, newest first."""
    wanted = {state} if state else LIVE | ledger.ENDED
    snapshots: list[TaskSnapshot] = []
    if wanted & LIVE:
        snapshots = [it for it in live_snapshots(files) if it.state in wanted]
        snapshots = snapshots[: limit or MAX_LIVE]
    if wanted & ledger.ENDED:
        ids = ledger.ended_ids(files, limit or MAX_ENDED, wanted)
        ended = [it for id_ in ids if (it := find_snapshot(files, id_)) and it.state in wanted]
        over = {it.task.id for it in ended}  # it may have ended since it was seen running
        snapshots = [it for it in snapshots if it.task.id not in over] + ended
    return [task_view(files, snapshot, live) for snapshot in snapshots]


def live_snapshots(files: ReadOnlyFiles) -> list[TaskSnapshot]:
    """Running and queued tasks in queue order, at most MAX_LIVE per queue."""
    by_id: dict[str, TaskSnapshot] = {}
    # `queue` is read twice, so that a task that moves meanwhile is not missed.
    places: tuple[tuple[TaskState, str], ...] = (
        ("queued", "queue"), ("running", "running"), ("queued", "queue")
    )  # fmt: skip
    for queue_name in paths.QUEUES:
        seen: set[tuple[str, str]] = set()
        for state, folder in places:
            for name in files.names(f"{queue_name}/{folder}")[:MAX_LIVE]:
                if (folder, name) in seen:
                    continue
                seen.add((folder, name))
                if task := files.peek(f"{queue_name}/{folder}/{name}", Task):
                    by_id[task.id] = TaskSnapshot(task, queue_name, state)
    # A plan with an open question is in no queue.
    for name in files.names("planner/results")[:MAX_LIVE]:
        snapshot = queue.show(files, name.removesuffix(".json"))
        if snapshot is not None and snapshot.state == "asking":
            by_id[snapshot.task.id] = snapshot
    return sorted(by_id.values(), key=lambda v: (v.state == "queued", *queue.order_of(v.task)))


def in_trace(
    files: ReadOnlyFiles, trace_id: str, live: dict[str, LiveRun], *known: TaskSnapshot
) -> list[TaskView]:
    """At most MAX_TRACE tasks of a trace, including those `known`, oldest first."""
    by_id = {view.task.id: view for view in known}
    by_id |= {it.task.id: it for it in live_snapshots(files) if it.task.trace_id == trace_id}
    for id_ in ledger.trace_ids(files, trace_id):
        if len(by_id) >= MAX_TRACE:
            break
        if id_ not in by_id and (other := find_snapshot(files, id_)):
            by_id[id_] = other
    ordered = sorted(by_id.values(), key=lambda v: (v.task.created_at, v.task.id))
    return [task_view(files, other, live) for other in ordered]


def events_of(files: ReadOnlyFiles, task: Task) -> list[LedgerEvent]:
    lines = ledger.events_of(files, task.id, since=task.created_at)
    return [
        LedgerEvent.model_validate({"type": line.get("event"), **line})
        for line in islice(lines, MAX_EVENTS)
    ]


def result_of(snapshot: TaskSnapshot, render: Render | None = None) -> ResultView | None:
    """None until the task has ended; without `render` there is no HTML."""
    outcome = snapshot.outcome
    if outcome is None:
        return None
    is_run = isinstance(outcome, TaskResult)
    text = plain(outcome.text) if is_run else outcome.summary or outcome.error or ""
    is_output = snapshot.task.profile == "command" and snapshot.seat == "worker"
    return ResultView.of(
        outcome,
        text=text,
        html=render(text) if render and text and not is_output else None,
        error=plain(outcome.error) if outcome.error else None,
        exit_code=outcome.exit_code if is_run else None,
        data={k: v for k, v in outcome.result.items() if k != "text"} if is_run else {},
        result_type=outcome.result_type if is_run else "text",
        has_diff=is_run and outcome.diff is not None,
    )


def output(files: ReadOnlyFiles, run_id: str, offset: int) -> tuple[list[OutputEvent], int, bool]:
    """Events of a run from an offset on, the next offset, and whether the end was reached."""
    path = paths.run_output(run_id)
    limit = _OUTPUT_PART
    while True:
        data = files.part(path, offset, limit)
        if b"\n" in data or len(data) < limit or limit >= _OUTPUT_LINE:
            break
        limit *= 4
    end = data.rfind(b"\n") + 1
    if end == 0 and limit >= _OUTPUT_LINE:
        end = len(data)  # skip a line that is too long
    events: list[OutputEvent] = []
    for _, line in whole_lines(data[:end]):
        type_, more = str(line.get("type") or "note"), line.get("data")
        more = more if isinstance(more, dict) else {}
        stream = line.get("stream") or more.get("stream")
        if type_ not in _EVENT_TYPES_HIDDEN:
            events.append(
                OutputEvent(
                    at=str(line.get("at") or ""),
                    type=type_,
                    text=plain(str(line.get("text") or "")),
                    stream=str(stream) if stream else None,
                    data=more,
                )
            )
    return events, offset + end, len(data) < limit


def _first_output_at(files: ReadOnlyFiles, task_id: str) -> datetime | None:
    first = next(files.lines(paths.run_output(task_id), limit=4096), None)
    return parse_time(first[1].get("at")) if first else None


def _ms(start: datetime | None, end: datetime | None) -> int | None:
    if start is None or end is None:
        return None
    return max(int((end - start).total_seconds() * 1000), 0)
