"""The door: every request passes here before any route sees it.

Order: host, address, origin, who it is, content type. What is not named in OPEN needs a login, so
a new route is closed until somebody opens it. Webhooks prove themselves (`web/hooks.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple, cast

from flask import Flask, Response, g, request
from itsdangerous import BadData, URLSafeSerializer
from werkzeug.routing import RequestRedirect

from mimikit.clock import Clock
from mimikit.errors import NO_PARAMETERS, BadSettings, MimikitError
from mimikit.log import EventLog
from mimikit.protocol.files import Files
from mimikit.web import tokens

KEY_HEADER = "X-Mimikit-Session"
"""What a session's cookie needs beside it. A browser sends the cookie to every port of the host, so
any other server of this machine that is looked at gets it; the key stays with our own origin."""
OPEN = frozenset({"page.index", "page.asset", "page.worker", "status.healthz", "session.login"})
BY_SECRET = frozenset({"hooks.receive"})
"""Routes with a door of their own: each call proves itself, and no session counts for anything."""
TAKES = {"files.put_file": "application/octet-stream"}
"""By route: what it takes in place of JSON; nothing that the form of another site can send."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOG_IN = "log in first"
_SPENT = "this login link was used or is too old; `mimikit token` makes a new one"
_RENEW_AFTER = timedelta(days=1)
_REFUSALS_LOGGED = 60
_OVERALL_FACTOR = 4
_WINDOW_S = 60.0
_MAX_KEYS = 1000
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?")


class RequestDenied(MimikitError):
    """A request that goes no further."""

    kind = "denied"

    def __init__(
        self, status: int, message: str, *, reason: str, field: str | None = None, wait_s: float = 0
    ) -> None:
        """`message` is for the caller, `reason` for the log, and the code of the answer."""
        params = {"seconds": int(wait_s) + 1} if wait_s > 0 else NO_PARAMETERS
        super().__init__(message, field=field, code=reason.replace(" ", "_"), params=params)
        self.status, self.reason, self.wait_s = status, reason, wait_s


def file_too_large(most_mb: int) -> RequestDenied:
    said = f"the file is too large; at most {most_mb} MB are taken"
    denied = RequestDenied(413, said, reason="file too large", field="body")
    denied.params = {"limit": most_mb}
    return denied


def is_same_origin(
    method: str, fetch_site: str | None, origin: str | None, own: str, *, is_api: bool
) -> bool:
    """Whether a request may have come from our own page, or from no page at all.

    A browser says where a request comes from by Sec-Fetch-Site, or, on plain http, by Origin. What
    has neither is no browser. Reading is refused to other sites too where they could open streams.
    """
    if method in SAFE_METHODS and not is_api:
        return True
    if fetch_site is not None:
        return fetch_site in ("same-origin", "none")
    return origin is None or origin == own


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """Who is let in, and by what."""

    by: Literal["token", "session"]
    session_id: str = ""
    age: timedelta = timedelta(0)


class NewSession(NamedTuple):
    cookie: str
    """The value of its cookie."""
    key: str
    """What the page sends with each request, beside the cookie."""


