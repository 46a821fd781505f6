"""Whatever is sent, the answer is a plain one and no fault of ours."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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

texts = st.text(st.characters(exclude_categories=()), max_size=30)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30, max_value=10**40)
    | st.floats()
    | texts
    | st.sampled_from(["msg-1", "q-1", "task-0", "trig-0", "command", "../x", "\x00", "a" * 300])
    | st.sampled_from(["0 9 * * *", "* * * * 8", "in 10m", "每天 9 点", "Mars/X", "**/*[", "~/x"])
    | st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "2026-12-01", "not"])
)
parts = st.sampled_from(
    [
        *("type", "params", "path", "taskId", "prompt", "conditions", "condition", "fireOnInit"),
        *("interval", "cron", "timezone", "runAt"),
    ]
)
kinds = st.sampled_from(
    [
        *("file_changed", "file_exists", "task_done", "task_failed", "llm_eval", "and", "or"),
        *("not", "odd"),
    ]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(parts | texts, inner, max_size=4)
        | st.fixed_dictionaries({"type": kinds, "params": st.dictionaries(parts, inner)})
    ),
)
fields = st.sampled_from(
    [
        *("id", "text", "quote", "timezone", "locale", "questionId", "prompt", "title", "profile"),
        *("priority", "timeout", "maxAttempts", "token", "code", "__proto__", "createdAt"),
        *("schedule", "condition", "when", "cooldown", "once", "overlap", "notify"),
        *("hash", "action", "item"),
    ]
)
bodies = st.dictionaries(fields | texts, values, max_size=8) | values
# A stream does not end by itself, and /healthz says 503 where no consumer is.
ASKED = [
    (address, body)
    for address, body in ROUTES.values()
    if address not in ("/api/events", "/healthz")
]
posts = st.sampled_from([address for address, body in ASKED if body is not None])
gets = st.sampled_from([address for address, _ in ASKED])
queries = st.dictionaries(
    st.sampled_from(["since", "tab", "before", "limit", "state", "offset", "q", "after", "scope"])
    | texts,
    texts | st.sampled_from(["0", "50", "-1", "done", "seg:1", "2026-03-01:0", "x:²"]),
    max_size=4,
)
hard = settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def fill(web: Web) -> Web:
    """A folder with one of each thing."""
    message = Message(id="msg-0", role="agent", text="**x**", created_at=START)
    HistoryStore(web.files).add([message])
    question = Question(question_id="q-1", question="?", created_at=START, expires_at=START)
    web.files.save(paths.PENDING_QUESTION, question)
    queue.submit(web.files, Task(id="task-0", prompt="x", created_at=START, trace_id="t"))
    registry.create(web.files, trigger(id="trig-0"))
    web.files.write(paths.MEMORY, b"- tea <!-- note-0 -->\n")
    web.feed.tell("message", id="msg-0")
    return web


@pytest.fixture
def filled(make_web: MakeWeb) -> Web:
    return fill(make_web(web=PLENTY))


def check(web: Web, response: Any) -> None:
    assert response.status_code in CODES, response.get_data()
    if response.status_code >= 400:
        told = json.loads(response.get_data())["error"]
        assert told["message"]
        assert told["field"] is None or isinstance(told["field"], str)


def surprises(web: Web) -> list[dict[str, Any]]:
    return [line for line in web.log_lines() if line["event"] in ("web_failed", "web_trace")]


@hard
@given(address=posts, body=bodies)
def test_any_json_is_answered_plainly(filled: Web, address: str, body: Any) -> None:
    data = json.dumps(body).encode()
    for method in EDITS.get(address, ("POST",)):
        check(filled, filled.ask(method, address, data=data))
    assert surprises(filled) == []


timings = st.fixed_dictionaries(
    {},
    optional={
        "when": texts | scalars,
        "schedule": st.dictionaries(parts, scalars, max_size=3),
        "condition": st.recursive(
            st.fixed_dictionaries({"type": kinds, "params": st.dictionaries(parts, scalars)}),
            lambda inner: st.builds(
                lambda kind, inside: {
                    "type": kind,
                    "params": {"conditions": inside} if kind != "not" else {"condition": inside[0]},
                },
                st.sampled_from(["and", "or", "not"]),
                st.lists(inner, min_size=1, max_size=3),
            ),
            max_leaves=60,
        ),
        "timezone": scalars,
        "cooldown": scalars,
    },
)


@hard
@given(timing=timings, more=st.dictionaries(fields, scalars, max_size=2))
def test_any_timing_is_answered_plainly_and_shown_afterwards(
    filled: Web, timing: dict[str, Any], more: dict[str, Any]
) -> None:
    new = {"id": "trig-1", "prompt": "x"} | timing
    for method, address, body in (
        ("POST", "/api/triggers/preview", timing),
        ("POST", "/api/triggers", new | more),
        ("PATCH", ONE_TRIGGER, timing | more),
    ):
        check(filled, filled.ask(method, address, data=json.dumps(body).encode()))
    for address in ("/api/triggers", "/api/triggers/trig-1", "/api/snapshot"):
        check(filled, filled.ask("GET", address))
    assert surprises(filled) == []
    filled.files.remove(paths.trigger("trig-1"))


@hard
@given(address=posts, data=st.binary(max_size=200))
def test_any_bytes_are_answered_plainly(filled: Web, address: str, data: bytes) -> None:
    for method in EDITS.get(address, ("POST",)):
        check(filled, filled.ask(method, address, data=data))
    assert surprises(filled) == []


@hard
@given(address=gets, query=queries)
def test_any_query_is_answered_plainly(filled: Web, address: str, query: dict[str, str]) -> None:
    sent = {k.encode("utf-8", "replace").decode(): v for k, v in query.items()}
    sent = {k: v.encode("utf-8", "replace").decode() for k, v in sent.items()}
    check(filled, filled.ask("GET", address, query=sent))
    assert surprises(filled) == []


class Mutator:
    """Makes odd requests out of good ones, the same for the same seed."""

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


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_odd_requests_meet_no_fault_of_ours(make_web: MakeWeb, size: int) -> None:
    mutator, many = Mutator(seed=size), REQUESTS if size == 1 else REQUESTS_AT_NIGHT * size
    web = fill(make_web(web=PLENTY))
    seen: dict[int, int] = {}
    for number, request in enumerate(mutator.requests(many)):
        if number % FRESH_AFTER == FRESH_AFTER - 1:
            assert surprises(web) == []
            web = fill(make_web(web=PLENTY))
        response = web.ask(**request)
        seen[response.status_code] = seen.get(response.status_code, 0) + 1
        assert response.status_code in CODES, request
    assert surprises(web) == []
    assert {200, 202, 400, 401, 404, 405, 415, 422} <= set(seen)
