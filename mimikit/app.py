"""The architecture on one screen: what a state folder, a consumer and a client are made of."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit.config import Settings
from mimikit.errors import AlreadyRunning, BadInput
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.models import LockHolder, QueueName, Task
from mimikit.state import State, make_search

if TYPE_CHECKING:
    from mimikit.engines.base import Engine
    from mimikit.roles.run import RunContext
    from mimikit.runner.consumer import PooledConsumer
    from mimikit.supervisor.loop import Supervisor
    from mimikit.web.serve import ServerSocket


def engines_of(state: State) -> list[Engine]:
    from mimikit.engines.builtin.engine import BuiltinEngine
    from mimikit.engines.codex.engine import CodexEngine
    from mimikit.engines.shell import ShellEngine
    from mimikit.memory.archive import summarise_prompt
    from mimikit.testing.twins import ScriptedEngine

    settings, script = state.settings, state.settings.script
    return [
        CodexEngine(settings, state.path),
        BuiltinEngine(summarise=summarise_prompt),
        ShellEngine(settings),
        ScriptedEngine.from_file(Path(script)) if script else ScriptedEngine({}),
    ]


def take_consumer_lock(state: State) -> Lock:
    """Become the one consumer of this folder.

    Raises:
        AlreadyRunning: another holds it; the message names who.
    """
    lock = state.files.lock(paths.CONSUMER_LOCK)
    if lock is None:
        holder = state.files.peek(paths.CONSUMER_HOLDER, LockHolder)
        who = f"process {holder.pid} on {holder.host}" if holder else "another process"
        since = f", since {holder.started_at:%Y-%m-%d %H:%M} UTC" if holder else ""
        raise AlreadyRunning(f"{state.path} is in use: {who} is its consumer{since}; end it first")
    state.files.save(
        paths.CONSUMER_HOLDER,
        LockHolder(
            pid=os.getpid(),
            process_started=ids.own_start_time(),
            boot_id=ids.boot_id(),
            host=socket.gethostname(),
            started_at=state.clock.now(),
        ),
    )
    return lock


class ConsumerApp:
    """The consumer process: pools, supervisor, the Teller's thread, the tools' server."""

    def __init__(self, state: State, engines: list[Engine] | None = None) -> None:
        """Wire everything; nothing runs before `run`. The consumer lock must be held."""
        from mimikit.protocol.watch import FolderWatch
        from mimikit.roles.run import LiveRuns
        from mimikit.roles.teller import TellerThread
        from mimikit.supervisor.store import Store
        from mimikit.tools.mcp import ToolServer
        from mimikit.triggers.workspace import FileWatch, FolderWorkspace

        self.state = state
        self.search = make_search(state, stays=True)
        self.store = Store.open(
            state.files, state.settings, state.clock, live=LiveRuns(), log=state.log
        )
        self.events = self.store.events
        """What other threads tell the supervisor."""
        self.tool_server = ToolServer(
            on_refused=lambda facts: state.log.write("audit", "tools_door_refused", **facts)
        )
        self.context = self._make_context(engines if engines is not None else engines_of(state))
        self.teller = TellerThread(self.context, self.events.bell.ring)
        self.watch = FolderWatch(state.path)
        self.workspace = FolderWorkspace(state.workspace, state.path)
        self.file_watch = FileWatch(self.workspace, self.events.changed_files.put)
        self.supervisor = self._make_supervisor()
        self.consumer = self._make_consumer()

    def _make_context(self, engines: list[Engine]) -> RunContext:
        from mimikit.engines.base import EngineRegistry
        from mimikit.roles.prompts import Prompts
        from mimikit.roles.run import RunContext
        from mimikit.tools.reader import RoleReader

        state, store = self.state, self.store
        return RunContext(
            files=state.files,
            settings=state.settings,
            clock=state.clock,
            live=store.live,
            engines=EngineRegistry(engines, state.settings),
            prompts=Prompts(state.files),
            reader=RoleReader(state.files, self.search, store.ledger.trace_size),
            feed=store.feed,
            log=state.log,
            workspace=state.workspace,
            state=state.path,
            tool_server=self.tool_server,
        )

    def _make_supervisor(self) -> Supervisor:
        """The built-in operations, and who of them is told of what."""
        from mimikit.supervisor.archiver import Archiver
        from mimikit.supervisor.command_applier import CommandApplier
        from mimikit.supervisor.commit_applier import CommitApplier
        from mimikit.supervisor.llm_eval import LlmEvalBatch
        from mimikit.supervisor.loop import HeartbeatWriter, Supervisor
        from mimikit.supervisor.retention import Retention
        from mimikit.supervisor.teller_scheduler import TellerScheduler
        from mimikit.supervisor.trigger_scheduler import TriggerScheduler

        store, context = self.store, self.context
        triggers = TriggerScheduler(store, self.workspace, self.file_watch)
        llm_eval = LlmEvalBatch(store, triggers, context)
        archiver = Archiver(store, context)
        commits = CommitApplier(
            store,
            task_ended=triggers.task_ended,
            answers_came=llm_eval.take_in,
            summary_came=archiver.take_in,
        )
        commands = CommandApplier(store, commits, pause_changed=self._apply_pause)
        teller = TellerScheduler(store, commits, context, self.teller, self._facts)
        heartbeat = HeartbeatWriter(
            store,
            teller=teller,
            queued=lambda: self.consumer.queued(),  # noqa: PLW0108 - it is made after this
            engines=context.engines.status,
        )
        return Supervisor(
            store,
            commits,
            commands,
            triggers,
            llm_eval,
            teller,
            archiver,
            Retention(store),
            heartbeat,
        )

    def _make_consumer(self) -> PooledConsumer:
        """Huey's pools, and the thread of the supervisor among them."""
        from mimikit.roles.dispatcher import dispatch
        from mimikit.runner.consumer import PooledConsumer

        settings, events, supervisor = self.state.settings, self.events, self.supervisor

        def run_task(seat: QueueName, task: Task) -> None:
            if dispatch(self.context, seat, task):
                events.ended_runs.put((seat, task.id))
            else:
                events.bell.ring()

        return PooledConsumer(
            self.state.files,
            watch=self.watch,
            threads={"planner": 1, "worker": settings.max_concurrency},
            run_task=run_task,
            supervise=supervisor.run,
            wake_supervisor=events.bell.ring,
            periodic={
                "retention": ("17 */6 * * *", supervisor.retention.ring),
                "archive": ("41 */6 * * *", supervisor.archiver.summaries.ring),
            },
            on_stopping=self._stopping,
            last_tick=lambda: supervisor.last_tick,
            on_hung=lambda age_s: self.state.log.write("error", "supervisor_hung", ageS=age_s),
            is_known_id=lambda task_id: self.store.ledger.end_of(task_id) is not None,
            shutdown_timeout_s=settings.limits.kill_after_s + 5,
        )

    def run(self) -> int:
        """Recover, serve until told to stop, leave everything tidy. Gives the exit code."""
        from mimikit.engines.process_tree import state_id, sweep_leftovers
        from mimikit.roles.run import sweep_scratch
        from mimikit.supervisor import recovery

        state, store = self.state, self.store
        if ended := sweep_leftovers(state_id(state.path)):
            state.log.write("audit", "leftovers_ended", pids=ended)
        sweep_scratch(state.path)
        now = state.clock.now()
        wait = recovery.back_off(list(store.runtime.starts), now)
        store.save_runtime(starts=[*store.runtime.starts, now][-recovery.CRASHES :])
        if wait:
            state.log.write("error", "start_delayed", seconds=wait.total_seconds())
            threading.Event().wait(wait.total_seconds())
        self.supervisor.start()
        # Not the root folder, where the consumer's own logs stand: a dropped `inbox.json` is found
        # by the tick of each second.
        for folder in (paths.INBOX, paths.COMMANDS):
            self.watch.watch(folder, lambda _names: self.events.bell.ring())
        self.watch.watch(paths.TRIGGERS, self._triggers_changed)
        self.events.changed_triggers.put(None)  # one may have come since they were read
        self._apply_pause()
        self.tool_server.start()
        self.search.warm_up()
        try:
            self.consumer.run()
        finally:
            # Write down what ended meanwhile, and that this was no crash.
            self.context.live.stop_all()
            self.teller.close(timeout_s=state.settings.limits.kill_after_s + 2)
            self.supervisor.tick()
            store.ledger.checkpoint()
            store.save_runtime(starts=[])
            self.watch.close()
            self.file_watch.close()
            self.tool_server.stop()
            self.search.close()
            state.files.remove(paths.HEALTH)
        return 0

    def _triggers_changed(self, names: list[str] | None) -> None:
        if names is None:
            self.events.changed_triggers.put(None)
        for name in names or ():
            if name.endswith(".json") and not name.startswith("."):
                self.events.changed_triggers.put(name.removesuffix(".json"))

    def _apply_pause(self) -> None:
        self.consumer.set_paused(self.store.runtime.paused)

    def _stopping(self) -> None:
        """Give the runs their time to end, then end them; nothing is claimed any more."""
        deadline = self.state.clock.monotonic() + self.state.settings.limits.shutdown_timeout_s
        while self.context.live.list() and self.state.clock.monotonic() < deadline:
            self.context.stopping.wait(0.02)
        self.context.stopping.set()
        self.context.live.stop_all()

    def _facts(self) -> dict[str, str]:
        """The lines of a status answer."""
        roles = [run.role for run in self.context.live.list()]
        engines = self.context.engines.status()
        return {
            "running": str(len(roles) - roles.count("teller")),
            "queued": str(sum(self.consumer.queued().values())),
            "workers": f"{roles.count('worker')} of {self.state.settings.max_concurrency}",
            **{f"engine of {name}": status.text for name, status in engines.items()},
        }


# ---- the page's process: its address, its token, how it is served


def serve_page(
    state: State, host: str | None, port: int | None, on_ready: Callable[[str, int], None] | None
) -> None:
    """Serve the page until a signal ends it. Never returns: leaves by SystemExit."""
    from mimikit.web.serve import serve

    serve(state.path, state.workspace, state.settings, host, port, on_ready)


def listen(host: str, port: int | None, settings: Settings) -> ServerSocket:
    """Listen where the page would; `$PORT`, then the settings name the port that is not given.

    Raises:
        BadSettings: the address can not be used.
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
