"""The architecture on one screen: how a consumer is wired; and what the CLI needs of the page."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, Protocol

from mimikit.config import Settings
from mimikit.errors import BadInput, shortage_of
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.models import QueueName, Role, Task
from mimikit.state import State, limit_malloc_arenas, make_search

if TYPE_CHECKING:
    from mimikit.engines.base import Engine
    from mimikit.engines.registry import EngineRegistry
    from mimikit.language.phrases import Words
    from mimikit.memory.archive import ArchiveRules
    from mimikit.memory.search import MemorySearch
    from mimikit.roles.prompts import Prompts
    from mimikit.roles.run import RunContext
    from mimikit.runner.consumer import PooledConsumer
    from mimikit.supervisor.loop import Supervisor
    from mimikit.supervisor.teller_scheduler import TurnRunner
    from mimikit.tools.mcp import ToolServer
    from mimikit.triggers.workspace import TriggerWatch, Workspace
    from mimikit.web.serve import ServerSocket


def engines_of(state: State) -> list[Engine]:
    from mimikit.engines.builtin.engine import BuiltinEngine
    from mimikit.engines.codex.engine import CodexEngine
    from mimikit.engines.local.engine import LocalEngine
    from mimikit.engines.opencode.engine import OpencodeEngine
    from mimikit.engines.shell import ShellEngine
    from mimikit.memory.archive import summarise_prompt
    from mimikit.sandbox import programs

    settings = state.settings
    programs.exclude(state.workspace)
    for name in ("bwrap", "codex", "opencode", "bash"):
        programs.find(name)
    return [
        CodexEngine(settings, state.path),
        OpencodeEngine(settings, state.path),
        *endpoint_engines(state, settings),
        LocalEngine(settings, state.path, clock=state.clock),
        BuiltinEngine(summarise=summarise_prompt),
        ShellEngine(settings),
    ]


def endpoint_engines(state: State, settings: Settings) -> list[Engine]:
    """The engines that the settings name."""
    from mimikit.engines.openai.engine import OpenAIEngine

    return [OpenAIEngine(name, settings, state.path, state.clock) for name in settings.engines]


def check_consumer_starts(state: State) -> None:
    """Check what would end a starting consumer at once; nothing is written or run.

    Raises:
        MimikitError: why one would end.
    """
    from mimikit.roles.prompts import Prompts
    from mimikit.roles.run import LiveRuns
    from mimikit.supervisor import consumer_lock
    from mimikit.supervisor.store import Store

    state = state.read_only()
    if state.files.exists(paths.CONSUMER_LOCK):
        consumer_lock.free_lock(state).release()
    Store.open(state.files, state.settings, state.clock, live=LiveRuns(), log=state.log)
    Prompts(state.files)


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
    """The disk, the clock, the settings, the log."""
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
    pool: Callable[[WiredConsumer], Pool]
    crash: Callable[[str], NoReturn]
    """Ends the process with one line."""
    tool_server: ToolServer | None = None
    git: str | None = None
    """The program; without it changes are compared in Python."""
    stopping: threading.Event = field(default_factory=threading.Event)
    rules: ArchiveRules | None = None
    """Instead of the product's."""
    has_heartbeat: bool = True


def build(parts: Parts) -> WiredConsumer:
    """Wire a consumer; nothing runs or is recovered yet."""
    return WiredConsumer(parts)


