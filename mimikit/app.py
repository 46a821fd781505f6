"""The architecture on one screen: `build` wires a consumer, for the product and its tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from mimikit import notifications
from mimikit.config import Settings
from mimikit.engines.base import Engine
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.changes import ChangeRecorder
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.local.engine import LocalEngine
from mimikit.engines.openai.engine import OpenAIEngine
from mimikit.engines.opencode.engine import OpencodeEngine
from mimikit.engines.registry import EngineRegistry
from mimikit.engines.shell import ShellEngine
from mimikit.errors import shortage_of
from mimikit.language.phrases import Words
from mimikit.memory.archive import RULES, ArchiveRules, summarise_prompt
from mimikit.memory.search import MemorySearch
from mimikit.protocol.disk import Lock
from mimikit.protocol.models import QueueName, Role, Task
from mimikit.roles.dispatcher import dispatch
from mimikit.roles.prompts import Prompts
from mimikit.roles.run import LiveRuns, RunContext
from mimikit.roles.worktree import Worktrees
from mimikit.sandbox import programs
from mimikit.state import State
from mimikit.supervisor.archiver import Archiver
from mimikit.supervisor.code_turns import status_facts
from mimikit.supervisor.command_applier import CommandApplier
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.consumer_lock import StateGuard
from mimikit.supervisor.llm_eval import LlmEvalBatch
from mimikit.supervisor.loop import HeartbeatWriter, Supervisor
from mimikit.supervisor.notifier import Notifier, Send
from mimikit.supervisor.retention import Retention
from mimikit.supervisor.self_awake import ImprovementScheduler
from mimikit.supervisor.store import Store
from mimikit.supervisor.teller_scheduler import TellerScheduler, TurnRunner
from mimikit.supervisor.trigger_scheduler import TriggerScheduler
from mimikit.tools.mcp import ToolServer
from mimikit.tools.reader import RoleReader
from mimikit.triggers.workspace import TriggerWatch, Workspace


class Pool(Protocol):
    """Claims tasks and knows those that wait: `PooledConsumer` in the product."""

    def set_paused(self, paused: bool) -> None: ...
    def queued(self) -> dict[str, int]: ...
    def upcoming(self, queue: QueueName, most: int) -> list[str]: ...
    def is_claimed(self, queue: QueueName, name: str) -> bool: ...


@dataclass(frozen=True)
class Parts:
    """What `build` makes a consumer of; tests replace what is not files."""

    state: State
    lock: Lock
    """The consumer's, which is held."""
    engines: list[Engine]
    endpoints: Callable[[Settings], list[Engine]]
    """Makes the endpoints of changed settings."""
    search: MemorySearch
    prompts: Prompts
    workspace: Workspace
    file_watch: TriggerWatch
    teller: Callable[[RunContext, Callable[[], None]], TurnRunner]
    """Gets what to call when a turn ended."""
    pool: Callable[[ConsumerCore], Pool]
    crash: Callable[[str], NoReturn]
    send: Send = notifications.send
    tool_server: ToolServer | None = None
    git: str | None = None
    """The program; without it changes are compared in Python."""
    worktrees: Worktrees | None = None
    """None: those of the git program."""
    stopping: threading.Event = field(default_factory=threading.Event)
    rules: ArchiveRules = RULES
    has_heartbeat: bool = True


def build(parts: Parts) -> ConsumerCore:
    return ConsumerCore(parts)


