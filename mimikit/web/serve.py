"""The web process: one socket we bind and check ourselves, gunicorn around it, the app inside.

gunicorn's own choices are not left to the environment: PORT would make it listen everywhere,
WEB_CONCURRENCY would give each worker its own limits, HUP would reload instead of end.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from mimikit.clock import SystemClock
from mimikit.config import Settings
from mimikit.errors import BadSettings, MimikitError
from mimikit.protocol import ids, paths, schema
from mimikit.protocol.disk import LookingDisk, RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.runtime import PageAddress
from mimikit.state import open_files, wait_for_folders
from mimikit.web import front, tokens
from mimikit.web.guard import allowed_hosts

if TYPE_CHECKING:
    from flask import Flask

    from mimikit.web.api.routing import Site

THREADS_BESIDE_STREAMS = 16
PORT_PATIENCE_S = 1.5

# What another gunicorn or systemd may have left in the environment: sockets and settings not ours.
_PAGE = "MIMIKIT_PAGE"
_FOREIGN = ("GUNICORN_PID", "GUNICORN_FD", "GUNICORN_CMD_ARGS", "LISTEN_PID", "LISTEN_FDS")

OnReady = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class ServerSocket:
    """A listening socket and where it really listens."""

    socket: socket.socket
    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(self.host).is_loopback

    def check_exposure(self, settings: Settings) -> None:
        """Raise BadSettings where others can reach it, unless the operator prepared for that."""
        if self.is_local:
            return
        missing: list[str] = []
        least = tokens.OPERATOR_TOKEN_CHARACTERS
        if len(tokens.operator_token() or "") < least:
            missing.append(f"a token of at least {least} characters in {tokens.TOKEN_VARIABLE}")
        if not settings.web.hosts:
            missing.append("the host names it is asked for in web.hosts (MIMIKIT_WEB__HOSTS)")
        if missing:
            raise BadSettings(
                f"{self.host} can be reached from other machines: expected "
                f"{' and '.join(missing)}; set that, or listen at 127.0.0.1"
            )


def serve(
    state: Path,
    workspace: Path,
    settings: Settings,
    host: str | None = None,
    port: int | None = None,
    on_ready: OnReady | None = None,
) -> None:
    """Serve the page until a signal ends it. Never returns: leaves by SystemExit.

    host, port: over the settings; `$PORT` gives the port when none is given here.

    Raises:
        BadSettings: the address can not be used, or may not be without a token and host names.
    """
    os.umask(0o077)
    for name in _FOREIGN:
        os.environ.pop(name, None)
    bound = bind(host or settings.web.host, chosen_port(port, settings))
    try:
        bound.check_exposure(settings)
        allowed_hosts(settings.web.hosts)
        files = open_files(state, settings)
        wait_for_folders(files, lambda why, new: new and sys.stderr.write(f"Waiting: {why}.\n"))
        token, session_key = tokens.load_token(files), tokens.load_session_key(files)
        page = _announce(bound, files)
        cast("RealDisk", files.fs).close()
    except MimikitError:
        bound.socket.close()
        raise

    def make_app() -> Flask:
        # In the worker: descriptors and threads do not survive a fork.
        from mimikit.log import EventLog
        from mimikit.state import State, make_search
        from mimikit.web.app import build_web

        files = open_files(state, settings)
        clock = SystemClock()
        opened = State(state, workspace, files, settings, clock, EventLog(files, clock))
        app = build_web(
            opened,
            token=token,
            session_key=session_key,
            # Without the dictionary: it is large, and what is found without it is nearly as much.
            search=lambda: make_search(opened, words=False, stays=True),
            bound=(bound.host, bound.port),
            is_local=bound.is_local,
        )
        app.config[_PAGE] = page
        return app

    _Master(_Server(bound, settings.web.max_streams, make_app, on_ready)).run()


def _announce(bound: ServerSocket, files: Files) -> tuple[str, PageAddress] | None:
    """Write down where this process listens, give where and what: the consumer decides by it.

    One that others reach counts until it is gone and another page starts: what came through it may
    still wait. None: the state is only shown, and nothing comes through.
    """
    if isinstance(files.fs, LookingDisk):
        return None
    for name in files.names(paths.PAGES):
        path = f"{paths.PAGES}/{name}"
        page = files.peek(path, PageAddress)  # what can not be read is the consumer's to set aside
        if page and not ids.is_alive(page.pid, page.process_started, page.boot_id):
            files.remove(path)
    now = SystemClock().now()
    page = PageAddress(
        host=bound.host,
        port=bound.port,
        local=bound.is_local,
        pid=os.getpid(),
        process_started=ids.own_start_time(),
        boot_id=ids.boot_id(),
        started_at=now,
    )
    path = paths.page(ids.new_id("page", now))
    files.save(path, page)
    return path, page


def chosen_port(port: int | None, settings: Settings) -> int:
    """The port given, else `$PORT`'s, else the settings'; BadSettings when `$PORT` is none."""
    if port is not None:
        return port
    given = os.environ.get("PORT", "").strip()
    if not given:
        return settings.web.port
    if not (given.isascii() and given.isdigit() and int(given) <= 65535):
        raise BadSettings(f"PORT: expected a number from 0 to 65535, got {given[:20]!r}")
    return int(given)


def bind(host: str, port: int) -> ServerSocket:
    """Listen at an address, or raise BadSettings: one line says why not and what to do."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise BadSettings(f"web.host: expected an address of this machine, got {host!r}") from None
    # `localhost` may be both; what people type first is the old one.
    family, *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    deadline = time.monotonic() + PORT_PATIENCE_S
    while True:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(256)
        except OSError as error:
            listener.close()
            # The worker of a master that was killed needs a moment to notice.
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise BadSettings(f"can not listen at {host}:{port}: {_why(error)}") from None
            time.sleep(0.1)
        else:
            name = listener.getsockname()
            return ServerSocket(listener, str(name[0]), int(name[1]))


