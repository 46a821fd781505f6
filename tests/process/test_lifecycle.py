"""Starting, stopping and dying: of consumer, page and the parent of both."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from mimikit.errors import BadInput
from mimikit.state import find_state, open_state
from tests.process.world import World, children, stretched, until, wait_ended
from tests.support.runs import alive, tag

pytestmark = pytest.mark.needs_platform("linux")

LAST_LINE = "Ctrl-C ends both."


def start_up(world: World) -> subprocess.Popen[bytes]:
    """Start page and consumer under one parent."""
    up = world.spawn("up", "--port", str(world.port))
    until(lambda: LAST_LINE in world.output("up"), "up is up", facts=lambda: world.output("up"))
    until(world.is_serving, "the page is served")
    return up


def part_of(up: subprocess.Popen[bytes], name: str) -> psutil.Process:
    """The process that `up` started as this part of it."""

    def look() -> psutil.Process | None:
        for child in psutil.Process(up.pid).children():
            if child.status() != psutil.STATUS_ZOMBIE and name in child.cmdline():
                return child
        return None

    return until(look, f"up has a {name}")


def run_long(world: World, name: str = "long") -> str:
    """Drop a command that goes on for long, wait until it does; gives its tag."""
    number = tag()
    world.drop(name, {"prompt": f"sleep {number}", "profile": "command"})
    until(lambda: alive(number), "the command runs", facts=world.facts)
    return number


def test_a_state_folder_of_somebody_else_is_refused(world: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to somebody else")
    world.state.mkdir()
    os.chown(world.state, 54321, 54321)
    for name in ("consumer", "web"):
        refused = world.run(name)
        assert refused.returncode != 0
        assert "belongs to somebody else" in refused.stderr
    assert list(world.state.iterdir()) == []


# ---- stopping ------------------------------------------------------------------------------


def test_a_signal_before_the_consumer_serves_ends_it_cleanly(world: World) -> None:
    consumer = world.start_consumer(wait=False)
    until((world.state / "consumer.lock").exists, "the consumer has its lock")
    consumer.terminate()
    assert consumer.wait(30) == 0
    assert "Traceback" not in world.output("consumer")
    world.start_consumer()


def test_a_run_is_ended_by_the_stop_and_recorded_and_told(world: World) -> None:
    world.settings |= {"LIMITS__SHUTDOWN_TIMEOUT_S": 1}
    consumer = world.start_consumer()
    number = run_long(world)
    begun = time.monotonic()
    consumer.terminate()
    assert consumer.wait(30) == 0
    assert time.monotonic() - begun <= 1 + stretched(2)
    assert alive(number) == []
    result = world.result("long") or {}
    assert (result["status"], result["failureReason"], result["attempts"]) == (
        "failed",
        "killed",
        1,
    )
    world.start_consumer()
    until(lambda: world.told("long"), "the run's end is told")
    assert len(world.told("long")) == 1


def test_a_run_that_ends_in_its_time_is_not_cut_short_by_the_stop(world: World) -> None:
    consumer = world.start_consumer()
    ready, go = world.root / "ready", world.root / "go"
    line = f"touch {ready}; while ! [ -e {go} ]; do sleep 0.02; done; echo whole"
    world.drop("short", {"prompt": line, "profile": "command"})
    until(ready.exists, "the command runs")
    consumer.terminate()
    world.drop("late", {"prompt": "true", "profile": "command"})
    go.touch()
    assert consumer.wait(30) == 0
    result = world.result("short") or {}
    assert (result["status"], result["result"]["text"]) == ("done", "whole\n")
    late = world.result("late")  # done, if it was claimed before the signal came; else it waits
    assert late["status"] == "done" if late else world.names("worker/queue") == ["late"]


# ---- dying ---------------------------------------------------------------------------------


def test_both_processes_end_when_their_parent_is_killed(world: World) -> None:
    world.settings |= {"LIMITS__SHUTDOWN_TIMEOUT_S": 1}
    up = start_up(world)
    number = run_long(world)
    below = [child.pid for child in children(up.pid)]
    up.kill()
    up.wait()
    assert wait_ended(below, 30), world.output("up")
    assert alive(number) == []
    assert (world.record("runtime.json") or {})["seenAt"], "the consumer ended cleanly"


# ---- links on the way to the state folder: nobody leads it elsewhere by one of them ----------


@pytest.mark.parametrize("outer", [False, True], ids=["named", "by another link"])
def test_no_state_is_reached_by_a_link_that_a_worker_could_replace(
    world: World, outer: bool
) -> None:
    kept, link = world.root / "kept", world.workspace / "sub" / "link"
    link.parent.mkdir()
    world.state = link / "deep" / ".mimikit"
    if outer:
        (world.root / "way").symlink_to(world.workspace / "sub")
        world.state = world.root / "way" / "link" / "deep" / ".mimikit"
    link.symlink_to(os.path.relpath(kept, link.parent))
    for _ in range(2):  # nothing is made, so the second time is as the first
        done = world.run("init")
        assert done.returncode == 2
        assert f"{link} is a link in the workspace" in done.stderr
        assert f"--state {kept}/deep/.mimikit" in done.stderr
        assert not (kept / "deep" / ".mimikit").exists()
        kept.mkdir(exist_ok=True)
    world.state = kept / "deep" / ".mimikit"
    assert world.run("init").returncode == 0


def test_a_link_elsewhere_is_followed_once(tmp_path: Path) -> None:
    """Who started it goes on with what it led to then, and so does what `up` starts again."""
    kept, way, workspace = tmp_path / "kept", tmp_path / "way", tmp_path / "workspace"
    kept.mkdir()
    workspace.mkdir()
    way.symlink_to(kept)
    state = open_state(*find_state(way / ".mimikit", workspace))
    assert state.path == kept / ".mimikit"
    way.unlink()
    (way / ".mimikit" / "inbox").mkdir(parents=True)
    assert state.files.fs.is_in_place()


def test_a_link_in_the_place_of_the_state_is_still_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / ".mimikit").symlink_to(tmp_path / "kept")
    with pytest.raises(BadInput, match="not a link"):
        open_state(*find_state(None, tmp_path))
