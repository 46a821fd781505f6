"""Real processes over a state folder of their own: a consumer, a web server, and their parent.

Nothing here reads the state with the product's code: what lies on the disk is read as plain JSON.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from mimikit.clock import SystemClock
from mimikit.engines.process_marks import MARK, state_id
from mimikit.protocol.models import time_text

T = TypeVar("T")

TOKEN = "a-token-for-tests-that-is-long-enough"
PATIENCE_S = 60.0
"""Default timeout of a wait, in seconds: only a failing test waits this long."""

_nap = threading.Event()


def until(
    look: Callable[[], T | None],
    what: str,
    *,
    timeout_s: float = PATIENCE_S,
    facts: Callable[[], object] = str,
) -> T:
    """What `look` finds, as soon as it finds something; `facts` are told when it does not."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}\n{facts()}"
        _nap.wait(0.01)
    return found


def stretched(limit_s: float) -> float:
    """A time limit scaled by the load of the machine."""
    return limit_s * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_ended(pids: list[int], timeout_s: float) -> bool:
    """Wait until these processes have ended (reaped or not); False when some have not."""
    deadline = time.monotonic() + timeout_s
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                left_s = max(0.0, deadline - time.monotonic())
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                if not poll.poll(left_s * 1000):
                    return False
            finally:
                os.close(handle)
    return True


def stack(pid: int) -> str:
    """Stacks of a process and its children, if py-spy is installed."""
    spy = shutil.which("py-spy")
    pids = [pid, *(child.pid for child in children(pid))] if spy else []
    looks = (
        subprocess.run([str(spy), "dump", "--pid", str(p)], capture_output=True, check=False)
        for p in pids
    )
    return "\n".join(look.stdout.decode(errors="replace") for look in looks)


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


DEFAULTS: dict[str, object] = {
    **dict.fromkeys(
        ("ROLES__TELLER__ENGINE", "ROLES__PLANNER__ENGINE", "PROFILES__STANDARD__ENGINE",
         "PROFILES__SPECIALIST__ENGINE"),
        "builtin",
    ),
    "TOKEN": TOKEN, "TIMEZONE": "UTC", "WEB__INPUTS_PER_MINUTE": 1_000_000,
}  # fmt: skip
"""Settings of the processes: builtin in every seat."""


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    body: dict[str, Any]


