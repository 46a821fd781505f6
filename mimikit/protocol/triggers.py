"""The records of triggers: definitions, conditions, state, and the plans that make them."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from typing import Annotated, Any, Literal, Self, Unpack

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticKnownError

from mimikit.language.phrases import Limits
from mimikit.protocol.ids import ID_PATTERN
from mimikit.protocol.models import (
    MAX_TEXT,
    EndStatus,
    FailureReason,
    FileRef,
    Id,
    Instant,
    Notify,
    Origin,
    QueueName,
    Record,
    Task,
    Usage,
)
from mimikit.protocol.results import ResultFacts

MAX_NODES = 50


def _is_none(value: object) -> bool:
    return value is None


def _is_empty(values: list[Any]) -> bool:
    return not values


class Schedule(Record):
    """Exactly one of interval (seconds), cron, runAt; and limits of its slots."""

    interval: Annotated[float, Field(ge=1, le=366 * 86400)] | None = None
    cron: str | None = None
    timezone: str | None = None
    run_at: Instant | None = None
    starting: Annotated[Instant | None, Field(exclude_if=_is_none)] = None
    """The earliest slot."""
    until: Annotated[Instant | None, Field(exclude_if=_is_none)] = None
    """The latest slot; then the trigger is removed."""
    times: Annotated[int | None, Field(ge=1, le=1_000_000, exclude_if=_is_none)] = None
    """The number of runs; then the trigger is removed."""
    lateness: Annotated[float | None, Field(ge=0, le=366 * 86400, exclude_if=_is_none)] = None
    """A slot later than this many seconds is recorded as missed and not run."""
    every_days: Annotated[int | None, Field(ge=2, le=366, exclude_if=_is_none)] = None
    """Of a cron line: on every Nth day only, counted from the local date of `starting`."""
    every_weeks: Annotated[int | None, Field(ge=2, le=52, exclude_if=_is_none)] = None
    """Of a cron line: in every Nth week (from Monday) only, counted from the week of `starting`."""

    @property
    def limits(self) -> Limits:
        return Limits(**{field.name: getattr(self, field.name) for field in fields(Limits)})


class _Params(BaseModel):
    """The parameters of a condition; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Settle = Annotated[float | None, Field(ge=0, le=3600, exclude_if=_is_none)]
"""Seconds for which size and time of a file must rest before it counts; None: the setting."""


class FileChangedParameters(_Params):
    path: str
    settle: Settle = None
    fire_on_init: bool = Field(default=False, alias="fireOnInit", exclude_if=lambda on: not on)


class FileExistsParameters(_Params):
    path: str
    settle: Settle = None


class TaskParameters(_Params):
    task_id: str = Field(alias="taskId", pattern=ID_PATTERN)


class LlmEvalParameters(_Params):
    prompt: str = Field(min_length=1, max_length=2000)


class JoinedParameters(_Params):
    conditions: list[Condition] = Field(min_length=1, max_length=MAX_NODES)


class NotParameters(_Params):
    condition: Condition


class FileChanged(Record):
    type: Literal["file_changed"] = "file_changed"
    params: FileChangedParameters


class FileExists(Record):
    type: Literal["file_exists"] = "file_exists"
    params: FileExistsParameters


class TaskDone(Record):
    type: Literal["task_done"] = "task_done"
    params: TaskParameters


class TaskFailed(Record):
    type: Literal["task_failed"] = "task_failed"
    params: TaskParameters


class LlmEvalCondition(Record):
    type: Literal["llm_eval"] = "llm_eval"
    params: LlmEvalParameters


class AndCondition(Record):
    type: Literal["and"] = "and"
    params: JoinedParameters


class OrCondition(Record):
    type: Literal["or"] = "or"
    params: JoinedParameters


class NotCondition(Record):
    type: Literal["not"] = "not"
    params: NotParameters


class BrokenCondition(Record):
    """An invalid condition, stored unchanged; `triggers.conditions.check` says what is wrong."""

    type: str
    params: dict[str, Any] = Field(default_factory=dict)


def _read_condition(value: Any, read: ValidatorFunctionWrapHandler) -> object:
    """Validate a condition; an invalid one becomes a BrokenCondition."""
    if isinstance(value, Record):
        return read(value)
    if not isinstance(value, dict):
        raise PydanticKnownError("model_type", {"class_name": "Condition"})
    with contextlib.suppress(ValidationError):
        return read(value)
    return BrokenCondition.model_validate(value)


Condition = Annotated[
    Annotated[
        FileChanged
        | FileExists
        | TaskDone
        | TaskFailed
        | LlmEvalCondition
        | AndCondition
        | OrCondition
        | NotCondition,
        Field(discriminator="type"),
    ]
    | SkipJsonSchema[BrokenCondition],
    Field(union_mode="left_to_right"),
    WrapValidator(_read_condition),
]
"""On disk `{"type": …, "params": {…}}`."""


class Trigger(Record):
    """`triggers/{id}.json`: a definition that creates tasks; firing never rewrites it."""

    id: Id
    type: Literal["recurring", "scheduled", "conditional"]
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
    profile: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "standard"
    priority: Annotated[int, Field(ge=0, le=10)] = 5
    created_at: Instant
    origin: Origin = "file"
    timeout: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 1
    trace_id: Id
    parent_task_id: Id | None = None
    enabled: bool = True
    overlap: Literal["skip", "queue"] = "skip"
    once: bool = False
    role: QueueName = "worker"
    allow_triggers: bool = False
    notify: Notify | None = None
    """None: the default in `protocol.notify`."""
    notify_given: bool = False
    schedule: Schedule | None = None
    condition: Condition | None = None
    cooldown: Annotated[float, Field(ge=0, le=366 * 86400)] | None = None
    """Minimum seconds between firings; None: the condition's default."""
    remote: bool = False
    timezone: str | None = None
    """The user's; a schedule may have its own."""
    locale: str | None = None
    files: list[FileRef] = Field(default_factory=list[FileRef])
    """Of the message that it came from."""


