"""The tools of a turn are served to the holder of its token, on this machine; to no one else."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.tools.mcp import MAX_BODY_BYTES, PROTOCOLS, ToolServer

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
SPECS = (ToolSpec("reply", "Reply to the user.", SCHEMA), ToolSpec("fail", "Fails.", SCHEMA))


@dataclass
class Served:
    """A running server with one turn."""

    server: ToolServer
    token: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refusals: list[dict[str, str]] = field(default_factory=list)

    def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        self.calls.append((name, arguments))
        if name == "fail":
            raise LookupError("secret detail")
        return ToolReply(arguments.get("text") != "no", f"sent: {arguments.get('text')}")

    def headers(self, **changes: str | None) -> dict[str, str]:
        plain: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.server.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        plain |= {name.replace("_", "-"): value for name, value in changes.items()}
        filled = {"port": self.server.port, "token": self.token}
        return {name: value.format(**filled) for name, value in plain.items() if value is not None}

    def ask(
        self,
        body: bytes,
        *,
        method: str = "POST",
        path: str = "/mcp",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:
        client = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            client.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            sizes = {"Content-Length": str(len(body))}
            for name, value in {**sizes, **(headers or self.headers())}.items():
                client.putheader(name, value)
            client.endheaders(body)
            answer = client.getresponse()
            data = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, json.loads(data) if data else None, told
        finally:
            client.close()

    def say(self, method: str, params: Any = None, number: Any = 1) -> Any:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        status, answer, _ = self.ask(json.dumps(message).encode())
        assert status == 200
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", number)
        return answer


REFUSALS: list[dict[str, str]] = []


@pytest.fixture(scope="module")
def server() -> Iterator[ToolServer]:
    with ToolServer(on_refused=REFUSALS.append) as server:
        yield server


@pytest.fixture
def served(server: ToolServer) -> Iterator[Served]:
    REFUSALS.clear()
    made = Served(server, refusals=REFUSALS)
    with server.offered(SPECS, made.call) as (_, made.token):
        yield made


# ---- what a client that belongs here is told ------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [*((version, version) for version in PROTOCOLS), ("1999-01-01", PROTOCOLS[0])],
)
def test_a_client_is_met_in_its_version_of_the_protocol(
    served: Served, asked: str, spoken: str
) -> None:
    result = served.say("initialize", {"protocolVersion": asked, "capabilities": {}})["result"]
    assert result["protocolVersion"] == spoken
    assert result["capabilities"]["tools"] == {"listChanged": False}
    assert result["serverInfo"]["name"] == "mimikit"
    assert "reply" in result["instructions"]


def test_the_tools_of_the_turn_are_listed(served: Served) -> None:
    tools = served.say("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["reply", "fail"]
    assert tools[0] == {"name": "reply", "description": "Reply to the user.", "inputSchema": SCHEMA}


def test_a_call_is_made_and_answered(served: Served) -> None:
    result = served.say("tools/call", {"name": "reply", "arguments": {"text": "hi"}})["result"]
    assert result == {"content": [{"type": "text", "text": "sent: hi"}], "isError": False}
    assert served.calls == [("reply", {"text": "hi"})]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"name": "reply", "arguments": {"text": "no"}}, "sent: no"),
        ({"name": "fail", "arguments": {"text": "x"}}, "fail failed: LookupError"),
        ({"name": "rm", "arguments": {}}, "expected one of reply, fail; got 'rm'"),
    ],
    ids=["refused", "raises", "unknown"],
)
def test_what_a_tool_cannot_do_is_told_to_the_model(
    served: Served, params: dict[str, Any], said: str
) -> None:
    result = served.say("tools/call", params)["result"]
    assert result["isError"]
    assert result["content"][0]["text"] == said


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such", {}, -32601),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "reply", "arguments": [1]}, -32602),
        ("tools/list", "x", -32602),
    ],
)
def test_what_cannot_be_understood_is_a_json_rpc_error(
    served: Served, method: str, params: Any, code: int
) -> None:
    assert served.say(method, params)["error"]["code"] == code
    assert served.calls == []


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "reply"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
    ids=["notification", "call as a notification", "answer"],
)
def test_what_needs_no_answer_gets_none(served: Served, message: dict[str, Any]) -> None:
    status, answer, _ = served.ask(json.dumps(message).encode())
    assert (status, answer) == (202, None)
    assert served.calls == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
    ],
)
def test_what_is_no_message_is_a_400_with_the_reason(
    served: Served, body: bytes, code: int
) -> None:
    status, answer, _ = served.ask(body)
    assert (status, answer["error"]["code"]) == (400, code)


def test_the_calls_of_a_turn_are_made_one_at_a_time() -> None:
    inside, most, lock = [0], [0], threading.Lock()
    go = threading.Barrier(4)

    def call(_name: str, _arguments: dict[str, Any]) -> ToolReply:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.02)
        with lock:
            inside[0] -= 1
        return ToolReply(True, "ok")

    with ToolServer() as server, server.offered(SPECS, call) as (_, token):
        served = Served(server, token=token)

        def ask(_number: int) -> None:
            go.wait(10)
            served.say("tools/call", {"name": "reply", "arguments": {}})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
    assert most == [1]


# ---- who does not belong here ----------------------------------------------------------------

HI = {"name": "reply", "arguments": {"text": "hi"}}
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": HI}).encode()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic {token}"}, 401),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Length": "x"}, 411),
        ({"Content_Length": str(MAX_BODY_BYTES + 1)}, 413),
    ],
    ids=str,
)
def test_a_request_that_does_not_belong_here_is_refused_and_told_of(
    served: Served, changes: dict[str, str | None], status: int
) -> None:
    got, answer, _ = served.ask(CALL, headers=served.headers(**changes))
    assert got == status
    assert answer["error"].startswith("expected ")
    assert served.calls == []
    assert [facts["status"] for facts in served.refusals] == [str(status)]
    assert served.token not in str(served.refusals)


@pytest.mark.parametrize(
    "changes",
    [
        {"Host": "localhost:{port}"},
        {"Host": "[::1]:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Content_Type": "application/json; charset=utf-8"},
        {"Authorization": "bearer {token}"},
    ],
    ids=str,
)
def test_the_ways_to_belong_here(served: Served, changes: dict[str, str]) -> None:
    status, _, _ = served.ask(CALL, headers=served.headers(**changes))
    assert status == 200
    assert len(served.calls) == 1
    assert served.refusals == []


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp?x=1", "/../mcp", "http://x/mcp"])
def test_there_is_one_path(served: Served, path: str) -> None:
    assert served.ask(CALL, path=path)[0] == 404
    assert served.calls == []


def test_a_token_is_worth_nothing_after_its_turn(server: ToolServer) -> None:
    served = Served(server)
    with server.offered(SPECS, served.call) as (_, served.token):
        pass
    assert served.ask(CALL)[0] == 401
    assert served.calls == []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["jsonrpc", "id", "method", "params", "name", "arguments", "_meta"])
                | st.text(max_size=4),
                inner | st.sampled_from(["2.0", "tools/call", "tools/list", "initialize", "reply"]),
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_nothing_makes_it_fail(served: Served, value: Any) -> None:
    status, _, _ = served.ask(json.dumps(value).encode())
    assert status in (200, 202, 400)
