"""The tool calls of one run: checked, answered, and collected as Effects until the commit."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, get_type_hints

from pydantic import ValidationError

from mimikit import permission
from mimikit.config import Settings
from mimikit.engines.base import ToolReply, ToolSpec, tool_spec
from mimikit.errors import BadInput, Refused, StorageError
from mimikit.language.plain_text import first_line
from mimikit.memory.notes import backlog_items, changed_backlog, mentions, plain_item
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    BacklogChange,
    FileRef,
    ForgottenNote,
    Origin,
    Question,
    RememberedNote,
    Role,
    RoutedAnswer,
    Task,
)
from mimikit.protocol.records import bad_record
from mimikit.protocol.triggers import PlannedCommand, Trigger
from mimikit.tools import arguments
from mimikit.tools.reader import RoleReader, backlog_item, backlog_lines
from mimikit.tools.world import line_text

MAX_CHARACTERS = 2_000_000
"""Of all calls of one run."""


@dataclass
class Effects:
    """The changes that a run has requested; its commit applies them."""

    replies: list[str] = field(default_factory=list[str])
    tasks: list[Task] = field(default_factory=list[Task])
    triggers: list[Trigger] = field(default_factory=list[Trigger])
    cancels: list[str] = field(default_factory=list[str])
    commands: list[PlannedCommand] = field(default_factory=list[PlannedCommand])
    remembered: list[RememberedNote] = field(default_factory=list[RememberedNote])
    forgotten: list[ForgottenNote] = field(default_factory=list[ForgottenNote])
    backlog: list[BacklogChange] = field(default_factory=list[BacklogChange])
    question: Question | None = None
    answers: list[RoutedAnswer] = field(default_factory=list[RoutedAnswer])


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The calling run, and what its tasks and triggers inherit."""

    run_id: str
    trace_id: str
    now: datetime
    by_user: bool = False
    """The user's own words, not a model's: may run commands."""
    remote: bool = False
    """Some of its input came from another machine."""
    parent: Task | None = None
    """The Planner's own task."""
    may_trigger: bool = True
    timezone: str | None = None
    locale: str | None = None
    question_open: bool = False
    files: Sequence[FileRef] = ()


class ToolSession:
    """Executes the tool calls of one run. Thread-safe.

    The method `_NAME(args)` implements the tool `NAME`.
    """

    role: ClassVar[Role]

    def __init__(
        self,
        caller: ToolCaller,
        reader: RoleReader,
        settings: Settings,
        on_refused: Callable[[str, str], None] = lambda _tool, _reason: None,
    ) -> None:
        self.effects = Effects()
        self._caller, self._reader, self._on_refused = caller, reader, on_refused
        self._settings, self._limits = settings, settings.limits
        self._lock = threading.Lock()
        self._closed = False
        self._characters_left = MAX_CHARACTERS
        self._origin: Origin = permission.origin_of(self.role, by_user=caller.by_user)
        self._labels: dict[str, str] = {}
        """The plan's ids by label."""
        self._referenced: set[str] = set()
        """Labels that other steps wait for."""
        self._ends_turn = False

    @classmethod
    @functools.cache
    def specs(cls) -> tuple[ToolSpec, ...]:
        models = ((name, cls._arguments(name)) for name in permission.TOOLS[cls.role])
        return tuple(tool_spec(name, model) for name, model in models)

    @classmethod
    @functools.cache
    def _arguments(cls, tool: str) -> type[arguments.ToolArguments]:
        return get_type_hints(getattr(cls, f"_{tool}"))["args"]

    def close(self) -> Effects:
        """Later calls are refused: an engine may outlive its run."""
        with self._lock:
            self._closed = True
            return self.effects

    def call(self, name: str, raw_args: Mapping[str, object]) -> ToolReply:
        """Refusals are replies, not exceptions."""
        try:
            with self._lock:
                before, self._ends_turn = self._ends_turn, False
                text, ends_turn = self._call(name, raw_args)
                self._ends_turn = before if ends_turn is None else ends_turn
                return ToolReply(True, text, self.is_over)
        except Refused as error:
            self._on_refused(name, str(error))
            return ToolReply(False, str(error))
        except BadInput as error:
            return ToolReply(False, str(error))
        except ValidationError as error:
            return ToolReply(False, str(bad_record(error)))
        except StorageError as error:
            # Tools read before they record an effect, so the call can be repeated.
            reason = f"the storage failed ({error}); nothing was done, call again"
            self._on_refused(name, reason)
            return ToolReply(False, reason)

    @property
    def is_over(self) -> bool:
        return self._ends_turn

    def _call(self, name: str, raw_args: Mapping[str, object]) -> tuple[str, bool | None]:
        if self._closed:
            raise Refused("this turn is over")
        permission.check_tool(self.role, name)
        args = arguments.validated(self._arguments(name), raw_args)
        # All effects go into one record, whose size is limited.
        self._characters_left -= len(str(raw_args))
        if self._characters_left < 0:
            raise Refused(f"expected at most {MAX_CHARACTERS:,} characters in all of a run's calls")
        return getattr(self, f"_{name}")(args), args.ends_turn

    def _list_tasks(self, args: arguments.ListTasksArguments) -> str:
        own = self._caller.parent.id if self._caller.parent else None
        lines = [line for line in self._reader.tasks(args.scope) if line.id != own]
        return "\n".join(map(line_text, lines)) or "nothing"

    def _cancel_task(self, args: arguments.CancelArguments) -> str:
        if not self._reader.exists(args.id):
            raise BadInput(f"expected the id of a task or trigger, got {args.id!r}", field="id")
        permission.check_cancel(
            is_command=self._reader.may_be_command(args.id),
            by_user=self._caller.by_user,
            allow_llm_commands=self._settings.allow_llm_commands,
        )
        self.effects.cancels.append(args.id)
        return "will be canceled"

    def _ask_user(self, args: arguments.AskArguments) -> str:
        if self._caller.question_open and not self.effects.answers:
            raise Refused("a question is open already; wait for its answer, or ask in your reply")
        if self.effects.question is not None:
            raise Refused("one question at a time; put both into one")
        now, parent = self._caller.now, self._caller.parent
        self.effects.question = Question(
            question_id=self._derived_id("q", 0),
            question=args.question,
            options=args.options,
            default=args.default,
            timeout=args.timeout,
            created_at=now,
            expires_at=now + timedelta(seconds=args.timeout),
            planner_task_id=parent.id if parent else None,
            trace_id=self._caller.trace_id,
        )
        return "the user will be asked"

    _needs_input = _ask_user

    def _task(self, prompt: str, title: str | None, priority: int) -> Task:
        parent = self._caller.parent
        return Task(
            id=self._derived_id("task", len(self.effects.tasks)),
            prompt=prompt,
            title=title or first_line(prompt, 60),
            priority=priority,
            created_at=self._caller.now,
            trace_id=self._caller.trace_id,
            parent_task_id=parent.id if parent else None,
            source_trigger_id=parent.source_trigger_id if parent else None,
            notify=parent.notify if parent else "teller",
            origin=self._origin,
            remote=self._caller.remote,
            timezone=self._caller.timezone,
            locale=self._caller.locale,
            files=list(self._caller.files),
        )

    def _check_trace(self, more: int) -> None:
        """Limits the tasks of one trace: plans may create further plans."""
        most = self._limits.tasks_per_trace
        if self._reader.trace_size(self._caller.trace_id) + more >= most:
            raise Refused(f"expected at most {most} tasks that follow from one request")

    def _derived_id(self, prefix: str, number: int) -> str:
        return derived_id(prefix, self._caller.run_id, prefix, str(number))