class Guard:
    """Checks requests of one app, and lets people in and out."""

    def __init__(
        self,
        files: Files,
        keys: tokens.Keys,
        clock: Clock,
        log: EventLog,
        *,
        hosts: frozenset[str],
        bound: tuple[str, int],
        failed_logins_per_minute: int,
    ) -> None:
        """`hosts`: the names the page may be asked for; `bound`: where it really listens."""
        self._files, self._keys, self._clock, self._log = files, keys, clock, log
        self._hosts, self._cookie = hosts, f"mimikit-{bound[1]}"
        self._not_ours = LOOPBACK_NAMES - _served_at(bound[0])
        self._failures = RateLimit(
            clock, failed_logins_per_minute, failed_logins_per_minute * _OVERALL_FACTOR
        )
        self._known_wrong = RateLimit(clock, 1)
        self._warned = RateLimit(clock, 1)
        self._told = RateLimit(clock, _REFUSALS_LOGGED)

    def install(self, app: Flask) -> None:
        app.before_request(self.check)
        app.after_request(self._renew)

    def check(self) -> None:
        """Raise RequestDenied unless the request may go on."""
        try:
            self._check_in_order()
        except RequestDenied as denied:
            if self._told.take(""):
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
        headers, is_api = request.headers, request.path.startswith("/api/")
        # Host. Flask only stores what it thinks of it, and asks this first: so decide here.
        if host_name(request.environ.get("HTTP_HOST")) not in self._hosts:
            message = "this host name is not one mimikit answers to; add it to web.hosts"
            raise RequestDenied(400, message, reason="host")
        # Address. No mended ones: Flask would send the caller on, past every handler of ours.
        if isinstance(request.routing_exception, RequestRedirect):
            raise RequestDenied(404, "there is nothing at this address", reason="address")
        if request.endpoint in BY_SECRET:
            return
        # Origin. No other site can make a browser send our token; a cookie it can.
        if _bearer() is None or "Cookie" in headers:
            own = f"{request.scheme}://{request.environ['HTTP_HOST']}".lower()
            fetch_site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
            if not is_same_origin(request.method, fetch_site, origin, own, is_api=is_api):
                message = "this request comes from another site; use mimikit's own page"
                raise RequestDenied(403, message, reason="origin")
        # Who. All but the open routes ask; where there is none, only the API keeps that to itself.
        needs_login = is_api if request.endpoint is None else request.endpoint not in OPEN
        if needs_login:
            g.caller = self._caller()
        # Content type. JSON only: what another site's form can send is refused whatever it claims.
        got = request.mimetype
        is_empty = request.method == "DELETE" and not got and not request.content_length
        due = TAKES.get(request.endpoint or "", "application/json")
        if request.method not in SAFE_METHODS and got != due and not is_empty:
            message = f"expected content type {due}, got {got[:60] or 'none'}"
            raise RequestDenied(415, message, reason="content type")

    # ---- who --------------------------------------------------------------------------------

    def own_page(self) -> str | None:
        """Where a browser has to go for the page; None: it is there.

        `localhost` is both addresses of loopback, and we listen at one of them: at the other any
        program may, which would be the same page to the browser and get all that this one keeps.
        """
        name = host_name(request.environ.get("HTTP_HOST"))
        if name not in self._not_ours:
            return None
        ours = min(LOOPBACK_NAMES - self._not_ours, default=name)
        return f"{request.scheme}://{ours}{request.host.lower().removeprefix(name)}/"

    def log_in(self, *, token: str | None, code: str | None) -> NewSession:
        """Begin a session for the token or an unspent code.

        Raises:
            RequestDenied: neither is good, or too many were not; or it is not the place.
        """
        self._check_page()
        # Who is in stays in the same one: an answer cut off leaves a new cookie beside the old key.
        caller, _ = self._session_here()
        # A session's name is no secret, the signature is. It is signed before the proof is looked
        # at: a token renewed between the two ends it.
        session_id = caller.session_id if caller else secrets.token_hex(12)
        session = NewSession(self._cookie_value(session_id), self._page_key(session_id))
        if token is not None:
            denied = RequestDenied(401, "that is not the token", reason="bad token", field="token")
            self._check_token(token, denied)
        elif not tokens.spend_login_code(self._files, code or "", self._clock.now()):
            raise self._failed(
                code or "", RequestDenied(401, _SPENT, reason="bad code", field="code")
            )
        by = "token" if token is not None else "code"
        self._log.write("audit", "login", address=request.remote_addr, by=by)
        return session

    def log_out(self, caller: RequestCaller) -> None:
        if caller.session_id:
            tokens.end_session(self._files, caller.session_id, self._clock.now())
        self._log.write("audit", "logout", address=request.remote_addr)

    def set_cookie(self, response: Response, value: str) -> None:
        """Put a session cookie on an answer, or take it away with an empty value."""
        response.set_cookie(
            self._cookie,
            value,
            max_age=int(tokens.SESSION_LIFE.total_seconds()) if value else 0,
            httponly=True,
            samesite="Strict",
            secure=request.is_secure,
        )

    def still_valid(self, caller: RequestCaller) -> Callable[[], bool]:
        """A later answer to whether a caller may go on: a stream outlives its request's check."""
        key = self._keys.signing_key

        def valid() -> bool:
            ended = caller.session_id and tokens.is_session_ended(self._files, caller.session_id)
            return not ended and self._keys.signing_key == key

        return valid

    def _caller(self) -> RequestCaller:
        bearer = _bearer()
        if bearer is not None:
            self._check_token(bearer, RequestDenied(401, _LOG_IN, reason="bad bearer"))
            return RequestCaller("token")
        self._check_page()
        caller, reason = self._session_here()
        if caller is None:
            raise RequestDenied(401, _LOG_IN, reason=reason)
        return caller

    def _session_here(self) -> tuple[RequestCaller | None, str]:
        """Whose session the request belongs to; else why to none."""
        # Other servers of this host set cookies of any name: theirs come first, beside ours.
        found = [self._session(value) for value in request.cookies.getlist(self._cookie)]
        return next((one for one in found if one[0]), found[-1] if found else (None, "no login"))

    def _session(self, cookie: str) -> tuple[RequestCaller | None, str]:
        """Whose session this cookie is, if the request has its key too; else why nobody's."""
        try:
            session_id, issued_s = cast("tuple[str, int]", self._signer().loads(cookie))
            age = timedelta(seconds=self._clock.now().timestamp() - issued_s)
        except (BadData, ValueError, TypeError):
            return None, "bad session"
        if age > tokens.SESSION_LIFE or tokens.is_session_ended(self._files, session_id):
            return None, "ended session"
        key = request.headers.get(KEY_HEADER, "").encode(errors="replace")
        if not hmac.compare_digest(key, self._page_key(session_id).encode()):
            return None, "cookie without its key"
        return RequestCaller("session", session_id, age), ""

    def _check_page(self) -> None:
        if page := self.own_page():
            message = f"there are no logins at this name; open {page} instead"
            raise RequestDenied(403, message, reason="no login at this name")

    def _check_token(self, given: str, denied: RequestDenied) -> None:
        """Raise for a wrong token. The right one is let in, whatever others tried before it.

        A token too long to be guessed is safe with an open door, and a closed one shuts out its
        owner. A short one, as an operator may set at loopback, would be guessed: there it closes.
        """
        right = self._keys.is_token(given)
        is_long = len(given) >= tokens.OPERATOR_TOKEN_CHARACTERS
        if not right or not (is_long or self._failures.wait_s(request.remote_addr or "") <= 0):
            raise self._failed(given, denied)

    def _failed(self, given: str, denied: RequestDenied) -> RequestDenied:
        """What to say to a wrong secret: `denied`, or that there were too many.

        Each counts once a minute, for who tries the same one again is no closer.
        """
        address = request.remote_addr or ""
        wait = self._failures.wait_s(address)
        if wait <= 0:
            if self._known_wrong.take(hashlib.sha256(given.encode(errors="replace")).hexdigest()):
                self._failures.note(address)
            return denied
        if self._warned.take(address):
            self._log.write("audit", "token_guessed", address=address)
        message = f"too many failed logins; try again in {int(wait) + 1} s"
        return RequestDenied(429, message, reason="too many failed logins", wait_s=wait)

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(
            self._keys.signing_key,
            salt="mimikit-session",
            signer_kwargs={"digest_method": hashlib.sha256},
        )

    def _page_key(self, session_id: str) -> str:
        """The key of a session; who has its cookie alone can not work it out."""
        text = b"page\x00" + session_id.encode()
        return hmac.digest(self._keys.signing_key, text, "sha256").hex()

    def _cookie_value(self, session_id: str) -> str:
        value = self._signer().dumps([session_id, int(self._clock.now().timestamp())])
        return value.decode() if isinstance(value, bytes) else value

    def _renew(self, response: Response) -> Response:
        """A session in use never ends under its user."""
        caller: RequestCaller | None = g.get("caller")
        if caller and caller.by == "session" and caller.age > _RENEW_AFTER:
            self.set_cookie(response, self._cookie_value(caller.session_id))
        return response


