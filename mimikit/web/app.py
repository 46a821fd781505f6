"""The Flask app: routes, the guard before them, headers and errors after them."""

from __future__ import annotations

import errno
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.errors import BadInput, Conflict, MimikitError, NotFound, Refused, StorageError
from mimikit.log import EventLog
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.views.documents import Documents
from mimikit.views.memory import MemoryReader
from mimikit.views.messages import KnownIds
from mimikit.views.snapshot import StateReader
from mimikit.web.api import conversation, memory, system, tasks, triggers
from mimikit.web.api.routing import error_answer
from mimikit.web.feed import Feed, StreamsFull
from mimikit.web.guard import Guard, RateLimit, RequestDenied, allowed_hosts
from mimikit.web.markdown import Markdown
from mimikit.web.page import Assets, page_routes
from mimikit.web.site import EXTENSION, Site, site
from mimikit.web.tokens import Keys

if TYPE_CHECKING:
    from mimikit.memory.search import MemorySearch

MAX_BODY_BYTES = 2**20

_CSP = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "img-src 'self' data:",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types lit-html mimikit-html",
    ]
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
    *(system.session, conversation.area, tasks.area, triggers.area, system.feed),
    *(system.status_area, memory.memory, memory.searching, memory.backlog),
)
_PLAIN = {
    400: "the request is malformed",
    404: "there is nothing at this address",
    405: "this address does not take that method",
    408: "the request took too long to arrive",
    413: f"the request is too large; at most {MAX_BODY_BYTES // 1024} KiB are taken",
}


def build_web(
    files: Files,
    settings: Settings,
    *,
    workspace: Path,
    token: str,
    session_key: bytes,
    clock: Clock,
    bound: tuple[str, int],
    search: Callable[[], MemorySearch],
    is_local: bool = True,
    assets: Assets | None = None,
) -> Flask:
    """The app of one web process.

    bound: the real address and port it is served at.
    search: makes the search in memory; asked when it is needed first, and once.
    is_local: whether that address is a loopback one.

    Raises:
        BadSettings: `web.hosts` holds something that is no host name.
    """
    app = Flask("mimikit.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    guest = ReadOnlyFiles(files)
    log = EventLog(guest, clock)
    log.secrets.append(token)
    reader = StateReader(guest, settings, clock, Markdown().html)
    web = settings.web
    guard = Guard(
        guest,
        Keys(guest, token, session_key),
        clock,
        log,
        hosts=allowed_hosts(web.hosts),
        cookie=f"mimikit-{bound[1]}",
        failed_logins_per_minute=web.failed_logins_per_minute,
    )
    app.extensions[EXTENSION] = Site(
        files=guest,
        settings=settings,
        workspace=workspace,
        clock=clock,
        log=log,
        guard=guard,
        state=reader,
        feed=Feed(
            guest, reader.change, lambda: reader.consumer().on_page, max_streams=web.max_streams
        ),
        inputs=RateLimit(clock, web.inputs_per_minute),
        known_ids=KnownIds(guest),
        library=MemoryReader(guest, Documents(workspace, files.fs.root), reader.render),
        search=_once(search),
        routes=[route for area in AREAS for route in area.table],
        is_local=is_local,
    )
    guard.install(app)
    app.register_blueprint(page_routes(assets))
    for area in AREAS:
        app.register_blueprint(area.blueprint)
    app.register_error_handler(Exception, _on_error)
    app.after_request(_add_headers)
    return app


def _once(make: Callable[[], MemorySearch]) -> Callable[[], MemorySearch]:
    """Gives what `make` makes, made at the first call, whichever thread's that is."""
    making = threading.Lock()
    made: list[MemorySearch] = []

    def give() -> MemorySearch:
        with making:
            if not made:
                made.append(make())
            return made[0]

    return give


def _add_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers[name] = value
    if request.path.startswith("/api/") or "Cache-Control" not in response.headers:
        response.headers.setdefault("Cache-Control", "no-store")
    return response


def _on_error(error: Exception) -> Response:
    """Whatever went wrong, as JSON that says what to do; nothing becomes a 500."""
    original = getattr(error, "original_exception", None)
    if isinstance(original, Exception):
        error = original
    if isinstance(error, RequestDenied):
        response = error_answer(error.status, str(error), error.field)
        if error.wait_s:
            response.headers["Retry-After"] = str(int(error.wait_s) + 1)
        return response
    if isinstance(error, HTTPException):
        return _on_http_error(error)
    if isinstance(error, MimikitError):
        field = error.field if isinstance(error, BadInput) else None
        return error_answer(_status_of(error), str(error), field)
    return _on_surprise(error)


def _on_http_error(error: HTTPException) -> Response:
    status = error.code or 400
    response = error_answer(status, _PLAIN.get(status, str(error.description or error.name)))
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _status_of(error: MimikitError) -> int:
    """The status that goes with one of our own errors."""
    if isinstance(error, StorageError):
        cause = error.__cause__
        full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
        return 507 if full else 503
    kinds: list[tuple[type[MimikitError], int]] = [
        (NotFound, 404),
        (Conflict, 409),
        (BadInput, 422),
        (Refused, 403),
        (StreamsFull, 503),
    ]
    return next((status for kind, status in kinds if isinstance(error, kind)), 503)


def _on_surprise(error: Exception) -> Response:
    """A fault of ours: the log has it all, the caller a sentence."""
    trace = "".join(traceback.format_exception(error, limit=-8))
    site().log.write("error", "web_failed", path=request.path[:200], method=request.method)
    site().log.write("error", "web_trace", trace=trace)
    return error_answer(503, "something went wrong here; the log has the details; try again")
