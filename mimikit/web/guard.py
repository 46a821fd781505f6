"""Checks every request before any route sees it.

Order: host, address, origin, login, content type. Every route needs a login unless OPEN names it.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable

from flask import g, request
from werkzeug.routing import RequestRedirect

from mimikit.clock import Clock
from mimikit.errors import BadSettings
from mimikit.log import EventLog
from mimikit.protocol.files import Files
from mimikit.web import tokens

KEY_HEADER = "X-Mimikit-Session"
"""Carries a session's key. No cookie does: a browser sends those to every port of the host."""
OPEN = frozenset({"page.index", "page.asset", "status.healthz", "session.login"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_REFUSALS_LOGGED = 60
_WINDOW_S = 60.0
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?")


class RequestDenied(Exception):
    def __init__(
        self, status: int, message: str, *, reason: str, field: str | None = None, wait_s: float = 0
    ) -> None:
        """`message` is for the caller, `reason` for the log."""
        super().__init__(message)
        self.status, self.reason = status, reason
        self.field, self.wait_s = field, wait_s


class Guard:
    """Checks the requests of one app, and begins and ends sessions."""

    def __init__(
        self,
        files: Files,
        token: tokens.CurrentToken,
        clock: Clock,
        log: EventLog,
        *,
        hosts: frozenset[str],
        bound: tuple[str, int],
        failed_logins_per_minute: int,
    ) -> None:
        """`hosts`: names the page may be asked for; `bound`: where it listens."""
        self._files, self._token, self._clock, self._log = files, token, clock, log
        self._hosts = hosts
        self._own_loopback = "[::1]" if ":" in bound[0] else "127.0.0.1"
        self._failures = RateLimit(clock, failed_logins_per_minute)
        self._refusals = RateLimit(clock, _REFUSALS_LOGGED)
        self._sessions = threading.Lock()  # else a request could extend a session just ended

    def check(self) -> None:
        """Raise RequestDenied unless the request may go on; `g.key` is its session's, if any."""
        try:
            self._check_in_order()
        except RequestDenied as denied:
            if self._refusals.take():
                self._log.write(
                    "audit",
                    "refused",
                    reason=denied.reason,
                    address=request.remote_addr,
                    method=request.method,
                    path=request.path[:200],
                )
            raise

    def _check_in_order(self) -> None:
        # Host. Flask does not enforce it before this runs.
        if host_name(request.environ.get("HTTP_HOST")) not in self._hosts:
            message = "this host name is not one mimikit answers to; add it to web.hosts"
            raise RequestDenied(400, message, reason="host")
        # Address. Flask would redirect a nearly right one, past every handler of ours.
        if isinstance(request.routing_exception, RequestRedirect):
            raise RequestDenied(404, "there is nothing at this address", reason="address")
        has_effect, headers = request.method not in SAFE_METHODS, request.headers
        own = f"{request.scheme}://{request.environ['HTTP_HOST']}".lower()
        is_own = is_same_origin(headers.get("Sec-Fetch-Site"), headers.get("Origin"), own)
        if has_effect and not is_own:
            message = "this request comes from another site; use mimikit's own page"
            raise RequestDenied(403, message, reason="origin")
        # Login. Below /api/ also for addresses that do not exist.
        is_api = request.path.startswith("/api/")
        if is_api if request.endpoint is None else request.endpoint not in OPEN:
            g.key = self._caller_key()
        # Content type. JSON only, which another site's form cannot send.
        content_type = request.mimetype
        is_empty = request.method == "DELETE" and not content_type and not request.content_length
        if has_effect and content_type != "application/json" and not is_empty:
            message = f"expected content type application/json, got {content_type[:60] or 'none'}"
            raise RequestDenied(415, message, reason="content type")

    def own_page(self) -> str | None:
        """The address a browser is redirected to for the page; None: it is there.

        `localhost` is both loopback addresses, and we listen at one: a program that listens at the
        other would be the same origin to the browser and get the session's key.
        """
        name = host_name(request.environ.get("HTTP_HOST")) or ""
        if name not in LOOPBACK_NAMES - {self._own_loopback}:
            return None
        port = request.environ["HTTP_HOST"][len(name) :]
        return f"{request.scheme}://{self._own_loopback}{port}/"

    # ---- login

    def log_in(self, *, token: str | None, code: str | None) -> str:
        """The key of a new session, for the token or an unspent code.

        Raises:
            RequestDenied: neither is good, or too many were not.
        """
        # Read before the proof is checked: a token renewed in between ends the session.
        current = self._token.get()
        if token is not None:
            denied = RequestDenied(401, "that is not the token", reason="bad token", field="token")
            self._check_token(token, denied)
        elif not tokens.spend_login_code(self._files, code or "", self._clock.now()):
            message = "this login link was used or is too old; `mimikit token` makes a new one"
            raise self._failed(RequestDenied(401, message, reason="bad code", field="code"))
        key = tokens.begin_session(self._files, current, self._clock.now())
        by = "token" if token is not None else "code"
        self._log.write("audit", "login", address=request.remote_addr, by=by)
        return key

    def log_out(self, key: str) -> None:
        with self._sessions:
            tokens.end_session(self._files, self._token.get(), key)
        self._log.write("audit", "logout", address=request.remote_addr)

    def still_valid(self, key: str) -> Callable[[], bool]:
        """Whether the caller's login is still good, for a stream, which outlives its check."""
        if key:
            return lambda: self._is_session(key)
        token = self._token.get()
        return lambda: self._token.get() == token

    def _caller_key(self) -> str:
        """The key of the caller's session; empty for a caller with the token."""
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            denied = RequestDenied(401, "log in first", reason="bad bearer")
            self._check_token(bearer.strip(), denied)
            return ""
        key = request.headers.get(KEY_HEADER, "")
        if not key or not self._is_session(key):
            reason = "bad session" if key else "no login"
            raise RequestDenied(401, "log in first", reason=reason)
        return key

    def _is_session(self, key: str) -> bool:
        with self._sessions:
            return tokens.is_session(self._files, self._token.get(), key, self._clock.now())

    def _check_token(self, text: str, denied: RequestDenied) -> None:
        """Raise for a wrong token. The right one is taken, whatever others tried before.

        A long token cannot be guessed, and a rate limit would shut out its owner. A short one, as
        an operator may set at loopback, is rate-limited.
        """
        is_long = len(text) >= tokens.OPERATOR_TOKEN_CHARACTERS
        if not self._token.matches(text) or not (is_long or self._failures.wait_s() <= 0):
            raise self._failed(denied)

    def _failed(self, denied: RequestDenied) -> RequestDenied:
        """The answer to a wrong secret: `denied`, or that there were too many."""
        if self._failures.take():
            return denied
        wait_s = self._failures.wait_s()
        message = f"too many failed logins; try again in {int(wait_s) + 1} s"
        return RequestDenied(429, message, reason="too many failed logins", wait_s=wait_s)


# ---- names


def is_same_origin(fetch_site: str | None, origin: str | None, own: str) -> bool:
    """Whether a request comes from our own page, or from no page at all.

    A browser sends Sec-Fetch-Site, or Origin on plain http; a script sends neither.
    """
    if fetch_site is not None:
        return fetch_site in ("same-origin", "none")
    return origin is None or origin == own


def allowed_hosts(hosts: list[str]) -> frozenset[str]:
    """The names the page may be asked for: loopback's and the operator's.

    Raises:
        BadSettings: one of them is no plain host name.
    """
    names = set(LOOPBACK_NAMES)
    for host in hosts:
        name = host_name(host)
        if name is None or name.startswith(".") or "*" in name:
            raise BadSettings(
                f"web.hosts: expected host names such as mimikit.home.lan, got {host!r}"
            )
        names.add(name)
    return frozenset(names)


def host_name(header: str | None) -> str | None:
    """The name in a Host header, lower case, without its port; None when it is malformed."""
    match = _HOST.fullmatch((header or "").lower())
    return match[1] if match else None


# ---- how often


class RateLimit:
    """At most so many events a minute. Kept in memory: there is one web process."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock, self._per_minute = clock, per_minute
        self._lock = threading.RLock()
        self._times: deque[float] = deque(maxlen=per_minute)

    def take(self) -> bool:
        """Count one event; False, and not counted, when there were too many."""
        with self._lock:
            if self.wait_s() > 0:
                return False
            self._times.append(self._clock.monotonic())
            return True

    def wait_s(self) -> float:
        """Seconds until the next event is allowed; 0 when it is now."""
        with self._lock:
            if len(self._times) < self._per_minute:
                return 0.0
            return max(0.0, self._times[0] + _WINDOW_S - self._clock.monotonic())
