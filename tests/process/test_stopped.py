"""A consumer that is stopped like a program in a shell, or with its whole machine, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.process.world import World, children, until

pytestmark = pytest.mark.needs_platform("linux")

STOPPED_S = 6.0
SHORT = "for n in $(seq 15); do sleep 0.1; done; echo well"
TIMEOUT_S = 5


def stand_still(pids: list[int]) -> None:
    """Stop these processes for longer than any run here may take."""
    for pid in pids:
        with suppress(ProcessLookupError):  # a short one may have ended
            os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    for pid in reversed(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def begin(world: World, name: str, line: str) -> int:
    """Have a fresh consumer begin a run; gives the consumer's pid."""
    consumer = world.start_consumer()
    ready = world.root / f"{name}.ready"
    prompt = f"touch {ready}; {line}"
    world.drop(name, {"prompt": prompt, "profile": "command", "timeout": TIMEOUT_S})
    until(ready.exists, "the run has begun", facts=world.facts)
    return consumer.pid


@pytest.mark.parametrize("with_its_run", [True, False])
def test_a_run_is_not_timed_out_for_the_time_nobody_ran(
    world: World, *, with_its_run: bool
) -> None:
    pid = begin(world, "t1", SHORT)
    runs = [child.pid for child in children(pid)] if with_its_run else []
    stand_still([pid, *runs])
    result = until(lambda: world.result("t1"), "the run has its result", facts=world.facts)
    assert (result["status"], result["failureReason"]) == ("done", None)
    assert result["result"]["text"].strip() == "well"


def test_a_run_over_its_time_is_ended_after_a_standstill_too(world: World) -> None:
    pid = begin(world, "t1", "sleep 60")
    stand_still([pid])
    began = time.monotonic()
    result = until(lambda: world.result("t1"), "the run has its result", facts=world.facts)
    assert result["failureReason"] == "timeout"
    assert time.monotonic() - began > 1.0  # it had the rest of its time


def test_a_stop_gives_a_run_its_time_though_nobody_ran_meanwhile(world: World) -> None:
    world.settings["LIMITS__SHUTDOWN_TIMEOUT_S"] = 5
    pid = begin(world, "t1", SHORT)
    assert world.consumer is not None
    os.kill(pid, signal.SIGTERM)
    stand_still([pid, *(child.pid for child in children(pid))])
    assert world.consumer.wait(timeout=30) == 0
    assert (world.result("t1") or {}).get("status") == "done"


SILENT = """
import sys
from pathlib import Path
from mimikit.engines import process, process_marks
from mimikit.engines.base import CancelToken
from mimikit.engines.program import Program
line = "echo begun; sleep 1; echo well"
mark = process_marks.mark(None, "probe")
program = Program(["sh", "-c", line], Path("/"), process.environment(), mark, 60, idle_timeout_s=5)
ended = process.run(program, lambda _, data: print(data.decode(), flush=True), CancelToken())
print(ended.exit_code, ended.stopped)
"""


def test_nobody_is_found_silent_for_the_time_nobody_ran(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", "-c", SILENT]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "begun\n"
        stand_still([reader.pid, *(child.pid for child in children(reader.pid))])
        assert reader.stdout.read().split() == ["well", "0", "None"]
