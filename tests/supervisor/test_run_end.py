"""The end of a trigger's run: circuit breaker, notification, coalescing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mimikit.protocol.models import Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import Trigger, TriggerState
from mimikit.supervisor.run_end import after_end
from tests.support.product import START

OFTEN = Trigger.model_validate(
    {
        "id": "g1", "type": "recurring", "prompt": "x", "createdAt": START, "traceId": "r",
        "schedule": {"interval": 60.0}, "notify": "none",
    }
)  # fmt: skip
STANDING = OFTEN.but(
    type="conditional", schedule=None, notify="message",
    condition={"type": "file_changed", "params": {"path": "a"}},
)  # fmt: skip


def ended(
    state: TriggerState, number: int, trigger: Trigger = OFTEN, seconds: float = 0, **how: Any
) -> TriggerState:
    at = START + timedelta(seconds=seconds)
    task = Task(
        id=f"t{number}", prompt="x", created_at=at, trace_id="r", origin="trigger",
        source_trigger_id="g1", notify=trigger.notify or "message",
    )  # fmt: skip
    facts: dict[str, Any] = {
        "status": "failed",
        "failure_reason": "error",
        "error": "it broke",
    } | how
    result = TaskResult(id=task.id, trace_id="r", started_at=at, completed_at=at, **facts)
    return after_end(trigger, state, task, result, is_inner_step=False, under_way=())


@pytest.mark.parametrize(
    ("ends", "trips"),
    [
        ([{}, {}, {}], True),
        ([{}, {}], False),
        ([{"result": {"text": "at 9:00"}}, {"result": {"text": "at 9:01"}}, {}], True),
        ([{}, {"error": "another"}, {}], False),
        ([{}, {"failure_reason": "timeout"}, {}], False),
        ([{}, {}, {"status": "done", "failure_reason": None, "error": None}, {}], False),
        ([{}, {"status": "canceled", "failure_reason": "canceled"}, {}, {}], True),
        ([{}, {}, {"failure_reason": "killed", "error": "the consumer ended"}, {}], True),
        ([{"failure_reason": "killed"}] * 4, False),
    ],
)
def test_three_failures_that_are_alike_in_a_row_trip(ends: list[Any], trips: bool) -> None:
    state = TriggerState()
    for number, how in enumerate(ends):
        state = ended(state, number, **how)
    last = state.ends[f"t{len(ends) - 1}"]
    assert (last.trips, state.paused_by) == ((True, "breaker") if trips else (False, None))
    assert last.told == ("message" if trips else None)


def test_a_trigger_that_is_paused_already_does_not_trip() -> None:
    state = TriggerState()
    for number in range(4):
        state = ended(state, number, OFTEN.but(enabled=False))
    assert not state.ends["t3"].trips


def test_a_processed_end_is_dropped_with_the_next() -> None:
    assert list(ended(ended(TriggerState(), 1), 2).ends) == ["t2"]


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        ([0], [None]),
        ([0, 10, 59], [None, 60, 60]),
        ([0, 10, 70, 130], [None, 60, 120, 180]),
        ([0, 60, 121], [None, None, None]),
        ([100, 10], [None, None]),
    ],
)
def test_results_of_a_condition_are_coalesced_by_the_minute(
    seconds: list[float], wait: list[float | None]
) -> None:
    state, found = TriggerState(), list[float | None]()
    for number, at in enumerate(seconds):
        state = ended(state, number, STANDING, at, status="done", failure_reason=None, error=None)
        until = state.ends[f"t{number}"].not_before
        found.append((until - START).total_seconds() if until else None)
    assert found == wait
