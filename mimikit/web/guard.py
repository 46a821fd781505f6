"""Checks every request: host, address, origin, login, content type."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable

from flask import g, request
from werkzeug.routing import RequestRedirect

from mimikit.clock import Clock
from mimikit.errors import BadSettings, ErrorCode, ErrorParams, Refused
from mimikit.log import EventLog
from mimikit.protocol.files import Files
from mimikit.web import tokens

KEY_HEADER = "X-Mimikit-Session"
"""Instead of a cookie, which a browser sends to every port of the host."""
# Endpoints without login.
OPEN = frozenset({"page.index", "page.asset", "status.healthz", "session.login"})
UPLOAD = "files.upload"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_MAX_LOGGED_PER_MINUTE = 60
_WINDOW_S = 60.0
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]{1,60}){1,8}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?")


class RequestDenied(Refused):
    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        field: str | None = None,
        code: ErrorCode | None = None,
        params: ErrorParams | None = None,
    ) -> None:
        """`message`: for the caller. `reason`: for the log, by default the code."""
        super().__init__(message, field=field, code=code, params=params)
        self.status, self.reason = status, reason or self.code


class Guard:
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
        """`hosts`: allowed host names. `bound`: the address and port of the server."""
        self._files, self._token, self._clock, self._log = files, token, clock, log
        self._hosts = hosts
        self._loopback = "[::1]" if ":" in bound[0] else "127.0.0.1"
        self._failures = RateLimit(clock, failed_logins_per_minute)
        self._refusals = RateLimit(clock, _MAX_LOGGED_PER_MINUTE)
        self._sessions = threading.Lock()  # else a request could extend a session just ended

    def check(self) -> None:
        """Raise RequestDenied for a forbidden request; else set `g.key`, the session's key."""
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
        # Address. Flask would answer a similar one with a redirect.
        if isinstance(request.routing_exception, RequestRedirect):
            raise RequestDenied(404, "there is nothing at this address", code="bad_request")
        has_effect, headers = request.method not in SAFE_METHODS, request.headers
        own = f"{request.scheme}://{request.environ['HTTP_HOST']}".lower()
        is_own = is_same_origin(headers.get("Sec-Fetch-Site"), headers.get("Origin"), own)
        if has_effect and not is_own:
            message = "this request comes from another site; use mimikit's own page"
            raise RequestDenied(403, message, reason="origin")
        # Login. Below /api/ unknown addresses need one, too.
        is_api = request.path.startswith("/api/")
        if is_api if request.endpoint is None else request.endpoint not in OPEN:
            g.key = self._caller_key()
        # Content type: JSON or bytes, which another site's form cannot send.
        content_type = request.mimetype
        is_empty = request.method == "DELETE" and not content_type and not request.content_length
        is_upload = request.endpoint == UPLOAD and content_type == "application/octet-stream"
        if has_effect and content_type != "application/json" and not is_empty and not is_upload:
            message = f"expected content type application/json, got {content_type[:60] or 'none'}"
            raise RequestDenied(415, message, reason="content type", code="bad_request")

    def canonical_url(self) -> str | None:
        """The address to redirect a browser to; None when it is there already.

        `localhost` means both loopback addresses: a program that listens at the other one would
        have the same origin and get the session's key.
        """
        name = host_name(request.environ.get("HTTP_HOST")) or ""
        if name not in LOOPBACK_NAMES - {self._loopback}:
            return None
        port = request.environ["HTTP_HOST"][len(name) :]
        prefix = request.headers.get("X-Forwarded-Prefix", "").rstrip("/")
        path = prefix if _PREFIX.fullmatch(prefix) else ""
        return f"{request.scheme}://{self._loopback}{port}{path}/"

    # ---- login

    def log_in(self, *, token: str | None, code: str | None) -> str:
        """The key of a new session; RequestDenied for a wrong token or code."""
        # Read first, so that a token that is renewed meanwhile ends the session.
        current = self._token.get()
        if token is not None:
            denied = RequestDenied(401, "that is not the token", field="token", code="bad_token")
            self._check_token(token, denied)
        elif not tokens.spend_login_code(self._files, code or "", self._clock.now()):
            message = "this login link was used or is too old; `mimikit token` makes a new one"
            denied = RequestDenied(401, message, field="code", code="login_link_used")
            raise self._rate_limited(denied)
        key = tokens.begin_session(self._files, current, self._clock.now())
        by = "token" if token is not None else "code"
        self._log.write("audit", "login", address=request.remote_addr, by=by)
        return key

    def log_out(self, key: str) -> None:
        with self._sessions:
            tokens.end_session(self._files, self._token.get(), key)
        self._log.write("audit", "logout", address=request.remote_addr)

    def still_valid(self, key: str) -> Callable[[], bool]:
        """A check of the caller's login, for streams, which last longer than a request."""
        if key:
            return lambda: self._is_session(key)
        token = self._token.get()
        return lambda: self._token.get() == token

    def _caller_key(self) -> str:
        """The key of the caller's session; empty when the token is sent."""
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            denied = RequestDenied(401, "log in first", reason="bad bearer", code="logged_out")
            self._check_token(bearer.strip(), denied)
            return ""
        key = request.headers.get(KEY_HEADER, "")
        if not key or not self._is_session(key):
            reason = "bad session" if key else "no login"
            raise RequestDenied(401, "log in first", reason=reason, code="logged_out")
        return key

    def _is_session(self, key: str) -> bool:
        with self._sessions:
            return tokens.is_session(self._files, self._token.get(), key, self._clock.now())

    def _check_token(self, text: str, denied: RequestDenied) -> None:
        """Raise for a wrong token; a short one, allowed at loopback, is rate-limited, too.

        A long token cannot be guessed, and a rate limit would lock out its owner.
        """
        is_long = len(text) >= tokens.OPERATOR_TOKEN_CHARACTERS
        if not self._token.matches(text) or not (is_long or self._failures.wait_s() <= 0):
            raise self._rate_limited(denied)

    def _rate_limited(self, denied: RequestDenied) -> RequestDenied:
        """`denied`, or an error that there were too many failed logins."""
        if self._failures.take():
            return denied
        seconds = int(self._failures.wait_s()) + 1
        message = f"too many failed logins; try again in {seconds} s"
        return RequestDenied(429, message, code="too_many", params={"seconds": seconds})


def is_same_origin(fetch_site: str | None, origin: str | None, own: str) -> bool:
    """Whether a request comes from our own page, or from a script, which sends neither header."""
    if fetch_site is not None:
        return fetch_site in ("same-origin", "none")
    return origin is None or origin == own


def allowed_hosts(hosts: list[str]) -> frozenset[str]:
    """The loopback names and those of `web.hosts`; BadSettings for an invalid one."""
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
    """The lower-case name in a Host header, without the port; None when it is malformed."""
    match = _HOST.fullmatch((header or "").lower())
    return match[1] if match else None


class RateLimit:
    """A sliding window of one minute, in memory, as there is one web process."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock, self._per_minute = clock, per_minute
        self._lock = threading.RLock()
        self._times: deque[float] = deque(maxlen=per_minute)

    def take(self) -> bool:
        with self._lock:
            if self.wait_s() > 0:
                return False
            self._times.append(self._clock.monotonic())
            return True

    def wait_s(self) -> float:
        with self._lock:
            if len(self._times) < self._per_minute:
                return 0.0
            return max(0.0, self._times[0] + _WINDOW_S - self._clock.monotonic())
