"""What each tool takes; a model's docstring is what its tool is offered with."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from mimikit.protocol.models import MAX_TEXT, Notify

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ToolArguments(BaseModel):
    """The arguments of one tool; anything else is refused by name."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )
    final: ClassVar[bool] = False
    """Whether it says all there is to say: what is called with it is the last of its turn."""


class ReplyArguments(ToolArguments):
    """Say something to the user. Your final text does the same; when both come, this wins.

    It may end your turn: call it last, and several of it together.
    """

    final = True
    text: Text


class TellerDelegateArguments(ToolArguments):
    """Hand work to the Planner, who splits it into tasks and has them carried out."""

    prompt: Text
    title: Short | None = None
    priority: Annotated[int, Field(ge=0, le=10)] = 5


Ids = Annotated[list[Short], Field(max_length=20)]
ConditionTree = Annotated[
    dict[str, Any],
    Field(
        description='{"type", "params"}: file_changed {path, fireOnInit}, file_exists {path}, '
        "task_done {taskId}, task_failed {taskId}, llm_eval {prompt}, and {conditions}, "
        "or {conditions}, not {condition}; a taskId is an id of a task or trigger, or a label of "
        "this plan; path is a glob below the workspace"
    ),
]
Cooldown = Annotated[float, Field(ge=0, le=366 * 86400)]


WhoIsTold = Annotated[
    Notify,
    Field(
        description="only if the user said so: message tells each run, change only when its text "
        "is another than the last time or it failed, failure only when it failed, none never; "
        "teller has each run told in your own words"
    ),
]


class _PlannedArguments(ToolArguments):
    prompt: Text
    title: Short | None = None
    label: Short | None = None
    condition: ConditionTree | None = None
    cooldown: Cooldown | None = None
    once: bool = False
    profile: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "standard"
    priority: Annotated[int, Field(ge=0, le=10)] = 5
    timeout: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    notify: WhoIsTold | None = None


class DelegateArguments(_PlannedArguments):
    """Add one task to this plan. Its prompt must say everything: the Worker sees nothing else.

    `after` makes it wait for others, and gives it their results; `label` lets others wait for it.
    With type conditional it runs each time `condition` holds.
    """

    type: Literal["oneshot", "conditional"] = "oneshot"
    after: Ids = []
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 1


class ScheduleArguments(_PlannedArguments):
    """Add one trigger to this plan: a task that is run by the clock or when something happens.

    recurring: every `interval` seconds, or by `cron` (5 fields) in `timezone`. scheduled: once at
    `runAt` (ISO 8601 with its zone). conditional: each time `condition` holds.
    profile `reminder`: nothing is run, the user is told `prompt`, word for word.
    """

    type: Literal["recurring", "scheduled", "conditional"] = "recurring"
    interval: Annotated[float, Field(ge=1, le=366 * 86400)] | None = None
    cron: Short | None = None
    timezone: Short | None = None
    run_at: Short | None = None


class ChangeTriggerArguments(ToolArguments):
    """Pause, resume, run now or edit a trigger, by its id; `cancel_task` removes it.

    changes, for edit: title, prompt, priority, schedule {interval | cron, timezone | runAt},
    condition, cooldown, once, notify.
    """

    id: Short
    action: Literal["pause", "resume", "run", "edit"]
    changes: Annotated[dict[str, Any], Field(max_length=10)] = {}


class RememberArguments(ToolArguments):
    """Keep something in memory; longTerm for what stays true."""

    content: Text
    long_term: bool = False


class AskArguments(ToolArguments):
    """Ask the user one question, with options and a default taken when nobody answers in time."""

    question: Text
    options: Annotated[list[Short], Field(max_length=8)] = []
    default: Short | None = None
    timeout: Annotated[float, Field(ge=10, le=7 * 86400)] = 3600


class AnswerArguments(ToolArguments):
    """Pass on the user's answer to the open question."""

    question_id: Short
    text: Text


class BacklogArguments(ToolArguments):
    """Change the backlog, the user's list of things to do, or list it.

    For done and remove, `item` is the text of an item, or a part that only it has.
    """

    action: Literal["add", "done", "remove", "list"]
    item: Short | None = None


class ListTasksArguments(ToolArguments):
    """See queued, running, recent and failed tasks, and triggers: what runs next, how it went."""

    scope: Literal["queue", "running", "triggers", "recent", "failed", "all"] = "all"


class CancelArguments(ToolArguments):
    """Cancel a task, or remove a trigger, by its id."""

    id: Short


Moment = Annotated[
    Short, Field(description="ISO 8601 with its zone, such as 2026-01-28T09:30:00+08:00")
]


class RecentHistoryArguments(ToolArguments):
    """Read the last `count` messages of the conversation, oldest first.

    `offset` leaves out that many of the newest.
    """

    count: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class HistoryByTimeArguments(ToolArguments):
    """Read the messages from `after` (included) to `before` (not included), oldest first."""

    after: Moment
    before: Moment | None = None


class SearchMemoryArguments(ToolArguments):
    """Search notes, summaries, documents, all past messages and task results; best first.

    `after` and `before` keep to what is of that time; memory.md and documents have none.
    """

    query: Text
    after: Moment | None = None
    before: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
