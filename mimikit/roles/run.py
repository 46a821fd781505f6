"""What every role works with, the live runs, and how a role runs an engine."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import Field

from mimikit.clock import Clock
from mimikit.config import TEST_ENGINE, BudgetSettings, LimitSettings, Settings
from mimikit.engines.base import (
    UPSTREAM,
    Callbacks,
    CancelToken,
    Engine,
    EventKind,
    Failed,
    OnEvent,
    OnSession,
    Outcome,
    RunSpec,
    ToolReply,
    Tools,
    ToolSpec,
    TurnInput,
)
from mimikit.engines.changes import ChangeRecorder
from mimikit.engines.registry import CODE_ENGINES, EngineChoice, EngineRegistry
from mimikit.errors import EngineError, StorageError, shortage_of
from mimikit.language import phrases
from mimikit.language.plain_text import plain
from mimikit.log import ChangeFeed, EventLog
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import FailureReason, Instant, LiveRun, Record, Role
from mimikit.roles.prompts import HistoryWindow, Prompts, prompt_of
from mimikit.roles.run_trail import RunTrail
from mimikit.roles.scratch import lay_out_upstream, make_scratch, remove_scratch
from mimikit.tasks.usage import UsageBook
from mimikit.tools.reader import RoleReader
from mimikit.tools.session import ToolCaller, ToolSession

if TYPE_CHECKING:
    from mimikit.tools.mcp import ToolServer

T = TypeVar("T")
S = TypeVar("S", bound=ToolSession)
MAX_EVENT_CHARACTERS = 20_000
_WITHOUT_TOKENS = CODE_ENGINES | {TEST_ENGINE}
"""Engines that use no tokens."""
_ANSWERS = frozenset({"message", "tool", "command", "file"})
"""Events that prove a complete answer."""
_TURN_ERRORS: dict[FailureReason | None, str] = {
    "error": "engine_failed",
    "timeout": "engine_silent",
}
"""The user reads a sentence; the engine's words are in the log."""
BACKOFF_S = (0.5, 1.0, 2.0)
"""Back-off before a transient failure is retried, in seconds."""


class LiveRuns:
    """The runs of this process by id, and how to stop them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[LiveRun, CancelToken]] = {}
        self._canceled_early: set[str] = set()
        self._stopping = False

    def start(self, run_id: str, role: Role, title: str, now: datetime) -> CancelToken:
        """Enter a run; its token is already canceled if the cancel came first."""
        run, token = LiveRun(id=run_id, role=role, title=title[:200], started_at=now), CancelToken()
        with self._lock:
            self._runs[run_id] = run, token
            canceled, stopping = run_id in self._canceled_early, self._stopping
            self._canceled_early.discard(run_id)
        if canceled or stopping:
            token.cancel("canceled" if canceled else "killed")
        return token

    def headline(self, run_id: str, text: str) -> None:
        with self._lock:
            if run_id in self._runs:
                run, token = self._runs[run_id]
                self._runs[run_id] = run.but(headline=text[:200]), token

    def end(self, run_id: str) -> None:
        with self._lock:
            self._runs.pop(run_id, None)

    def cancel(self, run_id: str, *, early: bool = False) -> bool:
        """False when it is not live here; `early`: then stop it when it enters."""
        with self._lock:
            _, token = self._runs.get(run_id, (None, None))
            if token is None and early:
                self._canceled_early.add(run_id)
        if token is not None:
            token.cancel("canceled")
        return token is not None

    def stop_all(self) -> None:
        """Stop every run, also those that enter later."""
        with self._lock:
            self._stopping = True
            stopped = [token for _, token in self._runs.values()]
        for token in stopped:
            token.cancel("killed")

    def list(self) -> list[LiveRun]:
        """Oldest first."""
        with self._lock:
            runs = [run for run, _ in self._runs.values()]
        return sorted(runs, key=lambda run: run.started_at)


@dataclass(frozen=True)
class RunContext:
    """What every run of one consumer shares."""

    files: Files
    settings: Settings
    clock: Clock
    live: LiveRuns
    engines: EngineRegistry
    prompts: Prompts
    reader: RoleReader
    feed: ChangeFeed
    log: EventLog
    workspace: Path
    state: Path
    tool_server: ToolServer | None = None
    window: HistoryWindow = field(default_factory=HistoryWindow)
    changes: ChangeRecorder = field(default_factory=ChangeRecorder)
    stopping: threading.Event = field(default_factory=threading.Event)

    @functools.cached_property
    def usage(self) -> UsageBook:
        """Created before any thread."""
        return UsageBook(self.files, self.settings, self.clock)

    def open_session(self, kind: type[S], caller: ToolCaller) -> S:
        """A role's tools for one run; refusals are logged."""
        return kind(
            caller,
            self.reader,
            self.settings,
            lambda tool, reason: self.log.write(
                "audit", "tool_refused", runId=caller.run_id, tool=tool, reason=reason
            ),
        )

    def retry_on_storage_error(self, do: Callable[[], T]) -> T:
        """Retry a read or write while the disk refuses, until the stop."""
        while True:
            try:
                return do()
            except StorageError as error:
                if shortage_of(error):
                    raise
                self.log.write("error", "disk_refuses", error=str(error))
                if error.permanent or self.stopping.wait(1.0):
                    raise


