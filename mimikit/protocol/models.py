"""Every record that lies on disk.

Keys are camelCase on disk and snake_case here. Unknown keys are kept, so that a rewrite by an older
version loses nothing. Times are UTC with milliseconds. Records are frozen: a change makes a new one
(`record.but(...)`).
"""

from __future__ import annotations

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

from mimikit.protocol.ids import ID_PATTERN
from mimikit.protocol.json import Json
from mimikit.protocol.paths import QueueName

MAX_TEXT = 200_000
FIRST_TIME, END_OF_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def to_utc(value: datetime) -> datetime:
    """The same instant in UTC, cut to milliseconds; a ValueError where sums could overflow.

    A time without a zone is taken as UTC.
    """
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if not FIRST_TIME <= aware < END_OF_TIME:
        raise ValueError("expected a time between the years 1970 and 2200")
    aware = aware.astimezone(UTC)
    rest = aware.microsecond % 1000
    return aware.replace(microsecond=aware.microsecond - rest) if rest else aware


def time_text(value: datetime) -> str:
    """An instant as it stands in every record: `2026-01-28T09:30:00.000Z`."""
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
"""The profile of words that code tells at their time: no engine, no pool, always told."""
FailureReason = Literal[
    "timeout", "error", "killed", "canceled",
    "engine_unavailable", "rate_limited", "budget", "refused", "upstream",
]  # fmt: skip
"""upstream: a step of a chain that never ran, as one before it failed or was canceled."""


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
        """Readable JSON, newline at its end."""
        return self.model_dump_json(indent=2, by_alias=True).encode() + b"\n"

    def to_dict(self) -> dict[str, Json]:
        """Plain data as it stands on disk and over HTTP."""
        return self.model_dump(mode="json", by_alias=True)

    def but(self, **changes: object) -> Self:
        """A copy with some fields changed and checked, unknown keys kept."""
        return type(self).model_validate({**dict(self), **changes})


class Usage(Record):
    """Tokens of a run."""

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
        """All of them."""
        return self.input_tokens + self.output_tokens


class SummaryScope(Record):
    """What a summary is made from, and where it goes. Of an internal run."""

    kind: Literal["day", "month"]
    name: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$")]
    """The day or the month: `2026-01-28`, `2026-01`."""
    sources: list[str]
    """Ids of messages, notes and parts of summaries, or names of files."""
    attempt: Annotated[int, Field(ge=0)] = 0
    """How often it has failed before."""


class EngineSession(Record):
    """What an engine has begun of a task, which it can take up again."""

    engine: str
    id: str


class Task(Record):
    """One thing to be done, once. Lives in `planner|worker/queue|running`."""

    id: Id
    type: Literal["oneshot"] = "oneshot"
    role: QueueName = "worker"
    profile: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "standard"
    """Who carries it out; with `reminder` nobody: the prompt is the text that is told."""
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
    priority: Annotated[int, Field(ge=0, le=10)] = 5
    created_at: Instant
    attempts: Annotated[int, Field(ge=0)] = 0
    """Attempts that are over; being in `running/` is one more."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 1
    timeout: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    """Seconds of wall time; None means the role's default."""
    trace_id: Id
    parent_task_id: Id | None = None
    source_trigger_id: Id | None = None
    source_trigger_ids: list[Id] | None = None
    triggered_at: Instant | None = None
    not_before: Instant | None = None
    internal: bool = False
    retry_of: Id | None = None
    released: bool = False
    """Set while a running file is on its way back to the queue for a next attempt."""
    engine_session: EngineSession | None = None
    waits_for: str | None = None
    """The engine that could not serve when it was tried last; `budget:day`, `budget:trigger`: for
    tokens."""
    interruptions: Annotated[int, Field(ge=0)] = 0
    """Times a consumer died under it; three end it for good."""
    trigger_origin: Origin | None = None
    """Of a run made by a trigger: where the trigger came from."""
    allow_triggers: bool = False
    """Of a Planner run made by a trigger: may it create triggers?"""
    upstream: list[Id] = Field(default_factory=list[str])
    """The tasks whose results it builds on."""
    timezone: str | None = None
    """The zone that times are meant in: its user's, or those of the trigger that made it."""
    locale: str | None = None
    """The language its user writes, as a tag with its script: `zh-Hant`, `en`."""
    covers: SummaryScope | None = None
    """Of a run that makes a summary of memory."""
    notify: Notify = "message"
    notify_given: bool = False
    """Somebody said who is told: what a chain's inner steps are by default does not count."""
    origin: Origin = "file"
    remote: bool = False
    """What asked for it came by a page that other machines reach, where commands were off."""


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
    """While it is pending: the run that summarises it; None when code writes it down."""
    turn_id: Id | None = None
    in_reply_to: list[Id] = Field(default_factory=list[str])
    task_ids: list[Id] = Field(default_factory=list[str])
    usage: Usage | None = None
    duration_ms: int | None = None
    quote: str | None = None
    engine: str | None = None
    trigger_id: Id | None = None
    """It tells runs of this trigger and nothing else: views show such messages as one line."""
    failed: bool = False
    """It says that a turn failed; the messages it replies to may be sent again."""
    reminder: str | None = None
    """The words of the reminder that it tells, whose task `task_ids` names."""

    @property
    def is_by_code(self) -> bool:
        """Code wrote it (results told, "I can't answer that"): no mind and no user; no memory."""
        return self.role == "system" or self.engine == "builtin"


