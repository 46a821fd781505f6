"""How it goes, for a page and for a watchdog."""

from __future__ import annotations

from flask import Blueprint, Response

from mimikit.web.api.asked import Asked, query
from mimikit.web.site import answer, site

routes = Blueprint("status", __name__)


@routes.get("/api/status")
def status() -> Response:
    """The whole status."""
    query(Asked)
    return answer(site().shown.status())


@routes.get("/healthz")
def healthz() -> Response:
    """Whether web and consumer work; needs no login and says nothing else."""
    state = site().shown.vitals().state
    return answer({"ok": state == "ok", "consumer": state}, 200 if state == "ok" else 503)
