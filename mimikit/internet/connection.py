"""Connections to the open web alone: resolved once, every address judged, then that one connected.

Nothing that is asked for goes another way: no proxy of the environment, no socket of this machine.
What comes slowly, without end or in too large pieces ends at the deadline or the limit of bytes.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import socket
import ssl
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import httpcore
import httpx

from mimikit.engines.base import CancelToken
from mimikit.errors import MimikitError, Refused
from mimikit.internet.addresses import address_refusal
from mimikit.protocol.watch import BoundedThread

_LOOK_S = 0.5
"""So often a call that waits looks whether the run is over."""
_RESOLVE_S = 10.0
_CONNECT_S = 10.0
_MOST_HEAD_BYTES = 256 * 1024
_MOST_ADDRESSES = 4

Resolve: TypeAlias = Callable[[str], list[str]]
"""The addresses of a name, as texts; raises OSError."""
Connect: TypeAlias = Callable[[str, int, float], httpcore.NetworkStream]
"""A connection to an address and port within seconds; raises httpcore's errors."""


class WebError(MimikitError):
    """A page could not be had; the text says why."""

    permanent = False
    kind = "no_page"


def resolve(name: str) -> list[str]:
    """Ask the system. One that is a number to the system comes back as the address it means."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(address: str, port: int, timeout_s: float) -> httpcore.NetworkStream:
    """Connect to an address that was judged; one of this machine itself is let go of at once."""
    stream = httpcore.SyncBackend().connect_tcp(address, port, timeout=timeout_s)
    ours: socket.socket | None = stream.get_extra_info("socket")
    if ours is not None and ours.getsockname()[0] == ours.getpeername()[0]:
        stream.close()
        raise Refused(f"{address} is an address of this machine")
    return stream


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Who is trusted: as everywhere, and whom SSL_CERT_FILE and SSL_CERT_DIR name."""
    return httpx.create_ssl_context()


@dataclass(frozen=True)
class Network:
    """How names are resolved and addresses connected: the system's way, but for tests."""

    resolve: Resolve = resolve
    connect: Connect = connect
    tls: Callable[[], ssl.SSLContext] = tls_context


@dataclass(frozen=True)
class CallLimits:
    """How long one call may take in all, and how much may come."""

    until_s: float
    """As `time.monotonic` counts."""
    most_bytes: int
    cancel: CancelToken = field(default_factory=CancelToken)

    def left_s(self) -> float:
        """Raises WebError when nothing is left, or the run is over."""
        if self.cancel.reason is not None:
            raise WebError("the run is over")
        left_s = self.until_s - time.monotonic()
        if left_s <= 0:
            raise WebError("it was not there in time")
        return left_s


