"""Coming in and going out."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, g
from pydantic import StringConstraints

from mimikit.errors import BadInput
from mimikit.web.api.asked import Asked, body
from mimikit.web.site import answer, site

routes = Blueprint("session", __name__)

Secret = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class Login(Asked):
    """The token, or a code for one use."""

    token: Secret | None = None
    code: Secret | None = None


@routes.post("/api/login")
def login() -> Response:
    """Begin a session."""
    asked = body(Login)
    if (asked.token is None) == (asked.code is None):
        raise BadInput("expected a token or a code, one of them", field="token")
    guard = site().guard
    value = guard.log_in(token=asked.token, code=asked.code)
    response = answer({"ok": True})
    guard.set_cookie(response, value)
    return response


@routes.post("/api/logout")
def logout() -> Response:
    """End the session, also for whoever holds a copy of its cookie."""
    body(Asked, may_be_empty=True)
    guard = site().guard
    guard.log_out(g.caller)
    g.caller = None
    response = answer({"ok": True})
    guard.set_cookie(response, "")
    return response
