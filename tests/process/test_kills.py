"""Killed at any moment, page, consumer and runs lose nothing accepted, and do nothing twice."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import psutil
import pytest

from mimikit.protocol.watch import FolderWatch
from tests.process.load import Load
from tests.process.oracle import complaints
from tests.process.warm import Process, WarmServer
from tests.process.world import World, children, until
from tests.support.pace import within

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("setsid"),
]

KILLS, FRESH_KILLS = 100, 5
"""Kills of a round; a round is a state folder of its own. In one of them each start is a fresh
interpreter, as for users; in the others a fork of one that has imported everything."""
ROUNDS_BY_DAY, ROUNDS_OF_A_NIGHT = 2, 5
"""Rounds of forks: 200 kills by day; by night as many times `--size`, 10,000 at scale 20."""

Target: TypeAlias = Literal["consumer", "page", "page's worker", "page's master", "both", "run"]
TARGETS: tuple[tuple[Target, int], ...] = (
    ("consumer", 9), ("page", 1), ("page's worker", 2), ("page's master", 1), ("both", 2),
    ("run", 5),
)  # fmt: skip
"""What is killed, and how often in twenty times; a run is a command that an engine carries out."""

CONSUMERS = (
    "inbox", "turns", "turns/new", "turns/done", "history", "tasks", "commands", "commands/done",
    "planner/queue", "planner/running", "planner/results", "planner/done", "worker/queue",
    "worker/running", "worker/results", "worker/ended", "triggers/state",
)  # fmt: skip
"""Folders whose events are moments to kill the consumer at."""
PAGES = ("inbox", "worker/queue", "commands")
CLAIMS = ("worker/running", "planner/running", "turns/new")
"""Folders in which a name is a claim, or a commit that is not applied."""

_TRIGGER = {
    "id": "trig-tick",
    "type": "recurring",
    "profile": "command",
    "createdAt": "2026-01-01T00:00:00.000Z",
    "traceId": "trace-tick",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        size = metafunc.config.option.size
        rounds = ROUNDS_BY_DAY if size == 1 else ROUNDS_OF_A_NIGHT * size
        names = ["fresh", *(str(number) for number in range(rounds))]
        metafunc.parametrize("number", names)


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

    def __init__(self, world: World, load: Load, dice: random.Random, wanted: int) -> None:
        self.world, self.load, self.dice, self.wanted = world, load, dice, wanted
        self.trap = Trap(world.state)
        load.on_sent = lambda: self.trap.notice("sent")
        self.kills = 0
        self.mid_flow = 0
        self.moments: Counter[str] = Counter()
        """How many kills came at a named moment (an event of a folder, a request, a run)."""
        self.found: Counter[str] = Counter()
        """What was under way at a kill: how many kills found it."""
        self.killed: Counter[str] = Counter()
        self._requests: set[str] = set()
        self._struck = 0
        """How many processes the last kill met."""

    def play(self) -> None:
        """Kill as often as wanted, and until half of the kills were mid-flow."""
        while self.kills < self.wanted or self._is_behind:
            targets, weights = zip(*TARGETS, strict=True)
            (target,) = self.dice.choices(targets, weights)
            if target == "run":
                self._kill_a_run()
                continue
            self._struck = 0
            is_named = self._await_and_strike(target)
            if self._struck:  # else it had not begun, or had ended by itself
                self._count(target, self._seen(target), is_named)
            self._revive(target)
            self.world.forget_ended()

    @property
    def _is_behind(self) -> bool:
        """Whether less than half of the kills were mid-flow: then the next one is."""
        return self.mid_flow * 2 < self.kills

    def _await_and_strike(self, target: Target) -> bool:
        """Kill at some moment; gives whether it was a named one."""

        def blow() -> None:
            self._requests = set(self.load.in_flight)
            self._strike(target)

        moment = 1.0 if self._is_behind else self.dice.random()
        if moment < 0.2:  # while it starts
            self.load.go_on()
            self._wait(self.dice.uniform(0, 0.5))
            blow()
            return False
        self._until_up()
        self.load.go_on()
        if moment < 0.5:
            self._wait(self.dice.uniform(0, 0.7))
            blow()
            return False
        folders = CONSUMERS if target == "consumer" else (*PAGES, "sent", "sent")
        nth = self.dice.randint(1, 3)
        if self._is_behind:
            folders, nth = CLAIMS if target == "consumer" else ("sent",), 1
        return self.trap.strike_at(self.dice.choice(folders), nth, blow, min(within(1.5), 5))

    def _strike(self, target: Target) -> None:
        for pid in self._pids(target):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self._struck += 1

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

    def _seen(self, target: Target) -> set[str]:
        """What was under way: the dead consumer's files lie still."""
        found: set[str] = set()
        if target in ("consumer", "both"):
            _dead(self.world.consumer)
            found = set(self._under_way())
        if target != "consumer" and self._requests:
            found.add("unacknowledged request")
        return found

    def _count(self, target: Target, found: set[str], is_named: bool) -> None:
        self.kills += 1
        self.killed[target] += 1
        self.moments["named" if is_named else "random"] += 1
        self.found.update(found or {"nothing"})
        self.mid_flow += bool(
            found & {"unapplied commit", "running file", "unacknowledged request"}
        )

    def _under_way(self) -> Iterator[str]:
        world = self.world
        if world.names("turns/new") or world.names("planner/results"):
            yield "unapplied commit"
        if world.names("worker/running") or world.names("planner/running"):
            yield "running file"
        if world.names("turns", ".started"):
            yield "open turn"
        if world.names("inbox"):
            yield "inbox entry"
        if world.names("commands"):
            yield "order"
        if any(world.state.rglob(".tmp-*")):
            yield "half-made file"

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
        self._until_up()
        self.load.hand_in(3)
        pid, found = until(self._run_going_on, "a run goes on", facts=self.world.facts)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._count("run", found, is_named=True)

    def _run_going_on(self) -> tuple[int, set[str]] | None:
        """The shell of a run, and what is under way with it."""
        for pid in self.world.of_runs():
            with suppress(psutil.Error):
                if str(self.load.script) in psutil.Process(pid).cmdline():
                    return pid, set(self._under_way())
        return None

    def finish(self) -> None:
        """A last clean start, until nothing is left to do, and a clean end."""
        world = self.world
        self._until_up()
        self.load.stop(timeout_s=min(within(30), 300))
        answer = world.ask("DELETE", "/api/triggers/trig-tick", timeout_s=within(15))
        assert answer.status in (200, 202), answer
        until(world.is_idle, "nothing is left to do", timeout_s=60)
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


