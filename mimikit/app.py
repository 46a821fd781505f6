"""The architecture on one screen: what a state folder, a consumer and a client are made of."""

from __future__ import annotations

import functools
import os
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit import config
from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.engines.base import Engine
from mimikit.errors import AlreadyRunning, BadInput
from mimikit.log import EventLog
from mimikit.protocol import paths, process_id
from mimikit.protocol.disk import Lock, RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Holder, Seat, Task

if TYPE_CHECKING:
    from mimikit.memory.search import Search

STATE_FOLDER = ".mimikit"


@dataclass(frozen=True)
class State:
    """An opened state folder."""

    path: Path
    workspace: Path
    files: Files
    settings: Settings
    clock: Clock
    log: EventLog

    @functools.cached_property
    def search(self) -> Search:
        """The search in memory; one for the whole process."""
        return make_search(self)


def make_search(state: State, *, words: bool = True, stays: bool = False) -> Search:
    """A search over a state folder and its workspace.

    words: use the dictionary of Chinese words. stays: for a process that lives long.
    """
    from mimikit.memory.index import Index
    from mimikit.memory.search import Search
    from mimikit.memory.words import Words
    from mimikit.protocol.watch import FolderWatch

    return Search(
        state.files,
        workspace=state.workspace,
        index=Index(state.files, state.path),
        zone=state.settings.zone,
        clock=state.clock,
        words=Words() if words else None,
        watch=FolderWatch(state.path, everything=True) if stays else None,
        patience_s=2.0 if stays else 3600.0,
    )


def find_state(state: Path | None = None, workspace: Path | None = None) -> tuple[Path, Path]:
    """State folder and workspace: as given, from the environment, or the current folder's."""
    env_workspace, env_state = os.environ.get("MIMIKIT_WORKSPACE"), os.environ.get("MIMIKIT_STATE")
    work = workspace or (Path(env_workspace) if env_workspace else Path.cwd())
    found = state or (Path(env_state) if env_state else work / STATE_FOLDER)
    return found.absolute(), work.absolute()


def open_state(state: Path, workspace: Path, *, create: bool = True) -> State:
    """Open a state folder, making it when it is missing.

    Raises:
        BadInput: it does not exist and is not to be made, or is not a folder of yours.
        BadSettings: its settings cannot be used.
    """
    if not workspace.is_dir():
        raise BadInput(f"workspace: expected a folder, got {workspace}")
    if not state.exists():
        if not create:
            raise BadInput(f"no state folder at {state}; `mimikit init` makes one")
        state.mkdir(mode=0o700, parents=True)
    if state.is_symlink() or not state.is_dir():
        raise BadInput(f"state: expected a folder that is not a link, got {state}")
    if state.stat().st_uid != os.getuid():
        raise BadInput(f"state: expected a folder of yours, but {state} belongs to somebody else")
    settings = config.load(state)
    files = Files(RealDisk(state), durable=settings.durability == "full")
    files.make_folders()
    clock = SystemClock()
    log = EventLog(files, clock, rotate_bytes=settings.retention.log_file_mb * 2**20)
    return State(state, workspace, files, settings, clock, log)


def engines_of(state: State) -> list[Engine]:
    """Every engine this version has."""
    from mimikit.engines.builtin.assistant import Builtin
    from mimikit.engines.codex.engine import CodexExec
    from mimikit.engines.shell import CommandEngine
    from mimikit.memory.summarise import summarise_prompt
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
        from mimikit.roles.prompts import Prompts
        from mimikit.roles.run import Office
        from mimikit.roles.seats import TellerThread, work
        from mimikit.runner.consumer import PooledConsumer
        from mimikit.runs import LiveRuns
        from mimikit.supervisor.applying import CommitApplier
        from mimikit.supervisor.archiving import Archiving
        from mimikit.supervisor.asking import Asking
        from mimikit.supervisor.books import Books
        from mimikit.supervisor.firing import Firing
        from mimikit.supervisor.health import Heartbeat
        from mimikit.supervisor.housekeeping import Housekeeping
        from mimikit.supervisor.loop import Supervisor
        from mimikit.supervisor.orders import CommandApplier
        from mimikit.supervisor.waking import Waking
        from mimikit.tools.mcp import ToolServer
        from mimikit.tools.reader import StateViews
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
            views=StateViews(files, self.search, books.ledger.trace_size),
            feed=books.feed,
            log=state.log,
            workspace=state.workspace,
            state=state.path,
            door=self.door,
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
