"""The contract of every engine: a run's spec in, one outcome out, events and tools on the way."""

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
    EngineWant,
    FailureReason,
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
    "output", "delta", "message", "tool", "command", "file", "note", "error", "usage"
]
"""usage: what the run has used so far, as fields of a `Usage`."""
OnEvent = Callable[[EventKind, str, dict[str, Any]], None]
OnSession = Callable[[str], None]


ServeTools: TypeAlias = Callable[
    [Sequence["ToolSpec"], Callable[[str, dict[str, Any]], "ToolReply"]],
    AbstractContextManager[tuple[str, str]],
]
"""Serves tools to one client over MCP: returns the address and the token."""


class CancelToken:
    """Tells a running engine to stop, and why. Thread-safe; sticky."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.has_begun = False
        """Whether the engine or its program has started: what fails then counts as tried."""
        self.reason: str | None = None
        """Why to stop (`canceled`, `killed`, `timeout`); None while the run may go on."""
        self._callbacks: list[Callable[[str], None]] = []

    def cancel(self, reason: str) -> bool:
        """Ask the run to stop; False when it was asked before."""
        with self._lock:
            if self.reason is not None:
                return False
            self.reason = reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(reason)
        return True

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        """Call `callback(reason)` when asked to stop, or at once if that has happened."""
        with self._lock:
            if self.reason is None:
                self._callbacks.append(callback)
                return
        callback(self.reason)

    def wait(self, seconds: float) -> bool:
        """Sleep, at most until asked to stop; whether that happened."""
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
    schema.pop("description", None)
    schema.pop("title", None)
    for key, property_ in schema["properties"].items():
        schema["properties"][key] = _said(property_)
    return ToolSpec(name, inspect.cleandoc(arguments.__doc__ or ""), schema)


_ONLY_CHECKED = frozenset({
    *("title", "minLength", "maxLength", "maxItems", "maxProperties", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum"),
})  # fmt: skip


def _said(schema: dict[str, Any]) -> dict[str, Any]:
    """A property's schema as a model needs it, without what is only checked."""
    given = [way for way in schema.get("anyOf", []) if way != {"type": "null"}]
    if len(given) == 1:  # an optional argument
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _said(rest | given[0])
    if "items" in schema:
        schema = schema | {"items": _said(schema["items"])}
    return {
        key: value
        for key, value in schema.items()
        if key not in _ONLY_CHECKED
        and not (key == "default" and not value)
        and not (key == "additionalProperties" and value is True)
    }


@dataclass(frozen=True, slots=True)
class ToolReply:
    """A refusal is `ok=False` with the reason as text."""

    ok: bool
    text: str
    final: bool = False
    """After this call, and those before it, nothing is left to say or to read."""


def ends_turn(replies: Sequence[ToolReply]) -> bool:
    """Whether these replies, in order, end the turn."""
    return bool(replies) and replies[-1].final and all(reply.ok for reply in replies)


UPSTREAM = "upstream"
"""Subfolder of the scratch folder with the results a run builds on; read-only."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A running, queued or recent task, or a trigger, in a few words."""

    id: str
    title: str
    state: str
    seat: str = "worker"
    created_at: datetime | None = None
    words: Words | None = None
    next: Words | None = None
    last: Words | None = None
    """How it, or a trigger's last run, ended."""
    waits: Words | None = None
    status: EndStatus | None = None
    ended_at: datetime | None = None

    @property
    def facts(self) -> list[Words]:
        return [words for words in (self.words, self.next, self.last, self.waits) if words]


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The prompt in structured form, for engines without a model."""

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
    question: Question | None = None
    task: Task | None = None
    upstream: tuple[TaskResult, ...] = ()
    facts: tuple[Words, ...] = ()
    """Status lines: what runs and waits, which engine serves which role."""
    look: Callable[[str], Sequence[TaskLine]] = lambda _scope: ()
    """Tasks by a scope of `list_tasks`, for what is not in `tasks`."""


def _nothing(*_facts: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Tools:
    call: Callable[[str, dict[str, Any]], ToolReply]
    specs: tuple[ToolSpec, ...] = ()
    serve: ServeTools | None = None
    """Serves tools over MCP while it lasts, for an engine that cannot call them in process."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    on_event: OnEvent
    on_session: OnSession = _nothing
    """Called with the run's session as soon as a later attempt could resume it."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What one run is to do. Units: `_s` are seconds."""

    run_id: str
    attempt: int
    role: Role
    instructions: str
    """The role's template: what it is and how it behaves."""
    prompt: str
    """The turn's own text: labelled blocks, a shell line for `command`."""
    input: TurnInput
    tools: Tools
    callbacks: Callbacks
    cancel: CancelToken
    workspace: Path
    scratch: Path
    """A folder of this run's own, outside the workspace, removed after it."""
    state: Path
    """The state folder, closed to agents."""
    timeout_s: float
    idle_timeout_s: float
    model: str | None = None
    effort: str | None = None
    resume: str | None = None
    """The session of an earlier attempt to resume."""
    read_only: bool = False
    """The workspace is read-only for this run, whatever the settings allow a Worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunEnd:
    usage: Usage = field(default_factory=Usage)
    requests: int | None = None
    prompt_tokens: int = 0
    """Estimated prompt tokens of a run whose engine reports no usage."""
    session_id: str | None = None
    exit_code: int | None = None
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """More of the result: the size of truncated output, …"""


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
    """Known end of a limit."""
    want: EngineWant | None = None
    """What the engine lacks, where it could not serve: see `unavailable`."""
    retry_now: bool = False
    """Nothing was done yet, and the engine has not retried itself: a retry at once may help."""
    too_long: bool = False
    """The prompt exceeds the model's context."""
    acted: bool = False
    """Something was done already: the run is not repeated with a shorter prompt."""

    @classmethod
    def unavailable(
        cls,
        want: EngineWant,
        error: str,
        *,
        text: str = "",
        retry_at: datetime | None = None,
        retry_now: bool = False,
    ) -> Failed:
        """The engine could not serve: this costs no attempt. `error`: in the engine's own words."""
        reason: FailureReason = "rate_limited" if want == "limited" else "engine_unavailable"
        return cls(reason, error, text, retry_at, want, retry_now)


