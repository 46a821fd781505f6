"""Starting, stopping and dying: of consumer, page and the parent of both."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.engines.process_marks import MARK, state_id
from mimikit.protocol import ids
from mimikit.protocol.models import time_text
from tests.process.world import World, children, is_alive, stretched, until, wait_ended
from tests.support.runs import alive, tag

pytestmark = pytest.mark.needs_platform("linux")

Measure: TypeAlias = Callable[[str, float], None]

LAST_LINE = "Ctrl-C ends both."
IDLE_STOP_S = 3.0
"""Stopping while idle shall take 2 s at most; the figure is shown, a busy machine is forgiven."""


@pytest.fixture
def measure(record_property: Callable[[str, object], None]) -> Measure:
    """Lists a time at the end of the test run."""
    times: list[tuple[str, str]] = []
    record_property("measured", times)
    return lambda name, seconds: times.append((f"{name}, s", f"{seconds:.2f}"))


def start_up(world: World) -> subprocess.Popen[bytes]:
    """Start page and consumer under one parent."""
    up = world.spawn("up", "--port", str(world.port))
    until(lambda: LAST_LINE in world.said("up"), "up is up", facts=lambda: world.said("up"))
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


def test_a_second_consumer_is_refused_and_names_the_first(world: World, measure: Measure) -> None:
    first = world.start_consumer()
    begun = time.monotonic()
    second = world.run("consumer")
    took_s = time.monotonic() - begun
    measure("second consumer refused", took_s)
    assert second.returncode == 1
    assert f"process {first.pid} " in second.stderr
    assert "Traceback" not in second.stderr
    assert took_s <= stretched(1.5)
    assert world.is_beating(first)


def test_a_second_up_is_refused_and_names_the_consumer(world: World) -> None:
    first = world.start_consumer()
    second = world.run("up", "--port", str(world.port))
    assert second.returncode == 1
    assert f"process {first.pid} " in second.stderr
    assert not world.is_serving()


def test_runs_of_a_killed_consumer_do_not_hold_its_lock(world: World) -> None:
    world.settings["COMMAND__SANDBOX"] = "off"  # in the sandbox none lives on
    consumer = world.start_consumer()
    number = run_long(world)
    # Stopped, it lives on: what stands before it ends it else, at times before one can look.
    for pid in (consumer.pid, *alive(number)):
        os.kill(pid, signal.SIGSTOP)
    consumer.kill()
    consumer.wait()
    assert alive(number)
    world.start_consumer()


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_up_and_both_its_processes(
    world: World, measure: Measure, number: signal.Signals
) -> None:
    up = start_up(world)
    below = children(up.pid)
    assert len(below) >= 3  # the consumer, the page, its worker
    begun = time.monotonic()
    up.send_signal(number)
    assert up.wait(30) == 0
    took_s = time.monotonic() - begun
    measure(f"up ended by {number.name} while idle", took_s)
    assert [child.pid for child in below if is_alive(child.pid)] == []
    assert took_s <= stretched(IDLE_STOP_S)
    assert (world.record("runtime.json") or {})["starts"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_idle_consumer_ends_at_once(
    world: World, measure: Measure, number: signal.Signals
) -> None:
    consumer = world.start_consumer()
    begun = time.monotonic()
    consumer.send_signal(number)
    assert consumer.wait(30) == 0
    took_s = time.monotonic() - begun
    measure(f"idle consumer ended by {number.name}", took_s)
    assert took_s <= stretched(IDLE_STOP_S)
    assert world.record("health.json") is None
    assert (world.record("runtime.json") or {})["starts"] == []


def test_a_signal_before_the_consumer_serves_ends_it_cleanly(world: World) -> None:
    consumer = world.start_consumer(wait=False)
    until((world.state / "consumer.lock").exists, "the consumer has its lock")
    consumer.terminate()
    assert consumer.wait(30) == 0
    assert "Traceback" not in world.said("consumer")
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


def test_a_second_signal_ends_the_runs_at_once(world: World) -> None:
    up = start_up(world)
    number = run_long(world)
    until(lambda: (world.record("health.json") or {}).get("live"), "the consumer says that it runs")
    up.terminate()
    until(lambda: "has 10 s to finish" in world.said("up"), "up gives the run its time")
    begun = time.monotonic()
    up.terminate()
    assert up.wait(30) == 0
    assert time.monotonic() - begun <= stretched(4)
    assert alive(number) == []
    assert (world.result("long") or {})["failureReason"] == "killed"


# ---- dying ---------------------------------------------------------------------------------


def test_both_processes_end_when_their_parent_is_killed(world: World, measure: Measure) -> None:
    world.settings |= {"LIMITS__SHUTDOWN_TIMEOUT_S": 1}
    up = start_up(world)
    number = run_long(world)
    below = [child.pid for child in children(up.pid)]
    begun = time.monotonic()
    up.kill()
    up.wait()
    assert wait_ended(below, 30), world.said("up")
    measure(
        "both ended after their parent was killed, 1 s given to a run", time.monotonic() - begun
    )
    assert alive(number) == []
    assert (world.record("runtime.json") or {})["starts"] == [], "the consumer ended cleanly"


@pytest.mark.parametrize("part", ["consumer", "web"])
def test_a_part_that_is_killed_is_started_again(world: World, measure: Measure, part: str) -> None:
    up = start_up(world)
    killed = part_of(up, part)
    below = [child.pid for child in killed.children(recursive=True)]
    begun = time.monotonic()
    killed.kill()
    assert world_answers(world, "msg-after", "hello") <= 30
    other = until(lambda: part_of(up, part).pid != killed.pid, "another has its part")
    measure(f"up's {part} killed; a message then sent is answered", time.monotonic() - begun)
    assert other
    assert wait_ended(below, 10), "what the killed one had started is gone"
    up.terminate()
    assert up.wait(30) == 0


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
    assert why in world.said("consumer")
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


def test_a_consumer_that_slept_goes_on(world: World) -> None:
    consumer = world.start_consumer()
    world.start_web()
    consumer.send_signal(signal.SIGSTOP)
    assert world.post("/api/input", {"id": "msg-1", "text": "hello"}).status == 202
    world.drop("job", {"prompt": "echo awake", "profile": "command"})
    assert world.replies("msg-1") == []
    consumer.send_signal(signal.SIGCONT)
    until(lambda: world.replies("msg-1"), "the message is answered")
    until(lambda: world.told("job"), "the task is done and told")


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


def test_only_runs_of_a_dead_consumer_of_this_state_are_ended_at_the_start(world: World) -> None:
    first = world.start_consumer()
    first.terminate()
    assert first.wait(30) == 0
    own = state_id(world.state)
    dead = f"{first.pid}.1"
    living = f"{os.getpid()}.{ids.own_start_time()}"
    spared = [
        stranger(world),
        stranger(world, **{MARK: f"0123456789abcdef:job:{dead}:1"}),
        stranger(world, **{MARK: f"{own}:job:{living}:1"}),
    ]
    ended = stranger(world, **{MARK: f"{own}:job:{dead}:1"})
    try:
        world.start_consumer()
        assert ended.wait(10) == -signal.SIGTERM
        assert [is_alive(process.pid) for process in spared] == [True, True, True]
    finally:
        for process in [*spared, ended]:
            process.kill()
            process.wait()


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


_HEAPS = """
import ctypes, sys, threading
from mimikit import state

