"""A web of our own on loopback: names, addresses that look public, and servers behind them.

The guard is the product's. What is changed is how a name is resolved, by a table, and where a
public address leads: to a server here. Whatever else is connected to is kept, and is a failure.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Self, TypeAlias

import httpcore

from mimikit.internet import connection
from mimikit.internet.connection import Network

PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "151.101.1.69"
PUBLIC_6 = "2606:2800:220:1:248:1893:25c8:1946"
Send: TypeAlias = Callable[[socket.socket], object]
Answer: TypeAlias = "bytes | Send"


def answer(
    body: bytes | str = b"", kind: str = "text/plain", status: int = 200, **headers: str
) -> bytes:
    """A whole HTTP answer; of headers `_` is `-`."""
    data = body.encode() if isinstance(body, str) else body
    sent = {"content-type": kind, "content-length": str(len(data)), "connection": "close"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
    return f"HTTP/1.1 {status} So\r\n{lines}\r\n".encode("latin-1", "replace") + data


def redirect(to: str, status: int = 302) -> bytes:
    return answer(status=status, location=to)


class FakeWeb:
    """Sites by host and path; `asked` holds what came, `connected` where connections went."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        """By `host/path`; else 404."""
        self.names: dict[str, list[str] | Callable[[], list[str]]] = {}
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.connected: list[tuple[str, int]] = []
        self.resolved: list[str] = []
        self.over = threading.Event()
        self.tls: ssl.SSLContext | None = None
        """With it, what comes to port 443 is taken so."""
        self.trusts: ssl.SSLContext | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    @property
    def network(self) -> Network:
        tls = (lambda: self.trusts) if self.trusts else connection.tls_context
        return Network(self._resolve, self._connect, tls)  # type: ignore[arg-type]

    def _resolve(self, name: str) -> list[str]:
        self.resolved.append(name)
        known = self.names.get(name.rstrip("."), None)
        if known is not None:
            return known() if callable(known) else known
        if name[:1].isdigit() or ":" in name:  # numbers, as the system reads them
            return connection.resolve(name)
        return [PUBLIC]

    def _connect(self, address: str, port: int, timeout_s: float) -> httpcore.NetworkStream:
        self.connected.append((address, port))
        if address not in (PUBLIC, OTHER_PUBLIC, PUBLIC_6):
            raise OSError(f"{address} is connected to")
        backend = httpcore.SyncBackend()
        stream = backend.connect_tcp("127.0.0.1", self.port, timeout=timeout_s)
        if self.tls is not None:
            stream.write(b"T" if port == 443 else b"P", timeout_s)
        return stream

    def _serve(self) -> None:
        while not self.over.is_set():
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            client.settimeout(30)
            if self.tls is None or client.recv(1) != b"T":
                self._answer(client)
                return
            with self.tls.wrap_socket(client, server_side=True) as secure:
                self._answer(secure)

    def _answer(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                if not (data := client.recv(65536)):
                    return
                head += data
            text = head.decode("latin-1")
            path = text.split(" ")[1]
            lines = (line.partition(": ") for line in text.split("\r\n"))
            host = next((value for name, _, value in lines if name.lower() == "host"), "")
            at = f"{host}{path}"
            self.asked.append(at)
            self.heads.append(text)
            given = self.pages.get(at, answer("not here", status=404))
            if callable(given):
                given(client)
            else:
                client.sendall(given)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
