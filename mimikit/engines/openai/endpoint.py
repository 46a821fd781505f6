"""HTTP client of OpenAI-compatible endpoints."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import itertools
import json
import os
import re
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import CancelToken
from mimikit.engines.openai.answer import Body
from mimikit.engines.openai.failure import EndpointError, Trouble, classify, message_of, words_of
from mimikit.errors import EngineError, shortage_of
from mimikit.language.plain_text import plain
from mimikit.protocol.json import tables_of

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES = 32 * 2**20
CONNECT_S = 10.0
_ERROR_CHARACTERS = 500
_NO_ENDPOINT = "is not a model endpoint"


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Cached: loading them takes longer than connecting. The system's, and well-known ones."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def proxy_of(url: str) -> tuple[str, str] | None:
    """The proxy of the environment for that address, and its variable; never for loopback."""
    place = urlsplit(url)
    host = (place.hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return None
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return None
    if urllib.request.proxy_bypass(f"{host}:{place.port}" if place.port else host):
        return None
    for name in (f"{place.scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if value := os.environ.get(variable, "").strip():
                return (value if "://" in value else f"http://{value}"), variable
    return None


def why_not_ready(url: str) -> str | None:
    if (proxy := proxy_of(url)) is None:
        return None
    value, variable = proxy
    with contextlib.suppress(ValueError):
        place = urlsplit(value)
        is_known = place.scheme in ("http", "https", "socks5", "socks5h")
        if is_known and place.hostname and place.port != 0:
            return None
    shown = re.sub(r"//[^@/]*@", "//", value)[:100]
    return f"{variable}: expected a proxy such as http://127.0.0.1:7890, got {shown!r}"


class EndpointClient:
    """One request at a time, for one run. Another thread may abort it."""

    def __init__(
        self,
        settings: EndpointSettings,
        key: str | None,
        *,
        idle_s: float,
        now: Callable[[], datetime],
    ) -> None:
        """Raises EngineError if the proxy settings of the environment cannot be used."""
        import httpx

        if reason := why_not_ready(settings.base_url):
            raise EngineError(reason)
        self._url, self._key, self._idle_s, self._now = settings.base_url, key, idle_s, now
        self._proxy = proxy_of(self._url)
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_aborted = False
        headers = {"user-agent": "mimikit", "accept": "text/event-stream, application/json"}
        if key:
            name = settings.api_key_header
            headers[name] = f"Bearer {key}" if name.lower() == "authorization" else key
        self._client = httpx.Client(
            timeout=httpx.Timeout(idle_s, connect=min(CONNECT_S, idle_s)),
            verify=_certificates() if self._url.startswith("https") else False,
            trust_env=False,  # the environment's netrc and proxies of loopback
            proxy=self._proxy[0] if self._proxy else None,
            headers={**headers, **settings.headers},
            params=settings.query,
        )

    def __enter__(self) -> Self:
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

    def stream(self, path: str, body: Body) -> Generator[Body | None]:
        """The events of an answer, streamed or not; None: its end. Raises EndpointError."""
        with self._response("POST", path, body) as response:
            pieces = self._limited(response)
            head = b""
            for piece in pieces:
                head += piece
                if head.strip():
                    break
            start = head.lstrip(b"\xef\xbb\xbf \r\n\t")
            if start.startswith((b"{", b"[")):
                yield self._parsed(head + b"".join(pieces))
                yield None
                return
            if start.startswith(b"<"):
                raise self._error("absent", _NO_ENDPOINT)
            yield from self._events(start, pieces)

    def has(self, path: str) -> bool:
        """Whether there is such an API, probed by an empty request. Raises EndpointError."""
        try:
            with contextlib.closing(self.stream(path, {})) as events:
                found = next(events, None) or {}
        except EndpointError as error:
            if error.trouble == "absent":
                return False
            is_gateway = error.status in (502, 503, 504)
            if error.status is None or is_gateway or error.trouble in ("logged_out", "limited"):
                raise
            return True
        if "error" in found:
            return self.stream_error(found).trouble != "absent"
        return not found.keys().isdisjoint(("choices", "output", "response"))

    def models(self) -> list[Body]:
        with self._response("GET", "/models", None) as response:
            answer = self._parsed(b"".join(self._limited(response)))
        return [one for one in tables_of(answer.get("data")) if isinstance(one.get("id"), str)]

    @contextlib.contextmanager
    def _response(self, method: str, path: str, body: Body | None) -> Generator[httpx.Response]:
        """A response with status 200. Raises every error as an EndpointError."""
        import httpx

        try:
            with self._client.stream(
                method, f"{self._url}{path}", json=body, extensions={"trace": self._trace}
            ) as response:
                if not response.is_success:
                    data = b""
                    with contextlib.suppress(httpx.HTTPError):
                        data = b"".join(self._limited(response, 64 * 1024))
                    raise self._status_error(response, data)
                yield response
        except (EndpointError, GeneratorExit):
            raise
        except httpx.TransportError as error:
            if shortage_of(error):
                raise
            raise self._connection_error(error) from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
            if shortage_of(error):
                raise
            detail = f"an invalid answer ({type(error).__name__})"
            raise self._error("broken", f"answered with {detail}", is_transient=True) from error

    def _limited(self, response: httpx.Response, limit: int = MAX_ANSWER_BYTES) -> Iterator[bytes]:
        """The bytes of a response; at most `limit` of an error."""
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > limit:
                if not response.is_success:
                    return
                raise self._error("error", f"sent more than {limit} bytes")
            yield piece

    def _events(self, head: bytes, pieces: Iterator[bytes]) -> Iterator[Body | None]:
        """Server-sent events. Lines end at a line feed only: JSON may contain U+2028."""
        buffer = bytearray(head)
        for piece in itertools.chain([b""], pieces, [b"\n"]):  # a last line may lack its end
            buffer += piece
            if piece and b"\n" not in piece:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    yield None
                elif data:
                    value: object = json.loads(data)
                    if isinstance(value, dict):
                        yield cast("Body", value)

    def _parsed(self, data: bytes) -> Body:
        """Raises EndpointError unless it is a JSON object without an error."""
        text = data.decode("utf-8-sig", "replace").strip()
        if text.startswith("<"):
            raise self._error("absent", _NO_ENDPOINT)
        value: object = json.loads(text) if text else {}
        if isinstance(value, list) and value:
            value = cast("list[object]", value)[0]
        if not isinstance(value, dict):
            raise self._error("absent", _NO_ENDPOINT)
        return cast("Body", value)

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Keep a handle of each connection: shutting it down ends a blocked read, also with TLS."""
        if not event.endswith("connect_tcp.complete"):
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            if isinstance(found, socket.socket):
                self._sockets.append(found.dup())
            is_aborted = self._is_aborted
        if is_aborted:
            self.abort()

    # ---- errors

    def _error(
        self, trouble: Trouble, what: str, *, is_transient: bool = False, **more: Any
    ) -> EndpointError:
        return EndpointError(
            trouble, self.clean(f"{self._url} {what}"), is_transient=is_transient, **more
        )

    def _status_error(self, response: httpx.Response, data: bytes) -> EndpointError:
        body: object = data.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(data)
        if isinstance(body, str) and body.lstrip().startswith("<"):  # a page
            body = " ".join(re.sub(r"<[^>]*>", " ", body).split())[:200]
        if response.has_redirect_location:
            body = f"it redirects to {response.headers['location']}"
        return self._classified(response.status_code, body, response.headers)

    def stream_error(self, body: object) -> EndpointError:
        """From an error within an answer, which has no status."""
        return self._classified(None, body, {})

    def _classified(
        self, status: int | None, body: object, headers: Mapping[str, str]
    ) -> EndpointError:
        trouble, until, is_transient = classify(status, body, headers, self._now())
        message = message_of(body)
        head = f"answered {status}" if status else "failed"
        more = {"until": until, "status": status, "words": words_of(body)}
        what = f"{head}: {message}" if message else head
        return self._error(trouble, what, is_transient=is_transient, **more)

    def _connection_error(self, error: httpx.TransportError) -> EndpointError:
        import httpx

        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        is_of_proxy = isinstance(error, httpx.ProxyError) or (
            self._proxy is not None and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        )
        if is_of_proxy and self._proxy is not None:
            value = re.sub(r"//[^@/]*@", "//", self._proxy[0])
            message = f"the proxy {value} of {self._proxy[1]} failed: {reason}"
            return EndpointError("unreachable", self.clean(message))
        if isinstance(error, httpx.ConnectTimeout):
            reason = "it accepts no connection"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return self._error("unreachable", f"cannot be reached: {reason}")
        if isinstance(error, httpx.TimeoutException):
            return self._error("silent", f"was silent for {self._idle_s:g} s")
        if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            return self._error("error", f"cannot be asked: {reason}")
        what = "closed the connection before its answer was complete"
        return self._error("broken", what, is_transient=True)

    def clean(self, text: str) -> str:
        line = " ".join(plain(text[: 10 * _ERROR_CHARACTERS]).split())
        if self._key:
            line = line.replace(self._key, "•••")
        return line[:_ERROR_CHARACTERS]


def accepts_connections(url: str) -> bool:
    if proxy_of(url) is not None:
        return False  # only a request through the proxy shows it
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), CONNECT_S).close()
    except OSError:
        return False
    return True