class RunEvent(Record):
    """One line of `runs/{id}.jsonl`."""

    at: Instant
    type: Literal[
        "started", "output", "delta", "message", "tool", "command", "file", "note", "error",
        "ended", "process", "usage",
    ]  # fmt: skip
    text: str = ""
    stream: Literal["stdout", "stderr"] | None = None
    data: dict[str, Any] = Field(default_factory=dict)


class RunOutput:
    """Writes a run's events to `runs/{id}.jsonl`; a disk that refuses a line never ends the run."""

    def __init__(self, context: RunContext, run_id: str, *, is_turn: bool, watch: OnEvent) -> None:
        """`is_turn`: stream deltas to the page; `watch` is called for each event."""
        self._context, self._run_id, self._watch = context, run_id, watch
        self._left = context.settings.limits.output_bytes
        self._is_turn = is_turn
        self._lock = threading.Lock()

    def event(self, kind: EventKind, text: str, data: Mapping[str, object]) -> None:
        self._watch(kind, text, dict(data))
        if kind == "delta" and self._is_turn:
            self._context.feed.tell("delta", turnId=self._run_id, text=text)
        if kind in ("command", "tool", "note", "file"):
            self._context.live.headline(self._run_id, plain(text))
        self.write(kind, text, data)

    def write(self, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Append one line; beyond the cap one last note."""
        facts = dict(data)
        record = RunEvent.model_validate(
            {
                "at": self._context.clock.now(),
                "type": kind,
                "text": plain(text)[:MAX_EVENT_CHARACTERS],
                "stream": facts.pop("stream", None),
                "data": facts,
            }
        )
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(record.text) + 200
            if self._left <= 0:
                record = record.but(type="note", text="more output is not shown here", data={})
            try:
                self._context.files.append(
                    paths.run_output(self._run_id), record.to_dict(), sync=False
                )
            except StorageError:
                self._left = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a task or turn, before its prompt is made."""

    run_id: str
    """The task's id, or the turn's."""
    number: int
    role: Role
    input: TurnInput
    choice: EngineChoice
    cancel: CancelToken
    session: ToolSession | None = None
    on_event: OnEvent = lambda _kind, _text, _data: None
    on_session: OnSession = lambda _session: None
    resume: str | None = None
    """The engine's session of an earlier attempt."""


def run_engine(context: RunContext, attempt: Attempt) -> Outcome:
    """Run one engine with its tools served.

    Raises only on a shortage of memory, threads or descriptors.
    """
    role, run_id, turn_input, cancel = attempt.role, attempt.run_id, attempt.input, attempt.cancel
    engine, session, server = attempt.choice.engine, attempt.session, context.tool_server
    output = RunOutput(context, run_id, is_turn=role == "teller", watch=attempt.on_event)
    output.write("started", engine.name, {"attempt": attempt.number})
    specs = session.specs() if session else ()
    trail = RunTrail(engine.name, session.call if session else _no_tools)
    timeout_s, idle_timeout_s = _timeouts(attempt, context.settings.limits)
    scratch = request = None
    try:
        scratch = make_scratch(context.state)
        lay_out_upstream(context.files, turn_input.upstream, scratch)
        instructions, prompt = _prompts(context, engine, role, turn_input, specs, scratch)
        request = RunSpec(
            run_id=run_id,
            attempt=attempt.number,
            role=role,
            instructions=instructions,
            prompt=prompt,
            input=turn_input,
            tools=Tools(
                trail.call,
                specs,
                serve=server.offered if server else None,
            ),
            callbacks=Callbacks(output.event, attempt.on_session),
            cancel=cancel,
            workspace=context.workspace,
            scratch=scratch,
            state=context.state,
            timeout_s=timeout_s,
            idle_timeout_s=idle_timeout_s,
            model=attempt.choice.model,
            effort=attempt.choice.seat.effort,
            resume=attempt.resume,
            # An internal task judges or summarises; it changes nothing.
            read_only=turn_input.task is not None and turn_input.task.internal,
        )
        outcome = _run_guarded(context, attempt.choice, request)
        outcome = (
            outcome if engine.name in _WITHOUT_TOKENS else _with_prompt_tokens(request, outcome)
        )
    except Exception as error:
        if shortage_of(error):
            raise
        context.log.write("error", "engine_fault", runId=run_id, error=repr(error))
        # An EngineError means that nothing began; after any other error that is unknown.
        cancel.has_begun = request is not None and not isinstance(error, EngineError)
        outcome = Failed("error", f"the engine failed: {error}")
    finally:
        if scratch is not None:
            remove_scratch(scratch)
    if cancel.reason == "killed" and outcome.status != "done":
        outcome = Failed("killed", "mimikit was stopped meanwhile")
    with contextlib.suppress(OSError, RuntimeError):  # does not change the outcome
        output.write("ended", outcome.error or "", {"status": outcome.status})
        if engine.name not in _WITHOUT_TOKENS:
            tokens.load_soon()  # count the tokens of later turns instead of estimating them
        trail.keep(context.files, request, outcome, context.clock.now())
    return outcome


def _prompts(
    context: RunContext,
    engine: Engine,
    role: Role,
    turn_input: TurnInput,
    specs: tuple[ToolSpec, ...],
    scratch: Path,
) -> tuple[str, str]:
    """Instructions and prompt; a command is a shell line alone."""
    if engine.name == "command":
        return "", turn_input.task.prompt if turn_input.task else ""
    instructions = context.prompts.instructions(role, turn_input, specs, context.workspace)
    budgets = context.settings.budgets
    return instructions, prompt_of(role, turn_input, budgets, scratch / UPSTREAM)


def _run_guarded(context: RunContext, choice: EngineChoice, request: RunSpec) -> Outcome:
    """Run an engine unless its circuit is open, and learn from the outcome."""
    engines, name, run_id = context.engines, choice.engine.name, request.run_id
    away = engines.begin(name, request.role, run_id)
    if away is not None:
        return away

    def on_event(kind: EventKind, text: str, data: dict[str, Any]) -> None:
        if kind in _ANSWERS:
            engines.circuits.answered(name, run_id)
        request.callbacks.on_event(kind, text, data)

    try:
        outcome = _run_with_retries(
            context,
            choice.engine,
            replace(request, callbacks=replace(request.callbacks, on_event=on_event)),
        )
        request.cancel.has_begun = True
        engines.record_outcome(name, request.role, run_id, outcome, choice.instead_of)
    finally:
        engines.circuits.left(name, run_id)
    return outcome


def _run_with_retries(context: RunContext, engine: Engine, request: RunSpec) -> Outcome:
    """Run an engine with retries: after a back-off, or with half the context."""
    outcome = engine.run(request)
    for wait_s in BACKOFF_S:
        if not (isinstance(outcome, Failed) and outcome.retry_now):
            break
        if request.cancel.wait(wait_s):
            break
        request.callbacks.on_event("note", f"retrying: {outcome.error}", {})
        outcome = engine.run(request)
    if isinstance(outcome, Failed) and outcome.too_long and not outcome.acted:
        shorter = _shorter(context, request)
        if shorter is not None:
            request.callbacks.on_event("note", "retrying with half of the context", {})
            outcome = engine.run(shorter)
    if not isinstance(outcome, Failed):
        return outcome
    if outcome.reason != "killed" and engine.name not in CODE_ENGINES:
        facts = {"runId": request.run_id, "engine": engine.name, "want": outcome.want}
        context.log.write("audit", "engine_failed", said=outcome.error, **facts)
    language = _language(request)
    if outcome.too_long:
        message = phrases.say("context_too_long", language, engine=engine.name)
        outcome = replace(outcome, error=message)
    elif request.role == "teller" and engine.name not in _WITHOUT_TOKENS:
        key = _TURN_ERRORS.get(outcome.reason)
        message = phrases.say(key, language, engine=engine.name) if key else outcome.error
        outcome = replace(outcome, error=message)
    return outcome


def _language(request: RunSpec) -> phrases.Language:
    """Of the user."""
    task, given = request.input.task, request.input
    said = task.prompt if task else "\n".join(item.text for item in given.inputs)
    return phrases.language(said, given.locale)


def _with_prompt_tokens(request: RunSpec, outcome: Outcome) -> Outcome:
    """With the estimated prompt tokens, where the engine reports no usage."""
    if outcome.usage.tokens:
        return outcome
    prompt_tokens = tokens.count(request.instructions) + tokens.count(request.prompt)
    return replace(outcome, prompt_tokens=prompt_tokens)


def _shorter(context: RunContext, request: RunSpec) -> RunSpec | None:
    """With half the budgets; None if that is no shorter."""
    budgets = context.settings.budgets
    half = {name: max(1, getattr(budgets, name) // 2) for name in type(budgets).model_fields}
    upstream = request.scratch / UPSTREAM
    prompt = prompt_of(request.role, request.input, BudgetSettings(**half), upstream)
    return replace(request, prompt=prompt) if len(prompt) < len(request.prompt) else None


def _timeouts(attempt: Attempt, limits: LimitSettings) -> tuple[float, float]:
    """Deadline and idle timeout, in seconds."""
    role, task, choice = attempt.role, attempt.input.task, attempt.choice
    longest = {"teller": 180, "planner": 600, "worker": limits.worker_timeout_s}[role]
    timeout_s = (task and task.timeout) or choice.seat.timeout_s or longest
    if role == "teller":
        return timeout_s, limits.teller_idle_timeout_s
    if choice.engine.name == "command":  # a command may be silent; a silent agent is stuck
        return timeout_s, timeout_s
    return timeout_s, limits.idle_timeout_s


def _no_tools(name: str, _arguments: Mapping[str, object]) -> ToolReply:
    return ToolReply(False, f"this run has no tools, so no {name!r}")


def cut_to_side(context: RunContext, record_id: str, text: str, *, note: bool = True) -> str:
    """The beginning of a long text; the whole is written to `side/` first."""
    data, whole = text.encode(errors="replace"), paths.side(record_id)
    limit = context.settings.limits.result_bytes
    if len(data) <= limit:
        return text
    context.retry_on_storage_error(lambda: context.files.write(whole, data))
    cut = data[:limit].decode(errors="ignore")
    return f"{cut}\n\n… ({whole})" if note else cut
