"""Starting, stopping and dying: of consumer, page and the parent of both."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest

from mimikit.protocol import ids
from tests.process.world import World, children, is_alive, stretched, until, wait_ended
from tests.support.runs import alive, tag

pytestmark = pytest.mark.needs_platform("linux")

Measure: TypeAlias = Callable[[str, float], None]

LAST_LINE = "Ctrl-C ends both."


@pytest.fixture
def measure(record_property: Callable[[str, object], None]) -> Measure:
    """Lists a time at the end of the test run."""
    times: list[tuple[str, str]] = []
    record_property("measured", times)
    return lambda name, seconds: times.append((f"{name}, s", f"{seconds:.2f}"))


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


# ---- one consumer for a state folder --------------------------------------------------------


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


def test_a_run_is_ended_by_the_stop_and_recorded_and_told(world: World, measure: Measure) -> None:
    world.settings |= {"LIMITS__SHUTDOWN_TIMEOUT_S": 1}
    consumer = world.start_consumer()
    number = run_long(world)
    begun = time.monotonic()
    consumer.terminate()
    assert consumer.wait(30) == 0
    measure("consumer ended with a run that would go on, 1 s given", time.monotonic() - begun)
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


def test_both_processes_end_when_their_parent_is_killed(world: World, measure: Measure) -> None:
    world.settings |= {"LIMITS__SHUTDOWN_TIMEOUT_S": 1}
    up = start_up(world)
    number = run_long(world)
    below = [child.pid for child in children(up.pid)]
    begun = time.monotonic()
    up.kill()
    up.wait()
    assert wait_ended(below, 30), world.output("up")
    measure(
        "both ended after their parent was killed, 1 s given to a run", time.monotonic() - begun
    )
    assert alive(number) == []
    assert (world.record("runtime.json") or {})["starts"] == [], "the consumer ended cleanly"


def world_answers(world: World, id_: str, text: str) -> float:
    """Send a message until it is accepted, and wait for its reply; gives how long that took."""
    begun = time.monotonic()

    def is_accepted() -> bool:
        try:
            return world.post("/api/input", {"id": id_, "text": text}).status == 202
        except OSError:
            return False

    until(is_accepted, "the message is accepted")
    until(lambda: world.replies(id_), "the message is answered", facts=world.facts)
    return time.monotonic() - begun


def test_three_crashes_make_tasks_rest_while_messages_are_answered(world: World) -> None:
    world.start_web()
    for _ in range(3):
        consumer = world.start_consumer()
        consumer.kill()
        consumer.wait()
    resting = world.start_consumer()
    world.drop("job", {"prompt": "echo rested", "profile": "command"})
    assert world_answers(world, "msg-1", "hello") <= stretched(3)
    why = "asks wait for 30 s after 3 crashes within 5 minutes; messages are answered"
    assert why in world.ask("GET", "/api/status").body["degraded"]
    assert why in " ".join(world.run("status").stdout.split())
    assert why in world.output("consumer")
    assert world.result("job") is None
    begun = time.monotonic()
    resting.terminate()
    assert resting.wait(30) == 0
    assert time.monotonic() - begun <= stretched(2)
    assert world.result("job") is None
    world.start_consumer()
    until(lambda: world.result("job"), "the task is done")


def test_a_message_is_taken_without_a_consumer_and_answered_once_there_is_one(world: World) -> None:
    world.start_web()
    body = {"id": "msg-1", "text": "hello"}
    assert [world.post("/api/input", body).status for _ in range(3)] == [202, 202, 202]
    health = world.ask("GET", "/healthz")
    assert (health.status, health.body["consumer"]) == (503, "down")
    world.start_consumer()
    until(lambda: world.replies("msg-1"), "the message is answered")
    assert world.post("/api/input", body).status == 202
    assert world.post("/api/input", {"id": "msg-2", "text": "hello"}).status == 202
    until(lambda: world.replies("msg-2"), "the next one is answered")
    said = [message["id"] for message in world.transcript() if message["role"] == "user"]
    assert said == ["msg-1", "msg-2"]


# ---- what is not ours stays as it is --------------------------------------------------------


def stranger(world: World, **environment: str) -> subprocess.Popen[bytes]:
    """A process that has nothing to do with the consumer that will start."""
    return subprocess.Popen(
        ["sleep", tag()], env={**os.environ, **environment}, start_new_session=True
    )


def test_a_state_folder_of_another_boot_ends_no_process(world: World) -> None:
    """As after a restore on another machine: a pid in it may be anybody's here."""
    first = world.start_consumer()
    first.terminate()
    assert first.wait(30) == 0
    foreign = stranger(world)
    other_boot = "00000000-0000-4000-8000-000000000000"
    who = {
        "pid": foreign.pid,
        "processStarted": ids.start_time(foreign.pid),
        "bootId": other_boot,
        "startedAt": "2026-01-01T00:00:00.000Z",
    }
    world.put("consumer.json", {**who, "host": "elsewhere"})
    mark = {**who, "turnId": "turn-old", "attempt": 1, "inputs": ["msg-old"]}
    world.put("turns/turn-old.1.started", mark)
    old = {"id": "msg-old", "text": "hello", "createdAt": "2026-01-01T00:00:00.000Z"}
    world.put("inbox/msg-old.json", old)
    world.put("worker/running/job.json", {"prompt": "true", "profile": "command"})
    try:
        world.start_consumer()
        until(lambda: world.told("job"), "the interrupted run is told", facts=world.facts)
        until(lambda: world.replies("msg-old"), "the message is answered")
        assert (world.result("job") or {})["failureReason"] == "killed"
        assert is_alive(foreign.pid)
    finally:
        foreign.kill()
        foreign.wait()


