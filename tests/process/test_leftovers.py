"""Whatever a run starts is gone soon after the run is, however the run ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.process.world import World, stretched, until, wait_ended
from tests.support.runs import alive, tag

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("setsid", "pgrep", "bwrap"),
]

GONE_S = 5.0

ESCAPES = {
    "own session": "setsid sleep {tag} &",
    "twice away": "(setsid sh -c '(setsid sh -c \"sleep {tag} & sleep {tag}\" &)' &)",
    "deaf, no environment": "setsid env -i sh -c 'trap \"\" TERM; while :; do sleep {tag}; done' &",
}
"""How a line may start something that is neither in its group nor in its session."""
OWN_GROUP = "sleep {tag} &"
"""What ends with a run, also where no box can be made: all of its process group."""


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
    gone_by(number, time.monotonic() + stretched(GONE_S))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One consumer for many runs, in which what does not hear is killed after a second."""
    world = World(tmp_path_factory.mktemp("shared"), {"LIMITS__KILL_AFTER_S": 1})
    world.start_consumer()
    yield world
    world.close()


@pytest.mark.parametrize("way", ESCAPES)
@pytest.mark.parametrize("how", ["canceled", "timeout"])
def test_a_run_that_is_ended_leaves_nothing(shared: World, way: str, how: str) -> None:
    name = f"{how}-{list(ESCAPES).index(way)}"
    limit = {"timeout": 1} if how == "timeout" else {}
    number = begin(shared, name, ESCAPES[way], **limit)
    if how == "canceled":
        shared.order("cancel", name)
    gone_soon(number)
    result = until(lambda: shared.result(name), "the run has its result")
    assert result["failureReason"] == how


@pytest.mark.parametrize(
    ("sandbox", "lines"), [("auto", tuple(ESCAPES.values())), ("off", (OWN_GROUP,))]
)
def test_nothing_is_left_after_a_killed_consumer_is_started_again(
    world: World, sandbox: str, lines: tuple[str, ...]
) -> None:
    """In the box all ends with it; without one what bears the run's mark, by the next consumer."""
    world.settings["MAX_CONCURRENCY"] = len(ESCAPES)
    world.settings["COMMAND__SANDBOX"] = sandbox
    consumer = world.start_consumer()
    numbers = [begin(world, f"job-{n}", line) for n, line in enumerate(lines)]
    os.kill(consumer.pid, signal.SIGKILL)
    consumer.wait()
    for number in numbers if sandbox == "auto" else ():
        gone_soon(number)
    assert len(list(world.scratch.iterdir())) == len(numbers)
    begun = time.monotonic()
    world.start_consumer(wait=False)
    for number in numbers:
        gone_by(number, begun + stretched(GONE_S))
    for n in range(len(numbers)):
        result = until(lambda n=n: world.result(f"job-{n}"), "the run has its result")
        assert (result["status"], result["failureReason"]) == ("failed", "killed")
        until(lambda n=n: world.told(f"job-{n}"), "the killed run is told")
    assert list(world.scratch.iterdir()) == []
