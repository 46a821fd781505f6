"""The records of results, changes in the workspace, and token usage.

`usage/YYYY-MM-DD.jsonl` has a line per attempt, by the user's calendar day;
`usage/months/YYYY-MM.json` has the sums of each past day.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict, Unpack

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass

from mimikit.protocol.models import EndStatus, FailureReason, Id, Instant, Record, Role, Task, Usage
from mimikit.protocol.paths import QueueName

ResultType = Literal["text", "code_change", "analysis", "summary"]


class ResultFacts(TypedDict):
    """Fields that a task result and a plan share."""

    attempts: int
    started_at: datetime
    completed_at: datetime
    failure_reason: NotRequired[FailureReason | None]
    error: NotRequired[str | None]


class TaskResult(Record):
    """The result of a Worker task: `worker/results/{task}.json`."""

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
    """Path of its `TaskDiff`: `side/diffs/{task}.json`."""

    @classmethod
    def of(cls, task: Task, status: EndStatus, **end: Unpack[ResultFacts]) -> Self:
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
        text = self.result.get("text")
        return text if isinstance(text, str) and text else (self.error or "")


@dataclass(
    frozen=True,
    slots=True,
    kw_only=True,
    config=ConfigDict(alias_generator=to_camel, populate_by_name=True),
)
class StatusEntry:
    """How a task ended. Not a record, as the ledger has 10,000 and more in memory."""

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
    """`task_status.json`: the index of task states up to a position of the ledger."""

    schema_version: int = 1
    ledger_file: str = ""
    ledger_offset: int = 0
    entries: dict[str, StatusEntry] = Field(default_factory=dict[str, StatusEntry])
    at_it: dict[str, str] = Field(default_factory=dict[str, str])
    """Trigger, or retried task → its run in progress."""
    queued: dict[str, str] = Field(default_factory=dict[str, str])
    traces: dict[str, int] = Field(default_factory=dict[str, int])
    """Trace → number of its tasks."""


class RunUsage(Record):
    """The usage of one attempt; lines of one id count once."""

    id: Id
    at: Instant
    run_id: Id
    attempt: int
    role: Role
    profile: str = ""
    engine: str
    model: str = ""
    trigger_id: Id | None = None
    usage: Usage = Usage()
    estimated: bool = False
    """Whether the engine reported no usage, or not all of it."""


class UsageSum(Record):
    """The usage of a day's runs of one kind."""

    engine: str
    model: str = ""
    role: Role
    profile: str = ""
    trigger_id: Id | None = None
    runs: int = 0
    estimated: int = 0
    """How many of the runs are estimated."""
    usage: Usage = Usage()


class UsageMonth(Record):
    """The usage of a month's past days, by day (`2026-11-23`)."""

    schema_version: int = 1
    days: dict[str, list[UsageSum]] = Field(default_factory=dict[str, list[UsageSum]])


FileAction = Literal["added", "modified", "deleted", "renamed"]
Count = Annotated[int, Field(ge=0)]


class DiffHunk(Record):
    """Changed lines with context. Numbers are 1-based; 0 where a side has none."""

    old_start: Count
    old_lines: Count
    new_start: Count
    new_lines: Count
    lines: list[str]
    """Each begins with a space, `-`, `+`, or `\\` (no newline at the end of the line before).
    Bytes that are not UTF-8 are written as `\\xe9`."""


class FileDiff(Record):
    """The change of one file. Sizes in bytes; None where the file did not, or does not, exist."""

    path: str
    """Relative to the workspace."""
    action: FileAction
    from_path: str | None = None
    added: Count = 0
    removed: Count = 0
    old_size: int | None = None
    new_size: int | None = None
    old_mode: str | None = None
    new_mode: str | None = None
    """Permissions (`644`), where they changed."""
    unshown: Literal["binary", "big", "unknown"] | None = None
    """Why its content is not shown; unknown: the old content was not recorded."""
    cut_lines: Count = 0
    shared: bool = False
    """Other tasks ran at the same time and may have made this change."""
    attempt: Annotated[int, Field(ge=1)] = 1
    hunks: list[DiffHunk] = Field(default_factory=list[DiffHunk])

    @property
    def summary(self) -> str:
        """`+3 −1`, or why no lines are shown."""
        if self.unshown is not None:
            return self.unshown
        return f"+{self.added} −{self.removed}"


class TaskDiff(Record):
    """`side/diffs/{task}.json`: what the attempts of a task changed, oldest first."""

    schema_version: int = 1
    id: Id
    files: list[FileDiff] = Field(default_factory=list[FileDiff])
    more_files: Count = 0
    """Changed files that are not listed."""
    unseen: list[str] = Field(default_factory=list[str])
    """Folders that were not compared: too large, not readable, or regenerated by programs."""
    interrupted: Count = 0
    """Attempts interrupted by a stop of mimikit: their changes may be missing."""

    def then(self, later: TaskDiff) -> TaskDiff:
        more_files = self.more_files + later.more_files
        return later.but(files=[*self.files, *later.files], more_files=more_files)
