"""The contract of every engine: one request in, one outcome out, events and tools on the way."""

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
from mimikit.language.phrases import ToldResult, Words
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
"""usage: what the run has used so far, as fields of a `Usage`, where that is told on the way."""
OnEvent = Callable[[EventKind, str, dict[str, Any]], None]
OnSession = Callable[[str], None]


ServeTools: TypeAlias = Callable[
    [Sequence["ToolSpec"], Callable[[str, dict[str, Any]], "ToolReply"]],
    AbstractContextManager[tuple[str, str]],
]
"""Serves tools to one client over MCP: gives the address, and the token it is to show."""


class CancelToken:
    """Tells a running engine to stop, and why. Safe between threads; sticky."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.has_begun = False
        """Whether the engine, or a program of it, has begun: what fails then was tried."""
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


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is offered to a model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of its arguments."""


def tool_spec(name: str, arguments: type[BaseModel]) -> ToolSpec:
    """A tool by what it takes; that model's docstring is what it is offered with."""
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
    """A property's schema as a model needs it: what is to be written, not all that is checked."""
    given = [way for way in schema.get("anyOf", []) if way != {"type": "null"}]
    if len(given) == 1:  # it may be left out
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
    """What a tool call is answered with; a refusal is `ok=False` with the reason as text."""

    ok: bool
    text: str
    final: bool = False
    """With this call, and those before it, all is said and nothing waits to be read."""


def ends_turn(replies: Sequence[ToolReply]) -> bool:
    """Whether an answer whose calls were replied to so, in order, is the last of its turn."""
    return bool(replies) and replies[-1].final and all(reply.ok for reply in replies)


UPSTREAM = "upstream"
"""The folder of a run's scratch folder that holds the results it builds on; read-only."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One running, queued or recent task, or one trigger, in a few words."""

    id: str
    title: str
    state: str
    seat: str = "worker"
    created_at: datetime | None = None
    words: Words | None = None
    """Of a trigger: when it runs."""
    next: Words | None = None
    last: Words | None = None
    """How it ended, or how a trigger's last run did."""
    waits: Words | None = None
    """What it waits for."""
    status: EndStatus | None = None
    """What `last` tells of."""
    ended_at: datetime | None = None

    @property
    def facts(self) -> list[Words]:
        """All of it that is to be told, in order."""
        return [words for words in (self.words, self.next, self.last, self.waits) if words]


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The structured form of what the prompt says in words; engines without a mind read this."""

    now: datetime
    timezone: str = "UTC"
    locale: str = "en"
    inputs: tuple[InboxItem, ...] = ()
    results: tuple[ToldResult, ...] = ()
    conversation: tuple[Message, ...] = ()
    user: str = ""
    """What stays true of the user and the work: `memory.md`, as far as it fits."""
    memory: tuple[Hit, ...] = ()
    tasks: tuple[TaskLine, ...] = ()
    question: Question | None = None
    task: Task | None = None
    """The Planner's or Worker's own task."""
    upstream: tuple[TaskResult, ...] = ()
    facts: tuple[Words, ...] = ()
    """Status lines: what runs and waits, who serves whom."""
    look: Callable[[str], Sequence[TaskLine]] = lambda _scope: ()
    """More of the tasks, by what `list_tasks` calls a scope; for who finds them not in `tasks`."""


def _nothing(*_facts: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Tools:
    """What a run may call."""

    call: Callable[[str, dict[str, Any]], ToolReply]
    specs: tuple[ToolSpec, ...] = ()
    url: str | None = None
    """Where `/mcp` is served; with `token` as bearer."""
    token: str | None = None
    serve: ServeTools | None = None
    """Serves other tools there while it lasts, for an engine with tools of its own."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What a run reports while it goes on."""

    on_event: OnEvent
    on_session: OnSession = _nothing
    """Called with the run's session as soon as a later attempt could resume it."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What one run is to do. Units: `_s` are seconds."""

    run_id: str
    """The task's id, or the turn's."""
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
    """How often a model was asked, where the engine counts it."""
    asked: int = 0
    """Estimated prompt tokens of a run whose engine reports no usage."""
    session_id: str | None = None
    exit_code: int | None = None
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """More of the result: the size of truncated output, …"""