class History(Record):
    """`history.json`: the working set of the conversation."""

    schema_version: int = 1
    messages: list[Message] = Field(default_factory=list[Message])


class InboxItem(Record):
    """Something the Teller has not answered: a message, an answer, or a result to tell."""

    id: Id
    kind: Literal["user_input", "answer", "task_result"] = "user_input"
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = ""
    created_at: Instant
    question_id: Id | None = None
    timezone: str | None = None
    locale: str | None = None
    quote: str | None = None
    task_id: Id | None = None
    """Of a task_result: the task that ended."""
    seat: QueueName | None = None
    notify: Notify = "teller"
    trace_id: Id | None = None
    trigger_id: Id | None = None
    """Of a task_result: the trigger whose run it was."""
    not_before: Instant | None = None
    """Of a task_result: until then it is gathered with what else comes of its trigger."""
    tripped: int = 0
    """Of a task_result: at so many failures like this the circuit breaker paused its trigger."""
    steps: Annotated[list[str], Field(max_length=20)] = Field(default_factory=list[str])
    """Of a task_result: titles of the steps that waited for it and will not run."""
    remote: bool = False
    """It came by a page that other machines reach, where commands were off; or its task did."""


class Question(Record):
    """`pending_question.json`: the one question waiting for its answer. Units: seconds."""

    question_id: Id
    question: str
    options: list[str] = Field(default_factory=list[str])
    default: str | None = None
    timeout: float = 3600
    created_at: Instant
    expires_at: Instant
    planner_task_id: Id | None = None
    trace_id: Id | None = None


class RememberedNote(Record):
    id: Id
    content: str
    long_term: bool = False


class BacklogChange(Record):
    id: Id
    action: Literal["add", "done", "remove"]
    item: str


class RoutedAnswer(Record):
    """One that code routed into a new Planner task."""

    question_id: Id
    text: str
    remote: bool = False
    by_user: bool = False
    """It is the user's own word, which no model passed on."""


class TurnAttempt(Record):
    """The mark of one attempt: whose it is, and the inputs it froze."""

    turn_id: Id
    attempt: int
    pid: int
    process_started: str
    boot_id: str
    started_at: Instant
    inputs: list[Id]
    stopped: bool = False


class Hit(Record):
    """A passage that a search has found; in a turn's record, one that the turn was given."""

    source: str
    """`memory/2026-01-28-deploy.md`, `docs/setup.md` (in the workspace), …"""
    text: str
    """The whole passage; of what a turn was given, the quotation."""
    line: int = 0
    """1-based; 0 where there are no lines."""
    kind: str = "memory"
    """`memory`, `summary`, `docs`, `transcript` or `result`."""
    day: date | None = None
    # Only the answer to a search has these; they are not written to disk.
    score: Annotated[float, Field(exclude=True)] = 0.0
    """Above 0; comparable within one answer only."""
    snippet: Annotated[str, Field(exclude=True)] = ""
    """At most 300 characters around the best place; of a recall, what is to be quoted."""
    message_id: Annotated[str | None, Field(exclude=True)] = None
    role: Annotated[str | None, Field(exclude=True)] = None
    task_id: Annotated[str | None, Field(exclude=True)] = None