def _bearer() -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


# ---- names of hosts

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


def _served_at(bound: str) -> frozenset[str]:
    """The addresses of loopback at which nobody but the server bound there can listen."""
    ours = {"127.0.0.1": {"127.0.0.1"}, "0.0.0.0": {"127.0.0.1"}, "::1": {"[::1]"}}  # noqa: S104
    return frozenset(ours.get(bound, LOOPBACK_NAMES - {"localhost"}))


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
    found = _HOST.fullmatch((header or "").lower())
    return found[1] if found else None


# ---- how often


class RateLimit:
    """At most so many events a minute for each key, and so many for all keys together.

    Kept in memory: there is one web process.
    """

    def __init__(self, clock: Clock, per_key: int, overall: int | None = None) -> None:
        """Without `overall` only the keys are limited."""
        self._clock, self._per_key, self._overall = clock, per_key, overall
        self._lock = threading.RLock()
        self._events: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()

    def take(self, key: str) -> bool:
        """Count one event; False, and not counted, when there were too many."""
        with self._lock:
            if self.wait_s(key) > 0:
                return False
            self.note(key)
            return True

    def note(self, key: str) -> None:
        """Count one event whatever there was before."""
        with self._lock:
            now = self._clock.monotonic()
            if len(self._events) >= _MAX_KEYS and key not in self._events:
                idle_since = now - _WINDOW_S
                self._events = {k: e for k, e in self._events.items() if e and e[-1] > idle_since}
                while len(self._events) >= _MAX_KEYS:
                    del self._events[next(iter(self._events))]
            self._events.setdefault(key, deque(maxlen=self._per_key)).append(now)
            if self._overall is not None:
                self._all.append(now)

    def wait_s(self, key: str) -> float:
        """Seconds until the next event is allowed; 0 when it is now."""
        with self._lock:
            now = self._clock.monotonic()
            mine = self._events.get(key, deque[float]())
            for events in (mine, self._all):
                while events and events[0] <= now - _WINDOW_S:
                    events.popleft()
            waits = [0.0]
            if len(mine) >= self._per_key:
                waits.append(mine[-self._per_key] + _WINDOW_S - now)
            if self._overall is not None and len(self._all) >= self._overall:
                waits.append(self._all[-self._overall] + _WINDOW_S - now)
            return max(waits)