class TellerSession(ToolSession):
    role = "teller"

    def _reply(self, args: arguments.ReplyArguments) -> str:
        self._say(args.text)
        return "sent"

    def _say(self, text: str) -> None:
        if text not in self.effects.replies:
            self.effects.replies.append(text)

    def _remember(self, args: arguments.RememberArguments) -> str:
        added = self.effects.remembered
        id_ = self._derived_id("mem", len(added))
        added.append(RememberedNote(id=id_, content=args.content, long_term=args.long_term))
        return "remembered"

    def _forget(self, args: arguments.ForgetArguments) -> str:
        fresh = [note for note in self.effects.remembered if mentions(note.content, args.what)]
        found = [
            note for note in self._reader.notes(args.what) if note not in self.effects.forgotten
        ]
        contents = list(dict.fromkeys(note.content for note in [*fresh, *found]))
        if not contents:
            raise BadInput(f"what: expected a note, got {args.what!r}, which matches none")
        if len(contents) > 1 and args.scope == "notes":
            listed = [f"- {first_line(note.content, 200)} ({note.note_id})" for note in found]
            raise BadInput("\n".join([f"what: {len(contents)} notes match; ask which", *listed]))
        for note in fresh:
            self.effects.remembered.remove(note)
        self.effects.forgotten += found
        lines = [f"forgotten: {'; '.join(contents)}"]
        if places := self._reader.places(args.what, contents):
            lines.append(f"still in: {', '.join(places)}")
        return "\n".join(lines)

    def _update_backlog(self, args: arguments.BacklogArguments) -> str:
        added = self.effects.backlog
        text = self._reader.backlog()
        for change in added:
            text = changed_backlog(text, change.action, change.item)
        known = backlog_items(text)
        if args.action == "list":
            return backlog_lines(known)
        if args.item is None or not plain_item(args.item):
            raise BadInput("item: expected what is to be changed, got nothing", field="item")
        item = args.item
        if args.action != "add":
            item = backlog_item(known, item, args.action)
        id_ = self._derived_id("backlog", len(added))
        added.append(BacklogChange(id=id_, action=args.action, item=item))
        return f"noted, {args.action}: {plain_item(item)}"

    def _answer_question(self, args: arguments.AnswerArguments) -> str:
        self.effects.answers.append(
            RoutedAnswer(
                question_id=args.question_id,
                text=args.text,
                remote=self._caller.remote,
                by_user=self._caller.by_user,
            )
        )
        return "passed on"

    def _delegate(self, args: arguments.TellerDelegateArguments) -> str:
        # Unlimited for the user's own commands.
        most = self._limits.delegations_per_turn
        if len(self.effects.tasks) >= most and not self._caller.by_user:
            raise Refused(f"expected at most {most} delegations a turn; put the rest into one")
        self._check_trace(len(self.effects.tasks))
        task = self._task(args.prompt, args.title, args.priority).but(
            role="planner", notify="teller", max_attempts=2
        )
        self.effects.tasks.append(task)
        if args.reply is None:
            return f"delegated as {task.id}"
        self._say(args.reply)
        return f"delegated as {task.id}; your reply is sent, say no more"