class ConsumerCore:
    """A consumer without its process: what product and tests share."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.state = parts, parts.state
        state = parts.state
        store = Store(state.files, state.settings, state.clock, live=LiveRuns(), log=state.log)
        self.store, self.events = store, store.events
        self.context = self._run_context()

        # The operations of the supervisor: its thread alone writes shared state.
        triggers = TriggerScheduler(store, parts.workspace, parts.file_watch)
        self.llm_eval = LlmEvalBatch(store, triggers, self.context)
        self.archiver = Archiver(store, self.context, parts.rules)
        self.commits = CommitApplier(store, triggers, self.llm_eval, self.archiver)
        self.self_awake = ImprovementScheduler(
            store,
            self.context,
            self.commits.submit,
            lambda: len(self.teller.inputs),
            lambda queue, most: self.pool.upcoming(queue, most),  # noqa: PLW0108 - made later
        )
        engines, pause = self.context.engines, self.apply_pause
        self.commands = CommandApplier(
            store, self.commits, engines, self.self_awake, pause_changed=pause
        )
        self.seat = parts.teller(self.context, self.events.bell.ring)
        self.teller = TellerScheduler(
            store, self.commits, self.context, self.seat, self._status_lines
        )
        executor = ThreadPoolExecutor(4, "notify")
        self.notifier = Notifier(store, executor, parts.send)
        self.retention = Retention(store)
        heartbeat = HeartbeatWriter(
            store,
            teller=self.teller,
            queued=lambda: self.pool.queued(),  # noqa: PLW0108 - made below
            engines=self.context.engines.status,
            skipped=lambda: "; ".join(parts.prompts.skipped) or None,
            self_awake=self.self_awake,
        )
        self.supervisor = Supervisor(
            store,
            self.commits,
            self.commands,
            triggers,
            self.llm_eval,
            self.teller,
            self.notifier,
            self.archiver,
            self.retention,
            self.self_awake,
            StateGuard(store, parts.lock, parts.crash),
            heartbeat if parts.has_heartbeat else None,
            lambda queue, name: self.pool.is_claimed(queue, name),  # noqa: PLW0108 - made below
        )

        # The threads that claim tasks and run them.
        self.pool = parts.pool(self)

    def _run_context(self) -> RunContext:
        parts, state, store = self.parts, self.state, self.store
        engines = EngineRegistry(
            parts.engines, state.settings, store.runtime.engines, parts.endpoints, state.clock
        )
        reader = RoleReader(
            state.files,
            parts.search,
            store.ledger.trace_size,
            lambda queue, most: self.pool.upcoming(queue, most),  # noqa: PLW0108 - made later
            clock=state.clock,
            zone=lambda: state.settings.zone,
        )
        return RunContext(
            files=state.files,
            settings=state.settings,
            clock=state.clock,
            live=store.live,
            engines=engines,
            prompts=parts.prompts,
            reader=reader,
            feed=store.feed,
            log=store.log,
            workspace=state.workspace,
            state=state.path,
            tool_server=parts.tool_server,
            stopping=parts.stopping,
            changes=ChangeRecorder(parts.git),
            worktrees=parts.worktrees or Worktrees(state.path, parts.git),
        )

    def run_task(self, queue: QueueName, task: Task) -> None:
        try:
            is_over = dispatch(self.context, queue, task)
        except BaseException as error:
            if not self.context.stopping.is_set():  # nobody else would bring it to its end
                self.parts.crash(shortage_of(error) or f"the run of {task.id} broke off: {error!r}")
            raise
        if is_over:
            self.events.ended_runs.put((queue, task.id))
        else:
            self.events.bell.ring()

    def apply_pause(self) -> None:
        self.pool.set_paused(self.store.runtime.paused)

    def _status_lines(self) -> tuple[Words, ...]:
        roles: list[Role] = [run.role for run in self.context.live.list()]
        queued, settings = sum(self.pool.queued().values()), self.state.settings
        engines, now = self.context.engines.status(), self.state.clock.now()
        return status_facts(roles, queued, settings.max_concurrency, engines, now, settings.zone)


def engines_of(state: State) -> list[Engine]:
    """The engines of the product, with the endpoints that the settings name."""
    settings = state.settings
    programs.exclude(state.workspace)
    for name in ("bwrap", "codex", "opencode", "bash"):
        programs.find(name)
    return [
        CodexEngine(settings, state.path),
        OpencodeEngine(settings, state.path),
        *endpoint_engines(state, settings),
        LocalEngine(settings, clock=state.clock),
        BuiltinEngine(summarise=summarise_prompt),
        ShellEngine(settings),
    ]


def endpoint_engines(state: State, settings: Settings) -> list[Engine]:
    return [OpenAIEngine(name, settings, state.path, state.clock) for name in settings.engines]
