"""Who is notified of a result."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mimikit.protocol.models import InboxItem, Task, TurnRecord
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import TriggerState
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
def test_notification_by_setting_and_status(
    notify: Any, status: Any, before: TriggerState | None, told: str | None
) -> None:
    assert reporter_of(TASK.but(notify=notify), RESULT.but(status=status), before) == told


@pytest.mark.parametrize("notify", ["teller", "message", "change", "failure", "none"])
def test_a_reminder_is_always_a_message(notify: Any) -> None:
    assert reporter_of(TASK.but(notify=notify, profile="reminder"), RESULT, SAME) == "message"


def test_repeated_failures_are_reported_each_time() -> None:
    failed = RESULT.but(status="failed", result={}, error="it broke")
    before = TriggerState(last_outcome=outcome_hash(failed))
    assert reporter_of(TASK.but(notify="change"), failed, before) == "message"


@pytest.mark.parametrize("notify", ["teller", "message", "change", "failure", "none"])
def test_internal_tasks_are_not_reported(notify: Any) -> None:
    task = TASK.but(notify=notify, internal=True)
    assert reporter_of(task, RESULT.but(status="failed"), None) is None


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
