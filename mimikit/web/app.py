"""The Flask app: the page's files and the API, the guard before them, headers and errors after."""

from __future__ import annotations

import contextlib
import errno
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from mimikit.config import asset_folder
from mimikit.engines.trial import tried_apart
from mimikit.errors import (
    BadInput,
    Conflict,
    MimikitError,
    NewerState,
    NoRoom,
    NotFound,
    Refused,
    StorageError,
    shortage_of,
)
from mimikit.notifications.courier import sent_now
from mimikit.protocol import paths, schema
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.state import State
from mimikit.views.documents import Documents
from mimikit.views.home import HomeReader
from mimikit.views.memory import MemoryReader
from mimikit.views.messages import KnownIds
from mimikit.views.snapshot import StateReader
from mimikit.web.api import (
    conversation,
    engines,
    files,
    home,
    hooks,
    jobs,
    memory,
    notify,
    system,
    tasks,
    triggers,
)
from mimikit.web.api.routing import (
    EXTENSION,
    ChannelTrial,
    ErrorView,
    Site,
    Trial,
    answer,
    error_answer,
    site,
    told,
)
from mimikit.web.assets import Assets, pack_answer, page_routes
from mimikit.web.blocks import MarkdownSplitter
from mimikit.web.feed import Feed
from mimikit.web.guard import SAFE_METHODS, Guard, RateLimit, RequestDenied, allowed_hosts
from mimikit.web.hooks import WebhookGuard
from mimikit.web.markdown import Markdown
from mimikit.web.tokens import Keys

if TYPE_CHECKING:
    from mimikit.memory.search import MemorySearch

MAX_BODY_BYTES = 12 * 2**18
"""The longest text, and what goes with it, where JSON writes each character as two escaped ones."""

_CSP = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "img-src 'self' data: blob:",
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
HELD_HEADERS = {
    name: HEADERS[name] for name in ("Cross-Origin-Resource-Policy", "X-Content-Type-Options")
}
"""Of what is never a page of its own: with all of them a module's head would outweigh its body."""
AREAS = (
    *(
        system.session,
        conversation.area,
        files.area,
        tasks.area,
        jobs.area,
        triggers.area,
        system.feed,
    ),
    home.area,
    hooks.area,
    *(
        system.status_area,
        engines.area,
        notify.area,
        memory.memory,
        memory.searching,
        memory.backlog,
    ),
)
_PLAIN = {
    400: ("bad_request", "the request is malformed"),
    404: ("address", "there is nothing at this address"),
    405: ("method", "this address does not take that method"),
    411: ("no_length", "a body needs a Content-Length"),
    413: (
        "body_too_large",
        f"the request is too large; at most {MAX_BODY_BYTES // 1024} KiB are taken",
    ),
}
_STATUS = ((NotFound, 404), (Conflict, 409), (BadInput, 422), (Refused, 403), (NoRoom, 507))


