"""Records: strict, frozen, in UTC to the millisecond, and careful with what they do not know."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mimikit.errors import BadRecord
from mimikit.protocol import models
from mimikit.protocol.models import (
    History,
    InboxItem,
    Message,
    Record,
    Task,
    TurnRecord,
    time_text,
    to_utc,
)
from mimikit.protocol.records import decode
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult, Schedule, Trigger, TriggerState

NOW = datetime(2026, 12, 1, 9, 30, 0, 123456, tzinfo=UTC)
TASK = Task(id="t1", prompt="x", created_at=NOW, trace_id="trace-1")
EVERY = [
    TASK,
    TaskResult(id="t1", status="done", trace_id="r", started_at=NOW, completed_at=NOW),
    PlanResult(id="t1", status="done", turn_id="t1", trace_id="r", started_at=NOW,
               completed_at=NOW, tasks=[TASK]),
    Trigger(id="g", type="recurring", prompt="x", created_at=NOW, trace_id="r",
            schedule=Schedule(interval=60)),
    TriggerState(last_run_at=NOW, seen={"a": [1, 2]}),
    InboxItem(id="m", created_at=NOW, text="你好"),
    History(messages=[Message(id="m", role="user", text="hi", created_at=NOW)]),
    TurnRecord(id="u", author="code", started_at=NOW, completed_at=NOW, tasks=[TASK]),
]  # fmt: skip
BY_NAME = pytest.mark.parametrize("record", EVERY, ids=lambda record: type(record).__name__)


@BY_NAME
def test_a_record_comes_back_from_its_file(record: Record) -> None:
    data = record.to_json()
    assert data.endswith(b"}\n")
    assert decode(data, type(record)) == record
    assert json.loads(data) == record.to_dict()


@BY_NAME
def test_keys_are_camel_case_on_disk(record: Record) -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {key for inner in value.values() for key in keys(inner)}
        return {key for inner in value for key in keys(inner)} if isinstance(value, list) else set()

    assert not {key for key in keys(record.to_dict()) if "_" in key}


@BY_NAME
def test_keys_of_a_newer_version_survive_a_rewrite(record: Record) -> None:
    data = record.to_dict() | {"newKey": {"deep": [1, "中"]}, "schemaNote": None}
    again = decode(json.dumps(data).encode(), type(record))
    assert json.loads(again.to_json()) == data
    assert json.loads(again.but().to_json()) == data


def test_unknown_keys_survive_deep_inside_too() -> None:
    said = Message(id="m", role="user", text="hi", created_at=NOW)
    data: dict[str, Any] = {**History(messages=[said]).to_dict()}
    data["messages"][0]["mood"] = "good"
    history = decode(json.dumps(data).encode(), History)
    more = history.but(messages=[*history.messages, history.messages[0]])
    assert [m["mood"] for m in json.loads(more.to_json())["messages"]] == ["good", "good"]


def test_a_change_is_checked_and_leaves_the_old_record_alone() -> None:
    changed = TASK.but(attempts=1)
    assert (TASK.attempts, changed.attempts) == (0, 1)
    with pytest.raises(ValidationError):
        TASK.but(attempts=-1)
    with pytest.raises(ValidationError):
        TASK.but(priority=11)
    with pytest.raises(ValidationError, match="frozen"):
        TASK.attempts = 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("priority", "5"),
        ("priority", True),
        ("internal", "yes"),
        ("prompt", ""),
        ("prompt", "x" * (models.MAX_TEXT + 1)),
        ("createdAt", 1764579600),
        ("timeout", 0),
        ("timeout", 10**400),
        ("role", "teller"),
        ("traceId", "../x"),
        ("type", "recurring"),
    ],
)
def test_a_task_is_strict(key: str, value: object) -> None:
    data = TASK.to_dict() | {key: value}
    with pytest.raises(BadRecord) as caught:
        decode(json.dumps(data).encode(), Task)
    assert caught.value.field == key
    assert key in str(caught.value)
    assert len(str(caught.value)) < 300


def test_times_are_written_in_utc_to_the_millisecond() -> None:
    assert time_text(NOW) == "2026-12-01T09:30:00.123Z"
    assert TASK.to_dict()["createdAt"] == "2026-12-01T09:30:00.123Z"
    shanghai = NOW.astimezone(timezone(timedelta(hours=8)))
    assert time_text(shanghai) == "2026-12-01T09:30:00.123Z"
    assert TASK.but(created_at=shanghai) == TASK


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("1970-01-01T00:00:00Z", True),
        ("1970-01-01T00:00:00+01:00", False),
        ("1969-12-31T23:30:00-01:00", True),
        ("0001-01-01T00:00:00+14:00", False),
        ("2199-12-31T23:59:59Z", True),
        ("2200-01-01T00:00:00Z", False),
        ("9999-12-31T23:59:59-12:00", False),
    ],
)
def test_a_time_of_a_record_is_between_1970_and_2200(text: str, *, good: bool) -> None:
    data = b'{"id": "m", "createdAt": "%s"}' % text.encode()
    if good:
        assert decode(data, InboxItem).created_at.year in (1970, 2199)
    else:
        with pytest.raises(BadRecord, match="between the years 1970 and 2200"):
            decode(data, InboxItem)


@given(st.datetimes(timezones=st.timezones()))
def test_any_time_is_taken_once_and_for_all_or_refused(time: datetime) -> None:
    try:
        taken = to_utc(time)
    except ValueError as error:
        assert "between the years" in str(error)
        return
    assert taken.tzinfo is UTC
    assert to_utc(taken) == taken
    assert decode(InboxItem(id="m", created_at=time).to_json(), InboxItem).created_at == taken