@dataclass
class World:
    """A workspace with its state folder, and the processes that were started over it."""

    root: Path
    settings: dict[str, object] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    state: Path = field(init=False)
    consumer: subprocess.Popen[bytes] | None = None
    web: subprocess.Popen[bytes] | None = None
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)
        self.state = self.workspace / ".mimikit"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    # ---- processes ----------------------------------------------------------------------

    def command(self, *arguments: str) -> list[str]:
        """The command line of a mimikit over this state."""
        places = ["--workspace", str(self.workspace), "--state", str(self.state)]
        return [sys.executable, "-P", "-m", "mimikit", *places, *arguments]

    def environment(self) -> dict[str, str]:
        """Ours without any setting of mimikit's, the world's settings, and a TMPDIR of its own."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("MIMIKIT_")}
        given = {f"MIMIKIT_{name}": str(value) for name, value in self.variables.items()}
        return {**own, **given, "TMPDIR": str(self.scratch)}

    @property
    def variables(self) -> dict[str, object]:
        """Settings by their environment variables, without the prefix."""
        return DEFAULTS | self.settings

    def spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a mimikit in a session of its own; what it says goes to `output`."""
        name = arguments[0]
        with (self.root / f"{name}.output").open("ab") as said:
            process = subprocess.Popen(
                self.command(*arguments),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.workspace,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a mimikit to its end."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            cwd=self.workspace,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def output(self, name: str) -> str:
        """All that the processes of this name printed."""
        path = self.root / f"{name}.output"
        return path.read_text(errors="replace") if path.exists() else ""

    def facts(self) -> str:
        """Diagnostics for a wait that timed out."""
        parts = {"consumer": self.consumer, "web": self.web}
        said = [
            f"{name}: exit code {process.poll()}, said {self.output(name)[-2000:]}"
            for name, process in parts.items()
            if process is not None
        ]
        stacks = [stack(process.pid) for process in parts.values() if process is not None]
        return "\n".join([*said, f"health: {self.record('health.json')}", *stacks])

    def start_consumer(self, *, wait: bool = True) -> subprocess.Popen[bytes]:
        self.consumer = process = self.spawn("consumer")
        if wait:
            until(lambda: self.is_beating(process), "the consumer serves", facts=self.facts)
        return process

    def is_beating(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether this consumer's supervisor ticks; fails when it has ended instead."""
        assert process.poll() is None, f"the consumer ended\n{self.output('consumer')}"
        return (self.record("health.json") or {}).get("pid") == process.pid

    def start_web(self, *, wait: bool = True) -> subprocess.Popen[bytes]:
        self.web = process = self.spawn("web", "--port", str(self.port))
        if wait:
            until(self.is_serving, "the page is served", facts=self.facts)
        return process

    def is_serving(self) -> bool:
        """Whether the server answers."""
        with suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/healthz").status in (200, 503)
        return False

    def close(self) -> None:
        """End everything that was started here, and what that started."""
        for process in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pid in self.of_runs():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def of_runs(self) -> list[int]:
        """Living processes that runs of this state started, as far as they kept its mark."""
        return marked(str(self.state))

    # ---- HTTP ---------------------------------------------------------------------------

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        timeout_s: float = 15,
        sent: Callable[[], None] = lambda: None,
    ) -> Answer:
        """One request on a connection of its own; `sent` is called before the answer is awaited."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        headers = {"Authorization": f"Bearer {TOKEN}", "Connection": "close"}
        if body is not None or method == "POST":
            headers["Content-Type"] = "application/json"
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, headers)
            sent()
            response = connection.getresponse()
            text = response.read()
            return Answer(response.status, json.loads(text) if text else {})
        finally:
            connection.close()

    def post(self, path: str, body: object = None, **more: Any) -> Answer:
        return self.ask("POST", path, {} if body is None else body, **more)

    # ---- the state folder ---------------------------------------------------------------

    def record(self, path: str) -> dict[str, Any] | None:
        """A JSON file of the state; None when it is not there."""
        try:
            return json.loads((self.state / path).read_bytes())
        except FileNotFoundError:
            return None

    def names(self, folder: str, suffix: str = ".json") -> list[str]:
        """The names of a folder's files, without their suffix; temp files are none."""
        try:
            found = [path.name for path in (self.state / folder).iterdir()]
        except FileNotFoundError:
            return []
        named = [n for n in found if n.endswith(suffix) and not n.startswith(".")]
        return sorted(name.removesuffix(suffix) for name in named)

    def lines(self, folder: str) -> list[dict[str, Any]]:
        """Every whole line of a folder's `.jsonl` files; a torn one is skipped."""
        found: list[dict[str, Any]] = []
        for name in self.names(folder, ".jsonl"):
            for line in (self.state / folder / f"{name}.jsonl").read_bytes().split(b"\n"):
                with suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def transcript(self) -> list[dict[str, Any]]:
        return self.lines("history")

    def ledger(self) -> list[dict[str, Any]]:
        return self.lines("tasks")

    def log(self) -> list[dict[str, Any]]:
        """Everything in the log, rotated or not."""
        return [line for line in self.lines("") if "timestamp" in line]

    def result(self, task_id: str) -> dict[str, Any] | None:
        """A Worker's result, once the task's end is complete."""
        if (self.state / f"worker/running/{task_id}.json").exists():
            return None
        return self.record(f"worker/results/{task_id}.json")

    def told(self, task_id: str) -> list[dict[str, Any]]:
        """The messages by which a task's result was told."""
        return [m for m in self.transcript() if m["role"] != "user" and task_id in m["taskIds"]]

    def replies(self, message_id: str) -> list[dict[str, Any]]:
        """The messages that answer one of the user's."""
        return [m for m in self.transcript() if message_id in m.get("inReplyTo", [])]

    def put(self, path: str, record: object) -> None:
        """Put a file into the state: written beside it, then moved, so nobody sees half a file."""
        beside = self.state.with_name(f"beside-{secrets.token_hex(8)}")
        beside.write_text(json.dumps(record))
        beside.rename(self.state / path)

    def drop(self, name: str, task: object, *, seat: str = "worker") -> None:
        """Put a file into a queue as a program would: whole, by a rename."""
        self.put(f"{seat}/queue/{name}.json", task)

    def order(self, action: str, target: str = "", *, wait: bool = True) -> dict[str, Any]:
        """Put an order into `commands/`, as page and terminal do; gives what came of it."""
        id_ = f"cmd-{secrets.token_hex(8)}"
        now = time_text(SystemClock().now())
        order = {"id": id_, "action": action, "target": target, "createdAt": now}
        self.put(f"commands/{id_}.json", order)
        if not wait:
            return {}
        return until(lambda: self.record(f"commands/done/{id_}.json"), "the order is carried out")

    def is_idle(self) -> bool:
        """Whether nothing waits, runs, or is to be told."""
        folders = ("inbox", "turns/new", "commands", "planner/results")
        folders += tuple(f"{seat}/{part}" for seat in ("planner", "worker") for part in _ON_THE_WAY)
        return not any(self.names(folder) for folder in folders)


_ON_THE_WAY = ("queue", "running")


def marked(state: str) -> list[int]:
    """Living processes whose environment names a run of this state folder."""
    if not Path(state).exists():
        return []
    mark = f"{MARK}={state_id(Path(state))}:".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return [pid for pid in found if is_alive(pid)]


def is_alive(pid: int) -> bool:
    """Whether a process runs: a zombie does not."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def children(pid: int) -> list[psutil.Process]:
    """All that stands below a process."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []
