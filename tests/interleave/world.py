"""The processes around one state folder: consumers, pages, terminals; and what each does."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.errors import MimikitError
from mimikit.protocol import ids
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import QueueName, Task
from mimikit.roles.dispatcher import dispatch
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, outcome_of
from mimikit.runner.queues import TaskHuey, open_queue
from mimikit.testing.twins import FakeClock
from mimikit.views.messages import KnownIds
from tests.crash.dice import DICE, NO_PROCESS, dead_owner, loaded_dice
from tests.crash.driver import START_NS
from tests.crash.images import Contents
from tests.crash.oracle import Oracle
from tests.interleave.disk import DiskFront, SharedDisk
from tests.interleave.scheduler import Process, Schedule, Scheduler
from tests.interleave.threads import Runs, turns_taken
from tests.support.mind import Mind
from tests.support.product import START, Product

Script = Callable[["Caller"], None]


class TellerApart:
    """Takes turns as an actor of its own, as the Teller's thread does."""

    def __init__(self, context: RunContext, ring: Callable[[], None]) -> None:
        self._context, self._ring = context, ring
        self._jobs: list[TurnJob] = []
        self._done: list[TurnOutcome] = []

    def start(self, job: TurnJob) -> None:
        self._jobs.append(job)

    def outcomes(self) -> list[TurnOutcome]:
        found, self._done = self._done, []
        return found

    def has_job(self) -> bool:
        return bool(self._jobs)

    def take(self) -> None:
        """The turn that was asked for."""
        self._done.append(outcome_of(self._context, self._jobs.pop(0)))
        self._ring()


class Member:
    """A process as it works: its files, and the row it draws names from."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.process = Process(name, next(world.numbers))
        self.front = DiskFront(world.disk, self.process, world.scheduler)
        self.files = Files(self.front)
        dead_owner(self.files, self.process.number)
        self._row = itertools.count()

    @property
    def clock(self) -> FakeClock:
        return self.world.clock

    @property
    def oracle(self) -> Oracle:
        return self.world.oracle

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def draw(self) -> None:
        """Names are drawn from this process's row from now on."""
        DICE._row, DICE._count = self.process.number, self._row


class Caller(Member):
    """A page's process, or a terminal's: what somebody does there may be repeated."""

    def __init__(self, world: World, name: str, script: Script) -> None:
        super().__init__(world, name)
        self.read_only = ReadOnlyFiles(self.files)
        dead_owner(self.read_only, self.process.number)
        self._script = script
        self.is_done = False
        self.refused: MimikitError | None = None

    def act(self) -> None:
        """Do it; what was refused is done again later, when nothing else is going on."""
        self.refused = None
        try:
            self._script(self)
        except MimikitError as error:
            self.refused = error
        else:
            self.is_done = True

    def again(self) -> Caller:
        """The same by another process, as the first has died or was refused."""
        return Caller(self.world, self.process.name, self._script)

    @property
    def site(self) -> Any:
        """What the functions of a page need of its site."""
        return SimpleNamespace(
            files=self.read_only,
            clock=self.clock,
            known_ids=KnownIds(self.read_only),
            inputs=SimpleNamespace(take=lambda _key: True),
            is_remote=False,
        )