class NodeVerdict(Record):
    """The last evaluation of a node of a condition."""

    holds: bool | None
    """None: unknown, or not evaluated."""
    why: str
    """Message id in `triggers.explain`, formatted with `facts`."""
    facts: dict[str, Any] = Field(default_factory=dict)
    at: Instant


class FiringIntent(Record):
    """A firing that was decided; applied idempotently."""

    slot: str
    task: Task
    fired_at: Instant
    planned_at: Instant | None = None
    missed: int = 0
    seen: dict[str, Any] = Field(default_factory=dict)
    fired_by: list[str] = Field(default_factory=list[str], exclude_if=_is_empty)
    change_fires: list[Instant] = Field(default_factory=list[Instant], exclude_if=_is_empty)


class NodeAnswer(Record):
    """A model's answer to an `llm_eval` node."""

    result: bool
    at: Instant


class EndIntent(Record):
    """The consequences of a finished run of a trigger; decided once, applied idempotently."""

    told: Literal["teller", "message"] | None = None
    not_before: Instant | None = None
    """When coalesced results are reported."""
    trips: bool = False


class LastRun(Record):
    task_id: Id
    status: EndStatus
    at: Instant
    failure_reason: FailureReason | None = None
    error: str | None = None


class TriggerState(Record):
    """`triggers/state/{id}.json`, written by the consumer."""

    last_run_at: Instant | None = None
    next_run_at: Instant | None = None
    last_triggered_at: Instant | None = None
    last_eval_at: Instant | None = None
    seen: dict[str, Any] = Field(default_factory=dict)
    initialized: bool = False
    fire_count: int = 0
    request_count: int = Field(default=0, exclude_if=lambda count: not count)
    """Runs on request, which are no firings."""
    schedule_fires: int = Field(default=0, exclude_if=lambda count: not count)
    """Firings since the schedule was last changed, for its `times`."""
    last_task_id: Id | None = None
    last_verdict: str | None = None
    verdicts: dict[str, NodeVerdict] = Field(default_factory=dict[str, NodeVerdict])
    """By node path."""
    answers: dict[str, NodeAnswer] = Field(default_factory=dict[str, NodeAnswer])
    """By node path."""
    false_streak: int = 0
    """Consecutive "no" answers of a model: each lengthens the interval between questions."""
    settled_run: Annotated[Id | None, Field(exclude_if=_is_none)] = None
    """The run whose own changes of files were noted as seen."""
    fired_by: list[str] = Field(default_factory=list[str], exclude_if=_is_empty)
    """The files that fired the last run, and were not changed during the one before it."""
    change_fires: list[Instant] = Field(default_factory=list[Instant], exclude_if=_is_empty)
    """The latest firings by changes of files, and those of other triggers that led to them."""
    firing: FiringIntent | None = None
    """Set while a firing is applied, so that recovery can finish it."""
    paused: bool = False
    """Whether it was paused at the last check: slots since then are skipped, not missed."""
    last_outcome: str | None = None
    """Hash of the last run's status and text, for `notify: change`."""
    changes: int = Field(default=0, exclude_if=lambda count: not count)
    """How many runs ended otherwise than the one before."""
    last_failure: str | None = None
    """Hash of the last run's failure; None: it succeeded."""
    failure_streak: int = 0
    """Consecutive runs that failed in the same way."""
    last_end: LastRun | None = None
    paused_by: Literal["breaker"] | None = None
    """None: the user."""
    told_at: Instant | None = None
    """When a run of a standing condition was last reported, or will be."""
    ends: dict[Id, EndIntent] = Field(default_factory=dict[str, EndIntent])
    """By run id, until applied."""
    blocked_by: Id | None = None
    last_good: dict[str, Any] | None = None
    """The last valid definition, which stays active while the user's file is invalid."""


class PlannedCommand(Record):
    """A change to a trigger that is part of a plan."""

    action: Literal["trigger_pause", "trigger_resume", "trigger_run", "trigger_edit"]
    target: Id
    args: dict[str, Any] = Field(default_factory=dict)


class PlanResult(Record):
    """The commit record of a Planner run: `planner/results/{id}.json`."""

    id: Id
    status: Literal["done", "needs_input", "failed", "canceled"]
    summary: str | None = None
    tasks: list[Task] = Field(default_factory=list[Task])
    triggers: list[Trigger] = Field(default_factory=list[Trigger])
    cancels: list[Id] = Field(default_factory=list[str])
    commands: list[PlannedCommand] = Field(
        default_factory=list[PlannedCommand],
        validation_alias="orders",
        serialization_alias="orders",
    )
    question: str | None = None
    options: list[str] | None = None
    default: str | None = None
    question_timeout: float = 3600
    error: str | None = None
    failure_reason: FailureReason | None = None
    attempts: int = 1
    turn_id: Id
    trace_id: Id
    started_at: Instant
    completed_at: Instant
    usage: Usage = Usage()
    engine: str = ""

    @classmethod
    def of(cls, task: Task, status: EndStatus, **end: Unpack[ResultFacts]) -> Self:
        return cls(id=task.id, status=status, turn_id=task.id, trace_id=task.trace_id, **end)
