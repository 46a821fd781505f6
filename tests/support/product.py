"""A whole consumer in one thread, on any disk, with a fake clock: what the product's build makes.

Left out are Huey, the heartbeat and what belongs to a process: `PoolInPlace` claims as Huey's
storage does, in the product's order, by a rename from `queue/` to `running/`.
"""

from __future__ import annotations

import functools
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from mimikit import app
from mimikit.app import ConsumerCore, Parts
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
from mimikit.engines.base import Engine
from mimikit.engines.shell import ShellEngine
from mimikit.errors import StorageError
from mimikit.log import EventLog
from mimikit.memory.archive import RULES, ArchiveRules
from mimikit.memory.search import MemorySearch
from mimikit.protocol import paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName as SeatName
from mimikit.protocol.models import Task
from mimikit.roles.prompts import Prompts
from mimikit.roles.worktree import Worktrees
from mimikit.state import State
from mimikit.supervisor.loop import LONGEST_WAIT_S, REST_S
from mimikit.tasks.queue import order_of, read
from tests.support.desk import Desk
from tests.support.memory_disk import MemoryDisk
from tests.support.searching import plain_search
from tests.support.twins import FakeClock, TellerInPlace

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
    """Collects errors of the log: without injected faults there must be none."""

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


def _lock(files: Files) -> Lock:
    """A consumer lock that is always free."""
    files.create(paths.CONSUMER_LOCK, b"")
    found = files.stat(paths.CONSUMER_LOCK)
    assert found is not None
    return Lock(lambda: None, found.inode)


def queued(files: Files, seat: SeatName) -> list[Task]:
    """The tasks that wait; what is none is its storage's to judge, which is not here."""
    names = files.names(f"{seat}/queue")
    found = (read(files, seat, f"{seat}/queue/{name}") for name in names)
    return [task for task in found if task is not None]


def _crash(reason: str) -> NoReturn:
    """Where the process would end: with what it ended by, where that is known."""
    if (error := sys.exception()) is not None:
        raise error
    sys.exit(reason)


class PoolInPlace:
    """The queues, without Huey: `Product.pool` claims from them when a test asks for it."""

    def __init__(self, consumer: ConsumerCore) -> None:
        self._files = consumer.state.files

    def set_paused(self, paused: bool) -> None: ...

    def queued(self) -> dict[str, int]:
        return {seat: len(self._files.names(f"{seat}/queue")) for seat in paths.QUEUES}

    def upcoming(self, queue: SeatName, most: int) -> list[str]:
        tasks = sorted(queued(self._files, queue), key=order_of)
        return [f"{task.id}.json" for task in tasks[:most]]

    def is_claimed(self, queue: SeatName, name: str) -> bool:
        return False


class Product:
    """A consumer over one state folder, wired by `app.build`; nothing in it runs by itself."""

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
        worktrees: Worktrees | None = None,
    ) -> None:
        """Wires the product; `start` recovers."""
        self.files, self.clock = files, clock
        self.mind: Any = engine
        """The engine given: tests change how it behaves."""
        self.settings = settings or scripted_settings()
        self.log = NoisyLog(files, clock, quiet=quiet)
        self.workspace = workspace_files or Desk()
        engines = [engine, *more_engines]
        if all(one.name != "command" for one in engines):  # there always is one in the product
            engines.append(ShellEngine(self.settings))
        self.consumer = app.build(
            Parts(
                state=State(state, workspace, files, self.settings, clock, self.log),
                lock=_lock(files),
                engines=engines,
                endpoints=lambda _settings: [],
                search=search or plain_search(files, self.settings.zone),
                prompts=shipped_prompts(),
                workspace=self.workspace,
                file_watch=self.workspace,
                teller=TellerInPlace,
                pool=PoolInPlace,
                crash=_crash,
                stopping=SteppedStop(clock),
                rules=rules,
                worktrees=worktrees,
                has_heartbeat=False,  # each beat would be two more steps to crash at
            )
        )
        self.store, self.context = self.consumer.store, self.consumer.context
        self.supervisor, self.teller = self.consumer.supervisor, self.consumer.teller
        self.applier, self.commands = self.consumer.commits, self.consumer.commands
        self.archiver, self.retention = self.consumer.archiver, self.consumer.retention
        self.llm_eval, self.seat = self.consumer.llm_eval, self.consumer.seat
        if quiet:
            self.store.feed.publish = lambda kind, **facts: None  # pyright: ignore[reportAttributeAccessIssue]
        self.store.conversation.caps = caps or self.store.conversation.caps
        self.workspace.changed = self.store.events.changed_files.put
        self.ticking = False

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
        if self.store.runtime.paused:
            return False
        ready = [task for task in self.queued(seat) if _is_ready(task, self.clock.now())]
        if not ready:
            return False
        task = min(ready, key=order_of)
        if not self.files.move(paths.queued(seat, task.id), paths.running(seat, task.id)):
            return False
        self.consumer.run_task(seat, task)
        return True

    def queued(self, seat: SeatName) -> list[Task]:
        return queued(self.files, seat)

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
        waits = [
            it.retry_at - steady for it in self.supervisor.failures.values() if it.retry_at > steady
        ]
        if not self.store.runtime.paused:
            for seat in paths.QUEUES:
                waits += [
                    (task.not_before - now).total_seconds()
                    for task in self.queued(seat)
                    if task.not_before is not None and task.not_before > now
                ]
        until = self.teller.wait and self.teller.wait.not_before
        if self.teller.inputs and until is not None and until > now:
            waits.append((until - now).total_seconds())
        circuits = self.context.engines.circuits._circuits
        rests = {
            key[0]: (it.probe_at - now).total_seconds()
            for key, it in circuits.items()
            if it.open_until(now)
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
