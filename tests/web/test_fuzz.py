"""No request, however malformed, causes a server error."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from mimikit.conversation.history import HistoryStore
from mimikit.protocol import paths
from mimikit.protocol.models import Message, Question, Task
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.web.guard import KEY_HEADER
from tests.web.conftest import HOST, START, MakeWeb, Web
from tests.web.test_guard import ROUTES
from tests.web.test_shown import trigger

CODES = {200, 202, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429}
PLENTY = {"inputs_per_minute": 10**9, "failed_logins_per_minute": 10**9}
REQUESTS, REQUESTS_AT_NIGHT = 15_000, 50_000
"""The latter times `size`."""
FRESH_AFTER = 1_000
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "FOO"]
ONE_TRIGGER = "/api/triggers/trig-0"
ONE_NOTE = "/api/memory/memory.md"
EDITS = {ONE_TRIGGER: ("PATCH", "DELETE"), ONE_NOTE: ("PUT",)}

# A stream does not end by itself, and /healthz says 503 where no consumer is.
ASKED = [
    (address, body)
    for address, body in ROUTES.values()
    if address not in ("/api/events", "/healthz")
]


def fill(web: Web) -> Web:
    message = Message(id="msg-0", role="agent", text="**x**", created_at=START)
    HistoryStore(web.files).add([message])
    question = Question(question_id="q-1", question="?", created_at=START, expires_at=START)
    web.files.save(paths.PENDING_QUESTION, question)
    queue.submit(web.files, Task(id="task-0", prompt="x", created_at=START, trace_id="t"))
    registry.create(web.files, trigger(id="trig-0"))
    web.files.write(paths.MEMORY, b"- tea <!-- note-0 -->\n")
    web.feed.publish("message", id="msg-0")
    return web


def surprises(web: Web) -> list[dict[str, Any]]:
    return [line for line in web.log_lines() if line["event"] in ("web_failed", "web_trace")]


class Mutator:
    """Turns valid requests into malformed ones, repeatable by seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.odd: list[Any] = [None, True, -1, 0, 1e308, 2**64, "", "x" * 500, [], {}, [[]], "\x00"]
        self.odd += ["../..", "msg-1", "msg-\ud800", "res-1", "q-1", "字", "1", {"a": {"b": [1]}}]

    def requests(self, count: int) -> Iterator[dict[str, Any]]:
        for _ in range(count):
            address, body = self.random.choice(ASKED)
            usual = EDITS.get(address, ("POST",))[0] if body is not None else "GET"
            yield {
                "method": self._maybe(usual, METHODS),
                "path": self._maybe(address, [self._bent(address)]),
                "data": self._data(body),
                "query": self._query(),
                "headers": self._headers(),
                "host": self._maybe(HOST, [None, "", "evil", "a:b:c"]),
                "type_": self._maybe("application/json", ["", "a/b"]),
            }

    def _maybe(self, usual: Any, odd: list[Any]) -> Any:
        return self.random.choice(odd) if self.random.random() < 0.15 else usual

    def _bent(self, address: str) -> str:
        letters = "/.%\x00?é ~a0\\"
        at = self.random.randrange(1, len(address) + 1)
        return address[:at] + self.random.choice(letters) * self.random.randint(1, 5) + address[at:]

    def _headers(self) -> dict[str, str]:
        headers = {"Last-Event-ID": "x:1"} if self.random.random() < 0.1 else {}
        if self.random.random() < 0.1:
            headers[KEY_HEADER] = self.random.choice(["x", "\xff", ""])
        if self.random.random() < 0.05:
            headers["Authorization"] = self.random.choice(["Bearer", "Bearer \xff", "x y z", ""])
        if self.random.random() < 0.05:
            headers["Content-Length"] = self.random.choice(["-1", "x", "99", "0"])
        return headers

    def _query(self) -> dict[str, str]:
        names = ["since", "tab", "before", "limit", "state", "offset", "q", "after", "scope", "字"]
        values = ["0", "50", "-1", "done", "seg:1", "2026-03-01:0", "x:²", "", "x" * 500]
        return {
            self.random.choice(names): self.random.choice(values)
            for _ in range(max(0, self.random.randint(-4, 3)))
        }

    def _data(self, body: dict[str, Any] | None) -> bytes | None:
        if body is None:
            return None
        changed = dict(body)
        for key in [*body, "extra"]:
            if self.random.random() < 0.3:
                changed[key] = self.random.choice(self.odd)
        data = bytearray(json.dumps(changed).encode())
        if self.random.random() < 0.3:
            for _ in range(self.random.randint(1, 4)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
        return bytes(
            data[: self.random.randint(0, len(data))] if self.random.random() < 0.1 else data
        )


def send(make_web: MakeWeb, requests: Iterator[dict[str, Any]]) -> set[int]:
    """Send the requests, each thousand to a new state folder; returns the status codes."""
    web = fill(make_web(web=PLENTY))
    seen: set[int] = set()
    for number, request in enumerate(requests):
        if number % FRESH_AFTER == FRESH_AFTER - 1:
            assert surprises(web) == []
            web = fill(make_web(web=PLENTY))
        response = web.ask(**request)
        seen.add(response.status_code)
        assert response.status_code in CODES, request
    assert surprises(web) == []
    return seen


def test_five_hundred_odd_requests_cause_no_server_error(
    make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_arguments: Any, **_options: Any) -> NoReturn:
        raise OSError("an endpoint is tested in a process of its own")

    monkeypatch.setattr("mimikit.engines.setup.subprocess.run", no_process)
    assert {200, 400, 401, 404, 422} <= send(make_web, Mutator(seed=0).requests(500))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_odd_requests_cause_no_server_error(make_web: MakeWeb, size: int) -> None:
    many = REQUESTS if size == 1 else REQUESTS_AT_NIGHT * size
    seen = send(make_web, Mutator(seed=size).requests(many))
    assert {200, 202, 400, 401, 404, 405, 415, 422} <= seen
