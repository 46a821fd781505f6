"""The contract of every engine: one request in, one outcome out, events and tools on the way."""

from __future__ import annotations

import base64
import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import BaseModel

from mimikit.errors import EngineError, ProgramLost, StorageError, shortage_of
from mimikit.language.phrases import ToldResult, Words
from mimikit.protocol.models import (
    EndStatus,
    EngineWant,
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
    "output", "delta", "message", "tool", "command", "file", "note", "error", "usage"
]
"""usage: what the run has used so far, as fields of a `Usage`, where that is told on the way."""
OnEvent = Callable[[EventKind, str, dict[str, Any]], None]
OnSession = Callable[[str], None]


OfferTools: TypeAlias = Callable[
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


def haste(role: Role) -> float:
    """What part of the usual wait before asking again fits a role.

    Who talks is told soon that nothing comes; what was said waits then, and is tried by itself.
    """
    return 0.3 if role == "teller" else 1.0


UPSTREAM = "upstream"
"""The folder of a run's scratch folder that holds the results it builds on; read-only."""


SKILLS = "skills"
"""The folder of a run's scratch folder that holds the skills it has read; read-only."""


FILES = "files"
"""The folder of a run's scratch folder that holds what the user sent; read-only."""
MOST_PICTURE_BYTES = 5 * 2**20
"""Of one that a model is shown: many an endpoint takes no larger ones."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that the user sent, as far as a run is given it."""

    ref: FileRef
    text: str | None = None
    """What stands in it, where it is text; of a very long one beginning and end."""
    is_there: bool = True
    path: Path | None = None
    """Where the run finds it."""
    is_shown: bool = False
    """It is a picture, and the model is shown it."""


@dataclass(frozen=True, slots=True)
class SkillLine:
    """A skill that a run may read, in the words of its author."""

    name: str
    description: str


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
    files: tuple[GivenFile, ...] = ()
    """What was sent with what is asked, then what was sent before it."""
    skills: tuple[SkillLine, ...] = ()
    """What is there to be read of how a kind of work is done, by `read_skill`."""
    look: Callable[[str], Sequence[TaskLine]] = lambda _scope: ()
    """More of the tasks, by what `list_tasks` calls a scope; for who finds them not in `tasks`."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """Everything one run needs. Units: `_s` are seconds."""

    run_id: str
    """The task's id, or the turn's."""
    attempt: int
    role: Role
    instructions: str
    """The role's template: what it is and how it behaves."""
    prompt: str
    """The turn's own text: labelled blocks, a shell line for `command`."""
    input: TurnInput
    tools: tuple[ToolSpec, ...]
    call_tool: Callable[[str, dict[str, Any]], ToolReply]
    on_event: OnEvent
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
    tools_url: str | None = None
    """Where `/mcp` is served; with `tools_token` as bearer."""
    tools_token: str | None = None
    offer: OfferTools | None = None
    """Serves other tools there while it lasts, for an engine with tools of its own."""
    resume: str | None = None
    """The session of an earlier attempt, to be gone on with."""
    on_session: OnSession = lambda _session: None
    """Told of the run's session as soon as it can be taken up again."""
    read_only: bool = False
    """It may look at the workspace and change nothing, whatever the settings allow a Worker."""
    kept: tuple[Path, ...] = ()
    """What more it may look at and not change: of a worktree, all that is the user's."""

    @property
    def pictures(self) -> list[GivenFile]:
        """What the model is shown beside the prompt; each lies at its path."""
        return [file for file in self.input.files if file.is_shown]


def picture_urls(request: EngineRequest) -> list[str]:
    """The pictures that the model is shown, as data URLs."""
    made: list[str] = []
    for file in request.pictures:
        if file.path is not None:
            coded = base64.b64encode(file.path.read_bytes()).decode()
            made.append(f"data:{file.ref.media_type};base64,{coded}")
    return made


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    status: Literal["done", "failed", "canceled"]
    text: str = ""
    error: str | None = None
    failure_reason: FailureReason | None = None
    usage: Usage = field(default_factory=Usage)
    requests: int | None = None
    """How often a model was asked, where the engine counts it."""
    asked: int = 0
    """Of a run whose engine tells no usage: about how many tokens it was asked with."""
    session_id: str | None = None
    exit_code: int | None = None
    retry_at: datetime | None = None
    """When a limit is known to end."""
    want: EngineWant | None = None
    """What the engine lacks, of a run that it turned away: see `turned_away`."""
    may_pass: bool = False
    """Nothing was done yet, and the engine has not asked again itself: that may help at once."""
    too_long: bool = False
    """It was more than the model takes: `run_engine` says so in words, when no less goes either."""
    acted: bool = False
    """Something was done already: the run is not to be repeated with a shorter prompt."""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """More of the result: files changed, truncated output's size…"""
    told: Words | None = None
    """The error in each language, where it is put for people."""

    @classmethod
    def turned_away(
        cls,
        want: EngineWant,
        said: str,
        *,
        text: str = "",
        retry_at: datetime | None = None,
        may_pass: bool = False,
    ) -> Outcome:
        """Of a run that the engine could not serve, whatever was asked: it costs no attempt.

        said: in the engine's own words; people are told by the kind alone.
        """
        reason: FailureReason = "rate_limited" if want == "limited" else "engine_unavailable"
        return cls("failed", text, said, reason, retry_at=retry_at, want=want, may_pass=may_pass)

    @classmethod
    def stopped(cls, reason: str, text: str = "") -> Outcome:
        """Of a run that was told to stop: `canceled`, `timeout`, `budget`, any other: `killed`."""
        if reason == "canceled":
            return cls("canceled", text, "canceled", "canceled")
        if reason == "timeout":
            return cls("failed", text, "ended: not done in time", "timeout")
        if reason == "budget":
            return cls("failed", text, "ended: its task has no tokens left", "budget")
        return cls("failed", text, "ended because the consumer stops", "killed")


FAULTS = (EngineError, StorageError, ProgramLost, OSError, MemoryError, RuntimeError)
"""What this machine may end a run with: `fault_outcome` says what comes of it."""


def fault_outcome(name: str, request: EngineRequest, error: Exception, want: EngineWant) -> Outcome:
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
        return Outcome.turned_away(want, said)
    # Its end is what went wrong: it is not repeated for that.
    return Outcome("failed", error=said, failure_reason="error")


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

    def run(self, request: EngineRequest) -> Outcome:
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

    def is_ready(self) -> bool:
        """Whether it reads sentences at once; else what it takes to read them is on its way.

        Asked again with the next tick: what waits for it is not kept waiting for a mind.
        """
        ...

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
