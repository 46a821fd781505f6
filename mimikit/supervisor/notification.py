"""Who is told of a result, and the plain messages that need no mind. Pure.

Source: spec 0, "Who is told what".
"""

from __future__ import annotations

import hashlib
from typing import Literal

from mimikit.language import phrases
from mimikit.language.phrases import ToldResult
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import InboxItem, Message, Task, TaskResult, TurnRecord
from mimikit.protocol.triggers import PlanResult, TriggerState

Told = Literal["teller", "message"]
MAX_TOLD_AT_ONCE = 20


def telling(task: Task, result: TaskResult, before: TriggerState | None) -> Told | None:
    """Who tells this result: the Teller, a plain message, or nobody."""
    if task.internal or task.notify == "none":
        return None
    if task.notify == "teller":
        return "message" if result.status == "canceled" else "teller"
    if task.notify == "failure":
        return "message" if result.status == "failed" else None
    if task.notify == "change":
        # No outcome yet: the first run, which is a change.
        changed = before is None or before.last_outcome != outcome_hash(result)
        return "message" if changed or result.status == "failed" else None
    return "message"


def outcome_hash(result: TaskResult) -> str:
    """What `notify: change` compares: status and text."""
    return hashlib.sha256(f"{result.status}\x00{result.text}".encode()).hexdigest()[:16]


def told_result(task: Task, outcome: TaskResult | PlanResult) -> ToldResult:
    """A result with what was asked, for an input or a message."""
    is_plan = isinstance(outcome, PlanResult)
    return ToldResult(
        title=task.title or task.prompt[:60],
        prompt=task.prompt,
        seat="planner" if is_plan else "worker",
        status=outcome.status,
        text=(outcome.summary or "") if is_plan else outcome.text,
        error=outcome.error,
        failure_reason=outcome.failure_reason,
        task_id=task.id,
    )


def message_turn(
    items: list[InboxItem], told: list[ToldResult], language: str, record_base: TurnRecord
) -> TurnRecord:
    """The turn by which code tells results: one message, no mind, consuming their entries."""
    text = phrases.results(told, language)
    return record_base.but(
        consumed=[item.id for item in items],
        messages=[system_message(record_base, text, task_ids=[r.task_id for r in told])],
    )


def system_message(record: TurnRecord, text: str, *, task_ids: list[str]) -> Message:
    """A message of the system's own."""
    return Message(
        id=derived_id("msg", record.id, "system"),
        role="system",
        text=text,
        created_at=record.completed_at,
        turn_id=record.id,
        task_ids=task_ids,
    )
