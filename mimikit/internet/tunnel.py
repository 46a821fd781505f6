"""A way out for one program whose connections we do not make: a proxy that judges each address.

It takes `CONNECT host:443` on loopback, with a name that only that program was told, and passes
bytes on once the address behind the host was judged and connected as for a page.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import select
import socket
import threading
from typing import Self

import httpcore

from mimikit.errors import MimikitError
from mimikit.internet.connection import CallLimits, GuardedNetwork, Network
from mimikit.protocol.watch import BoundedThread

_PORT = 443
_MOST_HEAD = 8192
_PIECE = 65536
_LOOK_S = 0.5
_MOST_AT_ONCE = 32


class TunnelServer:
    """Open while it is entered. Whatever is still connected when it is left is cut off."""

    def __init__(self, network: Network, limits: CallLimits, *, port: int = _PORT) -> None:
        """`port`: the one that may be connected to."""
        self._network, self._limits, self._port = network, limits, port
        self._secret = secrets.token_urlsafe(24)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self.refused: list[str] = []
        """Why connections were not made."""

    @property
    def url(self) -> str:
        return f"http://mimikit:{self._secret}@127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        BoundedThread(self._serve, "tunnel").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):  # the thread that waits for it would hold it open
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                if not select.select([self._listener], [], [], _LOOK_S)[0]:
                    continue
                client, _ = self._listener.accept()
            except (OSError, ValueError):  # it was closed
                return
            if not self._room.acquire(blocking=False):
                client.close()
                continue
            BoundedThread(lambda taken=client: self._pass_on(taken), "tunnel-client").start()

    def _pass_on(self, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(10)
                host = self._host(client)
                if host is None:
                    client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                    return
                try:
                    stream = GuardedNetwork(self._network, self._limits).connect_tcp(
                        host, self._port
                    )
                except (MimikitError, OSError, httpcore.NetworkError) as error:
                    self.refused.append(str(error))
                    client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                    return
                with contextlib.closing(stream):
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    far = stream.get_extra_info("socket")
                    if isinstance(far, socket.socket):
                        self._pump(client, far)
        except (OSError, MimikitError):
            pass
        finally:
            self._room.release()

    def _host(self, client: socket.socket) -> str | None:
        """The host that is asked for, if the head is one of ours; None: it is not."""
        head = b""
        while b"\r\n\r\n" not in head:
            if len(head) > _MOST_HEAD or not (data := client.recv(4096)):
                return None
            head += data
        lines = head.decode("latin-1").split("\r\n")
        method, _, target = lines[0].partition(" ")
        host, _, port = target.partition(" ")[0].rpartition(":")
        said = next((x for x in lines if x.lower().startswith("proxy-authorization:")), "")
        wanted = base64.b64encode(f"mimikit:{self._secret}".encode()).decode()
        is_ours = secrets.compare_digest(said.rpartition(" ")[2].encode(), wanted.encode())
        if method != "CONNECT" or port != str(self._port) or not is_ours:
            self.refused.append(f"{method[:20]} of {target[:100]!r}")
            return None
        return host.strip("[]")

    def _pump(self, client: socket.socket, far: socket.socket) -> None:
        """Pass on what comes, both ways, until one side ends or the time is over."""
        left = self._limits.most_bytes
        other = {client: far, far: client}
        far.settimeout(10)
        while not self._over.is_set() and self._limits.left_s() and left > 0:
            for side in select.select([client, far], [], [], _LOOK_S)[0]:
                data = side.recv(_PIECE)
                if not data:
                    return
                left -= len(data)
                other[side].sendall(data)
