"""Killed at any moment, page, consumer and runs lose nothing accepted, and do nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import psutil
import pytest

from mimikit.protocol.watch import FolderWatch
from tests.process.load import Load
from tests.process.oracle import complaints
from tests.process.world import World, children, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("setsid"),
]

ROUNDS = 1
KILLS = 20
"""Kills a round; a round is a state folder of its own."""

Target: TypeAlias = Literal["consumer", "page", "page's worker", "page's master", "both"]
TARGETS: tuple[tuple[Target, int], ...] = (
    ("consumer", 10), ("page", 3), ("page's worker", 1), ("page's master", 1), ("both", 5),
)  # fmt: skip
"""What is killed, and how often in twenty times."""

CONSUMERS = (
    "inbox", "turns", "turns/new", "turns/done", "history", "tasks", "commands", "commands/done",
    "planner/queue", "planner/running", "planner/results", "planner/done", "worker/queue",
    "worker/running", "worker/results", "worker/ended", "triggers/state",
)  # fmt: skip
"""Folders whose events are moments to kill the consumer at."""
PAGES = ("inbox", "worker/queue", "commands")
UNDER_WAY = ("turns/new", "planner/results", "worker/running", "planner/running")

_TRIGGER = {
    "id": "trig-tick",
    "type": "recurring",
    "profile": "command",
    "createdAt": "2026-01-01T00:00:00.000Z",
    "traceId": "trace-tick",
    "schedule": {"interval": 1},
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(ROUNDS * metafunc.config.option.size))


class Trap:
    """Calls a blow at an event of a folder, from the thread that sees it: no time is lost."""

    def __init__(self, state: Path) -> None:
        self._watch = FolderWatch(state)
        self._lock = threading.Lock()
        self._left = 0
        self._folder = ""
        self._blow: Callable[[], None] = lambda: None
        self._struck = threading.Event()
        for folder in {*CONSUMERS, *PAGES}:
            self._watch.watch(folder, partial(self._told, folder))

    def _told(self, folder: str, names: list[str] | None) -> None:
        if names:
            self.notice(folder)

    def notice(self, folder: str) -> None:
        with self._lock:
            if self._left and folder == self._folder:
                self._left -= 1
                if not self._left:
                    self._blow()
                    self._struck.set()

    def strike_at(self, folder: str, nth: int, blow: Callable[[], None], timeout_s: float) -> bool:
        """Strike at the nth event from now on; at the latest when the time is up."""
        with self._lock:
            self._struck.clear()
            self._folder, self._left, self._blow = folder, nth, blow
        if self._struck.wait(timeout_s):
            return True
        with self._lock:
            late, self._left = self._left > 0, 0
        if late:
            blow()
        return not late

    def close(self) -> None:
        self._watch.close()


class Round:
    """One state folder under load, its processes killed and started again."""

    def __init__(self, world: World, load: Load, dice: random.Random) -> None:
        self.world, self.load, self.dice = world, load, dice
        self.trap = Trap(world.state)
        load.on_sent = lambda: self.trap.notice("sent")
        self.kills = 0
        self.mid_flow = 0
        self._requests: set[str] = set()

    def play(self) -> None:
        while self.kills < KILLS:
            targets, weights = zip(*TARGETS, strict=True)
            (target,) = self.dice.choices(targets, weights)
            self._await_and_strike(target)
            self._look(target)
            self._revive(target)
            if self.dice.random() < 0.3:
                self._kill_a_run()

    def _await_and_strike(self, target: Target) -> None:
        def blow() -> None:
            self._requests = set(self.load.in_flight)
            self._strike(target)

        moment = self.dice.random()
        if moment < 0.2:  # while it starts
            self._wait(self.dice.uniform(0, 0.7))
            blow()
            return
        self._until_up()
        if moment < 0.45:
            self._wait(self.dice.uniform(0, 1.5))
            blow()
            return
        folders = CONSUMERS if target == "consumer" else (*PAGES, "sent", "sent")
        folder = self.dice.choice(folders)
        self.trap.strike_at(folder, self.dice.randint(1, 4), blow, timeout_s=1.5)

    def _strike(self, target: Target) -> None:
        for pid in self._pids(target):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _pids(self, target: Target) -> list[int]:
        page = self.world.web.pid if self.world.web else 0
        workers = [child.pid for child in children(page)]
        consumer = [self.world.consumer.pid] if self.world.consumer else []
        return {
            "consumer": consumer,
            "page": [page, *workers],
            "page's worker": workers[:1],
            "page's master": [page],
            "both": [*consumer, page, *workers],
        }[target]

    def _look(self, target: Target) -> None:
        """Note whether something was under way: the dead consumer's files lie still."""
        under_way = target != "consumer" and bool(self._requests)
        if target in ("consumer", "both"):
            _dead(self.world.consumer)
            under_way = under_way or any(map(self.world.names, UNDER_WAY))
        self.kills += 1
        self.mid_flow += under_way

    def _revive(self, target: Target) -> None:
        world = self.world
        if target in ("consumer", "both"):
            world.clear_crashes()
            world.start_consumer(wait=False)
        if target in ("page", "page's master", "both"):
            _dead(world.web)
            world.start_web(wait=False)

    def _until_up(self) -> None:
        """Wait for what was started; a page that could not have its port yet is started again."""

        def page_is_up() -> bool:
            if world.web is not None and world.web.poll() is not None:
                world.start_web(wait=False)
            return world.is_serving()

        world, consumer = self.world, self.world.consumer
        assert consumer is not None
        until(lambda: world.is_beating(consumer), "the consumer serves", facts=world.facts)
        until(page_is_up, "the page is served", facts=world.facts)

    def _kill_a_run(self) -> None:
        """Kill the shell of a run that is going on."""
        for pid in self.world.of_runs():
            with suppress(psutil.Error, ProcessLookupError):
                if str(self.load.script) in psutil.Process(pid).cmdline():
                    os.kill(pid, signal.SIGKILL)
                    return

    def finish(self) -> None:
        """A last clean start, until nothing is left to do, and a clean end."""
        world = self.world
        self._until_up()
        self.load.stop(timeout_s=30)
        answer = world.ask("DELETE", "/api/triggers/trig-tick")
        assert answer.status in (200, 202), answer
        until(world.is_idle, "nothing is left to do", timeout_s=45)
        self._end_cleanly()
        world.start_consumer()
        until(world.is_idle, "nothing is left to do after a clean start")
        self._end_cleanly()

    def _end_cleanly(self) -> None:
        consumer = self.world.consumer
        assert consumer is not None
        consumer.terminate()
        until(lambda: consumer.poll() is not None, "its clean end", facts=self.world.facts)
        assert consumer.returncode == 0

    def _wait(self, seconds: float) -> None:
        threading.Event().wait(seconds)


