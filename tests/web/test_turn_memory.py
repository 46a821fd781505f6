"""Which memory a reply was given is counted beside it and shown on demand."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mimikit.conversation import turns
from mimikit.conversation.history import HistoryStore
from mimikit.conversation.turn_prompts import ToolUse, TurnPrompt
from mimikit.engine_settings import PriceSettings
from mimikit.language.phrases import fence
from mimikit.protocol import paths
from mimikit.protocol.models import Hit, Message, Task, TurnRecord, Usage
from mimikit.protocol.triggers import PlanResult
from mimikit.tasks import queue
from mimikit.web.api.routing import EXTENSION
from tests.web.conftest import START, Web, error_of


def record(turn_id: str, injected: Any) -> bytes:
    at = "2026-03-01T12:00:00.000Z"
    facts = {"id": turn_id, "author": "teller", "startedAt": at, "completedAt": at}
    return json.dumps(facts | {"injected": injected}).encode()


HIT = {
    "source": "memory.md",
    "text": "The user prefers pnpm. <b>",
    "line": 3,
    "kind": "memory",
    "day": "2026-01-28",
}


def section(label: str, text: str) -> str:
    return f"## {label}\n{fence(text)}"


def say(web: Web, id_: str, turn_id: str | None, role: Any = "agent") -> None:
    web.clock.advance(1)
    message = Message(id=id_, role=role, text="x", created_at=web.clock.now(), turn_id=turn_id)
    HistoryStore(web.files).add([message])


def test_the_hits_behind_a_reply_are_shown_and_counted(web: Web) -> None:
    web.files.write(paths.turn_done("turn-1"), record("turn-1", [HIT, HIT | {"day": None}]))
    web.files.write(paths.turn_new("turn-2"), record("turn-2", ["memory.md", "docs/x.md"]))
    web.files.write(paths.turn_done("turn-3"), record("turn-3", []))
    for number in (1, 2, 3):
        say(web, f"msg-{number}", f"turn-{number}")
    say(web, "msg-4", "turn-1", "user")
    say(web, "msg-5", None)
    say(web, "msg-6", "turn-gone")
    say(web, "msg-7", "turn-1", "system")
    counts = [m["memory"] for m in web.get("/api/snapshot")["messages"]]
    assert counts == [2, 2, 0, 0, 0, 0, 0]
    assert [m["memory"] for m in web.get("/api/messages")["messages"]] == counts
    cursor = web.get("/api/changes")["cursor"]
    web.feed.tell("message", id="msg-1")
    told = [e for e in web.get("/api/changes", since=cursor)["events"] if e["kind"] == "message"]
    assert told[0]["message"]["memory"] == 2
    assert web.get("/api/turns/turn-1/memory") == {"hits": [HIT, HIT | {"day": None}]}
    old = {"text": None, "line": None, "day": None, "kind": None}
    assert web.get("/api/turns/turn-2/memory") == {
        "hits": [{"source": "memory.md", **old}, {"source": "docs/x.md", **old}]
    }
    assert web.get("/api/turns/turn-3/memory") == {"hits": []}


def test_a_record_as_it_is_committed_is_shown(web: Web) -> None:
    hit = Hit(source="memory.md", text="tea", line=2, day=START.date())
    turn = TurnRecord(
        id="turn-1", author="teller", injected=[hit], started_at=START, completed_at=START
    )
    turns.commit(web.files, turn)
    told = {"source": "memory.md", "text": "tea", "line": 2, "kind": "memory", "day": "2026-03-01"}
    assert web.get("/api/turns/turn-1/memory") == {"hits": [told]}
    turns.mark_applied(web.files, "turn-1")
    assert web.get("/api/turns/turn-1/memory") == {"hits": [told]}


def test_the_prompt_behind_a_reply_is_shown_whole(web: Web) -> None:
    made = TurnPrompt(
        id="turn-1", role="teller", engine="mine", model="m", status="done", at=START,
        instructions="You talk.", prompt="## Input\n<b>", tools=["reply"],
        calls=[ToolUse(name="reply", ok=True, arguments="{}", reply="sent")],
        hits=[Hit(source="memory.md", text="tea", line=2)], requests=1,
    )  # fmt: skip
    web.files.save(paths.turn_prompt("turn-1"), made)
    shown = web.get("/api/turns/turn-1")
    assert (shown["instructions"], shown["prompt"]) == ("You talk.", "## Input\n<b>")
    assert shown["calls"] == [{"name": "reply", "ok": True, "arguments": "{}", "reply": "sent"}]
    assert (shown["model"], shown["requests"], shown["hits"][0]["text"]) == ("m", 1, "tea")


def test_a_prompt_is_told_in_its_parts_with_what_it_cost_and_how_long_it_took(web: Web) -> None:
    blocks = [section("Memory", "## Input\n```\ntea"), section("Input", "[msg-1] hi")]
    made = TurnPrompt(
        id="turn-1", role="teller", engine="codex", status="done", at=START + timedelta(seconds=3),
        started_at=START, instructions="You talk.", prompt="\n\n".join(["Begin.", *blocks]),
        usage=Usage(input_tokens=1000, cached_input_tokens=400, output_tokens=100),
    )  # fmt: skip
    web.files.save(paths.turn_prompt("turn-1"), made)
    codex = web.site.settings.codex
    price = codex.model_copy(update={"price": PriceSettings(input=10, cached_input=1, output=20)})
    settings = web.site.settings.model_copy(update={"codex": price})
    web.app.extensions[EXTENSION] = replace(web.site, settings=settings)
    shown = web.get("/api/turns/turn-1")
    parts = [(part["label"], part["text"]) for part in shown["sections"]]
    memory = "## Input\n```\ntea"
    assert parts == [("", "Begin."), ("Memory", memory), ("Input", "[msg-1] hi")]
    assert all(part["tokens"] > 0 for part in shown["sections"])
    assert shown["instructionsTokens"] > 0
    assert shown["cost"] == {"USD": pytest.approx((600 * 10 + 400 + 100 * 20) / 1e6)}
    assert (shown["isKept"], shown["byCode"]) == (True, False)
    assert shown["startedAt"] == "2026-03-01T12:00:00.000Z"


@pytest.mark.parametrize(
    ("author", "engine", "by_code"),
    [("code", "", True), ("teller", "builtin", True), ("teller", "mine", False)],
)
def test_of_a_reply_whose_prompt_is_not_kept_the_rest_is_told(
    web: Web, author: Any, engine: str, by_code: bool
) -> None:
    turn = TurnRecord(
        id="turn-1", author=author, engine=engine, injected=["memory.md"],
        started_at=START, completed_at=START,
    )  # fmt: skip
    web.files.save(paths.turn_done("turn-1"), turn)
    shown = web.get("/api/turns/turn-1")
    assert (shown["byCode"], shown["isKept"], shown["sections"]) == (by_code, False, [])
    assert shown["engine"] == ("" if by_code else "mine")
    assert [hit["source"] for hit in shown["hits"]] == ["memory.md"]


@pytest.mark.parametrize(("engine", "by_code"), [("builtin", True), ("mine", False)])
def test_of_work_whose_prompt_is_not_kept_its_end_is_told(
    web: Web, engine: str, by_code: bool
) -> None:
    task = Task(
        id="task-1", role="planner", prompt="x", trace_id="turn-1", created_at=START,
    )  # fmt: skip
    end = PlanResult(
        id="task-1", status="done", turn_id="turn-1", trace_id="turn-1", engine=engine,
        started_at=START, completed_at=START + timedelta(seconds=2),
    )  # fmt: skip
    web.files.save(paths.ended("planner", "task-1"), task)
    queue.finish(web.files, end)
    shown = web.get("/api/turns/task-1")
    assert (shown["role"], shown["byCode"], shown["isKept"]) == ("planner", by_code, False)
    assert shown["engine"] == ("" if by_code else "mine")


def test_a_message_said_anew_names_the_one_it_replaces(web: Web) -> None:
    body = {"id": "msg-2", "text": "tea at five", "edits": "msg-1", "quote": "tea at four"}
    assert web.ask("POST", "/api/input", body).status_code == 202
    assert web.get("/api/snapshot")["inbox"][0]["edits"] == "msg-1"


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b'{"id": "turn-1"}'])
def test_a_prompt_that_can_not_be_read_is_not_found_and_stays(web: Web, data: bytes) -> None:
    web.files.write(paths.turn_prompt("turn-1"), data)
    assert web.ask("GET", "/api/turns/turn-1").status_code == 404
    assert web.files.read(paths.turn_prompt("turn-1")) == data


@pytest.mark.parametrize("end", ["", "/memory"])
@pytest.mark.parametrize("turn_id", ["turn-9", "x", "a" * 128])
def test_an_unknown_turn_is_not_found(web: Web, turn_id: str, end: str) -> None:
    refused = web.ask("GET", f"/api/turns/{turn_id}{end}")
    assert refused.status_code == 404
    assert error_of(refused)["field"] == "id"


@pytest.mark.parametrize("end", ["", "/memory"])
@pytest.mark.parametrize("turn_id", ["..", "a%00", "-a", "a" * 129, "%2e%2e%2fx", "字"])
def test_what_is_no_id_touches_no_path(web: Web, turn_id: str, end: str) -> None:
    assert web.ask("GET", f"/api/turns/{turn_id}{end}").status_code in (404, 422)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        record("turn-1", None),
        record("turn-1", "x"),
        record("turn-1", [1, None, {}, {"source": 1}, [HIT]]),
    ],
)
def test_a_broken_record_is_no_fault(web: Web, data: bytes) -> None:
    web.files.write(paths.turn_done("turn-1"), data)
    say(web, "msg-1", "turn-1")
    assert web.get("/api/snapshot")["messages"][0]["memory"] == 0
    answer = web.ask("GET", "/api/turns/turn-1/memory")
    assert answer.status_code in (200, 404)
    if answer.status_code == 200:
        assert answer.get_json() == {"hits": []}
    assert web.files.read(paths.turn_done("turn-1")) == data, "it is its keeper's to move"


def test_a_record_is_read_once_for_its_count(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.files.write(paths.turn_done("turn-1"), record("turn-1", [HIT]))
    say(web, "msg-1", "turn-1")
    reads: list[str] = []
    guest, read = web.site.files, web.site.files.read

    def counted(path: str, *, most: int | None = None) -> bytes | None:
        reads.append(path)
        return read(path, most=most)

    monkeypatch.setattr(guest, "read", counted)
    for _ in range(3):
        assert web.get("/api/snapshot")["messages"][0]["memory"] == 1
    assert reads.count(paths.turn_done("turn-1")) == 1
