"""The architecture on one screen: what a state folder, a consumer and a client are made of."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit.config import Settings
from mimikit.errors import AlreadyRunning, BadInput, StateMoved, StorageError, UnsafeFile
from mimikit.log import EventLog
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import Lock, LookingDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Role, Task
from mimikit.protocol.runtime import LockHolder
from mimikit.state import State, hold_little, make_search

if TYPE_CHECKING:
    from mimikit.engines.base import Engine
    from mimikit.engines.registry import EngineRegistry
    from mimikit.language.phrases import Words
    from mimikit.roles.prompts import Prompts
    from mimikit.roles.run import RunContext
    from mimikit.runner.consumer import PooledConsumer
    from mimikit.supervisor.loop import Supervisor
    from mimikit.web.serve import ServerSocket


_LOOK_S, _MOST_LOOKS = 0.1, 30


def engines_of(state: State) -> list[Engine]:
    from mimikit.engines.builtin.engine import BuiltinEngine
    from mimikit.engines.codex.engine import CodexEngine
    from mimikit.engines.local.engine import LocalEngine
    from mimikit.engines.opencode.engine import OpencodeEngine
    from mimikit.engines.shell import ShellEngine
    from mimikit.memory.archive import summarise_prompt
    from mimikit.sandbox import programs
    from mimikit.testing.twins import ScriptedEngine

    settings, script = state.settings, state.settings.script
    programs.refuse_below(state.workspace)
    for name in ("bwrap", "codex", "opencode", "bash"):
        programs.find(name)
    return [
        CodexEngine(settings, state.path),
        OpencodeEngine(settings, state.path),
        *endpoint_engines(state, settings),
        LocalEngine(settings, state.path, clock=state.clock),
        BuiltinEngine(summarise=summarise_prompt),
        ShellEngine(settings),
        ScriptedEngine.from_file(Path(script)) if script else ScriptedEngine({}),
    ]


def endpoint_engines(state: State, settings: Settings) -> list[Engine]:
    """The engines that the settings name."""
    from mimikit.engines.openai.engine import OpenAIEngine

    return [OpenAIEngine(name, settings, state.path, state.clock) for name in settings.engines]


def take_consumer_lock(state: State) -> Lock:
    """Become the one consumer of this folder; gives the lock of `consumer.lock`.

    The folder itself is locked, too: whoever removes the file lets no second consumer in.

    Raises:
        AlreadyRunning: another holds it; the message names who.
    """
    lock = _free_lock(state)
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


def _free_lock(state: State) -> Lock:
    """The locks of the folder and of the file in it, as that of the file.

    Whoever only looks has let go of them in a moment; for a consumer nobody waits.
    """
    lock, looks = _both_locks(state), 0
    while lock is None and looks < (1 if _living_holder(state) else _MOST_LOOKS):
        threading.Event().wait(_LOOK_S)
        lock, looks = _both_locks(state), looks + 1
    if lock is not None:
        return lock
    if (holder := _living_holder(state)) is None:
        path = state.path / paths.CONSUMER_LOCK
        raise AlreadyRunning(f"{path} is locked by a program that is no consumer; end it first")
    who, since = f"process {holder.pid} on {holder.host}", f"{holder.started_at:%Y-%m-%d %H:%M}"
    raise AlreadyRunning(
        f"{state.path} is in use: {who} is its consumer, since {since} UTC; end it first"
    )


def _both_locks(state: State) -> Lock | None:
    with contextlib.ExitStack() as held:
        for path in (paths.ROOT, paths.CONSUMER_LOCK):
            try:
                lock = state.files.lock(path)
            except UnsafeFile as error:  # the folder's lock is held by now: nobody relies on it
                state.files.quarantine(path, str(error))
                lock = state.files.lock(path)
            if lock is None:
                return None
            held.callback(lock.release)
        return Lock(held.pop_all().close, lock.inode)


def _living_holder(state: State) -> LockHolder | None:
    """Who says that it is the consumer, unless it has ended for certain."""
    holder = state.files.peek(paths.CONSUMER_HOLDER, LockHolder)
    if holder is None or holder.host != socket.gethostname():
        return holder
    is_alive = ids.is_alive(holder.pid, holder.process_started, holder.boot_id)
    return holder if is_alive else None


def check_consumer_starts(state: State) -> None:
    """Put a consumer together as one that starts, and let go of it; nothing is run, moved or told.

    Raises:
        MimikitError: why one would end at once.
    """
    disk = LookingDisk(state.path)
    state = replace(state, files=Files(disk))
    state = replace(state, log=EventLog(state.files, state.clock))
    try:
        lock = _free_lock(state.read_only())
        lock.release()  # at once: a consumer that starts meanwhile is not to be kept from it
        app = ConsumerApp(state.read_only(), lock)
        app.tool_server.stop()
        app.watch.close()
        app.file_watch.close()
    finally:
        disk.close()


class ConsumerApp:
    """The consumer process: pools, supervisor, the Teller's thread, the tools' server."""

    def __init__(self, state: State, lock: Lock, engines: list[Engine] | None = None) -> None:
        """Wire everything; nothing runs before `run`. `lock`: the consumer's, which is held."""
        hold_little()
        from mimikit.engines.registry import EngineRegistry
        from mimikit.protocol.watch import FolderWatch
        from mimikit.roles.prompts import Prompts
        from mimikit.roles.run import LiveRuns
        from mimikit.roles.teller import TellerThread
        from mimikit.supervisor.loop import ShortageGuard
        from mimikit.supervisor.store import Store
        from mimikit.tools.mcp import ToolServer
        from mimikit.triggers.workspace import FileWatch, FolderWorkspace

        self.state, self._lock = state, lock
        self._lost: str | None = None
        """Why this process has to be started again."""
        self.search = make_search(state, stays=True)
        self.store = Store.open(
            state.files, state.settings, state.clock, live=LiveRuns(), log=state.log
        )
        self.events = self.store.events  # what other threads tell the supervisor
        found = engines if engines is not None else engines_of(state)
        served, make = self.store.runtime.engines, functools.partial(endpoint_engines, state)
        registry = EngineRegistry(found, state.settings, served, make, state.clock)
        prompts = Prompts(state.files)
        self.tool_server = ToolServer(  # once nothing of the settings can stop the start any more
            on_refused=lambda facts: state.log.write("audit", "tools_door_refused", **facts)
        )
        self.context = self._make_context(registry, prompts)
        self.teller = TellerThread(self.context, self.events.bell.ring)
        self.watch = FolderWatch(state.path)
        self.workspace = FolderWorkspace(state.workspace, state.path)
        self.file_watch = FileWatch(self.workspace, self.events.changed_files.put)
        self.shortage = ShortageGuard(self.context, self._apply_pause)
        self.supervisor = self._make_supervisor()
        self.consumer = self._make_consumer()

    def _make_context(self, engines: EngineRegistry, prompts: Prompts) -> RunContext:
        from mimikit.roles.run import RunContext
        from mimikit.roles.shortage import RunShortage
        from mimikit.tools.reader import RoleReader

        state, store = self.state, self.store
        return RunContext(
            files=state.files,
            settings=state.settings,
            clock=state.clock,
            live=store.live,
            engines=engines,
            prompts=prompts,
            reader=RoleReader(
                state.files,
                self.search,
                store.ledger.trace_size,
                lambda seat, most: self.consumer.upcoming(seat, most),  # noqa: PLW0108 - made later
                clock=state.clock,
                zone=lambda: state.settings.zone,
            ),
            feed=store.feed,
            log=state.log,
            workspace=state.workspace,
            state=state.path,
            shortage=RunShortage(state.clock),
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
        from mimikit.supervisor.state_guard import StateGuard
        from mimikit.supervisor.teller_scheduler import TellerScheduler
        from mimikit.supervisor.trigger_scheduler import TriggerScheduler

        store, context = self.store, self.context
        self.guard = StateGuard(store, self._lock, self._let_go)
        triggers = TriggerScheduler(store, self.workspace, self.file_watch)
        llm_eval = LlmEvalBatch(store, triggers, context)
        archiver = Archiver(store, context)
        commits = CommitApplier(
            store,
            task_ended=triggers.task_ended,
            steps_after=triggers.steps_after,
            answers_came=llm_eval.take_in,
            summary_came=archiver.take_in,
        )
        commands = CommandApplier(store, commits, context.engines, pause_changed=self._apply_pause)
        teller = TellerScheduler(store, commits, context, self.teller, self._facts)
        self.inputs = teller.inputs
        heartbeat = HeartbeatWriter(
            store,
            shortage=context.shortage,
            teller=teller,
            queued=lambda: self.consumer.queued(),  # noqa: PLW0108 - it is made after this
            engines=context.engines.status,
            fallen=lambda: self.consumer.fallen() or "; ".join(context.prompts.passed_over) or None,
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
            self.guard,
            self.shortage,
            heartbeat,
            lambda seat, name: name in self.consumer.storages[seat].claimed,
        )

    def _make_consumer(self) -> PooledConsumer:
        """Huey's pools, and the thread of the supervisor among them."""
        from mimikit.roles.dispatcher import dispatch
        from mimikit.runner.consumer import PooledConsumer

        settings, events, supervisor = self.state.settings, self.events, self.supervisor

        def run_task(seat: QueueName, task: Task) -> None:
            try:
                is_over = dispatch(self.context, seat, task)
            except BaseException as error:
                if self.guard.is_ending and isinstance(error, StorageError):
                    return  # it could not be written, and is not to be: the start decides
                if not self.context.stopping.is_set():  # nobody else would bring it to its end
                    self._end_as_lost(f"the run of {task.id} broke off")
                raise
            if is_over:
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
                "index": ("* * * * *", self.search.keep_up),
            },
            on_stopping=self._stopping,
            last_step=lambda: supervisor.last_step,
            # Of a stack the end says most; a fact of the log is cut at its end.
            on_hung=lambda age_s, stack: self.state.log.write(
                "error", "supervisor_hung", ageS=round(age_s), stack=stack[-1900:]
            ),
            others={
                "folder watch": self.watch.bring_back,
                "file watch": self.file_watch.bring_back,
                "search": self.search.watch.bring_back if self.search.watch else lambda: False,
                "tool server": self.tool_server.bring_back,
            },
            on_fall=lambda names: self.state.log.write("error", "thread_died", threads=names),
            is_known_id=lambda task_id: self.store.ledger.end_of(task_id) is not None,
            shutdown_timeout_s=settings.limits.kill_after_s + 5,
        )

    def run(self, say: Callable[[str], None] = lambda _line: None) -> int:
        """Recover, serve until told to stop, leave everything tidy. Gives the exit code.

        `say` tells whoever started this what they may wonder at.

        Raises:
            StateMoved: the state folder, or what is in it, is no longer what was opened.
        """
        from mimikit.engines.process_marks import state_id, sweep_leftovers
        from mimikit.roles.scratch import sweep_scratch

        state, store = self.state, self.store
        if ended := sweep_leftovers(state_id(state.path)):
            state.log.write("audit", "leftovers_ended", pids=ended)
        sweep_scratch(state.path)
        state.log.pack_soon()  # what an end or an earlier version has left
        self._rest_after_crashes(say)
        for reason in self.context.prompts.passed_over:
            state.log.write("error", "prompt_passed_over", reason=reason)
            say(f"{reason}.")
        self.supervisor.start()
        # Not the root folder, where the consumer's own logs stand: a dropped `inbox.json` is found
        # by the tick of each second.
        self.inputs.is_told = self.watch.watch(paths.INBOX, self.inputs.hear)
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
            self.context.engines.close()
            self.supervisor.tick(passes=10)  # a heap of work stays for the next start
            self.watch.close()
            self.file_watch.close()
            self.tool_server.stop()
            self.search.close()
            if not self.guard.is_ending:
                store.ledger.checkpoint()
                store.save_runtime(starts=[], seen_at=state.clock.now())
                state.files.remove(paths.HEALTH)
        if self._lost is not None:
            raise StateMoved(f"{state.path}: {self._lost}; the consumer has to be started again")
        return 0

    def _rest_after_crashes(self, say: Callable[[str], None]) -> None:
        """Note that this starts; after several crashes let tasks wait for a while, and say so."""
        from mimikit.supervisor import recovery

        store, now = self.store, self.state.clock.now()
        wait_s = recovery.back_off(list(store.runtime.starts), now).total_seconds()
        store.save_runtime(starts=[*store.runtime.starts, now][-recovery.CRASHES :])
        if wait_s:
            window_min = recovery.CRASH_WINDOW.total_seconds() / 60
            crashes = f"{recovery.CRASHES} crashes within {window_min:g} minutes"
            reason = f"tasks wait for {wait_s:g} s after {crashes}; messages are answered"
            self.state.log.write("error", "tasks_rest", seconds=wait_s)
            self.shortage.rest(wait_s, reason)
            say(f"{reason.capitalize()}.")

    def _end_as_lost(self, reason: str) -> None:
        """End as a signal would: what is in memory is no longer what is on the disk."""
        self._lost = reason
        self.state.log.write("error", "state_moved", reason=reason)
        self.consumer.end_soon()

    def _let_go(self, reason: str) -> None:
        """End, and leave what stands in the folder now to the next start, byte for byte.

        Runs are stopped as by a kill: the start recovers what lies in `running/` then.
        """
        self._end_as_lost(reason)
        self.state.files.fs.let_go()
        self.context.stopping.set()
        self.context.live.stop_all()

    def _triggers_changed(self, names: list[str] | None) -> None:
        told = [name.removesuffix(".json") for name in names or () if name.endswith(".json")]
        # What has no id for a name is found, and set aside, by a look at the whole folder.
        if names is None or not all(map(ids.is_id, told)):
            self.events.changed_triggers.put(None)
        for trigger_id in filter(ids.is_id, told):
            self.events.changed_triggers.put(trigger_id)

    def _apply_pause(self) -> None:
        self.consumer.set_paused(self.store.runtime.paused or self.shortage.reason() is not None)

    def _stopping(self) -> None:
        """Give the runs their time to end, then end them; nothing is claimed any more."""
        # Counted in naps: of time that this process slept through, no run had any.
        for _ in range(math.ceil(self.state.settings.limits.shutdown_timeout_s / 0.02)):
            if not self.context.live.list() or self.context.stopping.wait(0.02):
                break
        self.context.stopping.set()
        self.context.live.stop_all()

    def _facts(self) -> tuple[Words, ...]:
        """The lines of a status answer."""
        from mimikit.supervisor.code_turns import status_facts

        roles: list[Role] = [run.role for run in self.context.live.list()]
        queued, settings = sum(self.consumer.queued().values()), self.state.settings
        engines, now = self.context.engines.status(), self.state.clock.now()
        return status_facts(roles, queued, settings.max_concurrency, engines, now, settings.zone)


# ---- the page's process: its address, its token, how it is served


def serve_page(
    state: State, host: str | None, port: int | None, on_ready: Callable[[str, int], None] | None
) -> None:
    """Serve the page until a signal ends it. Never returns: leaves by SystemExit."""
    from mimikit.web.serve import serve

    hold_little()
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
