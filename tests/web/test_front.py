"""The real web process against clients that are slow on purpose: nobody waits for them."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from mimikit.web import front
from mimikit.web.front import request_size
from mimikit.web.guard import RequestDenied
from tests.process.world import until
from tests.support.pace import within
from tests.web.conftest import Server, servers

Serve = Callable[..., Server]
MANY = 40
HOST = b"Host: 127.0.0.1\r\n"
LOGIN = b"POST /api/login HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"


class SlowClient:
    """One raw connection."""

    def __init__(self, server: Server, sent: bytes = b"", *, narrow: bool = False) -> None:
        self.socket = socket.socket()
        if narrow:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        self.socket.settimeout(within(20))
        self.socket.connect(("127.0.0.1", server.port))
        self.socket.sendall(sent)

    def answer(self) -> bytes:
        """One answer of health, whole."""
        found = b""
        while not found.endswith(b"}"):
            data = self.socket.recv(65536)
            assert data, "closed before its answer was whole"
            found += data
        return found

    def rest(self) -> bytes:
        """All that comes until the server closes."""
        found = b""
        with contextlib.suppress(ConnectionError):
            while data := self.socket.recv(65536):
                found += data
        return found


Connect = Callable[..., SlowClient]


@pytest.fixture
def connect() -> Iterator[Connect]:
    opened: list[SlowClient] = []

    def make(server: Server, sent: bytes = b"", *, narrow: bool = False) -> SlowClient:
        opened.append(SlowClient(server, sent, narrow=narrow))
        return opened[-1]

    yield make
    for client in opened:
        client.socket.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One page for all that do not end it, which has begun to answer."""
    with servers(tmp_path_factory.mktemp("front")) as start:
        made = start(env={"MIMIKIT_WEB__INPUTS_PER_MINUTE": "1000"})
        assert ask(made, "GET", "/healthz")[0] == 503  # there is no consumer
        yield made