def _dead(process: Process | None) -> None:
    assert process is not None
    process.wait(90)  # the kernel ends it once the disk has what it was writing


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmServer]:
    server = WarmServer()
    yield server
    server.close()


@pytest.mark.fault(1, 2, 63, "complaint 5", "upstream 6")
@pytest.mark.timeout(3600)  # a hundred starts, on a machine that is slow and busy
def test_kills_lose_and_double_nothing(
    number: str,
    warm: WarmServer,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    proof: Callable[[dict[str, float]], None],
) -> None:
    is_fresh = number == "fresh"
    settings: dict[str, object] = {"LIMITS__RETRY_DELAY_S": 0.2, "LIMITS__KILL_AFTER_S": 1}
    # The runs of the load look into the state, and leave what only the next consumer ends.
    settings["COMMAND__SANDBOX"] = "off"
    world = World(tmp_path, settings, warm=None if is_fresh else warm)
    begun = time.monotonic()
    with ExitStack() as at_the_end:
        at_the_end.callback(world.close)
        world.start_consumer()
        world.start_web()
        load = Load(world, f"r{number}", rest_s=min(within(1), 10))
        at_the_end.callback(load.give_up)
        load.start()
        tick = {"prompt": f"sh {load.script} 0.05", "schedule": {"interval": load.rest_s * 3}}
        world.put("triggers/trig-tick.json", {**_TRIGGER, **tick})
        dice = random.Random(f"kills {number}")
        play = Round(world, load, dice, FRESH_KILLS if is_fresh else KILLS)
        at_the_end.callback(play.trap.close)
        play.play()
        play.finish()
        found = complaints(world, load)
    results = [
        world.record(f"worker/results/{i}.json") or {} for i in world.names("worker/results")
    ]
    figures = {
        **{f"killed: {name}": n for name, n in play.killed.items()},
        **{f"found under way: {name}": n for name, n in play.found.items()},
        **{f"kills at {name} moments": n for name, n in play.moments.items()},
        "kills": play.kills,
        "kills mid-flow": play.mid_flow,
        "messages accepted": len(load.messages),
        "tasks accepted": len(load.tasks),
        "tasks ended": len(results),
        "tasks ended as killed": sum(r.get("failureReason") == "killed" for r in results),
        "tasks canceled": sum(r.get("status") == "canceled" for r in results),
        "runs begun": len(load.runs()),
        "seconds": round(time.monotonic() - begun),
    }
    record_property("figures", figures)
    proof({"kills": play.kills, "mid-flow": play.mid_flow, "at random": play.moments["random"]})
    assert not found, "\n".join(found)
    assert play.mid_flow * 2 >= play.kills, figures
    if not is_fresh:
        assert min(play.moments["named"], play.moments["random"]) * 5 >= play.kills, figures
