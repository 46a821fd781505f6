"""Who is told of a result, and in how many words."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mimikit.protocol.models import InboxItem, Task, TurnRecord
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult, TriggerState
from mimikit.supervisor.code_turns import message_turn, result_notice
from mimikit.supervisor.run_end import outcome_hash, reporter_of
from tests.support.product import START

TASK = Task(id="t1", prompt="do it", created_at=START, trace_id="r")
RESULT = TaskResult(
    id="t1", status="done", trace_id="r", started_at=START, completed_at=START,
    result={"text": "same"},
)  # fmt: skip
SAME = TriggerState(last_outcome=outcome_hash(RESULT))
OTHER = TriggerState(last_outcome="0123456789abcdef")


@pytest.mark.parametrize(
    ("notify", "status", "before", "told"),
    [
        ("teller", "done", None, "teller"),
        ("teller", "failed", None, "teller"),
        ("teller", "canceled", None, "message"),
        ("message", "done", None, "message"),
        ("message", "failed", None, "message"),
        ("message", "canceled", None, "message"),
        ("failure", "done", None, None),
        ("failure", "failed", None, "message"),
        ("failure", "canceled", None, None),
        ("none", "failed", None, None),
        ("change", "done", None, "message"),
        ("change", "done", TriggerState(), "message"),
        ("change", "done", SAME, None),
        ("change", "done", OTHER, "message"),
        ("change", "failed", OTHER, "message"),
    ],
)
def test_who_is_told(
    notify: Any, status: Any, before: TriggerState | None, told: str | None
) -> None:
    assert reporter_of(TASK.but(notify=notify), RESULT.but(status=status), before) == told


@pytest.mark.parametrize("notify", ["teller", "message", "change", "failure", "none"])
def test_a_reminder_is_always_told_by_code(notify: Any) -> None:
    assert reporter_of(TASK.but(notify=notify, profile="reminder"), RESULT, SAME) == "message"


def test_a_failure_is_told_again_and_again() -> None:
    failed = RESULT.but(status="failed", result={}, error="it broke")
    before = TriggerState(last_outcome=outcome_hash(failed))
    assert reporter_of(TASK.but(notify="change"), failed, before) == "message"


@pytest.mark.parametrize("notify", ["teller", "message", "change", "failure", "none"])
def test_nobody_hears_of_internal_work(notify: Any) -> None:
    task = TASK.but(notify=notify, internal=True)
    assert reporter_of(task, RESULT.but(status="failed"), None) is None


def test_an_outcome_is_its_status_and_text() -> None:
    same = outcome_hash(RESULT)
    assert outcome_hash(RESULT.but(id="t2", duration_ms=5)) == same
    assert outcome_hash(RESULT.but(result={"text": "new"})) != same
    assert outcome_hash(RESULT.but(status="failed")) != same


def test_a_result_is_told_with_what_was_asked() -> None:
    told = result_notice(TASK, RESULT.but(status="failed", failure_reason="timeout"))
    assert (told.title, told.prompt, told.seat, told.status) == (
        "do it",
        "do it",
        "worker",
        "failed",
    )
    assert (told.text, told.failure_reason, told.task_id) == ("same", "timeout", "t1")
    plan = PlanResult(
        id="t1", status="done", turn_id="t1", trace_id="r", started_at=START,
        completed_at=START, summary="found it",
    )  # fmt: skip
    told = result_notice(TASK.but(title="search"), plan)
    assert (told.title, told.seat, told.text) == ("search", "planner", "found it")


def test_several_results_make_one_message_that_names_them_all() -> None:
    items = [
        InboxItem(id=f"res-t{n}", kind="task_result", created_at=START, task_id=f"t{n}")
        for n in (1, 2)
    ]
    told = [result_notice(TASK.but(id=f"t{n}", title=f"job {n}"), RESULT) for n in (1, 2)]
    base = TurnRecord(id="turn-x", author="code", started_at=START, completed_at=START)
    zone = ZoneInfo("UTC")
    turn = message_turn(items, told, "en", base, zone)
    assert turn.consumed == ["res-t1", "res-t2"]
    (message,) = turn.messages
    assert (message.role, message.task_ids, message.turn_id) == ("system", ["t1", "t2"], "turn-x")
    assert "job 1" in message.text
    assert "job 2" in message.text
    assert message_turn(items, told, "en", base, zone) == turn
    assert message_turn(items, told, "zh", base, zone).messages[0].text != message.text
