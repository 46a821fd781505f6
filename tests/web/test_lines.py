"""What tells runs of one trigger is one line of the conversation; the transcript keeps each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mimikit.conversation.history import HistoryStore
from mimikit.protocol.models import Message
from mimikit.views.messages import in_lines
from tests.support.product import START


def message(id_: str, trigger: str | None = None, role: Any = "system") -> Message:
    at = START + timedelta(seconds=ord(id_[0]))
    return Message(id=id_, role=role, text=id_, created_at=at, trigger_id=trigger)


def ids(*messages: Message) -> list[list[str]]:
    return [[one.id for one in line] for line in in_lines(messages)]


def test_messages_of_one_trigger_are_one_line_where_the_newest_is() -> None:
    assert ids(
        message("a", "g1"), message("b"), message("c", "g2"), message("d", "g1"), message("e", "g1")
    ) == [["b"], ["c"], ["a", "d", "e"]]


def test_what_the_user_says_begins_anew() -> None:
    given = message("a", "g1"), message("b", role="user"), message("c", "g1")
    assert ids(*given) == [["a"], ["b"], ["c"]]


def test_the_api_counts_them_and_the_transcript_keeps_each(web: Any) -> None:
    HistoryStore(web.files, web.clock).add([message(id_, "g1") for id_ in "abc"])
    (shown,) = web.ask("GET", "/api/messages").get_json()["messages"]
    assert (shown["id"], shown["repeats"], shown["triggerId"]) == ("c", ["a", "b"], "g1")
    assert shown["since"].startswith("2026-12-01T09:01:37")
    snapshot = web.ask("GET", "/api/snapshot").get_json()
    assert [line["id"] for line in snapshot["messages"]] == ["c"]
    (day,) = web.files.names("history", suffix=".jsonl")
    assert [line["id"] for _, line in web.files.lines(f"history/{day}")] == ["a", "b", "c"]


def test_a_message_that_comes_brings_the_line_that_it_ends(web: Any) -> None:
    web.feed.tell("status")
    since = web.get("/api/snapshot")["cursor"]
    store = HistoryStore(web.files, web.clock)
    for id_ in "abc":
        store.add([message(id_, "g1")])
        web.feed.tell("message", id=id_)
    store.add([message("d", role="user"), message("e", "g1")])
    web.feed.tell("message", id="e")
    told = [event for event in web.get("/api/changes", since=since)["events"] if "message" in event]
    assert [(one["message"]["id"], one["message"]["repeats"]) for one in told] == [
        ("a", []), ("b", []), ("c", ["a", "b"]), ("e", [])
    ]  # fmt: skip


def test_a_page_has_so_many_lines_however_often_a_trigger_was_told_of(web: Any) -> None:
    store = HistoryStore(web.files, web.clock)
    early = [message(f"a{number:03}", role="user") for number in range(30)]
    often = [message(f"b{number:03}", "g1") for number in range(300)]
    store.add(early + often)
    found = web.get("/api/messages", limit="10")
    *before, line = [one["id"] for one in found["messages"]]
    assert line == "b299"
    assert len(before) >= 9
    assert len(found["messages"][-1]["repeats"]) == 299
    assert web.get("/api/messages", limit="10", before=found["before"])["messages"]


def test_what_each_run_told_can_be_had_a_page_at_a_time(web: Any) -> None:
    said = [message(id_, "g1") for id_ in "abcde"] + [message("f", "g2"), message("g")]
    HistoryStore(web.files, web.clock).add(said)
    until = "2026-12-01T10:00:00.000Z"
    page = web.ask("GET", f"/api/triggers/g1/messages?limit=2&until={until}").get_json()
    assert [one["id"] for one in page["messages"]] == ["d", "e"]
    before = web.ask("GET", f"/api/triggers/g1/messages?until={page['before']}").get_json()
    assert ([one["id"] for one in before["messages"]], before["before"]) == (["a", "b", "c"], None)
    assert web.ask("GET", "/api/triggers/none/messages").get_json()["messages"] == []
    assert web.ask("GET", "/api/triggers/g1/messages?until=nonsense").status_code == 422
    assert web.ask("GET", "/api/triggers/no%20id/messages").status_code == 422
