"""Results of one trigger are grouped in the conversation; the transcript has each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mimikit.conversation.history import HistoryStore
from mimikit.protocol.models import Message
from mimikit.views.messages import group_by_trigger
from tests.support.product import START


def message(id_: str, trigger: str | None = None, role: Any = "system") -> Message:
    at = START + timedelta(seconds=ord(id_[0]))
    return Message(id=id_, role=role, text=id_, created_at=at, trigger_id=trigger)


def ids(*messages: Message) -> list[list[str]]:
    return [[one.id for one in line] for line in group_by_trigger(messages)]


def test_messages_of_one_trigger_are_grouped_at_the_newest() -> None:
    assert ids(
        message("a", "g1"), message("b"), message("c", "g2"), message("d", "g1"), message("e", "g1")
    ) == [["b"], ["c"], ["a", "d", "e"]]


def test_a_message_of_the_user_starts_a_new_group() -> None:
    given = message("a", "g1"), message("b", role="user"), message("c", "g1")
    assert ids(*given) == [["a"], ["b"], ["c"]]


def test_the_api_counts_them_and_the_transcript_keeps_each(web: Any) -> None:
    HistoryStore(web.files).add([message(id_, "g1") for id_ in "abc"])
    (shown,) = web.ask("GET", "/api/messages").get_json()["messages"]
    assert (shown["id"], shown["repeats"], shown["triggerId"]) == ("c", ["a", "b"], "g1")
    assert shown["since"].startswith("2026-12-01T09:01:37")
    snapshot = web.ask("GET", "/api/snapshot").get_json()
    assert [line["id"] for line in snapshot["messages"]] == ["c"]
    (day,) = web.files.names("history", suffix=".jsonl")
    assert [line["id"] for _, line in web.files.lines(f"history/{day}")] == ["a", "b", "c"]
