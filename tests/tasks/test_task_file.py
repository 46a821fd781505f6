"""A file in a queue, whoever wrote it, as a Task."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadRecord
from mimikit.protocol.models import Task
from mimikit.tasks.queue import glance, order_of, parse_task, ready_at

SEEN = datetime(2026, 12, 1, 9, 30, 0, 250000, tzinfo=UTC)


def whole(**changes: object) -> Task:
    task = Task(id="task-1", prompt="date", created_at=SEEN, trace_id="trace-1")
    return task.but(**changes)


def test_a_hand_made_file_is_filled_from_name_folder_and_time() -> None:
    data = b'{"prompt":"date","profile":"command"}'
    task, complete = parse_task("my-task.json", data, "worker", SEEN)
    assert not complete
    assert (task.id, task.role, task.profile) == ("my-task", "worker", "command")
    assert (task.created_at, task.origin, task.notify) == (SEEN, "file", "message")
    assert parse_task("my-task.json", data, "worker", SEEN)[0].trace_id == task.trace_id


def test_a_task_of_our_own_is_whole_and_comes_back_as_it_is() -> None:
    task = whole(priority=9, not_before=SEEN, origin="teller", notify="teller")
    assert parse_task("task-1.json", task.to_json(), "worker", SEEN) == (task, True)


def test_nulls_are_filled_like_what_is_missing() -> None:
    data = b'{"id":null,"prompt":"x","createdAt":null,"traceId":null,"notify":null}'
    assert parse_task("a.json", data, "planner", SEEN)[0].id == "a"


def test_the_folder_decides_the_role_and_unknown_keys_stay() -> None:
    data = json.dumps({**whole().to_dict(), "role": "planner", "colour": "red"}).encode()
    task, _ = parse_task("task-1.json", data, "worker", SEEN)
    assert task.role == "worker"
    assert task.to_dict()["colour"] == "red"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.json", b'{"id":"b","prompt":"x"}', "expected 'a'"),
        ("a.json", b'{"prompt":""}', "prompt"),
        ("a.json", b'{"prompt":"x","priority":11}', "priority"),
        ("a.json", b'{"prompt":"x","type":"recurring"}', "type"),
        ("a.json", b'{"prompt":"x","prompt":"y"}', "twice"),
        ("a.json", b'{"prompt":', "JSON"),
        ("a.json", b"\xff\xfe", "UTF-8"),
        ("a.json", b"[" * 100_000, "nesting"),
        ("a b.json", b'{"prompt":"x"}', "letters"),
        ("a.txt", b'{"prompt":"x"}', ".json"),
        ("a.json", b" " * (16 * 2**20 + 1), "at most"),
    ],
)
def test_what_is_no_task_is_refused_with_its_reason(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        parse_task(name, data, "worker", SEEN)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_reason(data: bytes) -> None:
    for made in (data, b'{"prompt":"x",' + data, b'{"prompt":"x"}' + data):
        glance("a.json", made)
        with contextlib.suppress(BadRecord):
            parse_task("a.json", made, "worker", SEEN)


def test_order_is_priority_then_internal_then_age_then_id() -> None:
    tasks = [
        whole(id="d"),
        whole(id="e"),
        whole(id="c", created_at=datetime(2026, 1, 1, tzinfo=UTC)),
        whole(id="b", internal=True),
        whole(id="a", priority=9),
    ]
    assert [task.id for task in sorted(tasks, key=order_of)] == ["a", "b", "c", "d", "e"]


@settings(max_examples=200)
@given(
    priority=st.integers(0, 10),
    internal=st.booleans(),
    created=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),  # noqa: DTZ001
    wait=st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),  # noqa: DTZ001
)
def test_a_glance_sees_what_reading_sees(
    priority: int, internal: bool, created: datetime, wait: datetime | None
) -> None:
    task = whole(priority=priority, internal=internal, created_at=created, not_before=wait)
    assert glance("task-1.json", task.to_json()) == (order_of(task), ready_at(task))


@pytest.mark.parametrize(
    "changes",
    [
        {"createdAt": "2026-12-01T09:30:00+08:00"},
        {"priority": True},
        {"id": "other"},
        {"notBefore": "2026-12-01T09:30:00.000"},
    ],
    ids=str,
)
def test_a_glance_leaves_the_unusual_to_reading(changes: dict[str, object]) -> None:
    assert glance("task-1.json", json.dumps({**whole().to_dict(), **changes}).encode()) is None
