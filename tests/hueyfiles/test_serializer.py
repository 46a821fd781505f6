"""Huey's messages and values through JSON: the same comes back, or it is refused when put in."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from huey.api import MemoryHuey, chord
from huey.registry import Message
from huey.utils import SKIPPED, Error
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadRecord
from mimikit.hueyfiles.serializer import (
    JsonSerializer,
    RecordedError,
    embed,
    extract,
    identity,
    unwrap,
    wrap,
)

SERIALIZER = JsonSerializer()


def there_and_back(value: object) -> object:
    data = SERIALIZER.serialize(value)
    json.loads(data)
    return SERIALIZER.deserialize(data)


@pytest.mark.parametrize(
    "value",
    [
        (1, (2, [3, (4,)])),
        {"a": {1, 2}, "$b": frozenset([3])},
        {1: "one", (2, 3): "two"},
        {"huey": 1},
        b"\x00\xff",
        datetime(2026, 3, 29, 2, 30, 0, 123456),  # noqa: DTZ001 - Huey's times carry no zone
        datetime(2026, 3, 29, tzinfo=timezone(timedelta(hours=8))),
        timedelta(days=-1, microseconds=7),
        Decimal("1.10"),
        Error({"error": "no", "retries": 0}),
        "\udc80 alone",
        2**80,
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_what_is_skipped_is_still_the_same_object() -> None:
    assert there_and_back(SKIPPED) is SKIPPED


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_come_back(value: float) -> None:
    assert repr(there_and_back(value)) == repr(value)


def test_an_exception_comes_back_as_what_it_said() -> None:
    error = there_and_back(ValueError("boom"))
    assert isinstance(error, RecordedError)
    assert (error.type_name, str(error)) == ("ValueError", "boom")
    again = there_and_back(error)
    assert isinstance(again, RecordedError)
    assert again.type_name == "ValueError"


@pytest.mark.parametrize("value", [object(), Path("/"), [1, {"x": object()}], range(3)])
def test_what_is_no_plain_data_is_refused_with_its_type(value: object) -> None:
    with pytest.raises(TypeError, match="expected plain data"):
        SERIALIZER.serialize(value)


def test_a_whole_message_with_all_that_hangs_on_it_comes_back() -> None:
    huey = MemoryHuey(serializer=SERIALIZER)
    add = huey.task(retries=2, retry_delay=1, priority=3, name="add")(lambda *n: sum(n))
    total = huey.task(name="total")(sum)
    task = add.s(1, 2, eta=datetime(2030, 1, 1)).then(add, 3).error(total)  # noqa: DTZ001
    task.expires = timedelta(hours=1)
    huey.enqueue(chord([add.s(1), task], total))
    for data in huey.storage.enqueued_items():
        message = SERIALIZER.deserialize(data)
        assert isinstance(message, Message)
        assert isinstance(message.args, tuple)
        assert huey._registry.create_message(huey.deserialize_task(data)) == message
        assert identity(data) == message.id.encode()
        assert huey.serialize_task(huey.deserialize_task(data)) == data


@pytest.mark.parametrize("data", [b"", b"{}", b'{"huey":{"$who":1}}', b'{"huey":{"$bytes":"?"}}'])
def test_foreign_bytes_are_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(BadRecord, match="expected"):
        SERIALIZER.deserialize(data)


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=20).map(lambda tail: b'{"huey":' + tail),
        st.binary(max_size=20).map(lambda tail: b'{"huey":' + tail + b"}"),
        st.binary(max_size=20).map(lambda tail: b'{"base64":"' + tail),
        st.recursive(
            st.none() | st.integers() | st.text() | st.floats() | st.binary(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
            max_leaves=8,
        ).map(SERIALIZER.serialize),
    )
)
def test_any_bytes_go_into_a_file_and_a_record_and_come_back(data: bytes) -> None:
    assert extract(json.loads(json.dumps(embed(data)))) == data
    assert unwrap(wrap(data)) == data


@pytest.mark.parametrize("data", [b"", b'{"huey":', b'{"base64":"x"}', b"[]", b"\xff", b'{"a":1}'])
def test_a_file_that_nobody_wrapped_is_refused(data: bytes) -> None:
    with pytest.raises(BadRecord):
        unwrap(data)


def test_a_message_edited_by_hand_is_still_one() -> None:
    assert unwrap(b'\n {"huey": {"$tuple": [1]} }\n') == b'{"huey":{"$tuple":[1]}}'