def test_temp_files_of_dead_writers_are_swept_and_a_living_ones_are_kept(world: World) -> None:
    first = world.start_consumer()
    first.kill()
    first.wait()
    boot = ids.boot_id()[:8]
    writer = stranger(world)
    started = ids.start_time(writer.pid)
    folders = ["", "inbox", "worker/queue", "turns/new", "history"]

    def temps(owner: str) -> list[Path]:
        made = [world.state / f / f".tmp-{owner}-{secrets.token_hex(6)}" for f in folders]
        for path in made:
            path.write_text('{"half')
        return made

    dead = temps(f"{first.pid}-1-{boot}") + temps(f"{writer.pid}-{started}-00000000")
    dead += temps(f"{writer.pid}-1-{boot}")
    living = temps(f"{writer.pid}-{started}-{boot}")
    try:
        world.start_consumer()
        assert [path for path in dead if path.exists()] == []
        assert [path for path in living if not path.exists()] == []
        assert world.names("corrupt", "") == []
    finally:
        writer.kill()
        writer.wait()


def test_the_page_is_not_taken_for_dead_by_a_consumer_that_starts(world: World) -> None:
    """The worker that writes is a fork: its temp files must bear its own start time."""
    world.start_web()
    worker = children(world.web.pid)[0] if world.web else None
    assert worker is not None
    seen: set[str] = set()
    for number in range(200):
        body = {"id": f"msg-{number}", "text": "hello"}
        world.post("/api/input", body, sent=lambda: seen.update(_temps(world)))
        if seen:
            break
    assert seen, "no write was seen under way"
    pid, started, *_ = seen.pop().removeprefix(".tmp-").split("-")
    assert (int(pid), started) == (worker.pid, ids.start_time(worker.pid))


def _temps(world: World) -> list[str]:
    begun = time.monotonic()
    while time.monotonic() - begun < 0.05:
        if found := [path.name for path in (world.state / "inbox").glob(".tmp-*")]:
            return found
    return []


def test_a_consumer_starts_at_once_while_doctor_looks_again_and_again(world: World) -> None:
    """Doctor puts a consumer together, which takes its time: it holds no lock meanwhile."""
    world.start_consumer().terminate()
    assert world.consumer is not None
    assert world.consumer.wait(30) == 0
    ended = {"at": "2026-01-01T00:00:00.000Z", "event": "ended", "status": "done", "traceId": "r"}
    lines = (json.dumps({**ended, "id": f"t{number}"}) for number in range(40_000))
    (world.state / "tasks/2026-01.jsonl").write_text("\n".join(lines) + "\n")
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            world.run("doctor")

    doctors = [threading.Thread(target=look) for _ in range(2)]
    for doctor in doctors:
        doctor.start()
    try:
        for _ in range(3):
            (world.state / "task_status.json").unlink(missing_ok=True)  # all is to be read again
            consumer = world.start_consumer()
            consumer.terminate()
            assert consumer.wait(30) == 0
    finally:
        over.set()
        for doctor in doctors:
            doctor.join()
    assert "locked by a program" not in world.output("consumer")
