"""The way in: a request is taken in whole before a thread is given to it.

A thread that waits for a client is held by it: forty slow clients held all there are. Here one loop
reads every connection, and a thread gets only what has arrived. A client has ten seconds for a
request; of too many that are half here the oldest make room.

Nor does a thread wait for a client to read: what of an answer the kernel does not take at once is
the loop's to send, and the next request of that connection is looked at after that. Only streams,
whose number is limited, wait in their thread.

Where this machine is short of open files or memory the connection that needed them ends, the worker
does not: it has had its threads since its start, and one file to close in need.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import struct
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

from gunicorn.http import get_parser
from gunicorn.workers.gthread import TConn, ThreadWorker

from mimikit.errors import shortage_of
from mimikit.protocol.disk import SpareFile
from mimikit.web.api.routing import ErrorView, told
from mimikit.web.guard import RequestDenied, file_too_large

REQUEST_S = 10.0
LEAVING_S = 2.0
SEND_S = 20
"""So long a client that is sent something may take none of it."""
SEND_BUFFER_BYTES = 2**17
"""What the kernel holds of an answer: so little that also a thin line is seen to take some."""
MAX_SENDING = 96
MAX_UNSENT_BYTES = 2**26
"""Of answers that wait for their readers; of more those end that took nothing for longest."""
MAX_OPEN = 256
MAX_IDLE = 128
MAX_CONNECTIONS = 600
"""More than half-open, sent to, idle and answered ones together: the next one is always taken."""
MAX_HEAD_BYTES = 2**16
MAX_BODY_BYTES = 6 * 2**20 + 4096
"""A memory file that may be edited, each character of it escaped. Other routes take less."""
MAX_FILE_BYTES = 10 * 2**20
"""Of a file that is sent to UPLOADS; the settings allow less, or as much."""
UPLOADS = (b"POST /api/files ", b"POST /api/files?")
UPLOAD_S = 120.0
MAX_HELD_BYTES = 20 * 2**20
"""Two files that are sent at once."""
REST_S = 0.05
"""So long the loop rests where it can not even turn a client away: else it would spin."""
TEXTS = {
    408: "the request took too long to arrive",
    411: "a body needs a Content-Length; bodies in chunks are not taken",
    413: f"the request is too large; at most {MAX_BODY_BYTES // 1024} KiB are taken",
    431: f"the request's head is too large; at most {MAX_HEAD_BYTES // 1024} KiB are taken",
}
REASONS = {408: "slow", 411: "no length", 413: "body too large", 431: "head too large"}

_PIECE = 2**16
_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,19})[ \t]*\r\n", re.IGNORECASE)
_CODED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


def request_size(data: bytes | bytearray) -> int | None:
    """How many bytes the first request in `data` has; None while its head is not whole.

    What is wrong with a head otherwise is gunicorn's to say: it gets no byte more than this.

    Raises:
        RequestDenied: it is too large, or does not tell.
    """
    end = data.find(_HEAD_END, 0, MAX_HEAD_BYTES)
    if end < 0:
        if len(data) >= MAX_HEAD_BYTES:
            raise _denied(431)
        return None
    head = bytes(data[: end + 2])
    if _CODED.search(head):
        raise _denied(411)
    found = _LENGTH.search(head)
    length = int(found[1]) if found else 0
    if not head.startswith(UPLOADS) and length > MAX_BODY_BYTES:
        raise _denied(413)
    if length > MAX_FILE_BYTES:
        raise file_too_large(MAX_FILE_BYTES // 2**20)
    return end + len(_HEAD_END) + length


def _denied(status: int) -> RequestDenied:
    return RequestDenied(status, TEXTS[status], reason=REASONS[status])


@dataclass(eq=False, slots=True)
class OpenRequest:
    """A connection with a request that is not whole yet, or one that is being closed."""

    connection: TConn
    end_s: float
    data: bytearray = field(default_factory=bytearray)
    size: int | None = None
    is_leaving: bool = False


class AnswerSocket:
    """A client's socket while one answer is given: what it does not take is kept for the loop."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._is_stream: bool | None = None
        self.left: deque[memoryview] = deque()
        self.moved_s = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def sendall(self, data: bytes) -> None:
        """Send what can be sent now; only a stream, whose length nobody knows, waits."""
        if self._is_stream is None:  # these are the head's bytes
            self._is_stream = b"\r\ncontent-type: text/event-stream" in data.lower()
        if self._is_stream:
            self._sock.sendall(data)
        else:
            self.left.append(memoryview(data))
            self.send_some()

    def send_some(self) -> None:
        """Send until the kernel takes no more."""
        with contextlib.suppress(BlockingIOError):
            while self.left:
                sent = self._sock.send(self.left[0], socket.MSG_DONTWAIT)
                self.moved_s = time.monotonic()
                self.left[0] = self.left[0][sent:]
                if not self.left[0]:
                    self.left.popleft()


