"""The base class of the records on disk, and most records.

Keys are camelCase on disk. Unknown keys are kept, so a rewrite by an older version loses nothing.
Times are UTC with milliseconds. Records are frozen: `record.but(...)` makes a changed copy.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from mimikit.protocol.ids import ID_PATTERN
from mimikit.protocol.json import Json
from mimikit.protocol.paths import QueueName

MAX_TEXT = 200_000
MAX_FILES = 10
"""Of one message."""
FIRST_TIME, END_OF_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def to_utc(value: datetime) -> datetime:
    """Convert to UTC, cut to milliseconds; ValueError when out of range. No zone means UTC."""
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if not FIRST_TIME <= aware < END_OF_TIME:
        raise PydanticCustomError("bad_time", "expected a time between the years 1970 and 2200")
    aware = aware.astimezone(UTC)
    rest = aware.microsecond % 1000
    return aware.replace(microsecond=aware.microsecond - rest) if rest else aware


def parse_time(text: object) -> datetime | None:
    """An instant in ISO 8601; None for anything else."""
    with contextlib.suppress(ValueError):
        return to_utc(datetime.fromisoformat(text)) if isinstance(text, str) else None
    return None


def time_text(value: datetime) -> str:
    """Format an instant: `2026-01-28T09:30:00.000Z`."""
    return to_utc(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Instant = Annotated[datetime, AfterValidator(to_utc), PlainSerializer(time_text, return_type=str)]
Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]

Role = Literal["teller", "planner", "worker"]
Origin = Literal[
    "teller", "planner", "cli", "http", "trigger", "supervisor", "file", "builtin", "self_awake"
]
Notify = Literal["teller", "message", "change", "failure", "none"]
EndStatus = Literal["done", "failed", "canceled"]
REMINDER = "reminder"
"""The profile of a reminder: its prompt is sent as a message, without an engine."""
FailureReason = Literal[
    "timeout", "error", "killed", "canceled",
    "engine_unavailable", "rate_limited", "budget", "refused", "upstream",
]  # fmt: skip
"""upstream: a chain step that was skipped, because one before it failed or was canceled."""


class Record(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
    )

    def to_json(self) -> bytes:
        return self.model_dump_json(indent=2, by_alias=True).encode() + b"\n"

    def to_dict(self) -> dict[str, Json]:
        """Plain data, as on disk and over HTTP."""
        return self.model_dump(mode="json", by_alias=True)

    def but(self, **changes: object) -> Self:
        """A validated copy with some fields changed; unknown keys are kept."""
        return type(self).model_validate({**dict(self), **changes})


class Usage(Record):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    """Part of the input."""
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    """Part of the output."""

    def __add__(self, other: Usage) -> Usage:
        names = Usage.model_fields
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class SummaryScope(Record):
    """The scope of a summary run."""

    kind: Literal["day", "month"]
    name: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$")]
    """The day or the month: `2026-01-28`, `2026-01`."""
    sources: list[str]
    """Ids of messages, notes and partial summaries, or names of files."""
    attempt: Annotated[int, Field(ge=0)] = 0


class FileRef(Record):
    """A file that the user sent: `files/{id}`."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}\.[a-z]{3,4}$")]
    """The first half of its SHA-256, and an extension by its content."""
    name: Annotated[str, StringConstraints(max_length=200)]
    kind: Literal["text", "image", "other"]
    """By its content; `other` is kept, and read by nothing but the programs of tasks."""
    bytes: Annotated[int, Field(ge=0)]


class EngineSession(Record):
    """The engine session of a task, which a retry can resume."""

    engine: str
    id: str


