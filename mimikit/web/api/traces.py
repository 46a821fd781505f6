"""Traces: everything that came of one request, as lists and as a graph."""

from __future__ import annotations

from flask import Blueprint, Response

from mimikit.errors import NotFound
from mimikit.views import chains
from mimikit.views import tasks as shown_tasks
from mimikit.views import triggers as shown_triggers
from mimikit.web.api.asked import Asked, path_id, query
from mimikit.web.site import answer, site

routes = Blueprint("traces", __name__)


@routes.get("/api/traces/<trace_id>")
def show(trace_id: str) -> Response:
    """The tasks and triggers of one trace."""
    query(Asked)
    here, trace = site(), path_id(trace_id)
    vitals = here.shown.vitals()
    tasks = shown_tasks.in_trace(here.files, trace, vitals.live)
    chain = chains.around(here.files, trace, tasks, vitals.live)
    if not chain.tasks and not chain.triggers:
        raise NotFound(f"there is no trace {trace}", field="id")
    around = here.shown.situation(vitals)
    found = [shown_triggers.find(here.files, id_, around) for id_ in chain.triggers]
    return answer(
        {
            "tasks": tasks,
            "triggers": [trigger for trigger in found if trigger],
            "graph": chains.draw(chain),
        }
    )