def _why(error: OSError) -> str:
    reasons = {
        errno.EADDRINUSE: "the port is in use; is mimikit running already? --port takes another",
        errno.EADDRNOTAVAIL: "this machine has no such address",
        errno.EACCES: "ports below 1024 need more rights; --port takes another",
    }
    return reasons.get(error.errno or 0, error.strerror or str(error))


class _Log(Logger):
    """gunicorn's log as single lines on stderr: no traces, no requests."""

    def setup(self, cfg: Any) -> None:
        """Only warnings and worse, in our own form."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(_OneLine())

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Requests are not logged: addresses tell too much and nobody reads them."""


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        kind, error, _ = record.exc_info or (None, None, None)
        tail = f" ({kind.__name__}: {error})" if kind is not None else ""
        return f"web: {record.getMessage()}{tail}".replace("\n", " ")


class _Worker(front.RequestServer):
    """A worker that ends its streams first, and ends on Ctrl-C as it does on TERM.

    It ends, and its master with it, where the state folder is no longer the one it was started
    for: token and address are another's there.
    """

    _is_lost = False

    def run(self) -> None:
        """Serve until the end; the code of a failed start is what ends a master, too."""
        super().run()
        if self._is_lost:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)

    def murder_pending(self) -> None:
        """About every second: see whether this page is still one of the folder it stands for."""
        super().murder_pending()
        if self.alive and (reason := self._why_lost()):
            self.log.error("%s; the page has to be started again", reason)
            self._is_lost, self.alive = True, False
            self._end_streams()

    def _why_lost(self) -> str | None:
        app = cast("Flask", self.wsgi)
        files = site_of(app).files
        try:
            if not files.fs.is_in_place():
                return f"{files.fs.root} was moved, removed or replaced"
            if cast("Any", app).config[_PAGE] is None:
                return None  # it is only shown
            if (newer := schema.why_newer(files, (paths.SCHEMA,))) is not None:
                return newer  # since this page began
            path, page = cast("tuple[str, PageAddress]", cast("Any", app).config[_PAGE])
            if (known := files.peek(path, PageAddress)) and known.to_json() == page.to_json():
                return None
        except (MimikitError, OSError, MemoryError):
            return None  # the disk fails just now, or there is no memory: that says nothing
        try:
            files.save(path, page)
        except (MimikitError, OSError, MemoryError) as error:
            return f"{path}, by which commands are refused to others, is lost: {error}"
        return None

    def init_signals(self) -> None:
        """A terminal sends INT to worker and master alike: let requests finish."""
        super().init_signals()
        signal.signal(signal.SIGINT, self.handle_exit)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop: the streams hear of it outside of the signal's handler."""
        super().handle_exit(sig, frame)
        self.method_queue.defer(self._end_streams)

    def is_parent_alive(self) -> bool:
        """Whether the master lives; without it, free the port at once and end."""
        alive = super().is_parent_alive()
        if not alive:
            self.alive = False
            self.set_accept_enabled(False)
            for listener in self.sockets:
                listener.close()
            self._end_streams()
        return alive

    def _end_streams(self) -> None:
        site_of(cast("Flask", self.wsgi)).feed.stop()