@dataclass(frozen=True, slots=True)
class Done(_RunEnd):
    """The run came to its end."""

    status: ClassVar[Literal["done"]] = "done"
    reason: ClassVar[None] = None
    error: ClassVar[None] = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Canceled(_RunEnd):
    """The user stopped the run."""

    status: ClassVar[Literal["canceled"]] = "canceled"
    reason: ClassVar[FailureReason] = "canceled"
    error: ClassVar[str] = "canceled"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Failed(_RunEnd):
    """The run failed, or its engine could not serve it."""

    status: ClassVar[Literal["failed"]] = "failed"
    reason: FailureReason
    error: str
    text: str = ""
    """What was said before."""
    retry_at: datetime | None = None
    """When a limit is known to end."""
    want: EngineWant | None = None
    """What the engine lacks, where it could not serve: see `unavailable`."""
    retry_now: bool = False
    """Nothing was done yet, and the engine has not retried itself: a retry at once may help."""
    too_long: bool = False
    """The prompt was more than the model takes."""
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
        """The engine could not serve, whatever was asked: this costs no attempt.

        error: in the engine's own words; users are told by `want` alone.
        """
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
"""What this machine may end a run with: `fault_outcome` says what comes of it."""


def fault_outcome(name: str, request: RunSpec, error: Exception, want: EngineWant) -> Outcome:
    """What a run comes to that this machine ended; `want`: what it lacks, if nothing had begun.

    Raises:
        EngineError: it was short of something, and nothing had begun.
    """
    said = str(error) or repr(error)
    if shortage_of(error) and not request.cancel.has_begun:
        if isinstance(error, EngineError):
            raise error
        raise EngineError(f"{name} can not be asked: {error}") from error
    if isinstance(error, EngineError) and not request.cancel.has_begun:
        return Failed.unavailable(want, said)
    # Its end is what went wrong: it is not repeated for that.
    return Failed("error", said)


class EngineAbsence(str):
    """Why an engine can not serve, in words; what kind of trouble that is, and its known end."""

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
    """Runs one request at a time per call; calls may come from several threads."""

    @property
    def name(self) -> str:
        """As it stands in settings and results."""
        ...

    def unavailable(self, role: Role | None = None) -> str | None:
        """Why it can not serve (that role) now, and what to do; None when it can. Cheap: cached.

        One that knows the kind of trouble gives an `EngineAbsence`.
        """
        ...

    def run(self, request: RunSpec) -> Outcome:
        """Carry it out. Never raises for what happens in the run: that is an outcome."""
        ...


@runtime_checkable
class ProbedEngine(Engine, Protocol):
    """One that can be looked at cheaply while it is waited for."""

    def look_anew(self) -> None:
        """Forget what is remembered of whether it is there: somebody may have mended it."""
        ...

    def is_mended(self, want: EngineWant) -> bool:
        """Whether what it lacked seems to be there again; at no token, within seconds.

        Asked now and then while work waits for it, on a thread of its own.
        """
        ...


@runtime_checkable
class CodeEngine(Engine, Protocol):
    """One that needs no mind, and says which messages it can answer in place of one."""

    def understands(self, text: str, tasks: Callable[[], Sequence[TaskLine]]) -> bool:
        """Whether a message is exactly a command; `tasks` gives what one may name."""
        ...

    def answers(
        self, text: str, tasks: Callable[[], Sequence[TaskLine]], question: Question | None
    ) -> bool:
        """Whether it does with a message all there is to do: what it reads is no mere talk."""
        ...


@runtime_checkable
class WarmEngine(Engine, Protocol):
    """One that keeps a process between its runs."""

    def close(self) -> None:
        """End it, and wait until it has ended; no run comes any more."""
        ...