class RequestServer(ThreadWorker):
    """gunicorn's worker with threads, which wait for no client.

    All but `handle`, which gunicorn runs in a thread, runs in the worker's one loop.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: dict[TConn, OpenRequest] = {}
        """Oldest first."""
        self._handed: dict[TConn, int] = {}
        """What is with a thread, and how many bytes it has."""
        self._held_bytes = 0
        """All that both of them have."""
        self._answers: dict[TConn, AnswerSocket] = {}
        self._sending: dict[TConn, AnswerSocket] = {}
        """What took nothing for longest first."""
        self._spare = SpareFile()

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """All threads at once: one that is asked for later may not be had."""
        pool: ThreadPoolExecutor = super().get_thread_pool()
        threads = self.cfg.threads
        started = threading.Barrier(threads + 1)
        for _ in range(threads):
            pool.submit(started.wait)
        started.wait()
        return pool

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        """What this machine is short of ends what asked for it, and what only waits."""
        self._spare.keep()
        for key, _ in self.poller.select(timeout):
            try:
                key.data(key.fileobj)
            except (OSError, MemoryError) as error:
                if shortage_of(error) is None:
                    raise
                cast(Any, self).murder_keepalived(force=True)
                if key.fileobj in self.sockets:
                    self._turn_away(key.fileobj)
                half = [it for it in self._open.values() if it.connection.sock is key.fileobj]
                for opened in half:
                    self._drop(opened)
                return  # what else was seen is told of again, if it is still there

    def _turn_away(self, listener: Any) -> None:
        """End the connection that could not be taken in: it would be told of again and again."""
        self._spare.give()
        try:
            listener.accept()[0].close()
        except (OSError, MemoryError):
            time.sleep(REST_S)
        self._spare.keep()

    def enqueue_req(self, conn: TConn) -> None:
        """A connection may hold a request, gunicorn found: take that in first."""
        parser: Any = conn.parser
        rest = b""
        if parser is None:
            # A stream whose reader never reads must not hold its thread: give up on it.
            limit = struct.pack("ll", SEND_S, 0)
            with contextlib.suppress(OSError):  # it may be gone already
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        else:
            rest = parser.unreader.take_buffered()
        opened = self._add(conn, REQUEST_S)
        if rest:
            self._take(opened, rest)
        else:
            self._read(opened)

    def finish_request(self, conn: TConn, fs: Future[Any]) -> None:
        """An answer was given; what is left of it is sent before anything else is."""
        self._held_bytes -= self._handed.pop(conn, 0)
        answer = self._answers.pop(conn, None)
        if answer is None or not answer.left or conn.sock.fileno() < 0:
            self._go_on(conn, fs)
            return
        conn.sock.setblocking(False)
        self._sending[conn] = answer
        send_on = partial(self._send_on, conn, answer, fs)
        self.poller.register(conn.sock, selectors.EVENT_WRITE, send_on)
        while len(sending := self._sending) > 1 and (
            len(sending) > MAX_SENDING
            or sum(len(part) for it in sending.values() for part in it.left) > MAX_UNSENT_BYTES
        ):
            self._give_up(next(iter(sending)))

    def _send_on(
        self, conn: TConn, answer: AnswerSocket, fs: Future[Any], _socket: object = None
    ) -> None:
        """Its client takes some more: the last in line for being given up."""
        if self._sending.get(conn) is not answer:
            return  # it made room for another since the loop saw it
        try:
            answer.send_some()
        except (OSError, MemoryError):
            self._give_up(conn)
            return
        del self._sending[conn]
        if answer.left:
            self._sending[conn] = answer
        else:
            self.poller.unregister(conn.sock)
            self._go_on(conn, fs)

    def _give_up(self, conn: TConn) -> None:
        del self._sending[conn]
        with contextlib.suppress(KeyError):  # there was no memory to look at it
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

    def _go_on(self, conn: TConn, fs: Future[Any]) -> None:
        """All was sent. gunicorn would wait here for a client that does not go."""
        if not fs.cancelled() and fs.exception() is None and fs.result():
            super().finish_request(conn, fs)
        elif conn.sock.fileno() < 0:
            self.nr_conns -= 1
        else:
            self._leave(self._add(conn, LEAVING_S))

    def murder_pending(self) -> None:
        """End what is overdue; when stopping, whatever is not whole. Called about every second."""
        now_s = time.monotonic()
        for opened in list(self._open.values()):
            if opened.end_s <= now_s and opened.data:
                self._refuse(opened, _denied(408))
            elif opened.end_s <= now_s or not (self.alive or opened.is_leaving):
                self._drop(opened)
        for conn in [c for c, it in self._sending.items() if it.moved_s + SEND_S <= now_s]:
            self._give_up(conn)
        # Counted anew: what a want of memory cut short may have been counted and be gone.
        busy = len(self._open) + len(self._handed) + len(self._sending)
        self.nr_conns = busy + len(self.keepalived_conns)

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Answer, in a thread; where too many would stay open the client is told to go.

        All that are with a thread count too: gunicorn counts those the loop has taken back, and a
        busy machine answers many before. In this order none is missed but the one just moved.
        """
        if len(self._handed) + len(self._sending) + len(self.keepalived_conns) >= MAX_IDLE:
            req.force_close()
        answer = self._answers[conn] = AnswerSocket(conn.sock)
        kept = SimpleNamespace(sock=answer, client=conn.client, server=conn.server)
        return super().handle_request(req, cast(Any, kept))

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Whoever meets a want hears no more; gunicorn would answer with a 500 of its own."""
        if shortage_of(exc) is None:
            super().handle_error(req, client, addr, exc)

    def _add(self, connection: TConn, seconds: float) -> OpenRequest:
        opened = OpenRequest(connection, time.monotonic() + seconds)
        connection.sock.setblocking(False)
        self._open[connection] = opened
        self.poller.register(connection.sock, selectors.EVENT_READ, partial(self._read, opened))
        self._make_room()
        return opened

    def _read(self, opened: OpenRequest, _socket: object = None) -> None:
        if self._open.get(opened.connection) is not opened:
            return  # it made room for another since the loop saw it
        try:
            data = opened.connection.sock.recv(_PIECE)
        except BlockingIOError:
            return
        except (OSError, MemoryError):
            data = b""
        if not data:
            self._drop(opened)
        elif not opened.is_leaving:
            self._take(opened, data)
            self._make_room()

    def _take(self, opened: OpenRequest, data: bytes) -> None:
        opened.data += data
        self._held_bytes += len(data)
        self._look(opened)

    def _look(self, opened: OpenRequest) -> None:
        """Give a request that is whole to a thread."""
        try:
            if opened.size is None:
                opened.size = request_size(opened.data)
                if opened.size is not None and opened.data.startswith(UPLOADS):
                    opened.end_s += UPLOAD_S - REQUEST_S
                self._encourage(opened)
        except RequestDenied as denied:
            self._refuse(opened, denied)
            return
        if opened.size is None or len(opened.data) < opened.size:
            return
        connection = opened.connection
        self._forget(opened)
        # A parser that has these bytes and no socket: it can not wait for more.
        connection.parser = get_parser(self.cfg, [bytes(opened.data)], connection.client)
        connection.initialized = True
        super().enqueue_req(connection)
        self._handed[connection] = len(opened.data)  # its end is told of in this loop, so later
        self._held_bytes += len(opened.data)

    def _encourage(self, opened: OpenRequest) -> None:
        """Tell a client that asks first to send its body, as gunicorn does when all is there."""
        if opened.size is None or len(opened.data) >= opened.size:
            return
        found = _EXPECTS.search(opened.data, 0, opened.data.find(_HEAD_END) + 2)
        if found is not None:
            self._held_bytes -= len(found[0])
            opened.size -= len(found[0])
            del opened.data[found.start() : found.end()]
            self._send(opened, b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, opened: OpenRequest, denied: RequestDenied) -> None:
        """Answer as every route does, and close."""
        body = ErrorView(error=told(denied)).to_json()
        head = (
            f"HTTP/1.1 {denied.status} {HTTPStatus(denied.status).phrase}\r\n"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\n"
            "Connection: close\r\n\r\n"
        )
        self._send(opened, head.encode() + body)
        self._leave(opened)

    def _send(self, opened: OpenRequest, data: bytes) -> None:
        with contextlib.suppress(OSError):  # so short that it fits, or nobody reads there
            opened.connection.sock.send(data)

    def _leave(self, opened: OpenRequest) -> None:
        """Say that no more comes, and read on a little: closed at once, the answer may be lost."""
        opened.is_leaving = True
        self._held_bytes -= len(opened.data)
        opened.data.clear()
        opened.end_s = time.monotonic() + LEAVING_S
        with contextlib.suppress(OSError):
            opened.connection.sock.shutdown(socket.SHUT_WR)

    def _make_room(self) -> None:
        while len(self._open) > MAX_OPEN:
            self._drop(next(iter(self._open.values())))
        if self._held_bytes > MAX_HELD_BYTES:
            for oldest in [it for it in self._open.values() if len(it.data) > _PIECE]:
                if self._held_bytes > MAX_HELD_BYTES:
                    self._drop(oldest)

    def _drop(self, opened: OpenRequest) -> None:
        self._forget(opened)
        self.nr_conns -= 1
        opened.connection.close()

    def _forget(self, opened: OpenRequest) -> None:
        del self._open[opened.connection]
        self._held_bytes -= len(opened.data)
        self.poller.unregister(opened.connection.sock)
