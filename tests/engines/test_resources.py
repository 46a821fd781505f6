"""A run that takes too much memory or too many processes is ended; what runs beside it goes on."""

from __future__ import annotations

import math
import os
import sys
import threading
from pathlib import Path

import pytest

from mimikit.config import LimitSettings, Settings
from mimikit.engine_settings import CommandSettings
from mimikit.engines import process, process_table, process_tree, resources, sandbox
from mimikit.engines.base import Outcome
from mimikit.engines.program import Program
from mimikit.engines.resources import UNLIMITED, ResourceWatch, RunResources
from mimikit.engines.shell import ShellEngine
from mimikit.engines.staying_program import StayingProgram
from mimikit.notifications.courier import SendProcess
from tests.support.pace import within
from tests.support.runs import Ground, alive, ground, tag

pytestmark = pytest.mark.needs_platform("linux")

MANY = "for i in $(seq 60); do sleep {tag} & done; wait"


@pytest.fixture(params=["auto", "off"])
def boxed(request: pytest.FixtureRequest) -> str:
    """Whether runs are in the sandbox; without it something else has to end them whole."""
    if request.param == "auto" and sandbox.ask().can != "works":
        pytest.skip("no sandbox works here")
    return request.param


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return ground(tmp_path)


def run(here: Ground, line: str, boxed: str, **limits: float) -> Outcome:
    command = CommandSettings.model_validate({"sandbox": boxed})
    settings = Settings(limits=LimitSettings.model_validate(limits), command=command)
    return ShellEngine(settings).run(here.request(line))


@pytest.mark.fault(50)
def test_a_run_that_starts_without_end_is_ended_and_the_one_beside_it_is_not(
    here: Ground, boxed: str
) -> None:
    mark, outcomes = tag(), list[Outcome]()
    quiet = "while [ ! -e gate ]; do sleep 0.1; done; echo fine"
    other = threading.Thread(target=lambda: outcomes.append(run(here, quiet, boxed)))
    other.start()
    greedy = run(here, MANY.format(tag=mark), boxed, run_processes=30)
    (here.workspace / "gate").touch()
    other.join()
    assert (greedy.status, greedy.failure_reason) == ("failed", "error")
    assert greedy.error == "ended: it had more than 30 processes (limits.run_processes)"
    assert alive(mark) == []
    assert [outcome.text for outcome in outcomes] == ["fine\n"]


@pytest.mark.fault(50)
def test_a_run_that_eats_memory_is_ended(here: Ground, boxed: str) -> None:
    eats = f"""{sys.executable} -c 'import time; eaten = b"x" * 300_000_000; time.sleep(600)'"""
    outcome = run(here, f"echo begun; {eats}", boxed, run_memory_mb=200)
    assert (outcome.status, outcome.failure_reason) == ("failed", "error")
    assert outcome.error == "ended: it took more than 200 MB of memory (limits.run_memory_mb)"
    assert outcome.text == "begun\n"


def test_memory_that_forks_share_counts_once() -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    held = bytearray(100_000_000)
    held[::page] = b"x" * len(range(0, len(held), page))  # each page is one of its own
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(told, 1)
        os._exit(0)
    both = [entry for pid in (os.getpid(), child) if (entry := process_table.look(pid))]
    try:
        alone = resources._taken(both[:1], resources._private).memory
        assert resources._taken(both, resources._private).memory > alone + 90e6
        assert resources._taken(both, resources._proportional).memory < alone + 90e6
        roomy = ResourceWatch(RunResources(memory=alone + 90e6), lambda: both)
        assert roomy.excess() is None
        assert ResourceWatch(RunResources(memory=50e6), lambda: both).excess() == "memory"
        assert ResourceWatch(RunResources(processes=1), lambda: both).excess() == "processes"
    finally:
        os.write(tells, b"!")
        os.waitpid(child, 0)


def test_a_run_is_looked_at_only_where_the_machine_could_hold_so_much() -> None:
    def members() -> list[process_table.ProcessEntry]:
        raise AssertionError("this machine has not so many processes in all")

    assert ResourceWatch(RunResources(processes=10_000_000), members).excess() is None
    assert ResourceWatch(UNLIMITED, members).excess() is None


def test_a_look_is_not_repeated_at_once() -> None:
    looks = list[None]()
    watch = ResourceWatch(RunResources(processes=0), lambda: looks.append(None) or [])
    assert [watch.excess() for _ in range(100)] == [None] * 100
    assert len(looks) < 100


def test_a_run_may_take_three_quarters_of_the_machine_unless_told_otherwise() -> None:
    all_of_it = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = resources.most_of(LimitSettings())
    assert most.memory == pytest.approx(0.75 * all_of_it, rel=0.01)
    assert most.processes == 2000
    assert resources.most_of(LimitSettings(run_memory_mb=50)) == RunResources(50e6, 2000)
    assert RunResources() == UNLIMITED == RunResources(math.inf, math.inf)


def test_where_memory_is_out_the_kernel_ends_a_run_before_what_runs_it(
    here: Ground, boxed: str
) -> None:
    outcome = run(here, "cat /proc/self/oom_score_adj", boxed)
    assert int(outcome.text) > int(Path("/proc/self/oom_score_adj").read_text())


def test_what_can_not_be_looked_at_just_now_is_looked_at_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left() -> list[process_table.ProcessEntry]:
        raise OSError(24, "Too many open files")

    assert ResourceWatch(RunResources(processes=0), none_left).excess() is None
    monkeypatch.setattr(resources, "_sizes", lambda _path: {})
    assert resources._taken_by_all() == UNLIMITED


def test_a_program_that_stays_and_takes_too_much_says_so(here: Ground) -> None:
    line = "for i in $(seq 30); do sleep 600 & done; wait"
    program = Program(
        ["/bin/sh", "-c", line],
        here.workspace,
        process.environment(),
        process_tree.mark(here.state, "stays"),
        timeout_s=math.inf,
        most=RunResources(processes=9),
        kept=True,
    )
    stays = StayingProgram(program, "stays")
    stays.start()
    stays.wait(within(60))
    assert stays.ended == "ended: it had more than 9 processes (limits.run_processes)"


def test_one_that_sends_a_notification_is_no_leftover_of_a_run(here: Ground, boxed: str) -> None:
    sends = SendProcess()
    try:
        assert sends.wait()
        outcome = run(here, "sleep 60 & echo done", boxed)
        assert sends._process.poll() is None
    finally:
        sends.close()
    assert outcome.text == "done\n"
