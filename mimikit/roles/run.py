"""Runs an engine for a role: context, live runs, events, retries."""

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
    Outcome,
    RunSpec,
    ToolReply,
    Tools,
    TurnInput,
)
from mimikit.engines.changes import ChangeRecorder
from mimikit.engines.registry import CODE_ENGINES, EngineChoice, EngineRegistry
from mimikit.errors import EngineError, StorageError, shortage_of
from mimikit.language import phrases
from mimikit.language.drafts import DraftSplitter
from mimikit.language.plain_text import plain, utf16_length
from mimikit.log import ChangeFeed, EventLog
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import EngineSession, FailureReason, Instant, LiveRun, Record, Role
from mimikit.roles.prompts import HistoryWindow, Prompts, prompt_of
from mimikit.roles.run_trail import RunTrail
from mimikit.roles.scratch import make_scratch, remove_scratch, write_inputs
from mimikit.roles.worktree import Worktrees
from mimikit.tasks.usage import UsageBook
from mimikit.tools.reader import RoleReader
from mimikit.tools.session import ToolCaller, ToolSession

if TYPE_CHECKING:
    from mimikit.tools.mcp import ToolServer

T = TypeVar("T")
S = TypeVar("S", bound=ToolSession)
MAX_EVENT_CHARACTERS = 20_000
_WITHOUT_TOKENS = CODE_ENGINES | {TEST_ENGINE}
_ANSWER_EVENTS = frozenset({"message", "tool", "command", "file"})
"""Events that prove that the engine is available."""
_TURN_ERRORS: dict[FailureReason | None, str] = {
    "error": "engine_failed",
    "timeout": "engine_silent",
}
"""Phrases that replace the engine's error, which is in the log."""
BACKOFF_S = (0.5, 1.0, 2.0)


class LiveRuns:
    """The current runs of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[LiveRun, CancelToken]] = {}
        self._canceled_early: set[str] = set()
        self._stopping = False

    def start(self, run_id: str, role: Role, title: str, now: datetime) -> CancelToken:
        """Register a run; returns its token, already canceled if the cancel came first."""
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
        """False if it is not running here; `early`: then cancel it when it starts."""
        with self._lock:
            _, token = self._runs.get(run_id, (None, None))
            if token is None and early:
                self._canceled_early.add(run_id)
        if token is not None:
            token.cancel("canceled")
        return token is not None

    def stop_all(self) -> None:
        """Cancel every run, also those that start later."""
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
    """Shared by all runs of one consumer."""

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
    worktrees: Worktrees
    tool_server: ToolServer | None = None
    window: HistoryWindow = field(default_factory=HistoryWindow)
    changes: ChangeRecorder = field(default_factory=ChangeRecorder)
    stopping: threading.Event = field(default_factory=threading.Event)

    @functools.cached_property
    def usage(self) -> UsageBook:
        return UsageBook(self.files, self.settings, self.clock)

    def open_session(self, kind: type[S], caller: ToolCaller) -> S:
        """A role's tools for one run; logs refusals."""
        return kind(
            caller,
            self.reader,
            self.settings,
            lambda tool, reason: self.log.write(
                "audit", "tool_refused", runId=caller.run_id, tool=tool, reason=reason
            ),
        )

    def retry_on_storage_error(self, do: Callable[[], T]) -> T:
        """Retry a read or write every second until it succeeds or the consumer stops."""
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
        "started", "output", "line", "delta", "reset", "message", "tool", "command", "file", "note",
        "error", "ended", "process", "usage",
    ]  # fmt: skip
    text: str = ""
    stream: Literal["stdout", "stderr"] | None = None
    data: dict[str, Any] = Field(default_factory=dict)


