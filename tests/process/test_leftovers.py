"""Whatever a run starts is gone soon after the run is, however the run ends."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.process.world import World, until, wait_ended
from tests.support.pace import within
from tests.support.runs import alive, tag

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("setsid", "pgrep", "bwrap"),
]

GONE_S = 10.0
"""Of those that do not hear: a second, and what the kernel takes; else they sleep for a day."""

ESCAPES = {
    "own session": "setsid sleep {tag} &",
    "double fork": "(setsid sh -c 'sleep {tag} & sleep {tag}' &)",
    "twice away": "(setsid sh -c '(setsid sh -c \"sleep {tag} & sleep {tag}\" &)' &)",
    "no environment": "setsid env -i /bin/sh -c 'sleep {tag} & sleep {tag}' &",
    "deaf": "(setsid sh -c 'trap \"\" TERM; while :; do sleep {tag}; done' &)",
    "deaf, no environment": "setsid env -i sh -c 'trap \"\" TERM; while :; do sleep {tag}; done' &",
}
"""How a line may start something that is neither in its group nor in its session."""


def begin(world: World, name: str, line: str, **fields: object) -> str:
    """Start a run that goes on for long and has left something behind; gives its tag."""
    number = tag()
    ready = world.root / f"{name}.ready"
    whole = f"{line.format(tag=number)}\nwhile ! pgrep -f '^sleep {number}'; do sleep 0.01; done"
    prompt = f"{whole} >/dev/null; touch {ready}; sleep {number}"
    world.drop(name, {"prompt": prompt, "profile": "command", **fields})
    until(ready.exists, "the run has left something behind", facts=world.facts)
    return number


def gone_by(number: str, deadline: float) -> None:
    """Wait until nothing of the run lives."""
    while pids := alive(number):
        left_s = deadline - time.monotonic()
        assert left_s > 0, f"expected nothing to be left, got {pids}"
        wait_ended(pids, left_s)


def gone_soon(number: str) -> None:
    gone_by(number, time.monotonic() + within(GONE_S))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One consumer for many runs, in which what does not hear is killed after a second."""
    world = World(tmp_path_factory.mktemp("shared"), {"LIMITS__KILL_AFTER_S": 1})
    world.start_consumer()
    yield world
    world.close()


@pytest.mark.fault(46, "codex#7846")
@pytest.mark.parametrize("way", ESCAPES)
def test_a_canceled_run_leaves_nothing(shared: World, way: str) -> None:
    name = f"canceled-{list(ESCAPES).index(way)}"
    number = begin(shared, name, ESCAPES[way])
    shared.order("cancel", name)
    gone_soon(number)
    result = until(lambda: shared.result(name), "the run has its result")
    assert result["status"] == "canceled"


@pytest.mark.fault(46, "complaint 17")
@pytest.mark.parametrize("way", ESCAPES)
def test_a_run_over_its_time_leaves_nothing(shared: World, way: str) -> None:
    name = f"late-{list(ESCAPES).index(way)}"
    # In this time it has to come so far that it has left something behind.
    number = begin(shared, name, ESCAPES[way], timeout=math.ceil(min(within(3), 15)))
    result = until(lambda: shared.result(name), "the run has its result")
    assert result["failureReason"] == "timeout"
    gone_soon(number)


@pytest.mark.fault(11, "j", "codex#21994", "complaint 17")
@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_nothing_is_left_after_a_killed_consumer_is_started_again(
    world: World, sandbox: str, record_property
) -> None:
    """All the ways at once: they end with the sandbox, or with what stands before a run without."""
    world.settings["MAX_CONCURRENCY"] = len(ESCAPES)
    world.settings["COMMAND__SANDBOX"] = sandbox
    consumer = world.start_consumer()
    numbers = [begin(world, f"job-{n}", line) for n, line in enumerate(ESCAPES.values())]
    os.kill(consumer.pid, signal.SIGKILL)
    consumer.wait()
    for number in numbers:
        gone_soon(number)
    assert len(list(world.scratch.iterdir())) == len(numbers)
    begun = time.monotonic()
    world.start_consumer(wait=False)
    for number in numbers:
        gone_by(number, begun + within(GONE_S))
    took_s = time.monotonic() - begun
    record_property("measured", [("runs' leftovers gone after a restart, s", f"{took_s:.1f}")])
    for n in range(len(numbers)):
        result = until(lambda n=n: world.result(f"job-{n}"), "the run has its result")
        assert (result["status"], result["failureReason"]) == ("failed", "killed")
        until(lambda n=n: world.told(f"job-{n}"), "the killed run is told")
    assert list(world.scratch.iterdir()) == []


def test_a_page_killed_meanwhile_leaves_the_runs_alone(world: World) -> None:
    world.start_consumer()
    web = world.start_web()
    number = begin(world, "job", ESCAPES["own session"])
    os.killpg(web.pid, signal.SIGKILL)
    web.wait()
    world.start_web()
    assert len(alive(number)) >= 2
    world.order("cancel", "job")
    gone_soon(number)
