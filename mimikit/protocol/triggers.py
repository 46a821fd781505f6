"""Triggers as they lie on disk: their conditions, their state, and the plans that make them."""

from __future__ import annotations

import contextlib
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
    SentFiles,
    Task,
    Usage,
)
from mimikit.protocol.results import ResultFacts

MAX_NODES = 50
"""Of one condition."""


class Schedule(Record):
    """When a trigger is due. Exactly one of interval, cron, runAt. Units: seconds."""

    interval: Annotated[float, Field(ge=1, le=366 * 86400)] | None = None
    cron: str | None = None
    timezone: str | None = None
    run_at: Instant | None = None


class _Params(BaseModel):
    """What a condition of one type takes, by its names on disk; anything else is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileChangedParameters(_Params):
    path: str
    fire_on_init: bool = Field(default=False, alias="fireOnInit", exclude_if=lambda on: not on)


class FileExistsParameters(_Params):
    path: str


class TaskParameters(_Params):
    task_id: str = Field(alias="taskId", pattern=ID_PATTERN)
    """Of a task or of a trigger."""


class WebhookParameters(_Params):
    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")
    """Of a webhook in the settings; one that is not there yet may come."""


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


class WebhookCondition(Record):
    type: Literal["webhook"] = "webhook"
    params: WebhookParameters


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
    """What is no condition that is known here, as it was given.

    It is kept, so that the record around it can be read and written back whole;
    `triggers.conditions.check` says what is wrong with it.
    """

    type: str
    params: dict[str, Any] = Field(default_factory=dict)


def _read_condition(given: Any, read: ValidatorFunctionWrapHandler) -> object:
    """Typed if it can be, else as it was given."""
    if isinstance(given, Record):
        return read(given)
    if not isinstance(given, dict):
        raise PydanticKnownError("model_type", {"class_name": "Condition"})
    if _has_few_nodes(given):
        with contextlib.suppress(ValidationError):
            return read(given)
    return BrokenCondition.model_validate(given)


def _has_few_nodes(given: Any) -> bool:
    """Whether a tree may be walked: one object that stands in many places makes it huge."""
    waiting: list[Any] = [given]
    nodes = 0
    while waiting and nodes <= MAX_NODES:
        nodes += 1
        match waiting.pop():
            case {"params": {"conditions": [*inner]}}:
                waiting += inner[: MAX_NODES + 1]
            case {"params": {"condition": inner}}:
                waiting.append(inner)
            case _:
                pass
    return nodes <= MAX_NODES


Condition = Annotated[
    Annotated[
        FileChanged
        | FileExists
        | TaskDone
        | TaskFailed
        | WebhookCondition
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
"""What must hold for a conditional trigger. On disk `{"type": …, "params": {…}}`."""


class Trigger(Record):
    """A stored definition that makes tasks. Lives in `triggers/`; firing never rewrites it."""

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
    """None: as `protocol.notify` has it for what this trigger is."""
    notify_given: bool = False
    """As of a task: somebody said so."""
    schedule: Schedule | None = None
    condition: Condition | None = None
    cooldown: Annotated[float, Field(ge=0, le=366 * 86400)] | None = None
    """Seconds after a firing in which it does not fire again; None means the condition's own."""
    remote: bool = False
    """As of a task: what asked for it came by a page where commands were off."""
    timezone: str | None = None
    """Its user's; a schedule may have another."""
    locale: str | None = None
    """As of a task."""
    files: SentFiles = Field(default_factory=list[FileRef])
    """As of a task: its runs have them."""

    @property
    def stays(self) -> bool:
        """Whether it is there to fire again, once it has fired."""
        is_at_a_time = self.schedule is not None and self.schedule.run_at is not None
        return not (self.once or is_at_a_time)


class NodeVerdict(Record):
    """What one node of a condition was found to be when it last changed."""

    holds: bool | None
    """None: not known, or not looked at since the others decided."""
    why: str
    """A word of `triggers.explain`, which `facts` complete."""
    facts: dict[str, Any] = Field(default_factory=dict)
    at: Instant


class FiringIntent(Record):
    """A firing that has been decided on and is carried out, however often that begins anew."""

    slot: str
    task: Task
    fired_at: Instant
    planned_at: Instant | None = None
    missed: int = 0
    seen: dict[str, Any] = Field(default_factory=dict)
    """What the condition's nodes will have used up."""


class NodeAnswer(Record):
    """What a model said of one `llm_eval` node."""

    result: bool
    at: Instant


class EndIntent(Record):
    """What the end of a trigger's run comes to; decided once, carried out however often."""

    told: Literal["teller", "message"] | None = None
    not_before: Instant | None = None
    """It is told then, together with what else has come of the trigger."""
    changed: bool = False
    """It came out otherwise than the run before; the first one did not."""
    trips: bool = False
    """The circuit breaker pauses the trigger."""


class LastRun(Record):
    """How the run of a trigger that ended last went."""

    task_id: Id
    status: EndStatus
    at: Instant
    failure_reason: FailureReason | None = None
    error: str | None = None
    """In one line."""


class TriggerState(Record):
    """What the consumer knows of a trigger. Lives in `triggers/state/`."""

    last_run_at: Instant | None = None
    next_run_at: Instant | None = None
    last_triggered_at: Instant | None = None
    last_eval_at: Instant | None = None
    seen: dict[str, Any] = Field(default_factory=dict)
    initialized: bool = False
    fire_count: int = 0
    last_task_id: Id | None = None
    last_verdict: str | None = None
    verdicts: dict[str, NodeVerdict] = Field(default_factory=dict[str, NodeVerdict])
    """By node path, of a conditional trigger."""
    answers: dict[str, NodeAnswer] = Field(default_factory=dict[str, NodeAnswer])
    """By node path: what a model answered last."""
    false_streak: int = 0
    """How often in a row a model said no while nothing changed: it is asked ever less often."""
    firing: FiringIntent | None = None
    """Set between the decision to fire and its end; a crash in between is made good by it."""
    paused: bool = False
    """It was seen paused: the slots since then are skipped, not missed."""
    last_outcome: str | None = None
    """A hash of the last run's status and text, for `notify: change`."""
    last_failure: str | None = None
    """A hash of why the last run failed; None: it did not."""
    failure_streak: int = 0
    """So many runs in a row failed in the same way."""
    last_end: LastRun | None = None
    paused_by: Literal["breaker"] | None = None
    """Who paused it, where that was not its user."""
    told_at: Instant | None = None
    """When a run of a standing condition was told last, or is to be told next."""
    ends: dict[Id, EndIntent] = Field(default_factory=dict[str, EndIntent])
    """By run, until its end is carried out."""
    blocked_by: Id | None = None
    last_good: dict[str, Any] | None = None
    """The definition as it was last valid: it stays active when its user breaks the file."""


class PlannedCommand(Record):
    """A change of a trigger that a plan asks for."""

    action: Literal["trigger_pause", "trigger_resume", "trigger_run", "trigger_edit"]
    target: Id
    args: dict[str, Any] = Field(default_factory=dict)


class PlanResult(Record):
    """A Planner run's commit record: the whole plan or none of it. Lives in `planner/results`."""

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
        """How this run ended; what it planned is added by `but`."""
        return cls(id=task.id, status=status, turn_id=task.id, trace_id=task.trace_id, **end)