class GuardedNetwork(httpcore.NetworkBackend):
    """Opens connections for one call, each after its address was judged."""

    def __init__(self, network: Network, limits: CallLimits, *, trusted: str | None = None) -> None:
        """`trusted`: a host that the owner has named, whatever its address."""
        self._network, self._limits, self._trusted = network, limits, trusted

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve once, judge every address, connect to one of those that were judged.

        Raises:
            Refused: one of them is none of the open web.
            WebError: there are none, or nobody answers.
        """
        del timeout, local_address, socket_options
        addresses = self._resolved(host)
        for address in addresses if host != self._trusted else ():
            if reason := address_refusal(address):
                raise Refused(f"{host[:80]} is not read: {reason}")
        failed: Exception | None = None
        for address in addresses[:_MOST_ADDRESSES]:
            limit_s = min(_CONNECT_S, self._limits.left_s())
            try:
                stream = self._network.connect(address, port, limit_s)
            except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError) as error:
                failed = error
            else:
                return LimitedStream(stream, self._limits)
        raise WebError(f"{host[:80]} does not answer: {failed or 'it has no address'}")

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        del path, timeout, socket_options
        raise Refused("no socket of this machine is read")

    def _resolved(self, host: str) -> list[str]:
        """The addresses of a host; whoever resolves for long is left behind."""
        answer: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answer.put(self._network.resolve(host))
            except Exception as error:  # noqa: BLE001 - told to whoever waits
                answer.put(error)

        BoundedThread(ask, "resolver").start()
        until_s = time.monotonic() + min(_RESOLVE_S, self._limits.left_s())
        found: list[str] | Exception = []
        while (left_s := until_s - time.monotonic()) > 0:
            self._limits.left_s()
            with contextlib.suppress(queue.Empty):
                found = answer.get(timeout=min(_LOOK_S, left_s))
                break
        if isinstance(found, UnicodeError | OSError) or not found:
            raise WebError(f"{host[:80]} has no address that is known here")
        if isinstance(found, Exception):
            raise found
        return found


class LimitedStream(httpcore.NetworkStream):
    """A connection on which nothing waits beyond the deadline, and no more than so much comes."""

    def __init__(self, stream: httpcore.NetworkStream, limits: CallLimits) -> None:
        self._stream, self._limits = stream, limits
        self._left = limits.most_bytes + _MOST_HEAD_BYTES

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del timeout
        while True:
            wait_s = min(_LOOK_S, self._limits.left_s())
            try:
                data = self._stream.read(max_bytes, wait_s)
            except httpcore.ReadTimeout:
                continue
            self._left -= len(data)
            if self._left < 0:
                raise too_large(self._limits.most_bytes)
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout
        self._stream.write(buffer, self._limits.left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        del timeout
        limit_s = min(_CONNECT_S, self._limits.left_s())
        secure = self._stream.start_tls(ssl_context, server_hostname, limit_s)
        return LimitedStream(secure, self._limits)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """What a server answered. `body` is as it came, packed as `headers` say."""

    status: int
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes


def too_large(most_bytes: int) -> WebError:
    return WebError(f"expected at most {most_bytes / 1e6:g} MB, got more")


def ask(
    url: httpx.URL,
    network: Network,
    limits: CallLimits,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    trusted: str | None = None,
    wants_body: Callable[[int, Mapping[str, str]], bool] = lambda _status, _headers: True,
) -> WebAnswer:
    """Ask once; no redirect is followed, and no connection kept.

    body: sent by POST; None asks by GET. wants_body: told status and headers, says whether to read.

    Raises:
        Refused: where it leads to is not of the open web.
        WebError: there is no answer, it comes too slowly, or is too large.
    """
    backend = GuardedNetwork(network, limits, trusted=trusted)
    target = url.raw_path
    wire = httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=target or b"/"
    )
    head = [(b"host", url.netloc), (b"connection", b"close")]
    head += [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    with (
        _troubles(url),
        httpcore.ConnectionPool(
            network.tls() if url.scheme == "https" else None, network_backend=backend
        ) as pool,
    ):
        if body is not None:
            head.append((b"content-length", str(len(body)).encode()))
        method = "GET" if body is None else "POST"
        with pool.stream(method, wire, headers=head, content=body) as response:
            told = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in response.headers
            }
            size = told.get("content-length", "0")
            if not wants_body(response.status, told):
                return WebAnswer(response.status, told, b"")
            if size.isdigit() and (len(size) > 15 or int(size) > limits.most_bytes):
                raise too_large(limits.most_bytes)
            parts, came = list[bytes](), 0
            for part in response.iter_stream():
                parts.append(part)
                came += len(part)
                if came > limits.most_bytes:
                    raise too_large(limits.most_bytes)
    return WebAnswer(response.status, told, b"".join(parts))


@contextlib.contextmanager
def _troubles(url: httpx.URL) -> Generator[None]:
    """What a connection fails of, in our words: what the other side wrote is data, and fenced."""
    host = url.host[:80]
    try:
        yield
    except ssl.SSLError as error:
        raise WebError(f"{host} can not be trusted: {error.reason or error}") from None
    except httpcore.ConnectError as error:  # of a connection that was made: its TLS
        raise WebError(f"{host} can not be trusted: {type(error).__name__}") from None
    except httpcore.TimeoutException:
        raise WebError(f"{host} was not there in time") from None
    except (
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
        OSError,
    ) as error:
        raise WebError(f"{host} broke off: {type(error).__name__}") from None
