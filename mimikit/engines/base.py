"""The engine interface: `run` takes a `RunSpec`, reports events, calls tools, gives an outcome."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import BaseModel

from mimikit.errors import EngineError, ProgramLost, StorageError, shortage_of
from mimikit.language.phrases import ResultNotice, Words
from mimikit.protocol.models import (
    EndStatus,
    EngineProblem,
    FailureReason,
    FileRef,
    Hit,
    InboxItem,
    Message,
    Question,
    Role,
    Task,
    Usage,
)
from mimikit.protocol.results import TaskResult

EventKind = Literal[
    "output", "line", "delta", "reset", "message", "tool", "command", "file", "note", "error",
    "usage",
]  # fmt: skip
"""`line`: an unfinished line of output, until its stream's next event. `reset`: the deltas of this
answer are withdrawn. `usage`: the fields of a `Usage` so far."""
OnEvent = Callable[[EventKind, str, dict[str, Any]], None]
OnSession = Callable[[str], None]


ToolOffer: TypeAlias = Callable[
    [Sequence["ToolSpec"], Callable[[str, dict[str, Any]], "ToolReply"]],
    AbstractContextManager[tuple[str, str]],
]
"""Offers tools over MCP while the context lasts; yields address and token."""


class CancelToken:
    """Cancels a run, once, with a reason. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.has_begun = False
        """Whether the engine's work has started: a failure after that costs an attempt."""
        self.reason: str | None = None
        """`canceled`, `killed`, `timeout` or `budget`; None while the run may go on."""
        self._callbacks: list[Callable[[str], object]] = []

    def cancel(self, reason: str) -> bool:
        """False if it was canceled before."""
        with self._lock:
            if self.reason is not None:
                return False
            self.reason = reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(reason)
        return True

    def on_cancel(self, callback: Callable[[str], object]) -> None:
        """Call `callback(reason)` on cancellation, immediately if that has happened."""
        with self._lock:
            if self.reason is None:
                self._callbacks.append(callback)
                return
        callback(self.reason)

    def wait(self, seconds: float) -> bool:
        """Sleep until the cancellation at the latest; whether it happened."""
        stop = threading.Event()
        self.on_cancel(lambda _reason: stop.set())
        return stop.wait(seconds)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    schema: dict[str, Any]


def tool_spec(name: str, arguments: type[BaseModel]) -> ToolSpec:
    """The tool's description is the docstring of the model of its arguments."""
    schema = arguments.model_json_schema(by_alias=True)
    for key in ("description", "title", "additionalProperties"):  # costs tokens, is checked here
        schema.pop(key, None)
    for key, property_ in schema["properties"].items():
        schema["properties"][key] = _model_schema(property_)
    return ToolSpec(name, inspect.cleandoc(arguments.__doc__ or ""), schema)


