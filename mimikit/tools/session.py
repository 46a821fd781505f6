"""One function a tool: check, collect the effect, answer.

Nothing is written here. What a run wants is collected in its Effects; the run's commit makes all of
it true, or none. Whatever the door (in process, HTTP, stdio), every call comes through `Desk.call`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from mimikit import permission
from mimikit.engines.base import TaskLine, ToolReply, ToolSpec
from mimikit.errors import BadInput, Refused
from mimikit.memory.backlog import plain
from mimikit.protocol.files import bad_record
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    AndCondition,
    Answered,
    BacklogChange,
    Condition,
    Hit,
    Message,
    NotCondition,
    Notify,
    OrCondition,
    Origin,
    PlannedOrder,
    Question,
    Remembered,
    Role,
    Schedule,
    Task,
    TaskDone,
    TaskFailed,
    Trigger,
    to_utc,
)
from mimikit.tools import arguments, replies, requests
from mimikit.triggers import conditions, registry, words

A = TypeVar("A", bound=arguments.Arguments)


class Views(Protocol):
    """What tools may look at."""

    def tasks(self, scope: str) -> list[TaskLine]:
        """Tasks and triggers in a few words each."""
        ...

    def history(self, count: int, offset: int) -> list[Message]:
        """The last messages, oldest first."""
        ...

    def history_between(self, after: datetime, before: datetime | None) -> list[Message]:
        """Messages between two times, oldest first; of very many only the newest."""
        ...

    def search(
        self,
        query: str,
        limit: int,
        after: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Hit]:
        """What memory has on it, best first."""
        ...

    def recall(self, asked: str, recent: Sequence[str], limit: int) -> list[Hit]:
        """What a run is given of memory with what it is asked."""
        ...

    def backlog(self) -> str:
        """The backlog's text."""
        ...

    def exists(self, id_: str) -> bool:
        """Whether a task or trigger of that id can be canceled."""
        ...

    def trigger(self, trigger_id: str) -> Trigger | None:
        """A trigger by its id."""
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
    orders: list[PlannedOrder] = field(default_factory=list[PlannedOrder])
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
    llm_eval_interval_s: float = 300
    profiles: tuple[str, ...] = ()
    """The profiles there are; none given: any."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the run and what its effects inherit."""

    role: Role
    run_id: str
    trace_id: str
    now: datetime
    by_user: bool = False
    """No model had a word in it, from the user's text to here: commands in it are the user's."""
    parent: Task | None = None
    """The Planner's own task."""
    may_trigger: bool = True
    timezone: str | None = None
    """The zone the user's times are meant in."""
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
        self._labels: dict[str, str] = {}
        """The ids that labels of this plan stand for."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools this run is offered."""
        return arguments.specs(self._caller.role)

    def close(self) -> Effects:
        """No call counts from now on (an engine that outlives its run changes nothing)."""
        with self._lock:
            self._closed = True
            return self.effects

    def call(self, name: str, given: dict[str, Any]) -> ToolReply:
        """Carry out one call; a refusal is an answer, never an exception."""
        try:
            with self._lock:
                return ToolReply(True, self._call(name, given))
        except Refused as error:
            self._on_refused(name, str(error))
            return ToolReply(False, str(error))
        except BadInput as error:
            return ToolReply(False, str(error))
        except ValidationError as error:  # a value that no argument's own check has caught
            return ToolReply(False, str(bad_record(error)))

    def _call(self, name: str, given: dict[str, Any]) -> str:
        if self._closed:
            raise Refused("this turn is over")
        permission.check_tool(self._caller.role, name)
        try:
            parsed = arguments.arguments_of(self._caller.role, name).model_validate(given)
        except ValidationError as error:
            raise bad_record(error) from None
        return getattr(self, f"_{name}")(parsed)

    # ---- teller --------------------------------------------------------------------------

    def _reply(self, args: arguments.Reply) -> str:
        self.effects.replies.append(args.text)
        return "sent"

    def _remember(self, args: arguments.Remember) -> str:
        id_ = self._derive("mem", len(self.effects.remembered))
        self.effects.remembered.append(
            Remembered(id=id_, content=args.content, long_term=args.long_term)
        )
        return "remembered"

    def _update_backlog(self, args: arguments.Backlog) -> str:
        made = self.effects.backlog
        known = replies.backlog_after(self._views.backlog(), [(c.action, c.item) for c in made])
        if args.action == "list":
            return replies.backlog_lines(known)
        if args.item is None or not plain(args.item):
            raise BadInput("item: expected what is to be changed, got nothing", field="item")
        item = args.item
        if args.action != "add":
            item = replies.backlog_item(known, item, args.action)
        id_ = self._derive("backlog", len(made))
        made.append(BacklogChange(id=id_, action=args.action, item=item))
        return f"noted, {args.action}: {plain(item)}"

    def _answer_question(self, args: arguments.Answer) -> str:
        self.effects.answers.append(Answered(question_id=args.question_id, text=args.text))
        return "passed on"

    def _ask_user(self, args: arguments.Ask) -> str:
        if self._caller.question_open and not self.effects.answers:
            raise Refused("a question is open already; wait for its answer, or ask in your reply")
        return self._ask(args, planner_task_id=None)

    # ---- planner -------------------------------------------------------------------------

    def _needs_input(self, args: arguments.Ask) -> str:
        return self._ask(args, planner_task_id=self._caller.run_id)

    def _delegate(self, args: arguments.TellerDelegate | arguments.Delegate) -> str:
        if isinstance(args, arguments.TellerDelegate):
            return self._delegate_to_planner(args)
        condition = self._condition(args)
        if condition is None:
            self._check_profile(args.profile)
            task = self._task(args.prompt, args.title, args.priority).but(
                profile=args.profile, timeout=args.timeout, max_attempts=args.max_attempts
            )
            self._check_plan_size()
            self.effects.tasks.append(task)
            self._name(args.label, task.id)
            return f"planned as {task.id}"
        once = args.once or args.type == "oneshot"
        more = {"once": once, "notify": self._notify() if once else "change"}
        return self._add_trigger(args, condition=condition, max_attempts=args.max_attempts, **more)

    def _condition(self, args: arguments.Delegate) -> Condition | None:
        """What a delegated task waits for; None when it is to be done at once."""
        if (args.type == "conditional") != (args.condition is not None):
            raise BadInput("expected type conditional together with a condition", field="condition")
        waits = self._given_condition(args.condition) if args.condition is not None else None
        if not args.after:
            return waits
        if waits is not None:
            raise BadInput("expected after or a condition, got both", field="after")
        return requests.after([self._meant(label) for label in args.after])

    def _given_condition(self, given: dict[str, Any]) -> Condition:
        """A condition as a planner writes it: labels become ids, paths stay in the workspace."""
        try:
            condition = conditions.read(given)
        except ValidationError as error:
            raise bad_record(error) from None
        conditions.check(condition)
        folders = [pattern.base for pattern in conditions.watched(condition)]
        permission.check_watched(folders, by_user=self._caller.by_user)
        return _with_ids(condition, self._meant)

    def _meant(self, label: str) -> str:
        """The id that a label of this plan, or an id, means."""
        if label in self._labels:
            return self._labels[label]
        if not self._views.exists(label):
            known = ", ".join(self._labels) or "none yet"
            raise BadInput(
                f"expected the id of a task or trigger, or a label given before in this plan "
                f"({known}); got {label!r}",
                field="after",
            )
        return label

    def _name(self, label: str | None, id_: str) -> None:
        if label is not None:
            self._labels[label] = id_

    def _delegate_to_planner(self, args: arguments.TellerDelegate) -> str:
        if len(self.effects.tasks) >= self._limits.delegations:
            raise Refused(
                f"expected at most {self._limits.delegations} delegations a turn; "
                "put the rest into one"
            )
        self._check_trace(len(self.effects.tasks))
        task = self._task(args.prompt, args.title, args.priority).but(
            role="planner", notify="teller", max_attempts=2, timezone=self._caller.timezone
        )
        self.effects.tasks.append(task)
        return f"delegated as {task.id}"

    def _schedule(self, args: arguments.Plan) -> str:
        clock = [args.interval, args.cron, args.run_at]
        conditional = args.type == "conditional"
        if conditional != (args.condition is not None) or (conditional and any(clock)):
            raise BadInput(
                "expected a condition for type conditional, and a time for the others",
                field="condition",
            )
        if args.condition is not None:
            condition = self._given_condition(args.condition)
            return self._add_trigger(args, condition=condition, once=args.once)
        schedule = Schedule(
            interval=args.interval,
            cron=args.cron,
            timezone=args.timezone or (None if args.interval else self._caller.timezone),
            run_at=_instant(args.run_at, "runAt") if args.run_at else None,
        )
        notify = self._notify() if args.type == "scheduled" else "change"
        return self._add_trigger(args, schedule=schedule, notify=notify)

    def _add_trigger(self, args: arguments.Delegate | arguments.Plan, **more: object) -> str:
        permission.check_new_trigger(may_trigger=self._caller.may_trigger)
        self._check_profile(args.profile)
        self._check_plan_size()
        parent = self._caller.parent
        trigger = Trigger(
            id=self._derive("trig", len(self.effects.triggers)),
            type="conditional",
            title=args.title or _title(args.prompt),
            prompt=args.prompt,
            profile=args.profile,
            priority=args.priority,
            timeout=args.timeout,
            created_at=self._caller.now,
            origin=self._origin(),
            trace_id=self._caller.trace_id,
            parent_task_id=parent.id if parent else None,
            cooldown=args.cooldown,
        ).but(**more)
        trigger = trigger.but(type=registry.type_of(trigger.schedule))
        registry.check(trigger)
        if trigger.type != args.type and args.type != "oneshot":
            raise BadInput(
                f"type: expected {trigger.type!r} for these arguments, got {args.type!r}",
                field="type",
            )
        self.effects.triggers.append(trigger)
        self._name(args.label, trigger.id)
        every_s = self._limits.llm_eval_interval_s
        notes = [note["en"] for note in words.notes(trigger, asked_every_s=every_s)]
        told = f"scheduled as {trigger.id}: {words.of_trigger(trigger)['en']}"
        return " ".join([told, *notes])

    def _change_trigger(self, args: arguments.ChangeTrigger) -> str:
        trigger = self._views.trigger(args.id)
        if trigger is None:
            raise BadInput(f"expected the id of a trigger, got {args.id!r}", field="id")
        permission.check_trigger_change(args.action, may_trigger=self._caller.may_trigger)
        self._check_plan_size()
        changes = self._checked_changes(trigger, args) if args.action == "edit" else {}
        order = PlannedOrder.model_validate(
            {"action": f"trigger_{args.action}", "target": trigger.id, "args": changes}
        )
        self.effects.orders.append(order)
        return f"{args.action}: will be done to {trigger.id}"

    def _checked_changes(self, trigger: Trigger, args: arguments.ChangeTrigger) -> dict[str, Any]:
        """What an edit changes, by names on disk; commands stay their owner's."""
        changes = dict(args.changes)
        permission.check_trigger_fields(changes)
        if trigger.profile == "command" and "prompt" in changes:
            self._check_profile("command")
        if changes.get("condition") is not None:
            changes["condition"] = self._given_condition(changes["condition"]).to_dict()
        registry.edited(trigger, changes)
        return changes

    # ---- both ----------------------------------------------------------------------------

    def _list_tasks(self, args: arguments.ListTasks) -> str:
        lines = self._views.tasks(args.scope)
        return "\n".join(f"{line.id} [{line.state}] {line.title}" for line in lines) or "nothing"

    def _cancel_task(self, args: arguments.Cancel) -> str:
        if not self._views.exists(args.id):
            raise BadInput(f"expected the id of a task or trigger, got {args.id!r}", field="id")
        self.effects.cancels.append(args.id)
        return "will be canceled"

    def _get_recent_history(self, args: arguments.RecentHistory) -> str:
        messages = self._views.history(args.count, args.offset)
        return replies.recent(messages, args.count, args.offset)

    def _get_history_by_time(self, args: arguments.HistoryByTime) -> str:
        before = _until(args.after, args.before)
        return replies.between(self._views.history_between(_instant(args.after, "after"), before))

    def _search_memory(self, args: arguments.SearchMemory) -> str:
        after = _instant(args.after, "after") if args.after else None
        before = _until(args.after, args.before)
        return replies.found(self._views.search(args.query, args.limit, after, before))

    # ---- parts ---------------------------------------------------------------------------

    def _ask(self, args: arguments.Ask, planner_task_id: str | None) -> str:
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

    def _notify(self) -> Notify:
        """Who is told of a run that comes once: the same as of a task of this plan."""
        return self._caller.parent.notify if self._caller.parent else "teller"

    def _origin(self) -> Origin:
        return permission.origin_of(self._caller.role, by_user=self._caller.by_user)

    def _check_profile(self, profile: str) -> None:
        if self._limits.profiles:
            permission.check_profile(profile, self._limits.profiles)
        permission.check_planned_profile(
            profile,
            by_user=self._caller.by_user,
            allow_llm_commands=self._limits.llm_commands,
        )

    def _check_plan_size(self) -> None:
        effects = self.effects
        planned = len(effects.tasks) + len(effects.triggers) + len(effects.orders)
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


def _with_ids(condition: Condition, meant: Callable[[str], str]) -> Condition:
    """The condition with each name of a task replaced by what it means."""
    match condition:
        case TaskDone() | TaskFailed():
            return condition.but(params={"taskId": meant(condition.params.task_id)})
        case AndCondition() | OrCondition():
            inner = [_with_ids(child, meant) for child in condition.params.conditions]
            return condition.but(params={"conditions": inner})
        case NotCondition():
            return condition.but(params={"condition": _with_ids(condition.params.condition, meant)})
        case _:
            return condition


def _until(after: str | None, before: str | None) -> datetime | None:
    """The end of a time that `after` begins."""
    end = _instant(before, "before") if before else None
    if end is not None and after is not None and end <= _instant(after, "after"):
        raise BadInput(f"before: expected a time later than after, got {before!r}", field="before")
    return end


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
    try:
        return to_utc(parsed)
    except ValueError as error:
        raise BadInput(f"{field_}: {error}, got {text!r}", field=field_) from None