def site_of(app: Flask) -> Site:
    from mimikit.web.api.routing import EXTENSION

    return app.extensions[EXTENSION]


class _Master(Arbiter):
    """A master that ends on HUP and INT as it does on TERM, and keeps its one worker."""

    def handle_hup(self) -> None:
        self.handle_term()

    handle_int = handle_hup

    def handle_usr2(self) -> None:
        """Nothing: no second master beside this one, and limits are counted in one worker."""

    handle_ttin = handle_ttou = handle_usr2


class _Server(BaseApplication):
    """gunicorn, set up by code alone."""

    def __init__(
        self,
        bound: ServerSocket,
        max_streams: int,
        make_app: Callable[[], Flask],
        on_ready: OnReady | None,
    ) -> None:
        self._bound, self._max_streams = bound, max_streams
        self._make_app, self._on_ready = make_app, on_ready
        super().__init__()

    def load_config(self) -> None:
        """Every setting that its surroundings could change otherwise."""
        values: dict[str, Any] = {
            "bind": [f"fd://{self._bound.socket.detach()}"],
            "workers": 1,
            "worker_class": _Worker,
            "threads": THREADS_BESIDE_STREAMS + max(THREADS_BESIDE_STREAMS, self._max_streams),
            "worker_connections": front.MAX_CONNECTIONS,
            "keepalive": 20,
            "graceful_timeout": 5,
            "max_requests": 0,
            "sendfile": False,  # it would go around what front.py does with an answer
            "control_socket_disable": True,
            "http_protocols": "h1",
            "forwarded_allow_ips": "127.0.0.1,::1",
            "forwarder_headers": "",
            "accesslog": None,
            "errorlog": "-",
            "loglevel": "warning",
            "logger_class": _Log,
            "proc_name": "mimikit web",
            "preload_app": False,
            "reuse_port": False,
            "when_ready": self._when_ready,
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return self._make_app()

    def _when_ready(self, server: Arbiter) -> None:
        """Look once more where it really listens, then say so."""
        names = [tuple(listener.getsockname()[:2]) for listener in server.LISTENERS]
        if names != [(self._bound.host, self._bound.port)]:
            raise MimikitError(f"expected to listen at {self._bound.host} alone, got {names}")
        if self._on_ready is not None:
            self._on_ready(self._bound.host, self._bound.port)


def main() -> None:
    """`python -m mimikit.web.serve STATE WORKSPACE [HOST [PORT]]`, for tests and benchmarks."""
    from mimikit import config

    state, workspace = map(Path, sys.argv[1:3])
    host, port = (*sys.argv[3:], "", "")[:2]

    def ready(where: str, at: int) -> None:
        sys.stdout.write(f"http://{where}:{at}\n")
        sys.stdout.flush()

    try:
        settings = config.load(state)
        serve(state, workspace, settings, host or None, int(port) if port else None, ready)
    except MimikitError as error:
        sys.exit(f"mimikit: {error}")


if __name__ == "__main__":
    main()