class WiredConsumer:
    """A consumer without its process: what product and tests share."""

    def __init__(self, parts: Parts) -> None:
        from mimikit.engines.registry import EngineRegistry
        from mimikit.roles.run import LiveRuns
        from mimikit.supervisor.loop import CrashRest
        from mimikit.supervisor.store import Store

        self.parts, self.state = parts, parts.state
        state, self.search = parts.state, parts.search
        self.store = Store.open(
            state.files, state.settings, state.clock, live=LiveRuns(), log=state.log
        )
        self.events = self.store.events  # what other threads tell the supervisor
        served = self.store.runtime.engines
        self.context = self._make_context(
            EngineRegistry(parts.engines, state.settings, served, parts.endpoints, state.clock)
        )
        self.seat = parts.teller(self.context, self.events.bell.ring)
        self.rest = CrashRest(state.clock, self.apply_pause)
        self.supervisor = self._make_supervisor()
        self.pool = parts.pool(self)

    def _make_context(self, engines: EngineRegistry) -> RunContext:
        from mimikit.engines.changes import ChangeRecorder
        from mimikit.roles.run import RunContext
        from mimikit.tools.reader import RoleReader

        state, store = self.state, self.store
        return RunContext(
            files=state.files,
            settings=state.settings,
            clock=state.clock,
            live=store.live,
            engines=engines,
            prompts=self.parts.prompts,
            reader=RoleReader(
                state.files,
                self.search,
                store.ledger.trace_size,
                lambda seat, most: self.pool.upcoming(seat, most),  # noqa: PLW0108 - made later
                clock=state.clock,
                zone=lambda: state.settings.zone,
            ),
            feed=store.feed,
            log=state.log,
            workspace=state.workspace,
            state=state.path,
            tool_server=self.parts.tool_server,
            stopping=self.parts.stopping,
            changes=ChangeRecorder(self.parts.git),
        )

    def _make_supervisor(self) -> Supervisor:
        from mimikit.memory.archive import RULES
        from mimikit.supervisor.archiver import Archiver
        from mimikit.supervisor.command_applier import CommandApplier
        from mimikit.supervisor.commit_applier import CommitApplier
        from mimikit.supervisor.consumer_lock import StateGuard
        from mimikit.supervisor.llm_eval import LlmEvalBatch
        from mimikit.supervisor.loop import HeartbeatWriter, Supervisor
        from mimikit.supervisor.retention import Retention
        from mimikit.supervisor.teller_scheduler import TellerScheduler
        from mimikit.supervisor.trigger_scheduler import TriggerScheduler

        store, context, parts = self.store, self.context, self.parts
        guard = StateGuard(store, parts.lock, parts.crash)
        triggers = TriggerScheduler(store, parts.workspace, parts.file_watch)
        self.llm_eval = LlmEvalBatch(store, triggers, context)
        self.archiver = Archiver(store, context, parts.rules or RULES)
        self.commits = CommitApplier(store, triggers, self.llm_eval, self.archiver)
        self.commands = CommandApplier(
            store, self.commits, context.engines, pause_changed=self.apply_pause
        )
        self.teller = TellerScheduler(store, self.commits, context, self.seat, self._facts)
        self.retention = Retention(store)
        heartbeat = parts.has_heartbeat and HeartbeatWriter(
            store,
            teller=self.teller,
            queued=lambda: self.pool.queued(),  # noqa: PLW0108 - it is made after this
            engines=context.engines.status,
            skipped=lambda: "; ".join(context.prompts.skipped) or None,
        )
        return Supervisor(
            store,
            self.commits,
            self.commands,
            triggers,
            self.llm_eval,
            self.teller,
            self.archiver,
            self.retention,
            guard,
            self.rest,
            heartbeat or None,
            lambda seat, name: self.pool.is_claimed(seat, name),  # noqa: PLW0108
        )

    def run_task(self, seat: QueueName, task: Task) -> None:
        """Run a claimed task; the supervisor is woken."""
        from mimikit.roles.dispatcher import dispatch

        try:
            is_over = dispatch(self.context, seat, task)
        except BaseException as error:
            if not self.context.stopping.is_set():  # nobody else would bring it to its end
                self.parts.crash(shortage_of(error) or f"the run of {task.id} broke off: {error!r}")
            raise
        if is_over:
            self.events.ended_runs.put((seat, task.id))
        else:
            self.events.bell.ring()

    def apply_pause(self) -> None:
        self.pool.set_paused(self.store.runtime.paused or self.rest.reason is not None)

    def _facts(self) -> tuple[Words, ...]:
        """The lines of a status answer."""
        from mimikit.supervisor.code_turns import status_facts

        roles: list[Role] = [run.role for run in self.context.live.list()]
        queued, settings = sum(self.pool.queued().values()), self.state.settings
        engines, now = self.context.engines.status(), self.state.clock.now()
        return status_facts(roles, queued, settings.max_concurrency, engines, now, settings.zone)


