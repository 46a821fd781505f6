"""The real web process: address, streams, signals."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.config import Settings
from mimikit.errors import BadSettings
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.runtime import PageAddress
from mimikit.roles.dispatcher import task_refusal
from mimikit.web import serve as serving
from tests.web.conftest import REPO, Server

Serve = Callable[..., Server]
LONG = "an operator's token that is long enough"


def ask(server: Server, method: str, path: str, body: object = None, **headers: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    sent = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, sent | headers)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found[0], json.loads(found[1]) if found[1].startswith(b"{") else found[1]


class EventSource:
    """A client of an event stream, as a browser reads it: frames and the last id."""

    opened: ClassVar[list[EventSource]] = []

    def __init__(self, server: Server, query: str = "", last: str = "") -> None:
        self.opened.append(self)
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        headers = {"Authorization": f"Bearer {server.token}"}
        if last:
            headers["Last-Event-ID"] = last
        self.connection.request("GET", f"/api/events{query}", headers=headers)
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.last = last
        self.frames = self._frames()

    def _frames(self) -> Iterator[dict[str, Any]]:
        fields: dict[str, str] = {}
        while line := self.response.readline():
            name, colon, value = line.decode().rstrip("\n").partition(": ")
            if colon and name:
                fields[name] = value
            elif not name:
                self.last = fields.get("id", self.last)
                if "event" in fields:
                    yield json.loads(fields["data"])
                fields = {}

    def texts(self, count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            data = next(self.frames)
            found += [data["text"]] if data.get("kind") == "delta" else []
        return found

    def close(self) -> None:
        self.response.close()
        self.connection.close()


@pytest.fixture(autouse=True)
def close_streams() -> Iterator[None]:
    yield
    while EventSource.opened:
        EventSource.opened.pop().close()


def feed_of(server: Server) -> ChangeFeed:
    return ChangeFeed(Files(RealDisk(server.state)), SystemClock())


def snapshot_cursor(server: Server) -> str:
    return ask(server, "GET", "/api/snapshot")[1]["cursor"]


# ---- streams --------------------------------------------------------------------------------


def test_a_stream_goes_on_without_loss_after_the_server_was_killed(serve: Serve) -> None:
    server = serve()
    since, feed = snapshot_cursor(server), feed_of(server)
    source = EventSource(server, f"?since={since}")
    for number in range(5):
        feed.publish("delta", turnId=str(number), text=str(number))
    got = source.texts(5)
    (worker,) = psutil.Process(server.process.pid).children()
    server.process.kill()
    for number in range(5, 10):
        feed.publish("delta", turnId=str(number), text=str(number))
    worker.wait(timeout=5)
    again = serve(state=server.state, port=server.port)
    source = EventSource(again, f"?since={since}", last=source.last)
    got += source.texts(5)
    feed.publish("delta", turnId="x", text="live")
    assert got + source.texts(1) == [*map(str, range(10)), "live"]
    source.close()


def test_with_all_streams_open_the_rest_still_works_and_closed_tabs_are_noticed(
    serve: Serve,
) -> None:
    server = serve()
    sources = [EventSource(server, f"?tab={number}") for number in range(16)]
    assert [source.status for source in sources] == [200] * 16
    assert EventSource(server).status == 503
    assert ask(server, "GET", "/api/status")[0] == 200
    assert EventSource(server, "?tab=3").status == 200  # the same tab: its own place
    for source in sources:
        source.close()
    # Each place is given back within about a second; a place is free when one is given.
    while (late := EventSource(server)).status == 503:
        late.close()
    late.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_a_stream_open(serve: Serve, number: signal.Signals) -> None:
    server = serve()
    source = EventSource(server)
    next(source.frames)
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert len(children) == 1
    server.process.send_signal(number)
    assert list(source.frames) == []
    out, err = server.process.communicate(timeout=10)
    assert (server.process.returncode, out, err) == (0, "", "")
    assert not any(child.is_running() for child in children)


def test_a_worker_that_was_killed_is_replaced(serve: Serve) -> None:
    server = serve()
    assert ask(server, "GET", "/api/status")[0] == 200
    (worker,) = psutil.Process(server.process.pid).children()
    worker.kill()
    worker.wait(timeout=10)
    assert ask(server, "POST", "/api/input", {"id": "msg-1", "text": "x"})[0] == 202


# ---- where it listens -----------------------------------------------------------------------


def listening(server: Server) -> set[tuple[str, int]]:
    me = psutil.Process(server.process.pid)
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in [me, *me.children(recursive=True)]
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def test_gunicorn_variables_of_the_environment_are_ignored(serve: Serve) -> None:
    env = {
        "PORT": "5999",
        "WEB_CONCURRENCY": "4",
        "GUNICORN_CMD_ARGS": "--bind 0.0.0.0:5998 --workers 3",
        "GUNICORN_PID": "1",
        "GUNICORN_FD": "0",
        "LISTEN_FDS": "1",
        "FORWARDED_ALLOW_IPS": "*",
    }
    server = serve(env=env)
    assert ask(server, "GET", "/api/status")[0] == 200
    assert listening(server) == {("127.0.0.1", server.port)}
    assert len(psutil.Process(server.process.pid).children()) == 1


def test_its_files_are_private(serve: Serve) -> None:
    server = serve()
    ask(server, "POST", "/api/input", {"id": "msg-1", "text": "x"})
    modes = {path.stat().st_mode & 0o777 for path in server.state.rglob("*") if path.is_file()}
    assert modes == {0o600}


def test_a_port_in_use_is_reported_in_one_line(serve: Serve, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        state = tmp_path / "state"
        state.mkdir()
        command = [sys.executable, "-m", "tests.support.serve_page", state, tmp_path, "", str(port)]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=30, cwd=REPO
        )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == (
        f"mimikit: cannot listen at 127.0.0.1:{port}: the port is in use; is mimikit running "
        "already? --port takes another\n"
    )


@pytest.mark.parametrize("host", ["no-such-host.invalid", "300.1.1.1", "a" * 300, "192.0.2.1"])
def test_an_address_that_this_machine_does_not_have_is_a_bad_setting(host: str) -> None:
    with pytest.raises(BadSettings, match="address"):
        serving.bind(host, 0)


@pytest.mark.parametrize("variable", ["x", "-1", "65536", "8080/tcp", "0x10", "８０"])
def test_an_invalid_port_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("PORT", variable)
    with pytest.raises(BadSettings, match="PORT: expected a number"):
        serving.chosen_port(None, Settings())


@pytest.mark.parametrize(
    ("host", "token", "hosts", "missing"),
    [
        ("127.0.0.1", "", [], None),
        ("127.0.0.9", "", [], None),
        ("localhost", "", [], None),
        ("0.0.0.0", "", [], "MIMIKIT_TOKEN and the host names"),  # noqa: S104
        ("0.0.0.0", "short", ["a.lan"], "MIMIKIT_TOKEN"),  # noqa: S104
        ("0.0.0.0", LONG, [], "web.hosts"),  # noqa: S104
        ("0.0.0.0", LONG, ["a.lan"], None),  # noqa: S104
        ("::", LONG, [], "web.hosts"),
        ("::1", "", [], None),
    ],
)
def test_a_public_address_needs_a_token_and_host_names(
    monkeypatch: pytest.MonkeyPatch, host: str, token: str, hosts: list[str], missing: str | None
) -> None:
    monkeypatch.setenv("MIMIKIT_TOKEN", token)
    settings = Settings.model_validate({"web": {"hosts": hosts}})
    bound = serving.bind(host, 0)
    try:
        if missing is None:
            bound.check_exposure(settings)
        else:
            with pytest.raises(BadSettings, match=missing):
                bound.check_exposure(settings)
    finally:
        bound.socket.close()


def test_a_local_page_does_not_allow_commands_of_a_public_one(serve: Serve) -> None:
    open_env = {"MIMIKIT_TOKEN": LONG, "MIMIKIT_WEB__HOSTS": '["a.lan"]'}
    abroad = serve(host="0.0.0.0", env=open_env)  # noqa: S104 - the case in question
    home = serve()
    files = Files(RealDisk(home.state))
    now = SystemClock().now()
    facts: dict[str, Any] = {"id": "t", "created_at": now, "trace_id": "t", "origin": "http"}
    command = Task(prompt="date", profile="command", **facts)
    assert task_refusal(command, Settings(), files)
    abroad.process.kill()
    abroad.process.wait()
    # What came through it may still wait: it counts until another page starts.
    assert task_refusal(command, Settings(), files)
    again = serve()
    assert task_refusal(command, Settings(), files) is None
    found = [files.peek(paths.page(name[:-5]), PageAddress) for name in files.names(paths.PAGES)]
    assert [(page.port, page.pid) for page in found if page] == [
        (home.port, home.process.pid),
        (again.port, again.process.pid),
    ]


def test_a_damaged_request_gets_a_short_answer_and_no_trace(serve: Serve) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"GET /\xff\r\nHost: x\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    server.process.terminate()
    _, err = server.process.communicate(timeout=10)
    assert "Traceback" not in err
    assert err.count("\n") <= 1
