"""One function a tool: check, collect the effect, answer.

Nothing is written here. What a run wants is collected in its Effects; the run's commit makes all of
it true, or none. Whatever the door (in process, HTTP, stdio), every call comes through `Desk.call`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from mimikit.engines.base import Hit, TaskLine, ToolReply, ToolSpec
from mimikit.errors import BadInput, Refused
from mimikit.protocol.files import bad_record
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    Answered,
    BacklogChange,
    Message,
    Origin,
    Question,
    Remembered,
    Role,
    Schedule,
    Task,
    Trigger,
)
from mimikit.tools import access

A = TypeVar("A", bound=access.Arguments)


class Views(Protocol):
    """What tools may look at."""

    def tasks(self, scope: str) -> list[TaskLine]:
        """Tasks and triggers in a few words each."""
        ...

    def history(self, count: int, offset: int) -> list[Message]:
        """The last messages, oldest first."""
        ...

    def history_between(self, after: datetime, before: datetime | None) -> list[Message]:
        """Messages between two times."""
        ...

    def search(self, query: str, limit: int) -> list[Hit]:
        """What memory has on it."""
        ...

    def exists(self, id_: str) -> bool:
        """Whether a task or trigger of that id can be canceled."""
        ...

    def trace_size(self, trace_id: str) -> int:
        """How many tasks a trace has had."""
        ...


@dataclass
class Effects:
    """What a run wants to change; made true by its commit only."""

    replies: list[str] = field(default_factory=list[str])
    tasks: list[Task] = field(default_factory=list[Task])
    triggers: list[Trigger] = field(default_factory=list[Trigger])
    cancels: list[str] = field(default_factory=list[str])
    remembered: list[Remembered] = field(default_factory=list[Remembered])
    backlog: list[BacklogChange] = field(default_factory=list[BacklogChange])
    question: Question | None = None
    answers: list[Answered] = field(default_factory=list[Answered])


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one run may ask for."""

    delegations: int
    plan: int
    trace: int
    llm_commands: bool
    profiles: tuple[str, ...] = ()
    """The profiles there are; none given: any."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the run and what its effects inherit."""

    role: Role
    run_id: str
    trace_id: str
    now: datetime
    mindless: bool = False
    """No model had a word in it, from the user's text to here: commands in it are the user's."""
    parent: Task | None = None
    """The Planner's own task."""
    may_trigger: bool = True
    question_open: bool = False
    """A question waits for the user already."""