class ConsumerApp:
    """The consumer's process: the pools' and the Teller's threads, watches, the tools' server."""

    def __init__(self, state: State, lock: Lock, engines: list[Engine] | None = None) -> None:
        """`engines`: instead of the product's. Nothing runs before `run`."""
        limit_malloc_arenas()
        from mimikit.protocol.watch import FolderWatch
        from mimikit.roles.prompts import Prompts
        from mimikit.roles.teller import TellerThread
        from mimikit.sandbox import programs
        from mimikit.tools.mcp import ToolServer
        from mimikit.triggers.workspace import FileWatch, FolderWorkspace

        self.state, prompts = state, Prompts(state.files)
        workspace = FolderWorkspace(state.workspace, state.path)
        self.search = make_search(state, stays=True)
        self.watch = FolderWatch(state.path)
        self.file_watch = FileWatch(workspace, self._files_changed)
        self.tool_server = ToolServer(
            on_refused=lambda facts: state.log.write("audit", "tools_door_refused", **facts)
        )
        parts = Parts(
            state=state,
            lock=lock,
            engines=engines or engines_of(state),
            endpoints=functools.partial(endpoint_engines, state),
            search=self.search,
            prompts=prompts,
            workspace=workspace,
            file_watch=self.file_watch,
            teller=TellerThread,
            pool=self._make_pool,
            crash=self._crash,
            tool_server=self.tool_server,
            git=programs.find("git"),
        )
        try:
            self.core = build(parts)
        except BaseException:
            self.close()
            raise
        self.store, self.context = self.core.store, self.core.context
        self.supervisor = self.core.supervisor

    def close(self) -> None:
        """Close port and watches; instead of `run`, or at its end."""
        self.watch.close()
        self.file_watch.close()
        self.tool_server.stop()

    def _files_changed(self, triggers: set[str]) -> None:
        self.store.events.changed_files.put(triggers)

    def _make_pool(self, core: WiredConsumer) -> PooledConsumer:
        """Huey's pools, and the thread of the supervisor among them."""
        from mimikit.runner.consumer import PooledConsumer

        settings, events, supervisor = self.state.settings, core.events, core.supervisor
        self.pool = PooledConsumer(
            self.state.files,
            watch=self.watch,
            threads={"planner": 1, "worker": settings.max_concurrency},
            run_task=core.run_task,
            supervise=supervisor.run,
            wake_supervisor=events.bell.ring,
            periodic={
                "retention": ("17 */6 * * *", supervisor.retention.ring),
                "archive": ("41 */6 * * *", supervisor.archiver.summaries.ring),
                "index": ("* * * * *", self.search.index_ahead),
            },
            on_stopping=self._stopping,
            last_step=lambda: supervisor.last_step,
            crash=self._crash,
            is_known_id=lambda task_id: core.store.ledger.end_of(task_id) is not None,
            shutdown_timeout_s=settings.limits.kill_after_s + 5,
        )
        return self.pool

    def run(self, say: Callable[[str], None] = lambda _line: None) -> int:
        """Recover and serve until stopped; gives the exit code. `say` prints to the terminal."""
        from mimikit.engines.process_marks import kill_orphans, state_id
        from mimikit.roles.scratch import sweep_scratch
        from mimikit.runner.consumer import end_with_threads

        end_with_threads(self._crash)
        state, store, core = self.state, self.store, self.core
        if ended := kill_orphans(state_id(state.path)):
            state.log.write("audit", "leftovers_ended", pids=ended)
        sweep_scratch(state.path)
        self._rest_after_crashes(say)
        for reason in self.context.prompts.skipped:
            state.log.write("error", "prompt_passed_over", reason=reason)
            say(f"{reason}.")
        self.supervisor.start()
        # The root folder, with the logs, is not watched: a tick finds a dropped `inbox.json`.
        inputs = core.teller.inputs
        inputs.is_watched = self.watch.watch(paths.INBOX, inputs.notify)
        for folder in (paths.INBOX, paths.COMMANDS):
            self.watch.watch(folder, lambda _names: store.events.bell.ring())
        self.watch.watch(paths.TRIGGERS, self._triggers_changed)
        store.events.changed_triggers.put(None)  # one may have come since they were read
        core.apply_pause()
        self.tool_server.start()
        self.search.warm_up()
        try:
            self.pool.run()
        finally:
            # Apply what ended meanwhile, and note that this was no crash.
            self.context.live.stop_all()
            core.seat.close(timeout_s=state.settings.limits.kill_after_s + 2)
            self.context.engines.close()
            self.supervisor.tick(passes=10)  # more work stays for the next start
            self.close()
            self.search.close()
            store.ledger.checkpoint()
            store.save_runtime(starts=[], seen_at=state.clock.now())
            state.files.remove(paths.HEALTH)
        return 0

    def _rest_after_crashes(self, say: Callable[[str], None]) -> None:
        """Note this start; after several crashes let tasks wait for a while."""
        from mimikit.supervisor import recovery

        store, now = self.store, self.state.clock.now()
        wait_s = recovery.back_off(list(store.runtime.starts), now).total_seconds()
        store.save_runtime(starts=[*store.runtime.starts, now][-recovery.CRASHES :])
        if wait_s:
            window_min = recovery.CRASH_WINDOW.total_seconds() / 60
            crashes = f"{recovery.CRASHES} crashes within {window_min:g} minutes"
            reason = f"tasks wait for {wait_s:g} s after {crashes}; messages are answered"
            self.state.log.write("error", "tasks_rest", seconds=wait_s)
            self.core.rest.begin(wait_s, reason)
            say(f"{reason.capitalize()}.")

    def _crash(self, reason: str) -> NoReturn:
        from mimikit.runner.consumer import end_process

        end_process(reason, lambda why: self.state.log.write("error", "crashed", reason=why))

    def _triggers_changed(self, names: list[str] | None) -> None:
        told = [name.removesuffix(".json") for name in names or () if name.endswith(".json")]
        # A name that is no id is set aside by reading the whole folder.
        if names is None or not all(map(ids.is_id, told)):
            self.store.events.changed_triggers.put(None)
        for trigger_id in filter(ids.is_id, told):
            self.store.events.changed_triggers.put(trigger_id)

    def _stopping(self) -> None:
        """Give the runs their time to end, then end them; nothing is claimed any more."""
        # Counted in sleeps: a suspend takes no time from the runs.
        for _ in range(math.ceil(self.state.settings.limits.shutdown_timeout_s / 0.02)):
            if not self.context.live.list() or self.context.stopping.wait(0.02):
                break
        self.context.stopping.set()
        self.context.live.stop_all()


