"""The Flask app: the page and the API, with access checks, headers and error answers."""

from __future__ import annotations

import contextlib
import functools
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from mimikit.config import asset_folder
from mimikit.engines.setup import run_test_in_child
from mimikit.errors import (
    BadInput,
    BadSettings,
    Conflict,
    MimikitError,
    NotFound,
    Refused,
    StorageError,
)
from mimikit.memory.workspace_docs import Documents
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.roles.worktree import Worktrees
from mimikit.sandbox import programs
from mimikit.state import State
from mimikit.views.memory import MemoryReader
from mimikit.views.snapshot import StateReader
from mimikit.web.api import conversation, engines, life, memory, system, tasks, triggers
from mimikit.web.api.routing import EXTENSION, Site, Trial, current_site, error_answer
from mimikit.web.assets import Assets, compress, page_routes
from mimikit.web.feed import Feed
from mimikit.web.guard import Guard, RateLimit, RequestDenied, allowed_hosts
from mimikit.web.markdown import render_cached
from mimikit.web.tokens import CurrentToken

if TYPE_CHECKING:
    from mimikit.memory.search import MemorySearch

MAX_BODY_BYTES = 2**20
"""The default; a route may set another limit."""

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "font-src 'self'; img-src 'self' data:; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html mimikit-html"
)
HEADERS = {
    "Content-Security-Policy": _CSP,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
AREAS = (
    *(system.session, conversation.area, conversation.files_area, tasks.area, triggers.area),
    *(system.feed, system.status_area, engines.area, life.area),
    *(memory.memory, memory.searching, memory.backlog),
)
_PLAIN = {
    400: MimikitError("the request is malformed", code="bad_request"),
    404: MimikitError("there is nothing at this address", code="bad_request"),
    405: MimikitError("this address does not take that method", code="bad_request"),
}
_STATUS = ((NotFound, 404), (Conflict | BadSettings, 409), (BadInput, 422), (Refused, 403))


def build_web(
    state: State,
    *,
    token: str,
    bound: tuple[str, int],
    search: Callable[[], MemorySearch],
    is_local: bool = True,
    assets: Assets | None = None,
    trial: Trial = run_test_in_child,
) -> Flask:
    """The app of one web process; BadSettings for an invalid host name in `web.hosts`.

    bound: the address and port that the server listens at.
    search: creates the memory search, when it is first needed.
    is_local: whether that address is a loopback one.
    trial: tests an endpoint.
    """
    app = Flask("mimikit.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    clock, log, web = state.clock, state.log, state.settings.web
    log.secrets.append(token)
    files = ReadOnlyFiles(state.files)
    programs.exclude(state.workspace)
    reader = StateReader(files, state.settings, clock, render_cached)
    guard = Guard(
        files,
        CurrentToken(files, token),
        clock,
        log,
        hosts=allowed_hosts(web.hosts),
        bound=bound,
        failed_logins_per_minute=web.failed_logins_per_minute,
    )
    app.extensions[EXTENSION] = Site(
        files=files,
        settings=state.settings,
        clock=clock,
        log=log,
        guard=guard,
        state=reader,
        feed=Feed(
            files, reader.change, lambda: reader.consumer().page_state, max_streams=web.max_streams
        ),
        inputs=RateLimit(clock, web.inputs_per_minute),
        trial=trial,
        workspace=state.workspace,
        worktrees=Worktrees(state.path, programs.find("git")),
        library=MemoryReader(files, Documents(state.workspace, files.fs.root), reader.render),
        search=_once(search),
        is_local=is_local,
    )
    app.before_request(guard.check)
    app.register_blueprint(page_routes(assets or Assets(asset_folder("webui"))))
    for area in AREAS:
        app.register_blueprint(area.blueprint)
    app.register_error_handler(Exception, _on_error)
    app.after_request(_finish)
    return app


def _once(make: Callable[[], MemorySearch]) -> Callable[[], MemorySearch]:
    lock, cached = threading.Lock(), functools.cache(make)

    def get() -> MemorySearch:
        with lock:
            return cached()

    return get


def _finish(response: Response) -> Response:
    policy = response.headers.get("Content-Security-Policy", _CSP)  # a file has its own
    response.headers.update(HEADERS | {"Content-Security-Policy": policy})
    response.headers.setdefault("Cache-Control", "no-store")
    return compress(response)


def _on_error(error: Exception) -> Response:
    original = getattr(error, "original_exception", None)
    if isinstance(original, Exception):
        error = original
    if isinstance(error, HTTPException):
        status = error.code or 400
        plain = _PLAIN.get(status) or MimikitError(str(error.description or error.name))
        if status == 413:
            kib = (request.max_content_length or MAX_BODY_BYTES) // 1024
            message = f"the request is too large; at most {kib} KiB are taken"
            plain = MimikitError(message, code="body_too_large", params={"max": kib})
        response = error_answer(status, plain)
        for name, value in error.get_headers():
            if name in ("Allow", "Retry-After"):
                response.headers[name] = value
        return response
    if isinstance(error.__cause__, FileNotFoundError):  # the next request will find the folder
        with contextlib.suppress(StorageError):
            current_site().files.make_folders()
    if isinstance(error, MimikitError):
        response = error_answer(_status_of(error), error)
        if wait_s := error.params.get("seconds"):
            response.headers["Retry-After"] = str(wait_s)
        return response
    # A bug: the details are for the log.
    trace = "".join(traceback.format_exception(error, limit=-8))
    current_site().log.write("error", "web_failed", path=request.path[:200], method=request.method)
    current_site().log.write("error", "web_trace", trace=trace)
    message = "something went wrong here; the log has the details; try again"
    return error_answer(503, MimikitError(message))


def _status_of(error: MimikitError) -> int:
    if isinstance(error, RequestDenied):
        return error.status
    if error.code == "disk_full":
        return 507
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
