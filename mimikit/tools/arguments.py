"""The arguments of each tool; the docstrings are the tools' descriptions for the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from mimikit.config import ProfilesSettings
from mimikit.protocol.models import MAX_TEXT, REMINDER, Notify

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Priority = Annotated[int, Field(ge=0, le=10, description="0 to 10, first")]
Moment = Annotated[Short, Field(description="such as 2026-01-28T09:30:00+08:00")]
ProfileName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
_PROFILES: list[JsonValue] = list(ProfilesSettings.model_fields)


class ToolArguments(BaseModel):
    """Unknown arguments are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    _ends: ClassVar[bool | None] = None

    @property
    def ends_turn(self) -> bool | None:
        """Whether the call completes the turn; False if its result is to be read; else None."""
        return self._ends


class ReplyArguments(ToolArguments):
    """Send several messages, called together and last; one is your plain text."""

    text: Text
    _ends: ClassVar[bool | None] = True


class TellerDelegateArguments(ToolArguments):
    """Have work planned and done."""

    prompt: Text
    reply: Annotated[Text, Field(description="your words to the user; ends your turn")] | None = (
        None
    )
    title: Short | None = None
    priority: Priority = 5

    @property
    def ends_turn(self) -> bool | None:
        return True if self.reply else None


Ids = Annotated[list[Short], Field(max_length=20)]
ConditionTree = Annotated[
    dict[str, Any],
    Field(
        description="{type, params} of file_changed {path, fireOnInit}, file_exists {path}, "
        "task_done {taskId}, task_failed {taskId}, llm_eval {prompt}, and {conditions}, "
        "or {conditions}, not {condition}; taskId: of a task or trigger, or a label of this plan; "
        "path: a glob below the workspace"
    ),
]
Cooldown = Annotated[
    float, Field(ge=0, le=366 * 86400, description="seconds after a run without another")
]
More = Annotated[
    bool,
    Field(description="true: more of this plan follows; else the plan is complete, your turn ends"),
]


NotifyWish = Annotated[
    Notify,
    Field(
        description="only if the user said so. message: each run; change: when its text is new or "
        "it failed; failure; none; teller: each run, in your words"
    ),
]


class _PlannedArguments(ToolArguments):
    prompt: Text
    title: Short | None = None
    label: Annotated[Short, Field(description="a name for steps that wait for it")] | None = None
    condition: ConditionTree | None = None
    cooldown: Cooldown | None = None
    once: Annotated[bool, Field(description="removed after its first run")] = False
    profile: Annotated[ProfileName, Field(json_schema_extra={"enum": _PROFILES})] = "standard"
    priority: Priority = 5
    timeout: Annotated[float, Field(gt=0, le=7 * 86400, description="seconds")] | None = None
    notify: NotifyWish | None = None
    more: More = False

    @property
    def ends_turn(self) -> bool:
        return not self.more


class DelegateArguments(_PlannedArguments):
    """Add a task to this plan; conditional: it runs each time `condition` holds.

    The Worker sees nothing but its prompt and the results of `after`.
    """

    type: Literal["oneshot", "conditional"] = "oneshot"
    after: Annotated[Ids, Field(description="ids or earlier labels that it waits for")] = []
    max_attempts: Annotated[int, Field(ge=1, le=10, description="1 to 10")] = 1


class ScheduleArguments(_PlannedArguments):
    """Add a trigger to this plan, which runs its prompt as a task by the clock or `condition`.

    recurring: `interval` or `cron`. scheduled: once, at `runAt`. conditional: when it holds.
    """

    type: Literal["recurring", "scheduled", "conditional"] = "recurring"
    profile: Annotated[ProfileName, Field(json_schema_extra={"enum": [*_PROFILES, REMINDER]})] = (
        "standard"
    )
    interval: Annotated[float, Field(ge=1, le=366 * 86400, description="seconds")] | None = None
    cron: Annotated[Short, Field(description="5 fields, in timezone")] | None = None
    timezone: (
        Annotated[Short, Field(description="such as Asia/Shanghai; else the user's")] | None
    ) = None
    run_at: Moment | None = None
    starting: Annotated[Moment, Field(description="the earliest time")] | None = None
    until: Annotated[Moment, Field(description="the latest time, then it ends")] | None = None
    times: Annotated[int, Field(ge=1, le=1_000_000, description="runs, then it ends")] | None = None
    lateness: (
        Annotated[float, Field(ge=0, le=366 * 86400, description="seconds; later it does not run")]
        | None
    ) = None
    every_days: (
        Annotated[int, Field(ge=2, le=366, description="cron on every Nth day from starting")]
        | None
    ) = None
    every_weeks: (
        Annotated[int, Field(ge=2, le=52, description="cron in every Nth week from starting")]
        | None
    ) = None


