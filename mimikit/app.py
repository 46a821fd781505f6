"""The architecture on one screen: what a state folder, a consumer and a client are made of."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit.config import Settings
from mimikit.engines.base import Engine
from mimikit.errors import AlreadyRunning, BadInput
from mimikit.protocol import paths, process_id
from mimikit.protocol.disk import Lock
from mimikit.protocol.models import Holder, Seat, Task
from mimikit.state import State, make_search

if TYPE_CHECKING:
    from mimikit.web.serve import Bound


def engines_of(state: State) -> list[Engine]:
    """Every engine this version has."""
    from mimikit.engines.builtin.assistant import Builtin
    from mimikit.engines.codex.engine import CodexExec
    from mimikit.engines.shell import CommandEngine
    from mimikit.memory.summary import summarise_prompt
    from mimikit.testing.scripted import Scripted

    settings = state.settings
    script = Scripted.from_file(Path(settings.script)) if settings.script else Scripted({})
    builtin = Builtin(summarise=summarise_prompt)
    return [CodexExec(settings, state.path), builtin, CommandEngine(settings), script]


def take_consumer_lock(state: State) -> Lock:
    """Become the one consumer of this folder.

    Raises:
        AlreadyRunning: another holds it; the message names who.
    """
    lock = state.files.lock(paths.CONSUMER_LOCK)
    if lock is None:
        holder = state.files.peek(paths.CONSUMER_HOLDER, Holder)
        who = f"process {holder.pid} on {holder.host}" if holder else "another process"
        since = f", since {holder.started_at:%Y-%m-%d %H:%M} UTC" if holder else ""
        raise AlreadyRunning(f"{state.path} is in use: {who} is its consumer{since}; end it first")
    state.files.save(
        paths.CONSUMER_HOLDER,
        Holder(
            pid=os.getpid(),
            process_started=process_id.own_start_time(),
            boot_id=process_id.boot_id(),
            host=socket.gethostname(),
            started_at=state.clock.now(),
        ),
    )
    return lock


class ConsumerApp:
    """The consumer process: pools, supervisor, Teller's seat, tools' door."""

    def __init__(self, state: State, engines: list[Engine] | None = None) -> None:
        """Wire everything; nothing runs before `run`. The consumer lock must be held."""
        from mimikit.engines.registry import Rack
        from mimikit.protocol.watch import FolderWatch
        from mimikit.roles.dispatcher import work
        from mimikit.roles.prompts import Prompts
        from mimikit.roles.run import Office
        from mimikit.roles.teller import TellerThread
        from mimikit.runner.consumer import PooledConsumer
        from mimikit.runs import LiveRuns
        from mimikit.supervisor.archiver import Archiving
        from mimikit.supervisor.asking import Asking
        from mimikit.supervisor.command_applier import CommandApplier
        from mimikit.supervisor.commit_applier import CommitApplier
        from mimikit.supervisor.firing import Firing
        from mimikit.supervisor.loop import Heartbeat, Supervisor
        from mimikit.supervisor.retention import Housekeeping
        from mimikit.supervisor.store import Books
        from mimikit.supervisor.teller_scheduler import Waking
        from mimikit.tools.mcp import ToolServer
        from mimikit.tools.reader import StateReader
        from mimikit.triggers.workspace import FileWatch, FolderWorkspace

        self.state = state
        settings, files = state.settings, state.files
        live = LiveRuns()
        self.search = make_search(state, stays=True)
        books = Books.open(files, settings, state.clock, live=live, log=state.log)
        events = books.events
        rack = Rack(engines if engines is not None else engines_of(state), settings)
        self.door = ToolServer(
            on_refused=lambda facts: state.log.write("audit", "tools_door_refused", **facts)
        )
        self.office = Office(
            files=files,
            settings=settings,
            clock=state.clock,
            live=live,
            rack=rack,
            prompts=Prompts(files),
            reader=StateReader(files, self.search, books.ledger.trace_size),
            feed=books.feed,
            log=state.log,
            workspace=state.workspace,
            state=state.path,
            tool_server=self.door,
        )
        self.watch = FolderWatch(state.path)
        workspace = FolderWorkspace(state.workspace, state.path)
        self.file_watch = FileWatch(workspace, events.files_changed)
        firing = Firing(books, workspace, self.file_watch)
        asking = Asking(books, firing, self.office)
        archiving = Archiving(books, self.office)
        applier = CommitApplier(
            books,
            task_ended=firing.task_ended,
            answers_came=asking.take_in,
            summary_came=archiving.take_in,
        )
        commands = CommandApplier(books, applier, pause_changed=self._apply_pause)
        self.teller = TellerThread(self.office, events.bell.ring)
        waking = Waking(books, applier, self.office, self.teller, self._facts)
        self.heartbeat = Heartbeat(
            books,
            worker_seats=settings.max_concurrency,
            queued=self._queued,
            engines=rack.status,
            teller_waits=lambda: waking.waiting,
        )
        housekeeping = Housekeeping(books)
        self.supervisor = Supervisor(
            books,
            applier,
            commands,
            firing,
            asking,
            waking,
            archiving,
            housekeeping,
            self.heartbeat,
        )

        def run_task(seat: Seat, task: Task) -> None:
            if work(self.office, seat, task):
                events.run_ended(seat, task.id)
            else:
                events.bell.ring()

        self.consumer = PooledConsumer(
            files,
            watch=self.watch,
            seats={"planner": 1, "worker": settings.max_concurrency},
            run_task=run_task,
            supervise=self.supervisor.run,
            wake_supervisor=events.bell.ring,
            periodic={
                "retention": ("17 */6 * * *", housekeeping.ring),
                "archive": ("41 */6 * * *", archiving.ring),
            },
            on_stopping=self._stopping,
            last_tick=self.supervisor.last_tick,
            on_hung=lambda age_s: state.log.write("error", "supervisor_hung", ageS=age_s),
            is_known_id=lambda task_id: books.ledger.end_of(task_id) is not None,
            shutdown_timeout_s=settings.limits.kill_after_s + 5,
        )

    def run(self) -> int:
        """Recover, serve until told to stop, leave everything tidy. Gives the exit code."""
        from mimikit.engines.process_tree import state_id, sweep_leftovers
        from mimikit.roles.run import sweep_scratch
        from mimikit.supervisor import recovery

        state, books = self.state, self.supervisor.books
        ended = sweep_leftovers(state_id(state.path))
        if ended:
            state.log.write("audit", "leftovers_ended", pids=ended)
        sweep_scratch(state.path)
        now = state.clock.now()
        wait = recovery.back_off(list(books.runtime.starts), now)
        books.save_runtime(starts=[*books.runtime.starts, now][-recovery.CRASHES :])
        if wait:
            state.log.write("error", "start_delayed", seconds=wait.total_seconds())
            threading.Event().wait(wait.total_seconds())
        self.supervisor.start()
        self._watch_folders()
        self._apply_pause()
        self.door.start()
        self.search.warm_up()
        try:
            self.consumer.run()
        finally:
            self._leave()
        return 0

    def _watch_folders(self) -> None:
        # Not the root folder, where the consumer's own logs stand: a dropped `inbox.json` is found
        # by the tick of each second.
        events = self.supervisor.books.events
        for folder in (paths.INBOX, paths.COMMANDS):
            self.watch.watch(folder, lambda _names: events.bell.ring())
        self.watch.watch(paths.TRIGGERS, self._triggers_changed)
        events.triggers_unsure()  # one may have come since they were read

    def _triggers_changed(self, names: list[str] | None) -> None:
        events = self.supervisor.books.events
        if names is None:
            events.triggers_unsure()
        for name in names or ():
            if name.endswith(".json") and not name.startswith("."):
                events.trigger_changed(name.removesuffix(".json"))

    def _queued(self) -> dict[str, int]:
        return self.consumer.queued()

    def _apply_pause(self) -> None:
        self.consumer.set_paused(self.supervisor.books.runtime.paused)

    def _stopping(self) -> None:
        """Give the runs their time to end, then end them; nothing is claimed any more."""
        deadline = self.state.clock.monotonic() + self.state.settings.limits.shutdown_timeout_s
        while self.office.live.list() and self.state.clock.monotonic() < deadline:
            self.office.stopping.wait(0.02)
        self.office.stopping.set()
        self.office.live.stop_all("killed")

    def _leave(self) -> None:
        """The last steps: write down what ended meanwhile, and that this was no crash."""
        books = self.supervisor.books
        self.office.live.stop_all("killed")
        self.teller.close(timeout_s=self.state.settings.limits.kill_after_s + 2)
        self.supervisor.tick()
        books.ledger.checkpoint()
        books.save_runtime(starts=[])
        self.watch.close()
        self.file_watch.close()
        self.door.stop()
        self.state.files.remove(paths.HEALTH)

    def _facts(self) -> dict[str, str]:
        """The lines of a status answer."""
        live = self.office.live.list()
        return {
            "running": str(sum(run.role != "teller" for run in live)),
            "queued": str(sum(self._queued().values())),
            "workers": f"{sum(run.role == 'worker' for run in live)} of "
            f"{self.state.settings.max_concurrency}",
            **{f"engine of {name}": one.text for name, one in self.office.rack.status().items()},
        }


# ---- the page's process: its address, its token, how it is served


def serve_page(
    state: State, host: str | None, port: int | None, on_ready: Callable[[str, int], None] | None
) -> None:
    """Serve the page until a signal ends it. Never returns: leaves by SystemExit.

    Raises:
        BadSettings: the address can not be used, or may not.
    """
    from mimikit.web.serve import serve

    serve(state.path, state.workspace, state.settings, host, port, on_ready)


def listen(host: str, port: int | None, settings: Settings) -> Bound:
    """Listen where the page would; `$PORT`, then the settings name the port that is not given.

    Raises:
        BadSettings: the address can not be used.
    """
    from mimikit.web import serve

    return serve.bind(host, serve.chosen_port(port, settings))


def check_exposure(bound: Bound, settings: Settings) -> None:
    """Refuse an address others can reach, unless the operator prepared for that.

    Raises:
        BadSettings: what is missing.
    """
    from mimikit.web import serve

    serve.check_exposure(bound, settings)


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