class Task(Record):
    """A unit of work: `planner|worker/queue|running/{id}.json`."""

    id: Id
    type: Literal["oneshot"] = "oneshot"
    role: QueueName = "worker"
    profile: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "standard"
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
    priority: Annotated[int, Field(ge=0, le=10)] = 5
    created_at: Instant
    attempts: Annotated[int, Field(ge=0)] = 0
    """Finished attempts; being in `running/` is one more."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 1
    timeout: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    """Seconds; None: the role's default."""
    trace_id: Id
    parent_task_id: Id | None = None
    source_trigger_id: Id | None = None
    source_trigger_ids: list[Id] | None = None
    triggered_at: Instant | None = None
    not_before: Instant | None = None
    internal: bool = False
    retry_of: Id | None = None
    released: bool = False
    """Set while a task moves from `running/` back to the queue for its next attempt."""
    engine_session: EngineSession | None = None
    waits_for: str | None = None
    """The engine that was unavailable at the last attempt, or `budget:day`, `budget:trigger`."""
    interruptions: Annotated[int, Field(ge=0)] = 0
    """How often the consumer died during a run; at the third the task fails."""
    trigger_origin: Origin | None = None
    """The origin of the trigger, for a trigger's run."""
    allow_triggers: bool = False
    """Whether a trigger's Planner run may create triggers."""
    upstream: list[Id] = Field(default_factory=list[str])
    """Tasks whose results its prompt contains."""
    timezone: str | None = None
    """Of its user, or of the trigger that made it."""
    locale: str | None = None
    """Language tag with script, as `zh-Hant`."""
    covers: SummaryScope | None = None
    improvement: Id | None = None
    """The run of self-awake that it belongs to."""
    notify: Notify = "message"
    notify_given: bool = False
    """Whether `notify` was set explicitly; else it is a default."""
    origin: Origin = "file"
    remote: bool = False
    """Requested through a page that other machines can reach, where commands are disabled."""
    files: list[FileRef] = Field(default_factory=list[FileRef])
    """Of the message that it came from."""


class Message(Record):
    id: Id
    role: Literal["user", "agent", "system"]
    text: str
    created_at: Instant
    archived: bool | Literal["pending"] = False
    archive_attempts: int = 0
    archive_failed_at: Instant | None = None
    archive_next_at: Instant | None = None
    archive_task: Id | None = None
    """While pending: the run that summarises it; None: it is summarised without an engine."""
    turn_id: Id | None = None
    in_reply_to: list[Id] = Field(default_factory=list[str])
    task_ids: list[Id] = Field(default_factory=list[str])
    usage: Usage | None = None
    duration_ms: int | None = None
    quote: str | None = None
    files: list[FileRef] = Field(default_factory=list[FileRef])
    engine: str | None = None
    trigger_id: Id | None = None
    """It only reports runs of this trigger; views collapse such messages into one line."""
    withheld: bool = False
    """A content filter refused it: it is in no later prompt."""
    failed: bool = False
    """It reports a failed turn; the messages it replies to can be retried."""
    stopped: bool = False
    """The user stopped the reply; the text is what had come of it, or says so."""
    error: str | None = None
    """Why the turn failed, if the text is what had come of the reply."""
    question_id: Id | None = None
    """The question that it asks, or answers."""
    options: list[str] = Field(default_factory=list[str])
    """Of the question that it asks."""
    reminder: str | None = None

    @property
    def is_by_code(self) -> bool:
        """Written by code, not by a user or a model; not added to memory."""
        return self.role == "system" or self.engine == "builtin"


class History(Record):
    """`history.json`: the working set of the conversation."""

    schema_version: int = 1
    messages: list[Message] = Field(default_factory=list[Message])


class InboxItem(Record):
    """A message, an answer or a task result that the Teller has not handled yet."""

    id: Id
    kind: Literal["user_input", "answer", "task_result"] = "user_input"
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = ""
    created_at: Instant
    question_id: Id | None = None
    timezone: str | None = None
    locale: str | None = None
    quote: str | None = None
    files: list[FileRef] = Field(default_factory=list[FileRef], max_length=MAX_FILES)
    task_id: Id | None = None
    seat: QueueName | None = None
    notify: Notify = "teller"
    trace_id: Id | None = None
    trigger_id: Id | None = None
    not_before: Instant | None = None
    """Until then results of the same trigger are coalesced."""
    tripped: int = 0
    """The number of failures at which the circuit breaker paused the trigger."""
    steps: Annotated[list[str], Field(max_length=20)] = Field(default_factory=list[str])
    """Titles of the chain steps that are skipped because of this result."""
    remote: bool = False


class Question(Record):
    """`pending_question.json`: the open question to the user."""

    question_id: Id
    question: str
    options: list[str] = Field(default_factory=list[str])
    default: str | None = None
    timeout: float = 3600
    """Seconds."""
    created_at: Instant
    expires_at: Instant
    planner_task_id: Id | None = None
    trace_id: Id | None = None


class RememberedNote(Record):
    id: Id
    content: str
    long_term: bool = False


class ForgottenNote(Record):
    path: str
    note_id: Id | None = None
    """None: a line that the user wrote."""
    content: str


class BacklogChange(Record):
    id: Id
    action: Literal["add", "done", "remove"]
    item: str


class RoutedAnswer(Record):
    """An answer of the user, passed to a new Planner task."""

    question_id: Id
    text: str
    remote: bool = False
    by_user: bool = False
    """The user's own words, not quoted by a model."""


