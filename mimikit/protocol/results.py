"""How tasks end, as it lies on disk: the result of each, and the index of all."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict, Unpack

from pydantic import Field

from mimikit.errors import ErrorParameter
from mimikit.protocol.models import (
    Command,
    EndStatus,
    FailureReason,
    Id,
    Instant,
    Record,
    Task,
    Usage,
)
from mimikit.protocol.paths import QueueName

ResultType = Literal["text", "code_change", "analysis", "summary"]


class ResultFacts(TypedDict):
    """What a task's result and a plan's say alike of how their run ended."""

    attempts: int
    started_at: datetime
    completed_at: datetime
    failure_reason: NotRequired[FailureReason | None]
    error: NotRequired[str | None]


class TaskResult(Record):
    """How a Worker task ended. Lives in `worker/results`."""

    id: Id
    status: EndStatus
    result_type: ResultType = "text"
    result: dict[str, Any] = Field(default_factory=dict)
    error: str | None = None
    failure_reason: FailureReason | None = None
    attempts: int = 1
    exit_code: int | None = None
    trace_id: Id
    parent_task_id: Id | None = None
    source_trigger_id: Id | None = None
    internal: bool = False
    started_at: Instant
    completed_at: Instant
    duration_ms: Annotated[int, Field(ge=0)] = 0
    usage: Usage = Usage()
    engine: str = ""
    session_id: str | None = None
    diff: str | None = None
    """Where what it changed in the workspace lies: `side/diffs/{task}.json`."""

    @classmethod
    def of(cls, task: Task, status: EndStatus, **end: Unpack[ResultFacts]) -> Self:
        """How this task ended; what only its engine knows is added by `but`."""
        duration = end["completed_at"] - end["started_at"]
        return cls(
            id=task.id,
            status=status,
            trace_id=task.trace_id,
            parent_task_id=task.parent_task_id,
            source_trigger_id=task.source_trigger_id,
            internal=task.internal,
            duration_ms=max(0, int(duration.total_seconds() * 1000)),
            **end,
        )

    @property
    def text(self) -> str:
        """The result's text, or the error's, for those who only show it."""
        text = self.result.get("text")
        return text if isinstance(text, str) and text else (self.error or "")


class StatusEntry(Record):
    id: Id
    status: EndStatus
    completed_at: Instant
    result_id: Id
    source_trigger_id: Id | None = None
    failure_reason: FailureReason | None = None
    trace_id: Id
    seat: QueueName = "worker"
    retry_of: Id | None = None


class StatusCheckpoint(Record):
    """`task_status.json`: the index as of one position of the ledger."""

    schema_version: int = 1
    ledger_file: str = ""
    ledger_offset: int = 0
    entries: dict[str, StatusEntry] = Field(default_factory=dict[str, StatusEntry])
    at_it: dict[str, str] = Field(default_factory=dict[str, str])
    """Trigger, or task that is repeated → its run that had not ended."""
    queued: dict[str, str] = Field(default_factory=dict[str, str])
    traces: dict[str, int] = Field(default_factory=dict[str, int])
    """How many tasks each trace had."""


class CommandResult(Record):
    """`commands/done/{id}.json`: the order and what came of it."""

    command: Command = Field(validation_alias="order", serialization_alias="order")
    ok: bool
    message: str
    code: str = ""
    """What was in the way, for a program that has words of its own."""
    params: dict[str, ErrorParameter] = Field(default_factory=dict[str, ErrorParameter])
    """What belongs to those words."""
    result_id: str | None = None
    applied_at: Instant