# ---- the page's process: its address, its token, how it is served


def serve_page(
    state: State, host: str | None, port: int | None, on_ready: Callable[[str, int], None] | None
) -> None:
    """Serve the page until a signal ends it. Never returns: leaves by SystemExit."""
    from mimikit.web.serve import serve

    limit_malloc_arenas()
    serve(state.path, state.workspace, state.settings, host, port, on_ready)


def listen(host: str, port: int | None, settings: Settings) -> ServerSocket:
    """Listen where the page would; `$PORT`, then the settings name the port that is not given.

    Raises:
        BadSettings: the address cannot be used.
    """
    from mimikit.web import serve

    return serve.bind(host, serve.chosen_port(port, settings))


def page_token(state: State, *, renew: bool = False) -> str:
    """The token in force; `renew` replaces it, and whoever used the old one is out.

    Raises:
        BadInput: it is the operator's, who alone can replace it.
    """
    from mimikit.web import tokens

    if not renew:
        return tokens.load_token(state.files)
    if tokens.operator_token() is not None:
        raise BadInput(f"expected no {tokens.TOKEN_VARIABLE}, got one; change that instead")
    return tokens.renew_token(state.files)


def login_link(state: State, host: str, port: int) -> str:
    """A link that logs a browser in once, within the hour."""
    from mimikit.web import tokens

    return tokens.login_link(host, port, tokens.new_login_code(state.files, state.clock.now()))
