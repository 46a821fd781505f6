"""Killed at any moment, the product loses no notification, and doubles few: each has its reason."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from mimikit.notifications.ledger import read_lines
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import FIRST_TIME, Task
from mimikit.protocol.notifications import NotificationEvent
from mimikit.protocol.watch import FolderWatch
from mimikit.tasks import queue
from tests.support.receiver import Receiver

REPO = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("killed_product.py")
EACH = 20
"""Events that come together: as many as one notification names."""
AT = datetime.fromisoformat("2026-12-01T09:00:00+00:00")

pytestmark = [pytest.mark.needs_platform("linux")]


@dataclass
class World:
    """A state folder, who works in it, and a moment at which that is killed."""

    folder: Path
    receiver: Receiver
    files: Files
    watch: FolderWatch
    kills: int = 0
    process: subprocess.Popen[bytes] | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)
    marks: int = 0

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPO)}
        command = [sys.executable, str(PROGRAM), str(self.folder)]
        self.process = subprocess.Popen(command, env=environment, cwd=REPO)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def saw(self, names: list[str] | None) -> None:
        with self.changed:
            self.marks += any(not name.startswith(".") for name in names or ())
            self.changed.notify_all()

    def submit(self, first: int, number: int) -> None:
        for it in range(first, first + number):
            task = Task(
                id=f"t{it:04}", prompt=f"bad e{it:04}", created_at=AT, trace_id="r", origin="cli"
            )
            queue.submit(self.files, task)

    def wait(self, done: int) -> None:
        """Wait until so many events are told and put aside."""
        with self.changed:
            is_there = self.changed.wait_for(lambda: len(self.done()) >= done, timeout=300)
        assert is_there, f"{len(self.done())} of {done} are done with"

    def done(self) -> list[str]:
        return self.files.names(paths.NOTIFICATIONS_DONE)

    def wait_for_mark(self) -> None:
        """Wait for the first one."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.marks > 0, timeout=300)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with _world(tmp_path) as made:
        yield made


@contextmanager
def _world(folder: Path) -> Generator[World]:
    with Receiver() as receiver:
        files = Files(RealDisk(folder))
        files.make_folders()
        files.write(f"{paths.SECRETS}/notify-phone.url", f"{receiver.url()}\n".encode())
        watch = FolderWatch(folder)
        world = World(folder, receiver, files, watch)
        watch.watch(paths.NOTIFICATIONS_SENDING, world.saw)
        watch.watch(paths.NOTIFICATIONS_DONE, world.saw)
        world.start()
        try:
            yield world
        finally:
            world.kill()
            watch.close()


def judge(world: World, number: int) -> tuple[int, int]:
    """How many arrived more than once, and how many of those no line says so of; none is lost."""
    told = Counter(re.findall(r"bad (e\d{4})", world.receiver.text))
    lost = [f"e{it:04}" for it in range(number) if f"e{it:04}" not in told]
    assert lost == []
    assert world.files.names(paths.NOTIFICATIONS_NEW) == []
    events = world.files.load_all(paths.NOTIFICATIONS_DONE, NotificationEvent)
    doubted = {
        id_ for line in read_lines(world.files, FIRST_TIME) if line.doubtful for id_ in line.events
    }
    explained = {event.title.rpartition(" ")[2] for event in events if event.id in doubted}
    doubled = {name for name, times in told.items() if times > 1}
    return len(doubled), len(doubled - explained)


def test_killed_as_its_mark_is_written_it_loses_nothing_and_says_what_may_be_doubled(
    world: World,
) -> None:
    for first in (0, EACH):
        if not first:
            world.receiver.answers.clear()  # so that it is still under way, however late the kill
        world.submit(first, EACH)
        if not first:
            world.wait_for_mark()
            world.kill()
            world.receiver.answers.set()
            world.start()
        world.wait(first + EACH)
    _, unexplained = judge(world, 2 * EACH)
    assert unexplained == 0
    assert any(line.doubtful for line in read_lines(world.files, FIRST_TIME))


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_of_a_thousand_none_is_lost_and_one_in_a_hundred_is_doubled_at_most(
    world: World, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(13)
    rounds = 5 * min(size, 10)
    for number in range(rounds):
        world.submit(number * EACH, EACH)
        if number % 2 == 0:
            threading.Event().wait(dice.uniform(0.5, 4))  # any moment of a start or of a send
            world.kill()
            world.start()
        world.wait((number + 1) * EACH)
    doubled, unexplained = judge(world, rounds * EACH)
    with capsys.disabled():
        print(f"{rounds * EACH} notifications, {world.kills} kills: {doubled} came twice")  # noqa: T201
    assert unexplained == 0
    assert doubled <= max(rounds * EACH // 100, EACH)
