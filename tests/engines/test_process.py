"""A run ends at its limits, with every process it started."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimikit.engines import process, process_marks
from mimikit.engines.base import CancelToken
from mimikit.engines.process import Program, ProgramOutcome
from mimikit.errors import EngineError
from tests.support.runs import alive, open_files, tag, zombies

pytestmark = [pytest.mark.needs_platform("linux"), pytest.mark.needs_program("pgrep", "setsid")]


class Heard:
    """Collects output; sets an event once `word` was printed."""

    def __init__(self, word: bytes = b"ready") -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.ready = threading.Event()
        self._word = word

    def __call__(self, stream: str, data: bytes) -> None:
        getattr(self, stream).extend(data)
        if self._word in self.stdout:
            self.ready.set()


def shell(line: str, folder: Path, **limits: Any) -> Program:
    limits = {"timeout_s": 60, "kill_after_s": 1, **limits}
    return Program(argv=("/bin/sh", "-c", line), cwd=folder, env=process.environment(), **limits)


def run(program: Program, heard: Heard | None = None, **more: Any) -> ProgramOutcome:
    cancel = more.pop("cancel", None) or CancelToken()
    return process.run(program, heard or Heard(), cancel, **more)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    name = tag()
    program = shell(f"trap '' TERM; while :; do sleep {name}; done", tmp_path, timeout_s=0.2)
    ended = run(program)
    assert (ended.stopped, ended.exit_code) == ("timeout", -9)
    assert alive(name) == []


def test_a_program_may_clean_up_on_sigterm(tmp_path: Path) -> None:
    line = "trap 'echo tidied > note; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    heard, cancel = Heard(), CancelToken()
    threading.Thread(target=lambda: heard.ready.wait(20) and cancel.cancel("canceled")).start()
    ended = run(shell(line, tmp_path, kill_after_s=10), heard, cancel=cancel)
    assert (ended.stopped, ended.exit_code) == ("canceled", 7)
    assert (tmp_path / "note").read_text() == "tidied\n"


def test_silence_ends_a_run_unless_it_is_busy(tmp_path: Path) -> None:
    silent = shell("sleep 5", tmp_path, idle_timeout_s=0.2)
    assert run(silent).stopped == "idle"
    brief = shell("sleep 0.8", tmp_path, idle_timeout_s=0.2)
    assert run(brief, busy=lambda: True).stopped is None


def test_output_keeps_a_run_alive(tmp_path: Path) -> None:
    line = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done"
    assert run(shell(line, tmp_path, idle_timeout_s=0.5)).stopped is None


def test_input_is_delivered_whole_and_closed(tmp_path: Path) -> None:
    heard = Heard()
    ended = run(shell("wc -c", tmp_path, stdin=b"x" * 1_000_000), heard)
    assert (ended.exit_code, bytes(heard.stdout).strip()) == (0, b"1000000")


def test_a_program_that_does_not_read_its_input_is_not_waited_for(tmp_path: Path) -> None:
    assert run(shell("exit 4", tmp_path, stdin=b"x" * 1_000_000)).exit_code == 4


@pytest.mark.parametrize(
    ("argv", "folder", "said"),
    [
        (("no-such-program",), ".", "no-such-program cannot be started"),
        (("true",), "nowhere", "expected a folder to work in"),
        (("/bin/sh", "-c", "echo \0"), ".", "null byte"),
        (("/bin/sh", "-c", "x" * 200_000), ".", "Argument list too long"),
    ],
    ids=["no program", "no folder", "null byte", "too long"],
)
def test_a_program_that_cannot_start_is_an_error(
    tmp_path: Path, argv: tuple[str, ...], folder: str, said: str
) -> None:
    program = Program(argv, tmp_path / folder, process.environment(), timeout_s=5)
    before = open_files()
    with pytest.raises(EngineError, match=said):
        run(program)
    assert not open_files() - before


def test_a_listener_that_fails_ends_the_run(tmp_path: Path) -> None:
    name = tag()

    def listener(_stream: str, _data: bytes) -> None:
        raise LookupError("the disk is full")

    program = shell(f"echo x; sleep {name} & sleep {name}", tmp_path)
    with pytest.raises(LookupError):
        process.run(program, listener, CancelToken())
    assert alive(name) == []


# ---- the environment -------------------------------------------------------------------------


def test_a_program_is_given_few_variables_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"MY_TOKEN": "1", "OPENAI_API_KEY": "2", "LC_SECRET": "3", "LC_TIME": "C", "OTHER": "5"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    env = process.environment()
    assert env["LC_TIME"] == "C"
    assert "PATH" in env
    assert not {"MY_TOKEN", "OPENAI_API_KEY", "LC_SECRET", "OTHER", "MIMIKIT_RUN"} & set(env)
    named = process.environment(names=["MY_TOKEN", "NOT_SET"], more={"EXTRA": "e"})
    assert (named["MY_TOKEN"], named["EXTRA"]) == ("1", "e")
    assert "NOT_SET" not in named


# ---- after a consumer's death ----------------------------------------------------------------

CONSUMER = """
import sys
from pathlib import Path
from types import FrameType
from mimikit.engines import process, process_marks
from mimikit.engines.base import CancelToken
state, line = Path(sys.argv[1]), sys.argv[2]
from mimikit.engines.process import Program
process_marks.mark_environment(state)
program = Program(("/bin/sh", "-c", line), Path("/"), process.environment(), timeout_s=60)
process.run(program, lambda _, data: print(data.decode(), flush=True), CancelToken())
"""


@pytest.fixture
def consumer(tmp_path: Path) -> Any:
    """Starts a process that runs a command line for a state folder, and waits for "ready"."""
    started: list[subprocess.Popen[str]] = []

    def start(line: str) -> subprocess.Popen[str]:
        program = [sys.executable, "-c", CONSUMER, str(tmp_path), line]
        child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        started.append(child)
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_leftovers_of_a_killed_consumer_are_found_and_killed(
    tmp_path: Path, consumer: Callable[[str], subprocess.Popen[str]]
) -> None:
    name = tag()
    dead = consumer(
        f"(setsid sleep {name} &); (setsid sh -c 'trap \"\" TERM; exec sleep {name}' &)\n"
        f"while [ $(pgrep -fc '^sleep {name}') -lt 2 ]; do :; done; echo ready; sleep {name}"
    )
    dead.kill()
    dead.wait()
    assert alive(name)
    begun = time.monotonic()
    assert process_marks.kill_orphans(process_marks.state_id(tmp_path))
    assert time.monotonic() - begun < 5
    assert alive(name) == []
    assert zombies() == []
    assert process_marks.kill_orphans(process_marks.state_id(tmp_path)) == []


def test_the_runs_of_a_living_consumer_and_of_other_states_are_spared(
    tmp_path: Path, consumer: Callable[[str], subprocess.Popen[str]]
) -> None:
    name = tag()
    living = consumer(f"(setsid sleep {name} &); echo ready; exec sleep {name}")
    assert process_marks.kill_orphans(process_marks.state_id(tmp_path)) == []
    living.kill()
    living.wait()
    (tmp_path / "other").mkdir()
    assert process_marks.kill_orphans(process_marks.state_id(tmp_path / "other")) == []
    assert alive(name)
    assert process_marks.kill_orphans(process_marks.state_id(tmp_path))
    assert alive(name) == []
