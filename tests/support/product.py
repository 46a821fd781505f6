"""A whole consumer in one thread, on any disk, with a fake clock: the product's own functions.

Left out is Huey alone: `Product.pool` claims as its storage does, in the product's order, by a
rename from `queue/` to `running/`, and hands the task to `roles.dispatcher.dispatch`.
"""

from __future__ import annotations

import functools
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mimikit.config import (
    DeferredSettings,
    LimitSettings,
    PlannerSettings,
    ProfileSettings,
    ProfilesSettings,
    RoleSettings,
    Settings,
    ShellSettings,
    TellerSettings,
)
from mimikit.conversation.history import HistoryCaps
from mimikit.engines import circuit
from mimikit.engines.base import Engine
from mimikit.engines.registry import EngineRegistry
from mimikit.errors import StorageError
from mimikit.log import EventLog
from mimikit.memory.archive import RULES, ArchiveRules
from mimikit.memory.search import MemorySearch
from mimikit.protocol import paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName as SeatName
from mimikit.protocol.models import Task
from mimikit.roles.dispatcher import dispatch
from mimikit.roles.prompts import Prompts
from mimikit.roles.run import LiveRuns, RunContext
from mimikit.roles.shortage import RunShortage
from mimikit.supervisor.archiver import Archiver
from mimikit.supervisor.command_applier import CommandApplier
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.llm_eval import LlmEvalBatch
from mimikit.supervisor.loop import LONGEST_WAIT_S, REST_S, ShortageGuard, Supervisor
from mimikit.supervisor.retention import Retention
from mimikit.supervisor.state_guard import StateGuard
from mimikit.supervisor.store import Store
from mimikit.supervisor.teller_scheduler import TellerScheduler
from mimikit.supervisor.trigger_scheduler import TriggerScheduler
from mimikit.tasks.queue import order_of, read
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock, TellerInPlace
from mimikit.tools.reader import RoleReader
from tests.support.desk import Desk
from tests.support.searching import plain_search

START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
NOWHERE = Path("/nowhere")


@functools.cache
def scripted_settings() -> Settings:
    """Settings under which the engine named `scripted` serves every role; nothing waits long."""
    return Settings(
        timezone="UTC",
        roles=RoleSettings(
            teller=TellerSettings(engine="scripted"), planner=PlannerSettings(engine="scripted")
        ),
        profiles=ProfilesSettings(
            deferred=DeferredSettings(engine="scripted"),
            standard=ProfileSettings(engine="scripted"),
            specialist=ProfileSettings(engine="scripted"),
            command=ShellSettings(engine="scripted"),
        ),
        limits=LimitSettings(retry_delay_s=1, engine_retry_s=1, result_bytes=1000),
    )


@functools.cache
def shipped_prompts() -> Prompts:
    """The templates of the product, read once."""
    files = Files(MemoryDisk())
    files.make_folders()
    return Prompts(files)


class NoisyLog(EventLog):
    """Keeps what the product calls an error: without injected faults there must be none."""

    def __init__(self, files: Files, clock: FakeClock, *, quiet: bool) -> None:
        super().__init__(files, clock)
        self.quiet = quiet
        self.errors: list[dict[str, object]] = []
        self.audits: list[dict[str, object]] = []

    def write(self, type_: str, event: str, **facts: object) -> None:
        line = {"event": event, **facts}
        if type_ == "error":
            self.errors.append(line)
        elif type_ == "audit":
            self.audits.append(line)
        if not self.quiet:
            super().write(type_, event, **facts)


