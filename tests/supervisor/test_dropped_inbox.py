"""A dropped `inbox.json` is accepted once, or quarantined with the reason."""

from __future__ import annotations

import json

import pytest

from mimikit.protocol import paths
from tests.crash.driver import Client
from tests.support.reading import transcript


def drop(client: Client, value: object) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    client.files.write(paths.DROPPED_INBOX, data)
    client.product.idle()
    client.product.clock.advance(2.5)  # what is not whole is given time to be
    client.product.idle()


def texts(client: Client) -> list[str]:
    return [text for role, text in transcript(client.files) if role == "user"]


@pytest.fixture
def reasons(client: Client) -> list[str]:
    found: list[str] = []
    client.files.on_event = lambda _event, facts: found.append(str(facts["reason"]))
    return found


def test_a_list_of_texts_is_taken_in_once_and_removed(judged: Client) -> None:
    drop(judged, ["hello", "and more"])
    assert sorted(texts(judged)) == ["and more", "hello"]
    assert not judged.files.exists(paths.DROPPED_INBOX)
    assert [name for name in judged.files.names("") if "inbox" in name] == []


def test_an_input_may_have_more_fields(judged: Client) -> None:
    drop(judged, [{"text": "hello", "id": "mine", "timezone": "Asia/Shanghai", "quote": "said"}])
    (message,) = [
        message for message in judged.product.store.conversation.messages if message.role == "user"
    ]
    assert (message.id, message.text, message.quote) == ("mine", "hello", "said")


def test_the_same_text_dropped_twice_is_two_messages(judged: Client) -> None:
    drop(judged, ["hello"])
    judged.product.clock.advance(1)
    drop(judged, ["hello"])
    assert texts(judged) == ["hello", "hello"]


def test_an_input_with_an_id_that_was_used_is_taken_once(judged: Client) -> None:
    drop(judged, [{"id": "mine", "text": "hello"}])
    drop(judged, [{"id": "mine", "text": "hello again"}])
    assert texts(judged) == ["hello"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"text": "hello"}, "expected a list of texts or inputs"),
        (b'["hello"', "expected JSON"),
        (["hello", "  "], "entry 1: text: expected some text"),
        ([{"text": "x", "id": "../x"}], "id: "),
        ([{"text": "x", "kind": "order"}], "kind: "),
        ([[]], "entry 0: expected a text or an input"),
        (b"[" + b"[" * 1000 + b"]" * 1000 + b"]", "levels of nesting"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_invalid_inbox_file_is_quarantined_with_the_reason(
    client: Client, reasons: list[str], value: object, reason: str
) -> None:
    drop(client, value)
    assert texts(client) == []
    assert len(reasons) == 1
    assert reason in reasons[0]
    assert not client.files.exists(paths.DROPPED_INBOX)
    assert len(client.files.names("corrupt", suffix="")) == 2
    drop(client, ["hello"])
    assert texts(client) == ["hello"]
