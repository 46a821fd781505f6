"""Triggers: the list, and pause, resume, run now, remove."""

from __future__ import annotations

from flask import Blueprint, Response

from mimikit.errors import NotFound
from mimikit.protocol import paths
from mimikit.web.api import ordering
from mimikit.web.api.asked import Asked, path_id, query
from mimikit.web.shown import triggers as shown_triggers
from mimikit.web.site import answer, site

routes = Blueprint("triggers", __name__)


@routes.get("/api/triggers")
def listed() -> Response:
    """Every trigger."""
    query(Asked)
    return answer({"triggers": shown_triggers.listed(site().files)})


@routes.post("/api/triggers/<trigger_id>/pause")
def pause(trigger_id: str) -> Response:
    """Let it not fire until it is resumed."""
    return _order("trigger_pause", trigger_id)


@routes.post("/api/triggers/<trigger_id>/resume")
def resume(trigger_id: str) -> Response:
    """Let it fire again."""
    return _order("trigger_resume", trigger_id)


@routes.post("/api/triggers/<trigger_id>/run")
def run(trigger_id: str) -> Response:
    """Run it once, now."""
    return _order("trigger_run", trigger_id)


@routes.delete("/api/triggers/<trigger_id>")
def remove(trigger_id: str) -> Response:
    """Remove it."""
    return _order("trigger_remove", trigger_id)


def _order(action: ordering.Action, trigger_id: str) -> Response:
    here = site()
    target = path_id(trigger_id)
    if not here.files.exists(paths.trigger(target)):
        raise NotFound(f"there is no trigger {target}", field="id")
    return ordering.give(here, action, target)
