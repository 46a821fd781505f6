"""A process group starts, restarts and ends its processes, with all their children."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from mimikit.cli import process_group
from mimikit.cli.process_group import MAX_QUICK_DEATHS, ProcessEvent, ProcessGroup, restart_delay
from mimikit.clock import SystemClock
from tests.cli.conftest import all_end

pytestmark = pytest.mark.usefixtures("kept_signals")

PATIENT = "import signal; signal.pause()"
STUBBORN = (
    "import signal, sys\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "open(sys.argv[1], 'w').write('deaf')\n"
    "while True: signal.pause()"
)
COUNTING = "import sys; open(sys.argv[1], 'a').write('x'); sys.exit(3)"


def program(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def make(commands: dict[str, list[str]], said: list[str], **more: object) -> ProcessGroup:
    return ProcessGroup(commands, SystemClock(), said.append, **more)  # pyright: ignore[reportArgumentType]


def pid_of(group: ProcessGroup, name: str) -> int | None:
    process = group._children[name].process
    return process.pid if process else None


def stubborn(folder: Path) -> tuple[list[str], Path]:
    """A program that ignores SIGTERM, and the fifo that it writes to once it does."""
    fifo = folder / "deaf"
    os.mkfifo(fifo)
    return program(STUBBORN, str(fifo)), fifo


def living(group: ProcessGroup, *names: str) -> list[psutil.Process]:
    return [psutil.Process(pid) for name in names if (pid := pid_of(group, name))]


def test_a_signal_ends_every_process() -> None:
    group = make({"a": program(PATIENT), "b": program(PATIENT)}, said := [])
    group.start()
    processes = living(group, "a", "b")
    os.kill(os.getpid(), signal.SIGHUP)
    group.supervise()
    group.end(grace_s=20)
    assert all_end(processes, within_s=5)
    assert said == []


def test_a_process_that_dies_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_group, "FIRST_DELAY_S", 0.01)
    group = make({"a": program(PATIENT)}, said := [])
    group.start()
    first = pid_of(group, "a")
    assert first is not None
    os.kill(first, signal.SIGKILL)
    event = group.next_event(20)
    assert event == ProcessEvent("died", "a", -signal.SIGKILL)
    group._plan_restart(group._children["a"], -signal.SIGKILL)
    assert said == ["The a was ended by SIGKILL; it restarts in 0.01 s."]
    due = ProcessEvent("start", "a")
    assert group.next_event(20) == due
    for event in (due, ProcessEvent("stop")):
        group._events.put(event)
    group.supervise()
    assert pid_of(group, "a") not in (None, first)
    group.end(grace_s=20)


def test_after_five_quick_deaths_a_restart_is_delayed_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "FIRST_DELAY_S", 0.001)
    ledger = tmp_path / "lives"
    group = make({"a": program(COUNTING, str(ledger)), "b": program(PATIENT)}, said := list[str]())
    group.start()
    for _ in range(MAX_QUICK_DEATHS):
        event = group.next_event(20)
        if event == ProcessEvent("start", "a"):
            group._launch(group._children["a"])
            event = group.next_event(20)
        assert event is not None
        assert event.name == "a"
        group._plan_restart(group._children["a"], event.code)
    assert ledger.read_text() == "x" * MAX_QUICK_DEATHS
    assert "exit code 3" in said[-1]
    assert "restarts in 60 s. `mimikit doctor`" in said[-1]
    assert pid_of(group, "b") is not None
    group.end(grace_s=5)


def test_the_restart_delay_doubles_up_to_a_limit() -> None:
    assert [restart_delay(deaths) for deaths in range(1, 7)] == [1, 2, 4, 8, 60, 60]


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    command, fifo = stubborn(tmp_path)
    group = make({"a": command}, said := [])
    group.start()
    assert fifo.read_text() == "deaf"
    processes = living(group, "a")
    group.end(grace_s=0.2)
    assert all_end(processes, within_s=5)
    assert said[-1:] == ["Ending by force."]


def test_a_second_signal_hurries_and_a_third_kills(tmp_path: Path) -> None:
    command, fifo = stubborn(tmp_path)
    group = make({"a": command}, said := [], fast_signals={"a": signal.SIGTERM})
    group.start()
    assert fifo.read_text() == "deaf"
    processes = living(group, "a")
    group._events.put(ProcessEvent("stop"))
    group._events.put(ProcessEvent("stop"))
    group.end(grace_s=60)
    assert all_end(processes, within_s=5)
    assert said == ["Ending at once.", "Ending by force."]


def test_killing_includes_grandchildren(tmp_path: Path) -> None:
    """As with gunicorn's workers, whose parent is killed first."""
    fifo = tmp_path / "ready"
    os.mkfifo(fifo)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    inner = deaf + "time.sleep(60)"
    outer = (
        deaf + "import subprocess, sys\n"
        f"inner = subprocess.Popen([sys.executable, '-c', {inner!r}])\n"
        f"open({str(fifo)!r}, 'w').write(str(inner.pid))\n"
        "time.sleep(60)"
    )
    group = make({"a": program(outer)}, [])
    group.start()
    processes = [*living(group, "a"), psutil.Process(int(fifo.read_text()))]
    group.end(grace_s=0.2)
    assert all_end(processes, within_s=5)