def ask(server: Server, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """Status and answer, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=within(30))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def is_served_before(server: Server, slow: list[SlowClient], number: int = 0) -> bool:
    """Have health and a message answered; gives whether none of the slow ones was by then."""
    health = ask(server, "GET", "/healthz")
    message = {"id": f"msg-{time.monotonic_ns()}-{number}", "text": "hello"}
    sent = ask(server, "POST", "/api/input", message)
    assert (health[0], sent[0]) == (503, 202)
    return not select.select([client.socket for client in slow], [], [], 0)[0]


def rss_mb(server: Server) -> float:
    (worker,) = psutil.Process(server.process.pid).children()
    return worker.memory_info().rss / 2**20


@pytest.mark.fault(61)
def test_half_open_and_dripping_clients_hold_up_nobody(server: Server, connect: Connect) -> None:
    streams = [
        connect(
            server,
            b"GET /api/events?tab=%d HTTP/1.1\r\n" % number
            + HOST
            + f"Authorization: Bearer {server.token}\r\n\r\n".encode(),
        )
        for number in range(16)
    ]
    for stream in streams:
        assert stream.socket.recv(15) == b"HTTP/1.1 200 OK"
    silent = [connect(server) for _ in range(5)]
    half = [connect(server, b"GET /healthz HTTP/1.1\r\nHo") for _ in range(MANY)]
    heads = [connect(server, b"GET /healthz HTTP/1.1\r\nX: ") for _ in range(MANY // 2)]
    bodies = [connect(server, LOGIN + b"Content-Length: 900\r\n\r\n") for _ in range(MANY // 2)]
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.2):
            for client in [*heads, *bodies]:
                with contextlib.suppress(OSError):
                    client.socket.send(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        # Whoever waits for one of them is answered after all of them, each time.
        served = [is_served_before(server, half, number) for number in range(20)]
        assert any(served)
        answers = [client.rest() for client in [*half, *heads, *bodies]]
    finally:
        over.set()
        dripping.join()
    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        body = json.loads(answer.partition(b"\r\n\r\n")[2])
        expected = {"code": "slow", "field": None, "params": {}, "message": front.TEXTS[408]}
        assert body == {"error": expected}
    assert [client.rest() for client in silent] == [b""] * 5
    for stream in streams:  # they were there all along
        stream.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while data := stream.socket.recv(65536):
                pass
            assert data, "a stream was ended"


def test_the_second_request_of_a_connection_may_not_be_slow_either(
    server: Server, connect: Connect
) -> None:
    kept = [connect(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") for _ in range(MANY)]
    for client in kept:
        assert client.answer().startswith(b"HTTP/1.1 503")
        client.socket.sendall(b"GET /hea")
    assert any(is_served_before(server, kept, number) for number in range(9))
    assert kept[0].rest().startswith(b"HTTP/1.1 408")


def test_who_does_not_go_after_its_answer_holds_up_nobody(server: Server, connect: Connect) -> None:
    last = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    stay = [connect(server, last) for _ in range(MANY)]
    bad = [connect(server, b"NONSENSE\r\n\r\n") for _ in range(MANY)]
    assert is_served_before(server, [])
    assert all(client.rest().startswith(b"HTTP/1.1 503") for client in stay)
    assert all(client.rest().startswith(b"HTTP/1.1 400") for client in bad)


def test_who_does_not_read_its_answer_is_given_up(server: Server, connect: Connect) -> None:
    (server.state / "memory.md").write_text("- a note of some length\n" * 40_000)
    bearer = f"Authorization: Bearer {server.token}\r\n".encode()
    note = b"GET /api/memory/memory.md HTTP/1.1\r\n" + HOST + bearer + b"\r\n"
    (worker,) = psutil.Process(server.process.pid).children()

    def held() -> int:
        found = worker.net_connections()
        return sum(connection.status == psutil.CONN_ESTABLISHED for connection in found)

    until(lambda: not held(), "what earlier tests have left is closed")
    begun = time.monotonic()
    deaf = [connect(server, note, narrow=True) for _ in range(3)]
    until(lambda: held() == len(deaf), "all are heard")
    until(lambda: not held(), "all are given up")
    assert time.monotonic() - begun >= front.SEND_S - 1, "a send may last so long"


@pytest.mark.parametrize("is_known", [False, True], ids=["anybody", "with the token"])
def test_who_asks_much_and_reads_nothing_holds_up_nobody(
    server: Server, connect: Connect, is_known: bool
) -> None:
    (server.state / "memory.md").write_text("- a note of some length\n" * 40_000)
    page = ask(server, "GET", "/")[1].decode()
    assets = [found.lstrip("./") for found in re.findall(r'(?:src|href)="([^"#:]+)"', page)]
    largest = max(assets, key=lambda path: len(ask(server, "GET", f"/{path}")[1]))
    bearer = f"Authorization: Bearer {server.token}\r\n".encode() if is_known else b""
    path, times = ("api/memory/memory.md", 2) if is_known else (largest, 300)
    request = f"GET /{path} HTTP/1.1\r\n".encode() + HOST + bearer + b"\r\n"
    deaf = [connect(server, request * times, narrow=True) for _ in range(MANY)]
    deadline = time.monotonic() + 6
    for number in range(1000):
        begun = time.monotonic()
        is_served_before(server, [], number)
        assert time.monotonic() - begun < within(5), "two requests, waited for by none of the deaf"
        if begun > deadline:
            break
        time.sleep(0.1)
    for client in deaf:
        client.socket.close()
    assert is_served_before(server, [])


def test_a_thin_line_gets_its_whole_answers_in_order(server: Server, connect: Connect) -> None:
    (server.state / "memory.md").write_text("- a note of some length\n" * 40_000)
    bearer = f"Authorization: Bearer {server.token}\r\n".encode()
    note = b"GET /api/memory/memory.md HTTP/1.1\r\n" + HOST + bearer
    thin = connect(server, note + b"\r\n" + note + b"Connection: close\r\n\r\n", narrow=True)
    whole = ask(server, "GET", "/api/memory/memory.md")[1]
    begun, found = time.monotonic(), bytearray()
    while data := thin.socket.recv(2000):
        found += data
        if time.monotonic() - begun < front.SEND_S + 3:
            time.sleep(0.03)  # longer in all than a client may take nothing
    assert time.monotonic() - begun > front.SEND_S
    heads = found.split(whole)
    assert [head[:15] for head in heads] == [b"HTTP/1.1 200 OK"] * 2 + [b""]


def test_of_too_many_who_do_not_read_those_that_took_nothing_for_longest_end(
    server: Server, connect: Connect
) -> None:
    (server.state / "memory.md").write_text("- a note of some length\n" * 40_000)
    bearer = f"Authorization: Bearer {server.token}\r\n".encode()
    note = b"GET /api/memory/memory.md HTTP/1.1\r\n" + HOST + bearer + b"\r\n"
    reader = connect(server, note)
    taken = len(reader.socket.recv(1000))
    deaf: list[SlowClient] = []
    for _ in range(front.MAX_SENDING + 20):
        deaf.append(connect(server, note, narrow=True))
        taken += len(reader.socket.recv(9000))
        time.sleep(0.03)
    assert is_served_before(server, [])
    whole = len(ask(server, "GET", "/api/memory/memory.md")[1])
    while taken < whole:
        data = reader.socket.recv(65536)
        assert data, "who reads goes on"
        taken += len(data)
    assert len(deaf[0].rest()) < whole, "the first of those that read nothing has ended"
    (worker,) = psutil.Process(server.process.pid).children()
    held = [it for it in worker.net_connections() if it.status == psutil.CONN_ESTABLISHED]
    in_kernel = 2 * front.SEND_BUFFER_BYTES
    assert len(held) <= front.MAX_UNSENT_BYTES // (whole - in_kernel) + 2


@pytest.mark.fault(61)
def test_of_too_many_the_oldest_make_room(server: Server, connect: Connect) -> None:
    half = [connect(server, b"GET /") for _ in range(front.MAX_OPEN + 20)]
    assert is_served_before(server, [])
    assert half[0].rest() == b""
    half[-1].socket.sendall(b"healthz HTTP/1.1\r\n" + HOST + b"\r\n")
    assert half[-1].answer().startswith(b"HTTP/1.1 503")


def test_kept_ones_are_few_however_many_are_answered_at_once(
    server: Server, connect: Connect
) -> None:
    (worker,) = psutil.Process(server.process.pid).children()
    many = [connect(server) for _ in range(front.MAX_IDLE + 60)]
    assert is_served_before(server, [])  # all are taken in
    worker.suspend()
    for client in many:
        client.socket.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
    worker.resume()
    answers = [client.answer() for client in many]
    assert all(answer.startswith(b"HTTP/1.1 503") for answer in answers)
    assert sum(b"Connection: close" not in answer for answer in answers) <= front.MAX_IDLE


def test_what_is_half_here_fills_no_memory(server: Server, connect: Connect) -> None:
    assert is_served_before(server, [])
    before = rss_mb(server)
    head = LOGIN + b"Content-Length: %d\r\n\r\n" % front.MAX_BODY_BYTES
    for _ in range(MANY):
        client = connect(server)
        with contextlib.suppress(ConnectionError):  # the first ones have made room by then
            client.socket.sendall(head + b"x" * (front.MAX_BODY_BYTES - 1))
    assert is_served_before(server, [])
    assert rss_mb(server) - before <= 40  # of 240 that were sent


def test_it_stops_at_once_with_clients_half_here(serve: Serve, connect: Connect) -> None:
    server = serve()
    half = [connect(server, b"GET /healthz HTTP/1.1\r\nHo") for _ in range(MANY)]
    assert any(is_served_before(server, half, number) for number in range(9))
    begun = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert all(client.rest() == b"" for client in half), "no 408: nobody waited for them"
    assert time.monotonic() - begun < within(4), "before what it gives answers to end"
    out, err = server.process.communicate(timeout=within(30))
    assert (server.process.returncode, out, err) == (0, "", "")


def test_requests_in_one_piece_and_in_many_are_the_same(server: Server, connect: Connect) -> None:
    whole = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    body = json.dumps({"token": server.token}).encode()
    login = LOGIN + b"Content-Length: %d\r\n\r\n" % len(body) + body
    last = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    everything = whole + login + whole + last
    at_once = connect(server, everything)
    piecemeal = connect(server)
    for at in range(len(everything)):
        piecemeal.socket.sendall(everything[at : at + 1])
    for client in (at_once, piecemeal):
        found = re.findall(rb"HTTP/1.1 ([0-9]+)", client.rest())
        assert found == [b"503", b"200", b"503", b"503"]


UNLAWFUL = [
    (b"Content-Length: 6295553\r\n", 413),
    (b"Content-Length: 9999999999999999999\r\n", 413),
    (b"Transfer-Encoding: chunked\r\n", 411),
    (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 411),
    (b"X: " + b"x" * front.MAX_HEAD_BYTES + b"\r\n", 431),
    (b"Content-Length: 2\r\nContent-Length: 9\r\n", 400),
    (b"Content-Length: +3\r\n", 400),
    (b"Content-Length : 3\r\n", 400),
    (b"Content-Length: 2\r\n 4\r\n", 400),
]


def test_an_unlawful_request_is_refused_without_waiting(server: Server, connect: Connect) -> None:
    clients = [connect(server, LOGIN + lines + b"\r\n{}") for lines, _ in UNLAWFUL]
    answers = [client.rest() for client in clients]
    assert [int(answer.split()[1]) for answer in answers] == [status for _, status in UNLAWFUL]


@pytest.mark.fault(61)
@pytest.mark.parametrize(
    ("size", "told"),
    [
        (front.MAX_BODY_BYTES, front.TEXTS[413]),
        (3 * 2**20, "the request is too large; at most 3072 KiB are taken"),
    ],
)
def test_a_large_body_is_told_so_while_it_is_still_sent(
    server: Server, size: int, told: str
) -> None:
    for _ in range(front.MAX_HELD_BYTES // size + 1):  # what has been is held no more
        status, answer = ask(server, "POST", "/api/input", {"id": "msg-1", "text": "x" * size})
        assert (status, json.loads(answer)["error"]["message"]) == (413, told)


def test_a_client_that_asks_before_it_sends_is_told_to(server: Server, connect: Connect) -> None:
    body = json.dumps({"token": server.token}).encode()
    asks = b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    client = connect(server, LOGIN + asks)
    assert client.socket.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.socket.sendall(body)
    assert client.rest().startswith(b"HTTP/1.1 200 OK")


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", None),
        (HEAD, None),
        (HEAD + b"\r\n", len(HEAD) + 2),
        (HEAD + b"\r\nmore", len(HEAD) + 2),
        (HEAD + b"Content-Length: 5\r\n", None),
        (HEAD + b"Content-Length: 5\r\n\r\n", len(HEAD) + 21 + 5),
        (HEAD + b"content-length:5 \r\n\r\nab", len(HEAD) + 21 + 5),
        (HEAD + b"X-Content-Length: 5\r\n\r\n", len(HEAD) + 23),
        (HEAD + b"\r\nContent-Length: 5\r\n\r\n", len(HEAD) + 2),
    ],
)
def test_how_long_a_request_is(data: bytes, size: int | None) -> None:
    assert request_size(data) == size


@pytest.mark.fault(61)
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"x" * front.MAX_HEAD_BYTES, 431),
        (HEAD + b"TRANSFER-ENCODING : x\r\n\r\n", 411),
        (HEAD + b"Content-Length: 6295553\r\n\r\n", 413),
    ],
)
def test_what_is_too_long_or_does_not_tell(data: bytes, status: int) -> None:
    with pytest.raises(RequestDenied) as denied:
        request_size(data)
    assert denied.value.status == status
