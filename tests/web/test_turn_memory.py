"""The memory hits of a reply are counted and shown on request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mimikit.conversation import turns
from mimikit.conversation.history import HistoryStore
from mimikit.conversation.turn_prompts import ToolUse, TurnPrompt
from mimikit.protocol import paths
from mimikit.protocol.models import Hit, Message, TurnRecord
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
    web.feed.publish("message", id="msg-1")
    told = [e for e in web.get("/api/changes", since=cursor)["events"] if e["kind"] == "message"]
    assert told[0]["message"]["memory"] == 2
    assert web.get("/api/turns/turn-1")["hits"] == [HIT, HIT | {"day": None}]
    old = {"text": None, "line": None, "day": None, "kind": None}
    olds = [{"source": "memory.md", **old}, {"source": "docs/x.md", **old}]
    assert web.get("/api/turns/turn-2")["hits"] == olds
    assert web.get("/api/turns/turn-3")["hits"] == []


def test_a_record_as_it_is_committed_is_shown(web: Web) -> None:
    hit = Hit(source="memory.md", text="tea", line=2, day=START.date())
    turn = TurnRecord(
        id="turn-1", author="teller", injected=[hit], started_at=START, completed_at=START
    )
    turns.commit(web.files, turn)
    told = {"source": "memory.md", "text": "tea", "line": 2, "kind": "memory", "day": "2026-03-01"}
    assert web.get("/api/turns/turn-1")["hits"] == [told]
    turns.mark_applied(web.files, "turn-1")
    assert web.get("/api/turns/turn-1")["hits"] == [told]


def test_the_prompt_behind_a_reply_is_shown_whole(web: Web) -> None:
    made = TurnPrompt(
        id="turn-1", role="teller", engine="mine", model="m", status="done", at=START,
        instructions="You talk.", prompt="## Input\n<b>", tools=["reply"],
        calls=[ToolUse(name="reply", ok=True, arguments="{}", reply="sent")],
        hits=[Hit(source="memory.md", text="tea", line=2)], requests=1,
    )  # fmt: skip
    web.files.save(paths.turn_prompt("turn-1"), made)
    shown = web.get("/api/turns/turn-1")["run"]
    assert (shown["instructions"], shown["prompt"]) == ("You talk.", "## Input\n<b>")
    assert shown["calls"] == [{"name": "reply", "ok": True, "arguments": "{}", "reply": "sent"}]
    assert (shown["model"], shown["requests"], shown["hits"][0]["text"]) == ("m", 1, "tea")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b'{"id": "turn-1"}'])
def test_a_prompt_that_can_not_be_read_is_not_found_and_stays(web: Web, data: bytes) -> None:
    web.files.write(paths.turn_prompt("turn-1"), data)
    assert web.ask("GET", "/api/turns/turn-1").status_code == 404
    assert web.files.read(paths.turn_prompt("turn-1")) == data


@pytest.mark.parametrize("turn_id", ["turn-9", "x", "a" * 128])
def test_an_unknown_turn_is_not_found(web: Web, turn_id: str) -> None:
    refused = web.ask("GET", f"/api/turns/{turn_id}")
    assert refused.status_code == 404
    assert error_of(refused)["field"] == "id"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", record("turn-1", "x"), record("turn-1", [1, None, {}, {"source": 1}, [HIT]])],
)
def test_a_broken_record_has_no_hits(web: Web, data: bytes) -> None:
    web.files.write(paths.turn_done("turn-1"), data)
    say(web, "msg-1", "turn-1")
    assert web.get("/api/snapshot")["messages"][0]["memory"] == 0
    answer = web.ask("GET", "/api/turns/turn-1")
    assert answer.status_code in (200, 404)
    if answer.status_code == 200:
        assert answer.get_json()["hits"] == []
    assert web.files.read(paths.turn_done("turn-1")) == data, "it is its keeper's to move"