class Desk:
    """Answers the tool calls of one run. Safe between threads."""

    def __init__(
        self,
        caller: Caller,
        views: Views,
        limits: Limits,
        on_refused: Callable[[str, str], None] | None = None,
    ) -> None:
        """`on_refused(tool, reason)` hears of every refusal."""
        self.effects = Effects()
        self._caller = caller
        self._views = views
        self._limits = limits
        self._on_refused: Callable[[str, str], None] = on_refused or _tell_nobody
        self._lock = threading.Lock()
        self._closed = False

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools this run is offered."""
        return access.specs(self._caller.role)

    def close(self) -> Effects:
        """No call counts from now on (an engine that outlives its run changes nothing)."""
        with self._lock:
            self._closed = True
            return self.effects

    def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        """Carry out one call; a refusal is an answer, never an exception."""
        try:
            with self._lock:
                return ToolReply(True, self._call(name, arguments))
        except Refused as error:
            self._on_refused(name, str(error))
            return ToolReply(False, str(error))
        except BadInput as error:
            return ToolReply(False, str(error))

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        role = self._caller.role
        if self._closed:
            raise Refused("this turn is over")
        model = access.TOOLS[role].get(name)
        if model is None:
            allowed = ", ".join(access.TOOLS[role]) or "none"
            raise Refused(f"the {role} has no tool {name!r}; its tools: {allowed}")
        try:
            parsed = model.model_validate(arguments)
        except ValidationError as error:
            raise bad_record(error) from None
        return getattr(self, f"_{name}")(parsed)

    # ---- teller --------------------------------------------------------------------------

    def _reply(self, args: access.Reply) -> str:
        self.effects.replies.append(args.text)
        return "sent"

    def _remember(self, args: access.Remember) -> str:
        id_ = self._derive("mem", len(self.effects.remembered))
        self.effects.remembered.append(
            Remembered(id=id_, content=args.content, long_term=args.long_term)
        )
        return "remembered"

    def _update_backlog(self, args: access.Backlog) -> str:
        id_ = self._derive("backlog", len(self.effects.backlog))
        self.effects.backlog.append(BacklogChange(id=id_, action=args.action, item=args.item))
        return "noted"

    def _answer_question(self, args: access.Answer) -> str:
        self.effects.answers.append(Answered(question_id=args.question_id, text=args.text))
        return "passed on"

    def _ask_user(self, args: access.Ask) -> str:
        if self._caller.question_open and not self.effects.answers:
            raise Refused("a question is open already; wait for its answer, or ask in your reply")
        return self._ask(args, planner_task_id=None)

    # ---- planner -------------------------------------------------------------------------

    def _needs_input(self, args: access.Ask) -> str:
        return self._ask(args, planner_task_id=self._caller.run_id)

    def _delegate(self, args: access.TellerDelegate | access.Delegate) -> str:
        if isinstance(args, access.TellerDelegate):
            return self._delegate_to_planner(args)
        self._check_profile(args.profile)
        task = self._task(args.prompt, args.title, args.priority).but(
            profile=args.profile, timeout=args.timeout, max_attempts=args.max_attempts
        )
        self._check_plan_size()
        self.effects.tasks.append(task)
        return f"planned as {task.id}"

    def _delegate_to_planner(self, args: access.TellerDelegate) -> str:
        if len(self.effects.tasks) >= self._limits.delegations:
            raise Refused(
                f"expected at most {self._limits.delegations} delegations a turn; "
                "put the rest into one"
            )
        self._check_trace(len(self.effects.tasks))
        task = self._task(args.prompt, args.title, args.priority).but(
            role="planner", notify="teller", max_attempts=2
        )
        self.effects.tasks.append(task)
        return f"delegated as {task.id}"

    def _schedule(self, args: access.Plan) -> str:
        if not self._caller.may_trigger:
            raise Refused("a run that was started by a trigger may not create triggers")
        self._check_profile(args.profile)
        self._check_plan_size()
        parent = self._caller.parent
        trigger = Trigger(
            id=self._derive("trig", len(self.effects.triggers)),
            type="recurring",
            title=args.title or _title(args.prompt),
            prompt=args.prompt,
            profile=args.profile,
            priority=args.priority,
            timeout=args.timeout,
            created_at=self._caller.now,
            origin=self._origin(),
            trace_id=self._caller.trace_id,
            parent_task_id=parent.id if parent else None,
            schedule=Schedule(interval=args.interval),
        )
        self.effects.triggers.append(trigger)
        return f"scheduled as {trigger.id}"

    # ---- both ----------------------------------------------------------------------------

    def _list_tasks(self, args: access.ListTasks) -> str:
        lines = self._views.tasks(args.scope)
        return "\n".join(f"{line.id} [{line.state}] {line.title}" for line in lines) or "nothing"

    def _cancel_task(self, args: access.Cancel) -> str:
        if not self._views.exists(args.id):
            raise BadInput(f"expected the id of a task or trigger, got {args.id!r}", field="id")
        self.effects.cancels.append(args.id)
        return "will be canceled"

    def _get_recent_history(self, args: access.RecentHistory) -> str:
        return _messages(self._views.history(args.count, args.offset))

    def _get_history_by_time(self, args: access.HistoryByTime) -> str:
        before = _instant(args.before, "before") if args.before else None
        return _messages(self._views.history_between(_instant(args.after, "after"), before))

    def _search_memory(self, args: access.SearchMemory) -> str:
        hits = self._views.search(args.query, args.limit)
        return "\n".join(f"[{hit.source}] {hit.text}" for hit in hits) or "nothing found"

    # ---- parts ---------------------------------------------------------------------------

    def _ask(self, args: access.Ask, planner_task_id: str | None) -> str:
        if self.effects.question is not None:
            raise Refused("one question at a time; put both into one")
        now = self._caller.now
        self.effects.question = Question(
            question_id=self._derive("q", 0),
            question=args.question,
            options=args.options,
            default=args.default,
            timeout=args.timeout,
            created_at=now,
            expires_at=now + timedelta(seconds=args.timeout),
            planner_task_id=planner_task_id,
            trace_id=self._caller.trace_id,
        )
        return "the user will be asked"

    def _task(self, prompt: str, title: str | None, priority: int) -> Task:
        parent = self._caller.parent
        return Task(
            id=self._derive("task", len(self.effects.tasks)),
            prompt=prompt,
            title=title or _title(prompt),
            priority=priority,
            created_at=self._caller.now,
            trace_id=self._caller.trace_id,
            parent_task_id=parent.id if parent else None,
            source_trigger_id=parent.source_trigger_id if parent else None,
            notify=parent.notify if parent else "teller",
            origin=self._origin(),
        )

    def _origin(self) -> Origin:
        """Whose words a task carries: with no mind in between they are still the user's own."""
        if self._caller.mindless:
            return "builtin"
        return "teller" if self._caller.role == "teller" else "planner"

    def _check_profile(self, profile: str) -> None:
        if self._limits.profiles and profile not in self._limits.profiles:
            known = ", ".join(self._limits.profiles)
            raise BadInput(f"profile: expected one of {known}; got {profile!r}", field="profile")
        allowed = self._caller.mindless or self._limits.llm_commands
        if profile == "command" and not allowed:
            raise Refused(
                "the profile `command` is the owner's; use `standard`, "
                "or the owner sets allow_llm_commands"
            )

    def _check_plan_size(self) -> None:
        planned = len(self.effects.tasks) + len(self.effects.triggers)
        if planned >= self._limits.plan:
            raise Refused(f"expected at most {self._limits.plan} tasks and triggers a plan")
        self._check_trace(planned)

    def _check_trace(self, more: int) -> None:
        """One request must not breed work for ever, however its results are taken up again."""
        if self._views.trace_size(self._caller.trace_id) + more >= self._limits.trace:
            raise Refused(
                f"expected at most {self._limits.trace} tasks that follow from one request"
            )

    def _derive(self, prefix: str, number: int) -> str:
        return derived_id(prefix, self._caller.run_id, prefix, str(number))


def _tell_nobody(_tool: str, _reason: str) -> None:
    """Nobody listens."""


def _title(prompt: str) -> str:
    first = prompt.strip().splitlines()[0] if prompt.strip() else ""
    return first if len(first) <= 60 else first[:59] + "…"


def _messages(messages: list[Message]) -> str:
    return (
        "\n".join(f"{m.created_at:%Y-%m-%d %H:%M} {m.role}: {m.text}" for m in messages) or "none"
    )


def _instant(text: str, field_: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{field_}: expected a time such as 2026-01-28T09:30:00Z, got {text[:40]!r}",
            field=field_,
        ) from None
    if parsed.tzinfo is None:
        raise BadInput(f"{field_}: expected a time with its zone, got {text!r}", field=field_)
    return parsed