class ChangeTriggerArguments(ToolArguments):
    """Pause, resume, run now or edit a trigger; `cancel_task` removes it."""

    id: Short
    action: Literal["pause", "resume", "run", "edit"]
    changes: Annotated[
        dict[str, Any],
        Field(
            max_length=10,
            description="of an edit: title, prompt, priority, schedule {interval | cron, timezone "
            "| runAt; starting, until, times, lateness}, condition, cooldown, once, notify",
        ),
    ] = {}
    more: More = False

    @property
    def ends_turn(self) -> bool:
        return not self.more


class RememberArguments(ToolArguments):
    """Keep one plain sentence in memory."""

    content: Text
    long_term: Annotated[bool, Field(description="it stays true")] = False


class ForgetArguments(ToolArguments):
    """Remove a note; answers where else it stands. Several match: ask which."""

    what: Annotated[Text, Field(description="its words, or its id")]
    scope: Annotated[
        Literal["notes", "all"], Field(description="all: every match, if the user said so")
    ] = "notes"
    _ends: ClassVar[bool | None] = False


class AskArguments(ToolArguments):
    """Ask the user one question; ends your turn."""

    question: Text
    options: Annotated[list[Short], Field(max_length=8)] = []
    default: Annotated[Short, Field(description="taken when time is over")] | None = None
    timeout: Annotated[float, Field(ge=10, le=7 * 86400, description="seconds")] = 3600
    _ends: ClassVar[bool | None] = True


class AnswerArguments(ToolArguments):
    """Pass the user's answer to the open question on."""

    question_id: Short
    text: Text


class BacklogArguments(ToolArguments):
    """The user's list of things to do."""

    action: Literal["add", "done", "remove", "list"]
    item: Annotated[Short, Field(description="its text, or a part only it has")] | None = None

    @property
    def ends_turn(self) -> bool | None:
        return False if self.action == "list" else None


class QueryArguments(ToolArguments):
    _ends: ClassVar[bool | None] = False


class ListTasksArguments(QueryArguments):
    """Tasks and triggers: state, next run, how the last went."""

    scope: Literal["queue", "running", "triggers", "recent", "failed", "all"] = "all"


class CancelArguments(ToolArguments):
    """Cancel a task or remove a trigger."""

    id: Short


class RecentHistoryArguments(QueryArguments):
    """The last messages of the conversation, oldest first."""

    count: Annotated[int, Field(ge=1, le=100, description="1 to 100")] = 20
    offset: Annotated[
        int, Field(ge=0, le=1_000_000, description="of the newest, so many are left out")
    ] = 0


class HistoryByTimeArguments(QueryArguments):
    """The messages of a time, oldest first."""

    after: Moment
    before: Moment | None = None


class SearchMemoryArguments(QueryArguments):
    """Search notes, summaries, documents, past messages and task results; best first."""

    query: Text
    after: Moment | None = None
    before: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="1 to 50")] = 10


T = TypeVar("T", bound=ToolArguments)


def validated(model: type[T], raw_args: Mapping[str, object]) -> T:
    """The arguments, corrected where they can mean one thing only. Raises ValidationError."""
    try:
        return model.model_validate(raw_args)
    except ValidationError as error:
        corrected = dict(raw_args)
        for wrong in error.errors(include_url=False):
            _correct(model, corrected, str(wrong["loc"][0]) if wrong["loc"] else "", wrong["type"])
        if corrected == raw_args:
            raise
    return model.model_validate(corrected)


def _correct(model: type[ToolArguments], args: dict[str, object], name: str, problem: str) -> None:
    """JSON within a text, a single item instead of a list, null or "" for an optional argument."""
    value = args.get(name)
    known = {field.alias or key: field for key, field in model.model_fields.items()}
    field = known.get(name) or model.model_fields.get(name)
    if name not in args or field is None:
        return
    if isinstance(value, str) and problem in ("list_type", "dict_type", "model_type"):
        try:
            parsed = cast("object", json.loads(value))
        except (ValueError, RecursionError):
            parsed = value
        is_list = problem == "list_type" and value.strip() and not isinstance(parsed, dict | list)
        args[name] = [value] if is_list else parsed
    if args[name] in (None, "", "null") and not field.is_required():
        del args[name]
    elif isinstance(value, int | float) and problem == "string_type":
        args[name] = str(value)
    elif isinstance(value, str) and problem == "literal_error":
        args[name] = value.strip().lower()