Outcome: TypeAlias = Done | Failed | Canceled


def stop_outcome(reason: str, text: str = "") -> Outcome:
    """How a run ends that was told to stop: `canceled`, `timeout`, `budget`, else `killed`."""
    match reason:
        case "canceled":
            return Canceled(text)
        case "timeout":
            return Failed("timeout", "ended: not done in time", text)
        case "budget":
            return Failed("budget", "ended: its task has no tokens left", text)
        case _:
            return Failed("killed", "ended because the consumer stops", text)


FAULTS = (EngineError, StorageError, ProgramLost, OSError, MemoryError, RuntimeError)
"""Exceptions of this machine that end a run: see `fault_outcome`."""


def fault_outcome(name: str, request: RunSpec, error: Exception, want: EngineWant) -> Outcome:
    """Such an exception's outcome; raises EngineError on a shortage before the run's start."""
    said = str(error) or repr(error)
    if shortage_of(error) and not request.cancel.has_begun:
        if isinstance(error, EngineError):
            raise error
        raise EngineError(f"{name} cannot be asked: {error}") from error
    if isinstance(error, EngineError) and not request.cancel.has_begun:
        return Failed.unavailable(want, said)
    # It had started: no retry without an attempt.
    return Failed("error", said)


class EngineAbsence(str):
    """Why an engine cannot serve: a text with its kind and known end."""

    want: EngineWant
    until: datetime | None
    __slots__ = ("until", "want")

    def __new__(
        cls, reason: str, want: EngineWant = "unready", until: datetime | None = None
    ) -> Self:
        self = super().__new__(cls, reason)
        self.want, self.until = want, until
        return self


class Engine(Protocol):
    """Calls may come from several threads."""

    @property
    def name(self) -> str: ...

    def unavailable(self, role: Role | None = None) -> str | None:
        """Why it cannot serve (that role) now, and what to do; None when it can. Cheap: cached.

        One that knows the kind of trouble gives an `EngineAbsence`.
        """
        ...

    def run(self, request: RunSpec) -> Outcome:
        """Never raises for what happens in the run: that is an outcome."""
        ...


@runtime_checkable
class ProbedEngine(Engine, Protocol):
    """An engine with a cheap health check."""

    def recheck(self) -> None:
        """Forget cached availability."""
        ...

    def is_mended(self, want: EngineWant) -> bool:
        """Whether what it lacked seems to be there again; costs no token, takes seconds at most."""
        ...


@runtime_checkable
class CodeEngine(Engine, Protocol):
    """An engine without a model that can answer some messages in place of one."""

    def understands(self, text: str, tasks: Callable[[], Sequence[TaskLine]]) -> bool:
        """Whether a message is exactly a command; `tasks` returns those it may name."""
        ...

    def answers(
        self, text: str, tasks: Callable[[], Sequence[TaskLine]], question: Question | None
    ) -> bool:
        """Whether it can answer the message in full."""
        ...


@runtime_checkable
class WarmEngine(Engine, Protocol):
    """An engine that keeps a process between runs."""

    def close(self) -> None:
        """End it and wait for its end; no run follows."""
        ...
