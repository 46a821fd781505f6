"""Tasks: lists, one with its result, live output, new ones, cancel and retry."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response
from pydantic import Field, StringConstraints

from mimikit.config import Profiles
from mimikit.errors import BadInput, NotFound, Refused
from mimikit.protocol import paths
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, Task
from mimikit.tasks import queue
from mimikit.web.api import ordering
from mimikit.web.api.asked import Asked, ClientId, body, path_id, query
from mimikit.web.shown import tasks as shown_tasks
from mimikit.web.site import Site, answer, site

routes = Blueprint("tasks", __name__)


class List(Asked):
    """Which tasks."""

    state: Literal["queued", "running", "done", "failed", "canceled"] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class NewTask(Asked):
    """A task to be done."""

    prompt: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
    id: ClientId | None = None
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    profile: Annotated[str, StringConstraints(max_length=32)] = "standard"
    priority: Annotated[int, Field(ge=0, le=10)] = 5
    timeout: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 1


class From(Asked):
    """Where to go on reading."""

    offset: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,15}$")] = "0"


@routes.get("/api/tasks")
def listed() -> Response:
    """Running, queued and recently ended tasks."""
    asked, here = query(List), site()
    live = here.shown.vitals().live
    return answer({"tasks": shown_tasks.listed(here.files, live, asked.state, asked.limit)})


@routes.post("/api/tasks")
def create() -> Response:
    """Queue a task; the same id again is the same task."""
    asked, here = body(NewTask), site()
    _check_profile(here, asked.profile)
    if not asked.prompt.strip():
        raise BadInput("prompt: expected some text, got only blanks", field="prompt")
    now = here.clock.now()
    id_ = asked.id or new_id("task", now)
    task = Task(
        id=id_,
        profile=asked.profile,
        title=asked.title,
        prompt=asked.prompt,
        priority=asked.priority,
        created_at=now,
        max_attempts=asked.max_attempts,
        timeout=asked.timeout,
        trace_id=id_,
        origin="http",
    )
    queue.submit(here.files, task)
    return answer({"id": id_}, 202)


@routes.get("/api/tasks/<task_id>")
def show(task_id: str) -> Response:
    """One task with its result, its events and the tasks it belongs with."""
    here = site()
    view = shown_tasks.find_view(here.files, path_id(task_id))
    if view is None:
        raise _no_task(task_id)
    live = here.shown.vitals().live
    return answer(
        {
            "task": shown_tasks.shown(here.files, view, live),
            "result": shown_tasks.result_of(view, here.shown.markdown),
            "events": shown_tasks.events_of(here.files, view),
            "trace": shown_tasks.trace_of(here.files, view, live),
        }
    )


@routes.get("/api/tasks/<task_id>/output")
def output(task_id: str) -> Response:
    """What a run (a task's or a turn's) did, from an offset on."""
    asked, here = query(From), site()
    run_id = path_id(task_id)
    view = shown_tasks.find_view(here.files, run_id)
    if view is None and not here.files.exists(paths.run_output(run_id)):
        raise _no_task(task_id)
    # Asked before reading: what a run wrote before it ended is then surely read.
    is_over = view.completed_at is not None if view else run_id not in here.shown.vitals().live
    events, offset, at_end = shown_tasks.output(here.files, run_id, int(asked.offset))
    return answer({"events": events, "offset": str(offset), "ended": is_over and at_end})


@routes.post("/api/tasks/<task_id>/cancel")
def cancel(task_id: str) -> Response:
    """Stop a task, or the turn that is in progress."""
    here = site()
    target = path_id(task_id)
    is_turn = target in here.shown.vitals().live or here.files.exists(paths.turn_started(target, 1))
    if not is_turn and shown_tasks.find_view(here.files, target) is None:
        raise _no_task(task_id)
    return ordering.give(here, "cancel", target)


@routes.post("/api/tasks/<task_id>/retry")
def retry(task_id: str) -> Response:
    """Do a task again, as a new one."""
    here = site()
    target = path_id(task_id)
    if shown_tasks.find_view(here.files, target) is None:
        raise _no_task(task_id)
    return ordering.give(here, "retry", target)


def _no_task(task_id: str) -> NotFound:
    return NotFound(f"there is no task {task_id[:128]}", field="id")


def _check_profile(here: Site, profile: str) -> None:
    """Only known profiles; commands only where nobody else can reach the page, unless allowed.

    Raises:
        BadInput: there is no such profile.
        Refused: commands are not taken here.
    """
    known = sorted(Profiles.model_fields)
    if profile not in known:
        raise BadInput(
            f"profile: expected one of {', '.join(known)}, got {profile!r}", field="profile"
        )
    if profile == "command" and not here.is_local and not here.settings.web.allow_commands:
        raise Refused(
            "commands are not taken from other machines; set web.allow_commands to allow them"
        )