class RunOutput:
    """Writes a run's events to `runs/{id}.jsonl`; storage errors do not fail the run."""

    def __init__(self, context: RunContext, attempt: Attempt) -> None:
        self._context, self._attempt = context, attempt
        self._reply: list[str] = []
        self._withdrawn = ""
        self._offset = 0
        self._splitter = DraftSplitter()
        self._bytes_left = context.settings.limits.output_bytes
        self._lock = threading.Lock()

    def event(self, kind: EventKind, text: str, data: Mapping[str, object]) -> None:
        context, run_id = self._context, self._attempt.run_id
        if kind in _ANSWER_EVENTS:
            context.engines.circuits.answered(self._attempt.choice.engine.name, run_id)
        self._attempt.on_event(kind, text, dict(data))
        if kind in ("delta", "reset") and self._attempt.role == "teller":
            self._publish_delta(text, is_reset=kind == "reset")
        if kind in ("command", "tool", "note", "file"):
            context.live.headline(run_id, plain(text))
        self.write(kind, text, data)

    @property
    def reply(self) -> str:
        """What the user has seen of a reply; if it was withdrawn, what was seen before that."""
        return "".join(self._reply) or self._withdrawn

    def _publish_delta(self, text: str, *, is_reset: bool) -> None:
        """Offsets count UTF-16 code units, as JavaScript does."""
        if is_reset:
            self._withdrawn = self.reply
            self._reply, self._offset, self._splitter = [], 0, DraftSplitter()
        more: dict[str, object] = {"reset": True} if is_reset else {}
        if block := self._splitter.feed(text):
            more["blocks"] = [block]
        self._context.feed.publish(
            "delta", turnId=self._attempt.run_id, text=text, offset=self._offset, **more
        )
        self._reply.append(text)
        self._offset += utf16_length(text)

    def write(self, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Append it in parts of a line each; a note once the size limit is reached."""
        facts, shown = dict(data), plain(text)
        about = {"at": self._context.clock.now(), "type": kind, "stream": facts.pop("stream", None)}
        for start in range(0, len(shown) or 1, MAX_EVENT_CHARACTERS):
            part = shown[start : start + MAX_EVENT_CHARACTERS]
            self._append(RunEvent.model_validate({**about, "text": part, "data": facts}))

    def _append(self, record: RunEvent) -> None:
        with self._lock:
            if self._bytes_left <= 0:
                return
            self._bytes_left -= len(record.text) + 200
            if self._bytes_left <= 0:
                record = record.but(type="note", text="more output is not shown here", data={})
            try:
                path = paths.run_output(self._attempt.run_id)
                self._context.files.append(path, record.to_dict(), sync=False)
            except StorageError:
                self._bytes_left = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    run_id: str
    number: int
    role: Role
    input: TurnInput
    choice: EngineChoice
    cancel: CancelToken
    session: ToolSession | None = None
    on_event: OnEvent = lambda _kind, _text, _data: None
    on_session: Callable[[EngineSession], None] = lambda _session: None
    resume: EngineSession | None = None
    """The session of an earlier attempt; only its own engine resumes it."""
    workspace: Path | None = None
    """Another folder than the workspace to work in."""


def run_engine(context: RunContext, attempt: Attempt) -> Outcome:
    """Run an engine. Raises only on a shortage of memory, threads or descriptors."""
    role, run_id, turn_input, cancel = attempt.role, attempt.run_id, attempt.input, attempt.cancel
    engine, session, server = attempt.choice.engine, attempt.session, context.tool_server
    output = RunOutput(context, attempt)
    output.write("started", engine.name, {"attempt": attempt.number})
    specs = session.specs() if session else ()
    trail = RunTrail(engine.name, session.call if session else _no_tools)
    timeout_s, idle_timeout_s = _timeouts(attempt, context.settings.limits)
    earlier, workspace = attempt.resume, attempt.workspace or context.workspace
    scratch = request = None
    try:
        scratch = make_scratch(context.state)
        write_inputs(context.files, role, turn_input, scratch)
        if engine.name == "command":
            instructions, prompt = "", turn_input.task.prompt if turn_input.task else ""
        else:
            instructions = context.prompts.instructions(role, turn_input, specs, workspace)
            prompt = prompt_of(role, turn_input, context.settings.budgets, scratch / UPSTREAM)
        request = RunSpec(
            run_id=run_id,
            attempt=attempt.number,
            role=role,
            instructions=instructions,
            prompt=prompt,
            input=turn_input,
            tools=Tools(trail.call, specs, server.offered if server else None),
            callbacks=Callbacks(
                output.event,
                lambda id_: attempt.on_session(EngineSession(engine=engine.name, id=id_)),
            ),
            cancel=cancel,
            workspace=workspace,
            scratch=scratch,
            timeout_s=timeout_s,
            idle_timeout_s=idle_timeout_s,
            model=attempt.choice.model,
            effort=attempt.choice.profile.effort,
            resume=earlier.id if earlier and earlier.engine == engine.name else None,
            read_only=turn_input.task is not None and turn_input.task.internal,
        )
        outcome = _run_guarded(context, attempt.choice, request)
        if engine.name not in _WITHOUT_TOKENS and not outcome.usage.tokens:
            estimate = tokens.count(instructions) + tokens.count(prompt)
            outcome = replace(outcome, prompt_tokens=estimate)
    except Exception as error:
        if shortage_of(error):
            raise
        context.log.write("error", "engine_fault", runId=run_id, error=repr(error))
        # After an EngineError the engine has not started; after any other error it may have.
        cancel.has_begun = request is not None and not isinstance(error, EngineError)
        outcome = Failed("error", f"the engine failed: {error}")
    finally:
        if scratch is not None:
            remove_scratch(scratch)
    if role == "teller" and outcome.status != "done":
        outcome = replace(outcome, text=output.reply)
    if cancel.reason == "killed" and outcome.status != "done":
        outcome = Failed("killed", "mimikit was stopped during the run")
    with contextlib.suppress(OSError, RuntimeError):  # does not change the outcome
        output.write("ended", outcome.error or "", {"status": outcome.status})
        if engine.name not in _WITHOUT_TOKENS:
            tokens.load_soon()  # later turns count tokens instead of estimating them
        trail.save(context.files, request, outcome, context.clock.now())
    return outcome


def _run_guarded(context: RunContext, choice: EngineChoice, request: RunSpec) -> Outcome:
    engines, name, run_id = context.engines, choice.engine.name, request.run_id
    if (rejected := engines.begin(name, request.role, run_id)) is not None:
        return rejected
    try:
        outcome = _run_with_retries(context, choice.engine, request)
        request.cancel.has_begun = True
        engines.record_outcome(name, request.role, run_id, outcome, choice.instead_of)
    finally:
        engines.circuits.release(name, run_id)
    return outcome


def _run_with_retries(context: RunContext, engine: Engine, request: RunSpec) -> Outcome:
    """Retry a transient failure after a back-off, a too long prompt with half the context."""
    outcome = engine.run(request)
    for wait_s in BACKOFF_S:
        if not (isinstance(outcome, Failed) and outcome.retry_now):
            break
        if request.cancel.wait(wait_s):
            break
        request.callbacks.on_event("note", f"retrying: {outcome.error}", {})
        outcome = engine.run(request)
    given, budgets = request.input, context.settings.budgets
    if isinstance(outcome, Failed) and outcome.never_fits:
        half = {name: max(1, getattr(budgets, name) // 2) for name in type(budgets).model_fields}
        unseen = tuple(replace(file, picture="") for file in given.attachments)
        bare = replace(given, attachments=unseen)
        shorter = _shortened(request, bare, BudgetSettings(**half))
        outcome = _run_again(engine, shorter, "with half of the context") or outcome
    if isinstance(outcome, Failed) and outcome.refused and not outcome.acted:
        # What a content filter refuses may be an older message.
        bare = _shortened(request, replace(given, conversation=(), memory=()), budgets)
        outcome = _run_again(engine, bare, "without conversation and memory") or outcome
    if not isinstance(outcome, Failed):
        return outcome
    if outcome.reason != "killed" and engine.name not in CODE_ENGINES:
        facts = {"runId": request.run_id, "engine": engine.name, "want": outcome.want}
        context.log.write("audit", "engine_failed", said=outcome.error, **facts)
    is_told = request.role == "teller" and engine.name not in _WITHOUT_TOKENS
    if outcome.too_long or not is_told:
        return outcome
    error, key = sentence(outcome.error), _TURN_ERRORS.get(outcome.reason)
    facts = {"engine": engine.name, "error": error}
    message = phrases.say(key, language_of(request.input), **facts) if key else error
    return replace(outcome, error=message)


def language_of(given: TurnInput) -> phrases.Language:
    text = given.task.prompt if given.task else "\n".join(item.text for item in given.inputs)
    return phrases.language(text, given.locale)


def _shortened(request: RunSpec, given: TurnInput, budgets: BudgetSettings) -> RunSpec | None:
    """With a new prompt; None if that is no shorter."""
    prompt = prompt_of(request.role, given, budgets, request.scratch / UPSTREAM)
    is_shorter = len(prompt) < len(request.prompt) or given.pictures != request.input.pictures
    return replace(request, input=given, prompt=prompt) if is_shorter else None


def _run_again(engine: Engine, request: RunSpec | None, how: str) -> Outcome | None:
    if request is None:
        return None
    request.callbacks.on_event("note", f"retrying {how}", {})
    return engine.run(request)


def sentence(error: str) -> str:
    return error.rstrip(". ")


def _timeouts(attempt: Attempt, limits: LimitSettings) -> tuple[float, float]:
    """Deadline and idle timeout, in seconds."""
    role, task, choice = attempt.role, attempt.input.task, attempt.choice
    default_s = {"teller": 180, "planner": 600, "worker": limits.worker_timeout_s}[role]
    timeout_s = (task and task.timeout) or choice.profile.timeout_s or default_s
    if role == "teller":
        return timeout_s, limits.teller_idle_timeout_s
    if choice.engine.name == "command":  # may be silent
        return timeout_s, timeout_s
    return timeout_s, limits.idle_timeout_s


def _no_tools(name: str, _arguments: Mapping[str, object]) -> ToolReply:
    return ToolReply(False, f"this run has no tools, so no {name!r}")


def truncate_to_file(context: RunContext, record_id: str, text: str, *, note: bool = True) -> str:
    """Truncates a long text after the full text is written to `side/`; `note`: mention the file."""
    data, path = text.encode(errors="replace"), paths.side(record_id)
    limit = context.settings.limits.result_bytes
    if len(data) <= limit:
        return text
    context.retry_on_storage_error(lambda: context.files.write(path, data))
    start = data[:limit].decode(errors="ignore")
    return f"{start}\n\n… ({path})" if note else start