class TurnRecord(Record):
    """The commit of a turn: all it changes, in one file of `turns/new`, then of `turns/done`."""

    schema_version: int = 1
    id: Id
    author: Literal["teller", "code"]
    """Code where no mind was needed: results told, answers routed, a turn that failed twice."""
    attempt: int = 1
    consumed: list[Id] = Field(default_factory=list[str])
    """Inbox ids this turn answers; removed last."""
    messages: list[Message] = Field(default_factory=list[Message])
    """The consumed messages and the replies, as they go into transcript and history."""
    tasks: list[Task] = Field(default_factory=list[Task])
    """Delegations: Planner tasks with ids derived from the turn's."""
    question: Question | None = None
    closes_question: Id | None = None
    answers: list[RoutedAnswer] = Field(default_factory=list[RoutedAnswer])
    cancels: list[Id] = Field(default_factory=list[str])
    remembered: list[RememberedNote] = Field(default_factory=list[RememberedNote])
    backlog: list[BacklogChange] = Field(default_factory=list[BacklogChange])
    settles_plan: Id | None = None
    """A plan in `planner/results` this turn brings to its end (its question was answered)."""
    usage: Usage = Usage()
    engine: str = ""
    injected: list[str | Hit] = Field(default_factory=list[str | Hit])
    """What the turn was given of memory; older records name the sources alone."""
    started_at: Instant
    completed_at: Instant


class Command(Record):
    """A command from outside: `commands/{id}.json`; applied once by the supervisor."""

    id: Id
    action: Literal[
        "cancel", "retry", "pause", "resume",
        "trigger_pause", "trigger_resume", "trigger_remove", "trigger_run", "trigger_edit",
        "engine_use", "engine_try", "engine_set", "engine_remove", "budget_set",
    ]  # fmt: skip
    target: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    created_at: Instant
    origin: Origin = "cli"
    remote: bool = False


class CommandResult(Record):
    """`commands/done/{id}.json`: the order and what came of it."""

    command: Command = Field(validation_alias="order", serialization_alias="order")
    ok: bool
    message: str
    result_id: str | None = None
    applied_at: Instant


EngineWant: TypeAlias = Literal[
    "missing", "logged_out", "limited", "unreachable", "broken", "unready"
]
"""What an engine lacks: its program or package; a login or key; more of its allowance; a connection
to it; an answer that is whole (5xx, a cut stream, a process that died); anything else here."""


class EngineStatus(Record):
    """An engine, of itself or as it serves a role or profile, and whether it can now."""

    engine: str
    state: Literal["ready", "waiting"] = "ready"
    want: EngineWant | None = None
    """Of one that is waited for: what kind of trouble it is."""
    reason: str | None = None
    """Why it waits; of one that is ready: why a better one was passed over."""
    since: Instant | None = None
    """When what waits for it began to, where that is known."""
    until: Instant | None = None
    """When the limit it waits for is known to end."""
    next_try_at: Instant | None = None
    """When it is tried again by itself; at once when somebody asks for it, or a message comes."""
    messages: int = 0
    """How many messages and results wait for it, where that is told."""
    tasks: int = 0
    """How many tasks do."""
    stand_in: str | None = None
    """The engine that serves in its place meanwhile."""

    @property
    def text(self) -> str:
        """In words, as page and terminal show it."""
        name = f"{self.engine}, basic mode" if self.engine == "local" else self.engine
        if self.state == "waiting":
            return f"{name} — waiting: {self.reason}"
        return f"{name} ({self.reason})" if self.reason else name


class LiveRun(Record):
    id: str
    role: Role
    title: str = ""
    started_at: Instant
    headline: str = ""