class SteppedStop(threading.Event):
    """The context's stop signal whose waiting lets the fake clock go on instead of sleeping."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.advance(timeout or 0)
        return self.is_set()


class Product:
    """Books, context, Teller's seat, supervisor and pools over one state folder."""

    def __init__(
        self,
        files: Files,
        clock: FakeClock,
        engine: Engine,
        *,
        settings: Settings | None = None,
        quiet: bool = True,
        workspace: Path = NOWHERE,
        state: Path = NOWHERE,
        workspace_files: Desk | None = None,
        more_engines: tuple[Engine, ...] = (),
        rules: ArchiveRules = RULES,
        caps: HistoryCaps | None = None,
        search: MemorySearch | None = None,
    ) -> None:
        """Wire it as the app does; nothing is recovered before `start`."""
        self.files, self.clock = files, clock
        self.lost: str | None = None
        """Why this product has to be started again."""
        self.mind: Any = engine
        """The engine given: tests change how it behaves."""
        self.settings = settings or scripted_settings()
        live = LiveRuns()
        self.log = NoisyLog(files, clock, quiet=quiet)
        self.store = Store.open(files, self.settings, clock, live=live, log=self.log)
        if quiet:
            self.store.feed.tell = lambda kind, **facts: None  # pyright: ignore[reportAttributeAccessIssue]
        self.context = RunContext(
            files=files,
            settings=self.settings,
            clock=clock,
            live=live,
            engines=EngineRegistry(
                [engine, *more_engines], self.settings, self.store.runtime.engines, clock=clock
            ),
            prompts=shipped_prompts(),
            reader=RoleReader(
                files,
                search or plain_search(files, self.settings.zone),
                self.store.ledger.trace_size,
                clock=clock,
                zone=lambda: self.settings.zone,
            ),
            feed=self.store.feed,
            log=self.log,
            workspace=workspace,
            state=state,
            shortage=RunShortage(clock),
            stopping=SteppedStop(clock),
        )
        self.seat = TellerInPlace(self.context)
        self.retention = Retention(self.store)
        self.workspace = workspace_files or Desk()
        triggers = TriggerScheduler(self.store, self.workspace, self.workspace)
        self.llm_eval = LlmEvalBatch(self.store, triggers, self.context)
        self.store.conversation.caps = caps or self.store.conversation.caps
        self.archiver = Archiver(self.store, self.context, rules)
        self.applier = CommitApplier(
            self.store,
            task_ended=triggers.task_ended,
            steps_after=triggers.steps_after,
            answers_came=self.llm_eval.take_in,
            summary_came=self.archiver.take_in,
        )
        self.commands = CommandApplier(
            self.store, self.applier, self.context.engines, pause_changed=lambda: None
        )
        self.teller = TellerScheduler(self.store, self.applier, self.context, self.seat)
        self.supervisor = Supervisor(
            self.store,
            self.applier,
            self.commands,
            triggers,
            self.llm_eval,
            self.teller,
            self.archiver,
            self.retention,
            StateGuard(self.store, self._lock(), self._let_go),
            ShortageGuard(self.context, lambda: None),
        )
        self.workspace.changed = self.store.events.changed_files.put
        self.ticking = False

    def _lock(self) -> Lock:
        """That of the consumer: it lies there, but nobody else is to be kept out."""
        self.files.create(paths.CONSUMER_LOCK, b"")
        found = self.files.stat(paths.CONSUMER_LOCK)
        assert found is not None
        return Lock(lambda: None, found.inode)

    def _let_go(self, reason: str) -> None:
        """What the app does: nothing in the folder is touched any more."""
        self.lost = reason
        self.files.fs.let_go()

    def start(self) -> None:
        """Recover."""
        self.supervisor.start()

    def tick(self) -> bool:
        """One pass of the supervisor, unless one is under way (a run's hook may ask for one)."""
        if self.ticking:
            return False
        self.ticking = True
        try:
            return self.supervisor.tick()
        finally:
            self.ticking = False

    def pool(self, seat: SeatName) -> bool:
        """Claim the first ready task of a queue and carry it out; gives whether there was one."""
        if self.store.runtime.paused or self.context.shortage.reason():
            return False
        ready = [task for task in self.queued(seat) if _is_ready(task, self.clock.now())]
        if not ready:
            return False
        task = min(ready, key=order_of)
        if not self.files.move(paths.queued(seat, task.id), paths.running(seat, task.id)):
            return False
        if dispatch(self.context, seat, task):
            self.store.events.ended_runs.put((seat, task.id))
        return True

    def queued(self, seat: SeatName) -> list[Task]:
        """The tasks that wait; what is none is its storage's to judge, which is not here."""
        names = self.files.names(f"{seat}/queue")
        found = (read(self.files, seat, f"{seat}/queue/{name}") for name in names)
        return [task for task in found if task is not None]

    def idle(self, *, patience_s: float = 60.0) -> float:
        """Work until nothing is left to do, letting the clock reach what waits; gives how long.

        patience_s: a wait longer than this is left alone (a question's expiry, a trigger's slot).
        """
        waited = 0.0
        for _ in range(1000):
            if self._pass():
                continue
            try:
                pause = self._next_wait()
            except StorageError:
                pause = REST_S / 2
            if pause is None or pause > patience_s:
                return waited
            self.clock.advance(pause)
            waited += pause
        raise AssertionError("expected the product to become idle, but it works on and on")

    def _pass(self) -> bool:
        worked = self.tick()
        worked = self.store.events.bell.wait(0) or worked  # as the loop does not wait then either
        for seat in paths.QUEUES:
            try:
                worked = self.pool(seat) or worked
            except StorageError:
                self.clock.advance(REST_S / 2)
                worked = True
        return worked

    def _next_wait(self) -> float | None:
        """Seconds until something waiting may go on: a rest, a retry, an engine."""
        now, steady = self.clock.now(), self.clock.monotonic()
        waits = [until - steady for until in self.supervisor._resting.values() if until > steady]
        if not self.store.runtime.paused:
            for seat in paths.QUEUES:
                waits += [
                    (task.not_before - now).total_seconds()
                    for task in self.queued(seat)
                    if task.not_before is not None and task.not_before > now
                ]
        if self.context.shortage.reason():
            waits.append(1.0)
        until = self.teller._not_before
        if self.teller.inputs and until is not None and until > now:
            waits.append((until - now).total_seconds())
        circuits = self.context.engines._health._circuits
        rests = {
            key[0]: (it.probe_at - now).total_seconds()
            for key, it in circuits.items()
            if circuit.state(it, now) == "open"
        }
        waits += rests.values()
        awaited = set[str]()
        if not self.store.runtime.paused:  # else what was let go on stays where it is
            awaited = {wait.engine for wait in self.context.engines.waiting_tasks().values()}
        if self.teller.inputs and self.teller.waiting and not waits:
            awaited.add(self.teller.waiting.engine)
        if awaited - rests.keys():  # whether it is there is seen each second
            waits.append(LONGEST_WAIT_S)
        return min(waits) if waits else None


def _is_ready(task: Task, now: datetime) -> bool:
    return task.not_before is None or task.not_before <= now