def _dead(process: subprocess.Popen[bytes] | None) -> None:
    assert process is not None
    process.wait(90)  # the kernel ends it once the disk has what it was writing


@pytest.mark.timeout(300)  # dozens of starts, on a busy machine
def test_kills_lose_and_double_nothing(
    number: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    settings: dict[str, object] = {"LIMITS__RETRY_DELAY_S": 0.2, "LIMITS__KILL_AFTER_S": 1}
    # The runs of the load look into the state, and leave what only the next consumer ends.
    world = World(tmp_path, {**settings, "COMMAND__SANDBOX": "off"})
    try:
        world.start_consumer()
        world.start_web()
        load = Load(world, f"r{number}")
        load.start()
        prompt = f"sh {load.script} 0.05 tick"
        world.put("triggers/trig-tick.json", {**_TRIGGER, "prompt": prompt})
        play = Round(world, load, random.Random(f"kills {number}"))
        play.play()
        play.finish()
        play.trap.close()
        found = complaints(world, load)
    finally:
        world.close()
    figures = {
        "kills": play.kills,
        "kills mid-flow": play.mid_flow,
        "messages accepted": len(load.messages),
        "tasks accepted": len(load.tasks),
    }
    record_property("figures", figures)
    assert not found, "\n".join(found)
    assert play.mid_flow * 2 >= play.kills, figures
