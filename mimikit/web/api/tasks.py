"""Tasks: lists, one with its result, live output, new ones, cancel and retry."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response
from pydantic import Field, StringConstraints

from mimikit.errors import NotFound
from mimikit.protocol import paths
from mimikit.tasks import queue
from mimikit.tools import requests
from mimikit.views import chains
from mimikit.views import tasks as shown_tasks
from mimikit.web.api import ordering
from mimikit.web.api.asked import Asked, body, path_id, query
from mimikit.web.api.wanted import NewTask, check, wanted_of
from mimikit.web.site import answer, site

routes = Blueprint("tasks", __name__)


class List(Asked):
    """Which tasks."""

    state: Literal["queued", "running", "done", "failed", "canceled"] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


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
    wanted = wanted_of(asked)
    check(here, wanted)
    task = requests.new_task(wanted, here.clock.now())
    queue.submit(here.files, task)
    return answer({"id": task.id}, 202)


@routes.get("/api/tasks/<task_id>")
def show(task_id: str) -> Response:
    """One task with its result, its events and the tasks it belongs with."""
    here = site()
    view = shown_tasks.find_view(here.files, path_id(task_id))
    if view is None:
        raise _no_task(task_id)
    live = here.shown.vitals().live
    trace = shown_tasks.trace_of(here.files, view, live)
    chain = chains.around(here.files, view.task.trace_id, trace, live)
    return answer(
        {
            "task": shown_tasks.shown(here.files, view, live),
            "result": shown_tasks.result_of(view, here.shown.render),
            "events": shown_tasks.events_of(here.files, view),
            "trace": trace,
            "graph": chains.draw(chain, view.task.id),
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
    return ordering.give(here, "cancel", target, order_id=ordering.named())


@routes.post("/api/tasks/<task_id>/retry")
def retry(task_id: str) -> Response:
    """Do a task again, as a new one."""
    here = site()
    target = path_id(task_id)
    if shown_tasks.find_view(here.files, target) is None:
        raise _no_task(task_id)
    return ordering.give(here, "retry", target, order_id=ordering.named())


def _no_task(task_id: str) -> NotFound:
    return NotFound(f"there is no task {task_id[:128]}", field="id")
