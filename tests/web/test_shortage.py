"""The page in want of open files, memory or threads: a connection ends, the page does not."""

from __future__ import annotations

import http.client
import itertools
import json
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from mimikit.protocol.watch import FolderWatch
from tests.support.pace import within
from tests.web.conftest import MakeWeb, Server

pytestmark = pytest.mark.needs_platform("linux")
LARGE = "é" * 150_000
ASKED: list[tuple[str, str, object]] = [
    *[("GET", path, None) for path in ("/healthz", "/", "/api/status", "/api/tasks", "/healthz")],
    *[("POST", "/api/input", {"text": text}) for text in ("hello", LARGE, LARGE, LARGE)],
]
ENDED = "the connection ended"


def ask(server: Server, method: str, path: str, body: object = None) -> tuple[object, bytes]:
    """Status and answer; that the connection was ended is one, too."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=within(10))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (ConnectionError, http.client.RemoteDisconnected, http.client.IncompleteRead):
        return ENDED, b""
    finally:
        connection.close()


def ask_all(server: Server, times: int) -> Counter[object]:
    """What comes of everything that is asked, many times at once; no answer tells of our code."""
    got: list[tuple[object, bytes]] = []

    def asker(method: str, path: str, body: object) -> None:
        got.extend(ask(server, method, path, body) for _ in range(times))

    threads = [threading.Thread(target=asker, args=asked) for asked in ASKED]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == times * len(ASKED), "each is answered or ended in time"
    for status, text in got:
        assert b"Traceback" not in text
        if status == 503:
            assert json.loads(text)
    return Counter(status for status, _ in got)


@pytest.mark.parametrize(
    ("limit", "room"),
    [(resource.RLIMIT_NOFILE, 1), (resource.RLIMIT_NOFILE, 4), (resource.RLIMIT_AS, 0)],
    ids=["no file", "few files", "no memory"],
)
def test_in_want_the_page_answers_or_hangs_up_and_goes_on(
    serve: Callable[..., Server], limit: int, room: int
) -> None:
    server = serve(env={"MIMIKIT_WEB__INPUTS_PER_MINUTE": "1000000"})
    assert set(ask_all(server, 1)) <= {200, 202, 503}
    (worker,) = psutil.Process(server.process.pid).children()
    held = psutil.Process(worker.pid).memory_info().vms if limit == resource.RLIMIT_AS else 0
    if limit == resource.RLIMIT_NOFILE:
        used = {int(path.name) for path in Path(f"/proc/{worker.pid}/fd").iterdir()}
        held = next(number for number in itertools.count() if number not in used)
    before = resource.prlimit(worker.pid, limit)
    resource.prlimit(worker.pid, limit, (held + room, before[1]))
    got = ask_all(server, 15)
    assert set(got) <= {200, 202, 503, ENDED}, "no 500"
    assert got[ENDED] or limit == resource.RLIMIT_AS, "the want was met"
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(30)]
    spent = sum(worker.cpu_times()[:2])
    time.sleep(2)
    assert sum(worker.cpu_times()[:2]) - spent < within(0.5), "it does not turn on the spot"
    for connection in idle:
        connection.close()
    resource.prlimit(worker.pid, limit, before)
    deadline = time.monotonic() + within(2)
    while ask(server, "POST", "/api/input", {"text": "again"})[0] != 202:
        assert time.monotonic() < deadline, "working again within two seconds"
    assert set(ask_all(server, 1)) <= {200, 202, 503}
    assert psutil.Process(server.process.pid).children() == [worker]
    log = server.state / "log.jsonl"
    assert not log.exists() or "web_trace" not in log.read_text()


def refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_stream_that_found_no_thread_takes_no_place(
    make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = make_web(web={"max_streams": 1})
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            response = web.ask("GET", "/api/events")
            assert response.status_code == 503
            assert "no more processes" in response.get_json()["error"]["message"]
    assert not [line for line in web.log_lines() if line["event"] == "web_trace"]
    feed = web.site.feed
    feed.leave(feed.enter("tab"))


def test_a_watch_that_found_no_thread_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, told = FolderWatch(tmp_path), threading.Event()
    (tmp_path / "inbox").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            watch.watch("inbox", lambda _names: told.set())
    watch.watch("inbox", lambda _names: told.set())
    (tmp_path / "inbox" / "a.json").write_text("{}")
    assert told.wait(60)
    watch.close()
