"""Tasks: list, show, output, create, cancel and retry; and traces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from mimikit import permission
from mimikit.config import ProfilesSettings
from mimikit.errors import NotFound
from mimikit.protocol import paths
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, Action, Command, Notify
from mimikit.tasks import queue
from mimikit.tasks.queue import TaskSnapshot, TaskState
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest
from mimikit.views import chains, diffs, tasks, triggers
from mimikit.views.base import View
from mimikit.views.chains import TaskDetail, TraceView
from mimikit.views.diffs import DiffView
from mimikit.views.job_views import JobPage, JobView
from mimikit.views.jobs import ENDED, LIVE, JobKind, JobState
from mimikit.views.tasks import OutputView, TaskList
from mimikit.web.api.routing import (
    Answer,
    ClientId,
    EndpointRegistry,
    Input,
    Site,
    current_site,
    existing,
    id_taken,
)

area = EndpointRegistry("tasks")

Prompt = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
ProfileName = Annotated[str, StringConstraints(max_length=32)]


class TasksQuery(Input):
    """Tasks of one state; by default running, queued and recently ended ones."""

    state: TaskState | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class JobsQuery(Input):
    """Jobs of one state or kind, whose title holds the words of `q`; or the runs of a trigger."""

    state: JobState | Literal["live", "ended"] | None = None
    kind: JobKind | None = None
    q: Annotated[str, StringConstraints(max_length=200)] = ""
    trigger: Annotated[str, StringConstraints(max_length=128)] | None = None
    before: Annotated[str, StringConstraints(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class OutputQuery(Input):
    offset: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,15}$")] = "0"


class TaskInput(Input):
    """A new task. Units: seconds."""

    prompt: Prompt
    id: ClientId | None = None
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    profile: ProfileName = "standard"
    priority: Annotated[int, Field(ge=0, le=10)] = 5
    timeout: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 1
    notify: Notify | None = None
    """Who is notified of the result."""


_COMPARED = TaskInput.model_fields.keys() - {"notify"}
"""Fields that a repeated request must have in common with the first."""


class CommandInput(Input):
    """A command; idempotent by id."""

    id: ClientId | None = None


class CreatedView(View):
    id: str


class CommandOutcome(View):
    ok: bool
    message: str
    result_id: str | None = None
    code: str | None = None
    """Of the error, as in the answer to a bad request."""
    params: dict[str, str | int | float] | None = None


class CommandWaiting(View):
    """The command is stored and not applied yet."""

    command: str


COMMAND_ANSWERS = {200: CommandOutcome, 202: CommandWaiting}


@area.route("GET", "/api/tasks", TaskList, query=TasksQuery)
def listed(query: TasksQuery) -> TaskList:
    """Running, queued and recently ended tasks."""
    site = current_site()
    live = site.state.consumer().live
    return TaskList(tasks=tasks.listed(site.files, live, query.state, query.limit))


@area.route("GET", "/api/jobs", JobPage, query=JobsQuery)
def jobs(query: JobsQuery) -> JobPage:
    """What was asked for and what came of it: one entry for each request, one for each trigger.

    Planning is a state of a job. The totals count every job there is.
    """
    site = current_site()
    live = site.state.consumer().live
    if query.trigger is not None:
        return site.state.jobs.runs(query.trigger, live, query.before, query.limit)
    groups: dict[str, tuple[str, ...]] = {"": (), "live": LIVE, "ended": ENDED}
    state = query.state or ""
    return site.state.jobs.page(
        live,
        q=query.q,
        states=groups.get(state, (state,)),
        kind=query.kind,
        before=query.before,
        limit=query.limit,
    )


@area.route("GET", "/api/jobs/<job_id>", JobView)
def show_job(job_id: str) -> JobView:
    """One job with its steps, the last lines of its output, and how it ended."""
    site = current_site()
    return existing(site.state.jobs.find(job_id, site.state.consumer().live), f"job {job_id}")


@area.route("POST", "/api/tasks", {202: CreatedView}, body=TaskInput)
def create(body: TaskInput) -> CreatedView:
    """Queue a task; idempotent by id."""
    site = current_site()
    request = request_of(body)
    check_request(site, request)
    task = requests.new_task(request, site.clock.now())
    if not queue.submit(site.files, task):
        known = queue.find(site.files, task.id, seats=(task.role,))
        if known is None or any(getattr(known.task, f) != getattr(task, f) for f in _COMPARED):
            raise id_taken(task.id, "task")
    return CreatedView(id=task.id)


@area.route("GET", "/api/tasks/<task_id>", TaskDetail)
def show(task_id: str) -> TaskDetail:
    """A task with its result, its events, and the other tasks of its trace."""
    site = current_site()
    known = _known(site, task_id)
    live, usage = site.state.consumer().live, site.state.usage
    used = usage.of_task(task_id, known.task.created_at)
    return chains.task_detail(site.files, known, live, used, site.state.render)


@area.route("GET", "/api/tasks/<task_id>/output", OutputView, query=OutputQuery)
def output(query: OutputQuery, task_id: str) -> OutputView:
    """The events of a task's or turn's run, from an offset on."""
    site = current_site()
    known = tasks.find_snapshot(site.files, task_id)
    if known is None and not site.files.exists(paths.run_output(task_id)):
        raise NotFound(f"there is no task {task_id}", field="id")
    # Checked before reading, so that the last output is not missed.
    live = site.state.consumer().live
    is_over = known.completed_at is not None if known else task_id not in live
    events, offset, at_end = tasks.output(site.files, task_id, int(query.offset))
    return OutputView(events=events, offset=str(offset), ended=is_over and at_end)


@area.route("GET", "/api/tasks/<task_id>/diff", DiffView)
def diff(task_id: str) -> DiffView:
    """The changes of a task in the workspace; 404 without changes."""
    site = current_site()
    changes = diffs.of_task(site.files, task_id)
    if changes is None:
        _known(site, task_id)
        message = f"task {task_id} changed no file, or what it changed is no longer kept"
        raise NotFound(message, field="id")
    return changes


@area.route("POST", "/api/tasks/<task_id>/cancel", COMMAND_ANSWERS, body=CommandInput)
def cancel(body: CommandInput, task_id: str) -> Answer:
    """Cancel a task, or the turn in progress."""
    site = current_site()
    is_turn = task_id in site.state.consumer().live or site.files.exists(
        paths.turn_started(task_id, 1)
    )
    if not is_turn:
        _known(site, task_id)
    return submit_command(site, "cancel", task_id, command_id=body.id)


@area.route("POST", "/api/tasks/<task_id>/retry", COMMAND_ANSWERS, body=CommandInput)
def retry(body: CommandInput, task_id: str) -> Answer:
    """Repeat a task, as a new one."""
    site = current_site()
    _known(site, task_id)
    return submit_command(site, "retry", task_id, command_id=body.id)


@area.route("GET", "/api/traces/<trace_id>", TraceView, query=Input)
def show_trace(_: Input, trace_id: str) -> TraceView:
    """The tasks and triggers of one trace."""
    site = current_site()
    consumer = site.state.consumer()
    traced = tasks.in_trace(site.files, trace_id, consumer.live)
    chain = chains.around(site.files, trace_id, traced)
    if not chain.tasks and not chain.triggers:
        raise NotFound(f"there is no trace {trace_id}", field="id")
    around = site.state.situation(consumer, site.reader)
    shown = [triggers.find(site.files, id_, around) for id_ in chain.triggers]
    return TraceView(
        tasks=traced,
        triggers=[trigger for trigger in shown if trigger],
        chain=chains.steps_of(chain),
    )


def check_request(
    site: Site, request: TaskRequest, profiles: Iterable[str] = ProfilesSettings.model_fields
) -> None:
    """Raise BadInput for an empty prompt or unknown profile, Refused for a forbidden command."""
    requests.check_request(request, sorted(profiles))
    permission.check_http_profile(
        request.profile, is_local=site.is_local, allow_commands=site.settings.web.allow_commands
    )


def request_of(body: TaskInput) -> TaskRequest:
    return TaskRequest(origin="http", **body.model_dump(include={*TaskInput.model_fields}))


def submit_command(
    site: Site,
    action: Action,
    target: str,
    *,
    command_id: str | None,
    args: dict[str, Any] | None = None,
) -> Answer:
    """Submit a command: the answer is its result, or its id if that takes longer."""
    now = site.clock.now()
    command = Command(
        id=command_id or new_id("cmd", now),
        action=action,
        target=target,
        args=args or {},
        created_at=now,
        origin="http",
        remote=site.is_remote,
    )
    outcome = queue.submit_and_wait(site.files, command, is_served=site.state.consumer().is_up)
    result = outcome or queue.command_result(site.files, command.id)
    existing = (
        site.files.peek(paths.command(command.id), Command) if result is None else result.command
    )
    if existing is not None and _meaning(existing) != _meaning(command):
        raise id_taken(command.id, "command")
    if outcome is None:
        return CommandWaiting(command=command.id), 202
    return CommandOutcome.of(outcome)


def _meaning(command: Command) -> tuple[str, str, dict[str, Any]]:
    """The fields of an identical command; a schedule in words differs by the time."""
    args = {key: key if key == "schedule" else value for key, value in command.args.items()}
    return command.action, command.target, args


def _known(site: Site, task_id: str) -> TaskSnapshot:
    return existing(tasks.find_snapshot(site.files, task_id), f"task {task_id}")
