"""The web process: gunicorn on a socket that is bound and checked first.

gunicorn is configured by code alone: PORT in the environment would make it listen everywhere, and
WEB_CONCURRENCY would give each worker its own limits.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from mimikit.config import Settings
from mimikit.errors import BadSettings, MimikitError
from mimikit.log import EventLog
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.runtime import PageAddress
from mimikit.state import State, make_search
from mimikit.web import tokens
from mimikit.web.guard import allowed_hosts

if TYPE_CHECKING:
    from flask import Flask

THREADS_BESIDE_STREAMS = 48
WATCH_S = 0.5

# Sockets of another gunicorn or of systemd, where gunicorn would listen.
_FOREIGN = ("GUNICORN_PID", "GUNICORN_FD", "LISTEN_PID", "LISTEN_FDS")

_BIND_ERRORS = {
    errno.EADDRINUSE: "the port is in use; is mimikit running already? --port takes another",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "ports below 1024 need more rights; --port takes another",
}

OnReady = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class ServerSocket:
    """A listening socket with its actual address."""

    socket: socket.socket
    host: str
    port: int

    @property
    def is_local(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    def check_exposure(self, settings: Settings) -> None:
        """Raise BadSettings for a public address without a long token and host names."""
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


def serve(state: State, host: str | None, port: int | None, on_ready: OnReady | None) -> None:
    """Serve the page until a signal, then raise SystemExit; BadSettings for an unusable address.

    host, port: override the settings; `$PORT` is the default of `port`.
    """
    os.umask(0o077)
    for name in _FOREIGN:
        os.environ.pop(name, None)
    settings = state.settings
    bound = bind(host or settings.web.host, chosen_port(port, settings))
    try:
        bound.check_exposure(settings)
        allowed_hosts(settings.web.hosts)
        token = tokens.load_token(state.files)
        _record_address(bound, state)
    except MimikitError:
        bound.socket.close()
        raise

    def make_app() -> Flask:
        # Called in the worker, whose files and threads are its own.
        from mimikit.web.app import build_web

        files = Files(RealDisk(state.path), durable=state.files.durable)
        opened = replace(state, files=files, log=EventLog(files, state.clock))
        return build_web(
            opened,
            token=token,
            # Without the dictionary, which is large and improves the hits only a little.
            search=lambda: make_search(opened, words=False, stays=True),
            bound=(bound.host, bound.port),
            is_local=bound.is_local,
        )

    master = os.getpid()

    def end(_number: int, _frame: object) -> None:
        os.kill(master, signal.SIGTERM)

    def when_ready(_server: Arbiter) -> None:
        signal.signal(signal.SIGHUP, end)  # of a closed terminal; gunicorn would reload
        if on_ready is not None:
            on_ready(bound.host, bound.port)

    def post_worker_init(worker: Any) -> None:
        threading.Thread(target=_watch, args=(worker, master), daemon=True).start()

    server_settings = _public_settings(settings) | {
        "bind": [f"fd://{bound.socket.detach()}"],
        "when_ready": when_ready,
        "post_worker_init": post_worker_init,
    }
    _Server(make_app, server_settings).run()


def _public_settings(settings: Settings) -> dict[str, Any]:
    return {
        "workers": 1,  # streams and limits are counted in one process
        "worker_class": "gthread",
        "threads": THREADS_BESIDE_STREAMS + settings.web.max_streams,
        "keepalive": 20,
        "graceful_timeout": 5,
        "limit_request_line": 8190,
        "forwarded_allow_ips": "127.0.0.1,::1",
        "forwarder_headers": "",
        "control_socket_disable": True,
        "loglevel": "warning",
        "proc_name": "mimikit web",
    }


def _record_address(bound: ServerSocket, state: State) -> None:
    """Record where this process listens, which decides whether the consumer accepts its commands.

    The record of an ended page stays until another page starts, as its inputs may still wait.
    """
    files, now = state.files, state.clock.now()
    for name in files.names(paths.PAGES):
        path = f"{paths.PAGES}/{name}"
        page = files.peek(path, PageAddress)  # the consumer quarantines unreadable ones
        if page and not page.is_alive:
            files.remove(path)
    page = PageAddress.own(now, host=bound.host, port=bound.port, local=bound.is_local)
    files.save(paths.page(ids.new_id("page", now)), page)


def chosen_port(port: int | None, settings: Settings) -> int:
    """`port`, else `$PORT`, else the settings' port; BadSettings for an invalid `$PORT`."""
    if port is not None:
        return port
    text = os.environ.get("PORT", "").strip()
    if not text:
        return settings.web.port
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise BadSettings(f"PORT: expected a number from 0 to 65535, got {text[:20]!r}")
    return int(text)


def bind(host: str, port: int) -> ServerSocket:
    """Listen at an address; BadSettings with the reason when that fails."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise BadSettings(f"web.host: expected an address of this machine, got {host!r}") from None
    # IPv4 first, as `localhost` may be both.
    family, *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        why = _BIND_ERRORS.get(error.errno or 0, error.strerror or str(error))
        raise BadSettings(f"cannot listen at {host}:{port}: {why}") from None
    name = listener.getsockname()
    return ServerSocket(listener, str(name[0]), int(name[1]))


class _Server(BaseApplication):
    def __init__(self, make_app: Callable[[], Flask], settings: dict[str, Any]) -> None:
        self._make_app, self._settings = make_app, settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return self._make_app()


def _watch(worker: Any, master: int) -> None:
    """End the streams when the worker stops; exit when the master or state folder is gone."""
    from mimikit.web.api.routing import EXTENSION, Site

    site: Site = worker.wsgi.extensions[EXTENSION]
    while worker.alive:
        if os.getppid() != master:
            os._exit(1)  # it was killed: free the port
        with contextlib.suppress(OSError):  # unknown while the disk fails
            if not site.files.fs.is_in_place():
                reason = f"{site.files.fs.root} was moved, removed or replaced"
                worker.log.error("%s; the page has to be started again", reason)
                os._exit(Arbiter.WORKER_BOOT_ERROR)  # ends the master, too
        time.sleep(WATCH_S)
    site.feed.stop()