if "little" in sys.argv:
    state.limit_malloc_arenas()
together = threading.Barrier(20)

def work():
    together.wait()
    held = [b"x" * 5000 for _ in range(2000)]
    together.wait()

threads = [threading.Thread(target=work) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


def test_threads_that_come_and_go_share_two_heaps(tmp_path: Path) -> None:
    heaps: dict[str, int] = {}
    for how in ("plain", "little"):
        told = tmp_path / how
        subprocess.run([sys.executable, "-c", _HEAPS, str(told), how], check=True, timeout=60)
        heaps[how] = told.read_text().count("<heap nr=")
    assert heaps["little"] <= 2 < heaps["plain"]


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
    assert "locked by a program" not in world.said("consumer")


def test_a_clean_stop_says_when_it_was_so_that_a_jump_is_noticed_at_the_start(
    world: World,
) -> None:
    world.start_consumer().terminate()
    assert world.consumer is not None
    assert world.consumer.wait(30) == 0
    assert world.record("health.json") is None
    runtime = world.record("runtime.json") or {}
    seen = datetime.fromisoformat(runtime["seenAt"])
    assert abs(SystemClock().now() - seen) < timedelta(minutes=1)
    # As if the clock had gone eight days ahead since.
    world.put("runtime.json", runtime | {"seenAt": time_text(seen - timedelta(days=8))})
    world.start_consumer()
    told = [line for line in world.log() if line["event"] == "clock_jumped"]
    assert [round(line["seconds"] / 86400) for line in told] == [8]
