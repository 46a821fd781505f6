"""HTTP client for OpenAI-compatible endpoints; classifies their errors."""

from __future__ import annotations

import contextlib
import email.utils
import functools
import json
import re
import socket
import threading
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from importlib import util
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from mimikit.engines.base import CancelToken
from mimikit.engines.limits import retry_at
from mimikit.errors import shortage_of
from mimikit.language.plain_text import plain

if TYPE_CHECKING:
    import httpx2
    import openai

Trouble: TypeAlias = Literal[
    "logged_out",
    "limited",
    "unreachable",
    "broken",
    "unknown_model",
    "absent",
    "too_long",
    "silent",
    "error",
]
"""`absent`: no such API. `error`: this request was rejected."""

PACKAGE = "openai"
MISSING = "expected the package openai, got none; pip install 'mimikit-assistant[openai]'"
MAX_ANSWER_CHARACTERS = 32 * 2**20
CONNECT_S = 10.0
_TRANSIENT_STATUS = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_TOO_LONG = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|context_length_exceeded|exceed_context"
    r"|prompt is too long|too many (input )?tokens|input (length|tokens).{0,40}exceed"
    r"|range of input length|reduce the length",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model[_ ]not[_ ](found|exist)|model.{0,80}(does not exist|not found|not exist|unknown"
    r"|is not (a )?valid|not available)|(no such|unknown|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
_LIMITED = re.compile(
    r"insufficient_quota|rate[_ ]?limit|usage_limit|quota exceeded|insufficient balance"
    r"|too many requests",
    re.IGNORECASE,
)
_ERROR_CHARACTERS = 500


class EndpointError(Exception):
    def __init__(
        self,
        trouble: Trouble,
        message: str,
        *,
        until: datetime | None = None,
        is_transient: bool = False,
    ) -> None:
        """`until`: when a rate limit ends."""
        super().__init__(message)
        self.trouble: Trouble = trouble
        self.until, self.is_transient = until, is_transient


def is_installed() -> bool:
    return util.find_spec(PACKAGE) is not None


@functools.cache
def _certificates() -> Any:
    """Cached: loading them takes longer than connecting."""
    import httpx2

    return httpx2.create_ssl_context()


class EndpointClient:
    """One request at a time, for one run. Another thread may abort it."""

    def __init__(
        self, url: str, key: str | None, *, idle_s: float, now: Callable[[], datetime]
    ) -> None:
        import httpx2
        import openai

        self._url, self._key, self._idle_s, self._now = url, key, idle_s, now
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_aborted = False
        timeout = httpx2.Timeout(idle_s, connect=min(CONNECT_S, idle_s))
        http = httpx2.Client(
            timeout=timeout,
            verify=_certificates() if url.startswith("https") else False,
            event_hooks={"request": [self._set_trace]},
        )
        self._client = openai.OpenAI(
            api_key=key or "none",
            base_url=url,
            timeout=timeout,
            max_retries=0,
            http_client=http,
        )
        # The client reads these from the environment, where they belong to OpenAI itself.
        self._client.organization = self._client.project = None

    def __enter__(self) -> EndpointClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        with self._lock:
            for handle in self._sockets:
                handle.close()
            self._sockets.clear()

    def abort(self) -> None:
        """Abort the current request and all later ones. Thread-safe."""
        with self._lock:
            self._is_aborted = True
            for handle in self._sockets:
                with contextlib.suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def deadline(self, cancel: CancelToken, timeout_s: float, stop: CancelToken) -> Generator[None]:
        """Abort requests when the run is canceled or times out; `stop` gets the reason."""
        stop.on_cancel(lambda _reason: self.abort())
        cancel.on_cancel(stop.cancel)
        timer = threading.Timer(timeout_s, stop.cancel, ["timeout"])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    # ---- requests

    def stream(self, path: str, body: dict[str, object]) -> Generator[dict[str, object]]:
        """The events of an answer. Raises EndpointError."""
        import openai

        with self._mapped_errors():
            answer = self._client.post(
                path,
                cast_to=cast("Any", object),
                body=body,
                stream=True,
                stream_cls=openai.Stream[object],
            )
            size = 0
            with answer:
                for event in answer:
                    size += len(str(event))
                    if size > MAX_ANSWER_CHARACTERS:
                        message = f"{self._url} sent more than {MAX_ANSWER_CHARACTERS} characters"
                        raise EndpointError("error", self.clean(message))
                    if isinstance(event, dict):
                        yield cast("dict[str, object]", event)

    def has(self, path: str) -> bool:
        """Whether there is such an API, probed by an empty request. Raises EndpointError."""
        try:
            with self._mapped_errors():
                self._client.post(path, cast_to=cast("Any", object), body={})
        except EndpointError as error:
            if error.trouble in ("absent", "unknown_model"):
                return False
            if error.trouble in ("logged_out", "limited") or not _is_answer(error):
                raise
        return True

    def models(self) -> list[dict[str, object]]:
        """Raises EndpointError."""
        with self._mapped_errors():
            found = self._client.get("/models", cast_to=cast("Any", object))
        listed = cast("dict[str, object]", found).get("data") if isinstance(found, dict) else None
        items = cast("list[object]", listed) if isinstance(listed, list) else []
        objects = [cast("dict[str, object]", one) for one in items if isinstance(one, dict)]
        return [one for one in objects if isinstance(one.get("id"), str)]

    def _set_trace(self, request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Keep a handle of each connection: shutting it down ends a blocked read, also with TLS."""
        if event != "connection.connect_tcp.complete":
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            if isinstance(found, socket.socket):
                self._sockets.append(found.dup())
            is_aborted = self._is_aborted
        if is_aborted:
            self.abort()

    @contextlib.contextmanager
    def _mapped_errors(self) -> Generator[None]:
        """Raise every error as an EndpointError."""
        import openai

        try:
            yield
        except (EndpointError, GeneratorExit):
            raise
        except openai.APIStatusError as error:
            raise self._status_error(error) from error
        except openai.APIConnectionError as error:
            if shortage_of(error):
                raise
            raise self._connection_error(error) from error
        except openai.APIError as error:  # an error event within a stream
            raise self.stream_error(error.body or error.message) from error
        except Exception as error:  # the client could not parse the answer
            if shortage_of(error):
                raise
            message = f"{self._url} answered with an invalid answer ({type(error).__name__})"
            raise EndpointError("broken", self.clean(message), is_transient=True) from error

    def _status_error(self, error: openai.APIStatusError) -> EndpointError:
        status = error.status_code
        message = self._message_of(error.body) or error.response.reason_phrase
        head = f"{self._url} answered {status}"
        text = self.clean(f"{head}: {message}" if message else head)
        code = f"{error.code or ''} {error.type or ''} {message}"
        now = self._now()
        if status in (400, 413, 422, 500) and _TOO_LONG.search(code):
            return EndpointError("too_long", text)
        if status in (401, 403):
            return EndpointError("logged_out", text)
        if status in (402, 429) or (status < 500 and _LIMITED.search(code)):
            return EndpointError("limited", text, until=_until(error, message, now))
        if status in (400, 404, 422) and _UNKNOWN_MODEL.search(code):
            return EndpointError("unknown_model", text)
        if status in (404, 405, 501):
            return EndpointError("absent", text)
        if status >= 500 or status in _TRANSIENT_STATUS:
            until = _until(error, message, now) if status == 503 else None
            return EndpointError("broken", text, until=until, is_transient=True)
        return EndpointError("broken" if status < 400 else "error", text)

    def _connection_error(self, error: Exception) -> EndpointError:
        import openai

        is_timeout, cause = isinstance(error, openai.APITimeoutError), error.__cause__
        if cause is not None and "connect" in type(cause).__name__.lower():
            reason = re.sub(r"^\[Errno -?\d+\] ", "", str(cause)) or type(cause).__name__
            reason = "it accepts no connection" if is_timeout else reason
            return EndpointError(
                "unreachable", self.clean(f"{self._url} cannot be reached: {reason}")
            )
        if is_timeout:
            message = f"{self._url} was silent for {self._idle_s:g} s"
            return EndpointError("silent", self.clean(message), is_transient=True)
        message = f"{self._url} closed the connection before its answer was complete"
        return EndpointError("broken", self.clean(message), is_transient=True)

    def stream_error(self, body: object) -> EndpointError:
        """From an error event within a stream, which has no status."""
        message = self._message_of(body) or "no reason"
        details = f"{json.dumps(body, default=str)[:2000]} {message}"
        text = self.clean(f"{self._url} failed: {message}")
        if _TOO_LONG.search(details):
            return EndpointError("too_long", text)
        if _LIMITED.search(details):
            return EndpointError("limited", text, until=retry_at(message, self._now()))
        if _UNKNOWN_MODEL.search(details):
            return EndpointError("unknown_model", text)
        return EndpointError("broken", text, is_transient=True)

    def _message_of(self, body: object) -> str:
        """The message in an error body of any shape."""
        for _ in range(3):
            if not isinstance(body, dict):
                break
            table = cast("dict[str, object]", body)
            body = next((table[k] for k in ("error", "message", "detail") if table.get(k)), "")
        return body if isinstance(body, str) else json.dumps(body, default=str) if body else ""

    def clean(self, text: str) -> str:
        """One line of limited length, without the API key."""
        line = " ".join(plain(text[: 10 * _ERROR_CHARACTERS]).split())
        if self._key:
            line = line.replace(self._key, "•••")
        return line[:_ERROR_CHARACTERS]


def _is_answer(error: EndpointError) -> bool:
    return " answered " in str(error)


def _until(error: openai.APIStatusError, message: str, now: datetime) -> datetime | None:
    """The retry time from headers, body or message."""
    headers = error.response.headers
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return now + timedelta(seconds=min(float(value) * unit_s, 366 * 86400))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            at = email.utils.parsedate_to_datetime(value)
            return at.astimezone(now.tzinfo) if at.tzinfo else at.replace(tzinfo=now.tzinfo)
    body = cast("dict[str, object]", error.body) if isinstance(error.body, dict) else {}
    for key in ("resets_in_seconds", "retry_after"):
        seconds = body.get(key)
        if isinstance(seconds, int | float) and 0 < seconds < 366 * 86400:
            return now + timedelta(seconds=seconds)
    return retry_at(message, now)


def accepts_connections(url: str) -> bool:
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), CONNECT_S).close()
    except OSError:
        return False
    return True