def build_web(
    state: State,
    *,
    token: str,
    session_key: bytes,
    bound: tuple[str, int],
    search: Callable[[], MemorySearch],
    is_local: bool = True,
    assets: Assets | None = None,
    trial: Trial = tried_apart,
    try_channel: ChannelTrial = sent_now,
) -> Flask:
    """The app of one web process.

    bound: the real address and port it is served at.
    search: makes the search in memory; asked when it is needed first, and once.
    is_local: whether that address is a loopback one.
    trial: tries an endpoint.
    try_channel: sends a notification, given its address, title and text.

    Raises:
        BadSettings: `web.hosts` holds something that is no host name.
    """
    app = Flask("mimikit.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    clock, log, web = state.clock, state.log, state.settings.web
    log.secrets.append(token)
    guest = ReadOnlyFiles(state.files)
    reader = StateReader(guest, state.settings, clock, Markdown().html, MarkdownSplitter)
    guard = Guard(
        guest,
        Keys(guest, token, session_key),
        clock,
        log,
        hosts=allowed_hosts(web.hosts),
        bound=bound,
        failed_logins_per_minute=web.failed_logins_per_minute,
    )
    app.extensions[EXTENSION] = Site(
        files=guest,
        settings=state.settings,
        clock=clock,
        log=log,
        guard=guard,
        state=reader,
        home=HomeReader(reader, clock),
        feed=Feed(
            guest, reader.changes, lambda: reader.consumer().on_page, max_streams=web.max_streams
        ),
        inputs=RateLimit(clock, web.inputs_per_minute),
        hooks=WebhookGuard(guest, state.settings, clock, log),
        known_ids=KnownIds(guest),
        trial=trial,
        try_channel=try_channel,
        library=MemoryReader(guest, Documents(state.workspace, guest.fs.root), reader.render),
        search=_once(search),
        routes=[route for area in AREAS for route in area.table],
        is_local=is_local,
    )
    guard.install(app)

    _check_place(app, state)
    app.register_blueprint(page_routes(assets or Assets(asset_folder("webui"))))
    for area in AREAS:
        app.register_blueprint(area.blueprint)
    app.register_error_handler(Exception, _on_error)
    app.after_request(_add_headers)
    app.after_request(pack_answer)
    return app


def _check_place(app: Flask, state: State) -> None:
    """Refuse changes of a state folder that was moved away, or that a newer mimikit has taken."""
    files = state.files

    def check_place(response: Response | None = None) -> Response | None:
        """Before and after: what lies in a folder that was moved away, nobody will answer."""
        if request.method in SAFE_METHODS:
            return response
        if not files.fs.is_in_place():
            said = f"{files.fs.root} was moved, removed or replaced; try again in a moment"
            return _add_headers(error_answer(503, "state_moved", said))
        if response is not None or request.path == "/api/login":  # who only looks may log in
            return response
        # A newer mimikit may have begun meanwhile.
        if (newer := state.only_shown or schema.why_newer(files, (paths.SCHEMA,))) is not None:
            return _add_headers(error_answer(503, NewerState.kind, newer))
        return None

    app.before_request(check_place)
    app.after_request(check_place)  # pyright: ignore[reportArgumentType]


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
    is_part = response.status_code == 200 and response.mimetype in ("text/css", "text/javascript")
    own = response.headers.get("Content-Security-Policy")  # a stricter one
    response.headers.update(HELD_HEADERS if is_part else HEADERS)
    if own is not None:
        response.headers["Content-Security-Policy"] = own
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _on_error(error: Exception) -> Response:
    """Whatever went wrong, as JSON that says what to do; nothing becomes a 500."""
    original = getattr(error, "original_exception", None)
    if isinstance(original, Exception):
        error = original
    if isinstance(error, RequestDenied):
        response = answer(ErrorView(error=told(error)), error.status)
        if error.wait_s:
            response.headers["Retry-After"] = str(int(error.wait_s) + 1)
        return response
    if isinstance(error, HTTPException):
        status = error.code or 400
        code, said = _PLAIN.get(status, ("bad_request", str(error.description or error.name)))
        response = error_answer(status, code, said)
        for name, value in error.get_headers():
            if name in ("Allow", "Retry-After"):
                response.headers[name] = value
        return response
    if isinstance(error.__cause__, FileNotFoundError):  # one of our folders: the next finds it
        with contextlib.suppress(StorageError):
            site().files.make_folders()
    if isinstance(error, MimikitError):
        status = _status_of(error)
        is_full = status == 507 and not isinstance(error, NoRoom)
        return answer(ErrorView(error=told(error, "disk_full" if is_full else None)), status)
    if short := shortage_of(error):
        return error_answer(503, "busy", f"{short}; try again in a moment")
    # A fault of ours: the log has it all, the caller a sentence.
    trace = "".join(traceback.format_exception(error, limit=-8))
    site().log.write("error", "web_failed", path=request.path[:200], method=request.method)
    site().log.write("error", "web_trace", trace=trace)
    said = "something went wrong here; the log has the details; try again"
    return error_answer(503, "failed", said)


def _status_of(error: MimikitError) -> int:
    """The status that goes with one of our own errors."""
    if isinstance(error, StorageError):
        cause = error.__cause__
        full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
        return 507 if full else 503
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
