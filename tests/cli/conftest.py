"""Runs commands in this process and as programs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

from mimikit.__main__ import main
from mimikit.protocol import paths
from mimikit.protocol.watch import FolderWatch, WakeBell

REPO = Path(__file__).parents[2]
PATIENCE_S = 30.0
SCRIPT: dict[str, object] = {
    "teller": [
        [
            {"call": "delegate", "args": {"prompt": "paint the fence"}},
            {"say": "I "},
            {"say": "plan that."},
        ],
        [{"say": "The fence is painted."}],
        [{"say": "你好，世界"}],
    ],
    "planner": [
        [
            {
                "call": "needs_input",
                "args": {"question": "Which colour?", "options": ["red", "blue"], "timeout": 600},
            }
        ],
        [{"call": "delegate", "args": {"prompt": "brush", "title": "paint"}}],
    ],
    "worker": [
        [
            {"event": "command", "text": "brush --blue"},
            {"event": "output", "text": "stroke\n"},
            {"say": "painted"},
        ]
    ],
}


def clean_environment(**more: str) -> dict[str, str]:
    """Our environment without variables that affect the commands."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MIMIKIT_", "LC_", "PYTEST")) and key not in ("LANG", "PORT")
    }
    return kept | {"PYTHONPATH": str(REPO), "LANG": "C.UTF-8"} | more


def argv(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "mimikit", *arguments]


@dataclass
class Place:
    """A workspace, and mimikit as a program in it."""

    workspace: Path
    environment: dict[str, str]
    script: Path | None = None
    """The script of the consumer's engine `scripted`."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.workspace / ".mimikit"

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv(*arguments),
            cwd=self.workspace,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a long-running command; both of its streams are read from stdout."""
        return self._start(argv(*arguments))

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def start_consumer(self) -> subprocess.Popen[str]:
        """Start a consumer and wait for its first heartbeat."""
        command = argv("consumer")
        if self.script is not None:
            module = "tests.support.scripted_consumer"
            command = [sys.executable, "-P", "-m", module, str(self.script), str(self.workspace)]
        process = self._start(command)
        self.until(lambda: self.health_of(process.pid), "expected a heartbeat of the consumer")
        return process

    def health_of(self, pid: int) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.state / paths.HEALTH).read_text())["pid"] == pid
        return False

    def until(self, holds: Callable[[], object], complaint: str, folder: str = "") -> None:
        """Wait for a condition on files."""
        bell = WakeBell()
        self.state.mkdir(mode=0o700, exist_ok=True)
        watch = FolderWatch(self.state)
        watch.watch(folder, lambda _names: bell.ring())
        deadline = time.monotonic() + PATIENCE_S
        try:
            while not holds():
                assert time.monotonic() < deadline, complaint
                bell.wait(0.2)
        finally:
            watch.close()

    def end_all(self) -> None:
        for process in self.started:
            with contextlib.suppress(psutil.NoSuchProcess):
                family = psutil.Process(process.pid).children(recursive=True)
                for member in [psutil.Process(process.pid), *family]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        member.kill()
            process.wait(PATIENCE_S)
            if process.stdout is not None:
                process.stdout.close()


def scripted(folder: Path, script: dict[str, object] = SCRIPT) -> Place:
    """A workspace whose engines play a script."""
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    seats = ("ROLES__TELLER", "ROLES__PLANNER", "PROFILES__STANDARD")
    engines = {f"MIMIKIT_{seat}__ENGINE": "scripted" for seat in seats}
    return Place(folder, clean_environment(MIMIKIT_DURABILITY="fast", **engines), path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A fresh workspace; everything started in it is ended."""
    found = Place(tmp_path, clean_environment(MIMIKIT_DURABILITY="fast"))
    yield found
    found.end_all()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A workspace with a consumer, shared by the tests of a file."""
    found = Place(tmp_path_factory.mktemp("busy"), clean_environment(MIMIKIT_DURABILITY="fast"))
    found.start_consumer()
    yield found
    found.end_all()


def read_line(process: subprocess.Popen[str], containing: str) -> str:
    """The next line of a program's output that contains a text."""
    assert process.stdout is not None
    seen: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # Lines are read one by one: nothing is ever left in the reader's own buffer unseen.
        is_there = wait_to_read(process.stdout.fileno(), deadline)
        assert is_there, f"expected a line with {containing!r}, got {''.join(seen)!r}"
        line = read_unbuffered(process.stdout.fileno())
        assert line, f"expected a line with {containing!r}, got the end after {''.join(seen)!r}"
        seen.append(line)
        if containing in line:
            return line


def wait_to_read(descriptor: int, deadline: float) -> bool:
    """Whether there is something to read before a monotonic time comes."""
    waiting = select.poll()  # unlike select it takes descriptors of any number
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(max(deadline - time.monotonic(), 0) * 1000))


def read_unbuffered(descriptor: int) -> str:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            break
        line += byte
    return line.decode()


def all_end(processes: list[psutil.Process], within_s: float) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=within_s)
    return not alive


Cli = Callable[..., Result]


@pytest.fixture
def on_busy(busy: Place, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return _runner(monkeypatch, busy.workspace)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return _runner(monkeypatch, tmp_path)


def _runner(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Cli:
    for name in [*os.environ]:
        if name.startswith(("MIMIKIT_", "LC_")) or name in ("LANG", "PORT", "NO_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MIMIKIT_DURABILITY", "fast")
    monkeypatch.setenv("MIMIKIT_CODEX__PATH", "/nowhere/codex")  # its version is not asked
    monkeypatch.chdir(folder)

    def run(*arguments: str, text: str | None = None, color: bool = False) -> Result:
        return CliRunner().invoke(main, list(arguments), input=text, color=color)

    return run


@pytest.fixture
def kept_signals() -> Iterator[None]:
    """Restore the signal handlers after the test."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