_VALIDATION_KEYS = frozenset({
    *("title", "minLength", "maxLength", "maxItems", "maxProperties", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum"),
})  # fmt: skip


def _model_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A property's schema without keys that only validation needs, to save tokens."""
    types = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    if len(types) == 1:  # an optional argument
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _model_schema(rest | types[0])
    if "items" in schema:
        schema = schema | {"items": _model_schema(schema["items"])}
    return {
        key: value
        for key, value in schema.items()
        if key not in _VALIDATION_KEYS
        and not (key == "default" and not value)
        and not (key == "additionalProperties" and value is True)
    }


@dataclass(frozen=True, slots=True)
class ToolReply:
    """`ok=False`: refused, with the reason as text."""

    ok: bool
    text: str
    final: bool = False
    """The call completes the turn, unless an earlier one of the same answer failed."""


def ends_turn(replies: Sequence[ToolReply]) -> bool:
    return bool(replies) and replies[-1].final and all(reply.ok for reply in replies)


UPSTREAM = "upstream"
"""Read-only subfolder of the scratch folder with the results of earlier steps."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task or trigger as listed in prompts and replies."""

    id: str
    title: str
    state: str
    seat: str = "worker"
    created_at: datetime | None = None
    words: Words | None = None
    """A trigger's schedule or condition."""
    next: Words | None = None
    last: Words | None = None
    """The end of the task, or of the trigger's last run."""
    waits: Words | None = None
    status: EndStatus | None = None
    ended_at: datetime | None = None

    @property
    def facts(self) -> list[Words]:
        return [words for words in (self.words, self.next, self.last, self.waits) if words]


UNSEEN_PICTURES = "The pictures are not attached, as you take none: say that you cannot see them."
"""Added to the prompt of a model that takes no pictures."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the user, as a prompt shows it."""

    ref: FileRef
    text: str = ""
    """The beginning of a text."""
    picture: str = ""
    """Data URL of a picture; empty: it is not shown."""


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The input of a run in structured form; engines with a model get it as the prompt."""

    now: datetime
    timezone: str = "UTC"
    locale: str = "en"
    inputs: tuple[InboxItem, ...] = ()
    results: tuple[ResultNotice, ...] = ()
    conversation: tuple[Message, ...] = ()
    user: str = ""
    """The long-term part of `memory.md`, as far as it fits."""
    memory: tuple[Hit, ...] = ()
    tasks: tuple[TaskLine, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    question: Question | None = None
    task: Task | None = None
    upstream: tuple[TaskResult, ...] = ()
    facts: tuple[Words, ...] = ()
    """Status lines: queues, and the engine of each role."""
    look: Callable[[str], Sequence[TaskLine]] = lambda _scope: ()
    """Tasks by a scope of `list_tasks`."""
    note: str = ""
    """From code, about the last attempt at this turn."""

    @property
    def pictures(self) -> list[Attachment]:
        """Those to be shown to the model."""
        return [file for file in self.attachments if file.picture]


def _nothing(*_facts: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Tools:
    call: Callable[[str, dict[str, Any]], ToolReply]
    specs: tuple[ToolSpec, ...] = ()
    serve: ToolOffer | None = None
    """For an engine that cannot call tools in process."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    on_event: OnEvent
    on_session: OnSession = _nothing
    """Called with the engine's session id as soon as a later attempt could resume it."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Everything an engine needs for one run. Units: `_s` are seconds."""

    run_id: str
    attempt: int
    role: Role
    instructions: str
    prompt: str
    """The user prompt; the shell line for `command`."""
    input: TurnInput
    tools: Tools
    callbacks: Callbacks
    cancel: CancelToken
    workspace: Path
    scratch: Path
    """The run's temporary folder, outside the workspace."""
    timeout_s: float
    idle_timeout_s: float
    model: str | None = None
    effort: str | None = None
    resume: str | None = None
    read_only: bool = False
    """The workspace is read-only, whatever the settings allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunEnd:
    usage: Usage = field(default_factory=Usage)
    requests: int | None = None
    prompt_tokens: int = 0
    """Estimated prompt tokens of a run whose engine reports no usage."""
    session_id: str | None = None
    exit_code: int | None = None
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    engine: str = ""
    """The engine that ran: the chosen one, or the next for what was too long for that."""
    notices: tuple[str, ...] = ()
    """For the user, added to the Teller's reply."""


@dataclass(frozen=True, slots=True)
class Done(_RunEnd):
    status: ClassVar[Literal["done"]] = "done"
    reason: ClassVar[None] = None
    error: ClassVar[None] = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Canceled(_RunEnd):
    status: ClassVar[Literal["canceled"]] = "canceled"
    reason: ClassVar[FailureReason] = "canceled"
    error: ClassVar[str] = "canceled"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Failed(_RunEnd):
    status: ClassVar[Literal["failed"]] = "failed"
    reason: FailureReason
    error: str
    text: str = ""
    retry_at: datetime | None = None
    want: EngineProblem | None = None
    """Why the engine is unavailable; None if it is not."""
    retry_now: bool = False
    """Transient, and nothing was done yet: may be retried without an attempt."""
    too_long: bool = False
    refused: bool = False
    """A content filter refuses the text for good."""
    acted: bool = False
    """Something was done: do not repeat the run with a shorter prompt."""

    @property
    def never_fits(self) -> bool:
        """Neither waiting nor a retry helps; another engine may."""
        return self.too_long and not self.acted

    @classmethod
    def unavailable(
        cls,
        want: EngineProblem,
        error: str,
        *,
        text: str = "",
        retry_at: datetime | None = None,
        retry_now: bool = False,
    ) -> Failed:
        """The engine is unavailable, which costs no attempt. `error`: the engine's message."""
        reason: FailureReason = "rate_limited" if want == "limited" else "engine_unavailable"
        return cls(reason, error, text, retry_at, want, retry_now)


Outcome: TypeAlias = Done | Failed | Canceled


def stop_outcome(reason: str, text: str = "", limit: float = 0) -> Outcome:
    """The outcome of a run that was ended; `limit`: the seconds or bytes that were too few.

    `reason`: of its `CancelToken`, `idle` (trouble of the engine) or `flood`.
    """
    match reason:
        case "canceled":
            return Canceled(text)
        case "timeout":
            within = f"within {limit:g} s" if limit else "in time"
            return Failed("timeout", f"ended: not done {within}", text)
        case "idle":
            return Failed.unavailable("broken", f"ended: silent for {limit:g} s", text=text)
        case "flood":
            return Failed("error", f"ended: it printed more than {limit:.0f} bytes", text)
        case "budget":
            return Failed("budget", "ended: its task has no tokens left", text)
        case _:
            return Failed("killed", "ended because mimikit stops", text)


FAULTS = (EngineError, StorageError, ProgramLost, OSError, MemoryError, RuntimeError)


def fault_outcome(name: str, request: RunSpec, error: Exception, want: EngineProblem) -> Outcome:
    """The outcome of a run that one of `FAULTS` ended. Raises EngineError on a shortage.

    After the run has begun it counts as an attempt.
    """
    message = str(error) or repr(error)
    if shortage_of(error) and not request.cancel.has_begun:
        if isinstance(error, EngineError):
            raise error
        raise EngineError(f"{name} cannot start: {error}") from error
    if isinstance(error, EngineError) and not request.cancel.has_begun:
        return Failed.unavailable(want, message)
    return Failed("error", message)


class EngineOutage(str):
    """Why an engine is unavailable: a message with its kind and known end."""

    want: EngineProblem
    until: datetime | None
    __slots__ = ("until", "want")

    def __new__(
        cls, reason: str, want: EngineProblem = "unready", until: datetime | None = None
    ) -> Self:
        self = super().__new__(cls, reason)
        self.want, self.until = want, until
        return self


class Engine(Protocol):
    """Thread-safe."""

    @property
    def name(self) -> str: ...

    def unavailable(self, role: Role | None = None) -> str | None:
        """The reason, and what to do about it; None if it is available. Cheap: cached."""
        ...

    def run(self, request: RunSpec) -> Outcome:
        """Failures of the run are outcomes, not exceptions."""
        ...


@runtime_checkable
class ProbedEngine(Engine, Protocol):
    def recheck(self) -> None: ...

    def has_recovered(self, want: EngineProblem) -> bool:
        """A health check for that problem, without using tokens; takes seconds at most."""
        ...


@runtime_checkable
class CodeEngine(Engine, Protocol):
    def understands(self, text: str, tasks: Callable[[], Sequence[TaskLine]]) -> bool:
        """Whether the message is exactly a command; `tasks`: those it may refer to."""
        ...

    def answers(
        self, text: str, tasks: Callable[[], Sequence[TaskLine]], question: Question | None
    ) -> bool: ...


@runtime_checkable
class WarmEngine(Engine, Protocol):
    def close(self) -> None: ...