class Consumer(Member):
    """A consumer's process: the whole product, its parts on threads of their own if wanted."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.product: Product | None = None
        self.teller: TellerApart | None = None
        self._pools: dict[QueueName, TaskHuey] = {}

    def open(self, *, apart: bool = False) -> Product:
        """Put it together. `apart`: the Teller takes its turns on a thread of its own."""
        self.files.make_folders()
        world = self.world
        product = Product(self.files, world.clock, Mind(world.oracle.runs), settings=world.settings)
        product.context.usage.begin = lambda *_facts: None  # pyright: ignore[reportAttributeAccessIssue]
        if apart:
            self.teller = TellerApart(product.context, product.store.events.bell.ring)
            product.teller._seat = self.teller
        self.product = product
        return product

    def start(self, *, apart: bool = False) -> Product:
        """Open and recover, as one that just begins."""
        product = self.open(apart=apart)
        product.start()
        return product

    def rest(self) -> None:
        """Work until nothing is left to do, however long what waits takes."""
        self.draw()
        self._opened.idle()

    def serve(self) -> None:
        """All of it on one thread, until nothing is to be done by anybody."""
        product, bell = self._opened, self._opened.store.events.bell
        while True:
            while product._pass():
                pass
            if not self._rests(bell._rung.is_set):
                return

    def supervise(self) -> None:
        """The supervisor's thread."""
        product, bell = self._opened, self._opened.store.events.bell
        while True:
            while product.tick() or bell.wait(0):
                pass
            if not self._rests(bell._rung.is_set):
                return

    def work(self, seat: QueueName) -> Callable[[], None]:
        """A thread of a pool: it claims as the product's storage does."""
        product = self._opened

        def run_task(seat: QueueName, task: Task) -> None:
            if dispatch(product.context, seat, task):
                product.store.events.ended_runs.put((seat, task.id))
            else:
                product.store.events.bell.ring()

        def is_known(task_id: str) -> bool:
            return product.store.ledger.end_of(task_id) is not None

        if seat not in self._pools:
            huey = open_queue(
                seat, self.files, run_task, is_known, blocking=False, clock=self.clock
            )
            session = huey.storage._open()
            session.look_again_at = float("inf")  # it is looked at whenever a thread has time
            self._pools[seat] = huey
        huey = self._pools[seat]

        def run() -> None:
            while True:
                if not product.store.runtime.paused:
                    huey.storage.look()
                    if (message := huey.storage.dequeue()) is not None:
                        huey.execute(huey.deserialize_task(message))
                        continue
                if not self._rests(lambda: False):
                    return

        return run

    def tell(self) -> None:
        """The Teller's thread."""
        assert self.teller is not None
        teller = self.teller
        while True:
            while teller.has_job():
                teller.take()
            if not self._rests(teller.has_job):
                return

    def _rests(self, until: Callable[[], bool]) -> bool:
        """Wait for what others do; False: nobody does anything any more."""
        return until() or self.world.scheduler.rest(until)

    @property
    def _opened(self) -> Product:
        assert self.product is not None
        return self.product


class World:
    """One run: a folder, the processes around it, and what the world outside knows."""

    def __init__(self, contents: Contents, schedule: Schedule, settings: Settings | None) -> None:
        Runs.locks = itertools.count(1000)  # what lay there before was made by others, or not anew
        self.disk = SharedDisk.holding(contents, start_ns=START_NS)
        self.clock, self.oracle = FakeClock(START), Oracle()
        self.disk._time = (
            int(self.clock.now().timestamp() * 1e9) + number for number in itertools.count()
        )
        self.numbers = itertools.count(1)
        self.settings = settings
        self.members: dict[int, Member] = {}
        self.scheduler = Scheduler(schedule, self._enter)
        self.callers: list[Caller] = []
        self.consumers: list[Consumer] = []

    def _enter(self, process: Process) -> None:
        self.members[process.number].draw()

    def caller(self, name: str, script: Script) -> Caller:
        """A page or terminal that does this once."""
        made = Caller(self, name, script)
        self.members[made.process.number] = made
        self.callers.append(made)
        self.scheduler.add(name, made.process, made.act)
        return made

    def consumer(self, name: str = "consumer") -> Consumer:
        """A consumer's process; its threads are added by who calls this."""
        made = Consumer(self, name)
        self.members[made.process.number] = made
        self.consumers.append(made)
        made.draw()
        return made

    def lives(self, temp: str) -> bool:
        """Whether the owner of a temp file is a process that lives."""
        number = int(temp.partition("-")[0]) - NO_PROCESS
        return number in self.members and not self.members[number].process.is_dead

    def pass_time(self, **span: float) -> None:
        self.clock.advance(timedelta(**span).total_seconds())


def _writer_name() -> str:
    """What `World.lives` knows the process by that goes on now."""
    return f"{NO_PROCESS + DICE._row}-sim-boot-{DICE.token_hex(6)}"


@contextlib.contextmanager
def begun(make: Callable[[], World]) -> Generator[World]:
    """A world in which the product's locks, names and owners are those of its actors."""
    with loaded_dice(), turns_taken():
        world = make()
        Runs.scheduler = world.scheduler
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ids, "writer_lives", world.lives)
                patch.setattr(ids, "writer_name", _writer_name)
                yield world
        finally:
            Runs.scheduler = None