class Hit(Record):
    """A search result; in a turn's record, a passage in its prompt."""

    source: str
    """`memory/2026-01-28-deploy.md`, `docs/setup.md` (in the workspace), …"""
    text: str
    """The whole passage; in a turn's record, an excerpt."""
    line: int = 0
    """1-based; 0 where there are no lines."""
    kind: str = "memory"
    """`memory`, `summary`, `docs`, `transcript` or `result`."""
    day: date | None = None
    # Not written to disk.
    score: Annotated[float, Field(exclude=True)] = 0.0
    """Above 0; comparable within one search only."""
    snippet: Annotated[str, Field(exclude=True)] = ""
    """At most 300 characters around the best match."""
    message_id: Annotated[str | None, Field(exclude=True)] = None
    role: Annotated[str | None, Field(exclude=True)] = None
    task_id: Annotated[str | None, Field(exclude=True)] = None


class TurnRecord(Record):
    """The commit record of a turn, with all its effects: `turns/new/{id}.json`, `turns/done`."""

    schema_version: int = 1
    id: Id
    author: Literal["teller", "code"]
    """code: no engine was needed, for results, routed answers, and turns that failed twice."""
    attempt: int = 1
    consumed: list[Id] = Field(default_factory=list[str])
    """Inbox ids that this turn handles; removed last."""
    messages: list[Message] = Field(default_factory=list[Message])
    tasks: list[Task] = Field(default_factory=list[Task])
    """Planner tasks with ids derived from the turn's."""
    question: Question | None = None
    closes_question: Id | None = None
    answers: list[RoutedAnswer] = Field(default_factory=list[RoutedAnswer])
    cancels: list[Id] = Field(default_factory=list[str])
    remembered: list[RememberedNote] = Field(default_factory=list[RememberedNote])
    forgotten: list[ForgottenNote] = Field(default_factory=list[ForgottenNote])
    backlog: list[BacklogChange] = Field(default_factory=list[BacklogChange])
    settles_plan: Id | None = None
    """The plan in `planner/results` whose question this turn closes."""
    usage: Usage = Usage()
    engine: str = ""
    injected: list[str | Hit] = Field(default_factory=list[str | Hit])
    """Memory passages in the prompt; older records have only their sources."""
    started_at: Instant
    completed_at: Instant


Action: TypeAlias = Literal[
    "cancel", "retry", "pause", "resume",
    "trigger_pause", "trigger_resume", "trigger_remove", "trigger_run", "trigger_edit",
    "engine_use", "engine_try", "engine_set", "engine_remove", "budget_set",
    "retention_set", "notify_set", "self_awake_set", "self_awake_run",
]  # fmt: skip


class Command(Record):
    """A command of the user, applied once by the supervisor: `commands/{id}.json`."""

    id: Id
    action: Action
    target: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    created_at: Instant
    origin: Origin = "cli"
    remote: bool = False


class CommandResult(Record):
    """`commands/done/{id}.json`."""

    command: Command = Field(validation_alias="order", serialization_alias="order")
    ok: bool
    message: str
    result_id: str | None = None
    code: str | None = None
    """Of the error; and what its words have to fill in."""
    params: dict[str, str | int | float] | None = None
    applied_at: Instant


EngineProblem: TypeAlias = Literal[
    "missing",
    "logged_out",
    "account",
    "region",
    "unknown_model",
    "limited",
    "unreachable",
    "broken",
    "unready",
]
"""Why an engine is unavailable: program or package; login or key; out of credit; not offered in
this region; no such model; rate limit; connection; no whole answer (5xx, a cut stream, silence, a
process that died); anything else on this machine."""


class EngineStatus(Record):
    """The availability of an engine, in general or for a role or profile."""

    engine: str
    state: Literal["ready", "waiting"] = "ready"
    problem: EngineProblem | None = Field(
        default=None, validation_alias="want", serialization_alias="want"
    )
    reason: str | None = None
    """Why it is unavailable; if ready: why a better engine was skipped."""
    since: Instant | None = None
    """Since when work is waiting."""
    until: Instant | None = None
    """When its rate limit ends, if known."""
    next_try_at: Instant | None = None
    """When it is tried again; a message or a command tries it earlier."""
    messages: int = 0
    tasks: int = 0
    fallback: str | None = Field(
        default=None, validation_alias="standIn", serialization_alias="standIn"
    )
    """The engine used meanwhile."""

    @property
    def text(self) -> str:
        name = f"{self.engine}, basic mode" if self.engine == "local" else self.engine
        if self.state == "waiting":
            return f"{name} — waiting: {self.reason}"
        return name


class LiveRun(Record):
    id: str
    role: Role
    title: str = ""
    started_at: Instant
    headline: str = ""
