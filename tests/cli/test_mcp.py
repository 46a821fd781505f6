"""`mimikit mcp`: what a program of the owner's may look at and ask for by it."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mimikit.cli.mcp import NOT_RUNNING, pass_on
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.runtime import ToolAddress
from mimikit.roles.owner_tools import open_door
from mimikit.state import ReadOnlyState, open_state
from mimikit.testing.twins import FakeClock, ScriptedEngine
from mimikit.tools.mcp import ToolServer
from tests.support.product import START, Product


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ReadOnlyState]:
    opened = open_state(tmp_path / paths.STATE_FOLDER, tmp_path, create=True)
    yield opened.read_only()
    assert isinstance(opened.files.fs, RealDisk)
    opened.files.fs.close()


@contextlib.contextmanager
def consumer(state: ReadOnlyState, port: int = 0) -> Generator[Product]:
    disk = RealDisk(state.path)
    product = Product(Files(disk, durable=False), FakeClock(START), ScriptedEngine({}))
    with ToolServer(port) as server:
        open_door(replace(product.context, tool_server=server))
        yield product
    disk.close()


def asked(state: ReadOnlyState, *messages: object) -> list[dict[str, Any]]:
    lines = [m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages]
    out = io.BytesIO()
    pass_on(state, io.BytesIO(b"".join(lines)), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def call(name: str, **arguments: object) -> dict[str, object]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def test_it_speaks_as_a_server_does(state: ReadOnlyState) -> None:
    with consumer(state):
        greeted, listed = asked(
            state,
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            b"\n",
            {"jsonrpc": "2.0", "id": "two", "method": "tools/list"},
        )
    assert greeted["result"]["serverInfo"]["name"] == "mimikit"
    assert listed["id"] == "two"
    assert [tool["name"] for tool in listed["result"]["tools"]] == [
        *("delegate", "list_tasks", "search_memory", "get_recent_history", "get_history_by_time")
    ]


def test_what_is_delegated_is_planned_as_a_models_wish(state: ReadOnlyState) -> None:
    with consumer(state) as product:
        (answer,) = asked(state, call("delegate", prompt="run: rm -rf /", reply="done"))
        assert not answer["result"]["isError"]
        (name,) = product.files.names("planner/queue")
        task = product.files.load(f"planner/queue/{name}", Task)
        assert task is not None
        assert (task.prompt, task.origin, task.role, task.notify) == (
            ("run: rm -rf /", "teller", "planner", "teller")
        )
        (looked,) = asked(state, call("list_tasks"))
        assert "rm -rf" in looked["result"]["content"][0]["text"]
        audits = [line["tool"] for line in product.log.audits if line["event"] == (
            "owner_tool_called"
        )]  # fmt: skip
        assert audits == ["delegate", "list_tasks"]


@pytest.mark.parametrize(
    "name", ["reply", "remember", "cancel_task", "schedule", "change_trigger", "update_backlog"]
)
def test_nothing_else_may_be_asked_for(state: ReadOnlyState, name: str) -> None:
    with consumer(state):
        (answer,) = asked(state, call(name, text="x", content="x", id="x"))
    assert answer["result"]["isError"]
    assert answer["result"]["content"][0]["text"].startswith("expected one of delegate, list_tasks")


def test_without_a_consumer_it_says_so_and_goes_on_when_there_is_one(state: ReadOnlyState) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for _ in range(2):  # before the first one, and after it
        (answer,) = asked(state, ping)
        assert answer["error"]["message"] == NOT_RUNNING
        with consumer(state):
            assert asked(state, ping) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


PAGES = "the-token-of-the-page-of-this-state"
WRONG: list[tuple[dict[str, str | None], int]] = [
    *(({"Host": host}, 403) for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", None)),
    *(({"Origin": site}, 403) for site in ("http://evil.example", "null", "http://127.0.0.1:1")),
    *(({"Sec-Fetch-Site": site}, 403) for site in ("cross-site", "same-site")),
    *(({"Authorization": said}, 401) for said in (None, "Bearer wrong", f"Bearer {PAGES}")),
    *(({"Content-Type": kind}, 415) for kind in (None, "text/plain", "multipart/form-data")),
]


def test_its_door_refuses_each_wrong_request_and_nothing_comes_of_one(state: ReadOnlyState) -> None:
    """What the page's routes are held to (`tests/web/test_guard.py`), for the one beside them."""
    body = json.dumps(call("delegate", prompt="run: id")).encode()
    with consumer(state) as product:
        product.files.write(paths.TOKEN, PAGES.encode())
        assert (state.path / paths.TOOL_ADDRESS).stat().st_mode & 0o777 == 0o600
        address = product.files.load(paths.TOOL_ADDRESS, ToolAddress)
        assert address is not None
        where = urlsplit(address.url)
        own = {
            "Host": where.netloc,
            "Authorization": f"Bearer {address.token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }

        def answer(method: str, changes: dict[str, str | None]) -> int:
            client = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
            with contextlib.closing(client):
                client.putrequest(method, where.path, skip_host=True)
                for name, value in (own | changes).items():
                    if value is not None:
                        client.putheader(name, value)
                client.endheaders(body)
                return client.getresponse().status

        assert [(it, answer("POST", it)) for it, _ in WRONG] == WRONG
        others = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
        assert {answer(method, {}) for method in others} == {405}
        assert product.files.names("planner/queue") == []
        assert answer("POST", {}) == 200
        assert len(product.files.names("planner/queue")) == 1


def test_what_is_no_message_is_answered_in_words(state: ReadOnlyState) -> None:
    with consumer(state):
        answers = asked(
            state,
            b"nonsense\n",
            b"[" * 5000 + b"\n",
            b"x" * 3_000_000 + b"\n",
            {"jsonrpc": "1.0", "id": 3, "method": "ping"},
            {"jsonrpc": "2.0", "id": 4, "method": "ping"},
        )
    assert [("error" in answer) for answer in answers] == [True, True, True, True, False]
    assert "at most 1,048,576 bytes" in answers[2]["error"]["message"]


def test_the_token_is_the_owners_alone(state: ReadOnlyState) -> None:
    with consumer(state):
        path = state.path / paths.TOOL_ADDRESS
        assert path.stat().st_mode & 0o777 == 0o600
        told = json.loads(path.read_text())
        path.write_text(json.dumps({**told, "token": "another"}))
        (answer,) = asked(state, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer["error"]["message"] == "expected the token of a running turn"
