"""Starts of mimikit without the second that imports take: forks of a process that has made them.

A fork is the real program from its command line on, with a session, descriptors, environment,
folder and threads of its own. What is not as in a fresh interpreter: what imports and first uses
make (modules, models, patterns, the tools of roles) is there, the collector of garbage leaves that
alone, all forks hash alike, `/proc/PID/cmdline` and `environ` are those of the process that forked.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from mimikit.engines import process_tree

ROOT = Path(__file__).parents[2]
BESIDE = ("gunicorn.workers.gthread", "encodings.idna")
"""What a life imports beside all of mimikit."""


class Process(Protocol):
    """What `subprocess.Popen` and `Forked` have in common."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A process that was forked for us: our child, waited for as one of `subprocess` is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._take(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended by then.
        """
        if timeout is not None and self.poll() is None:
            handle = os.pidfd_open(self.pid)
            try:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                if not poll.poll(timeout * 1000):
                    raise subprocess.TimeoutExpired(str(self.pid), timeout)
            finally:
                os.close(handle)
        code = self._take(0)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:  # else its number may be another's by now
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _take(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                # Who looks after orphans has taken note of it: as with `subprocess` it is 0 then.
                pid, status = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class WarmServer:
    """One process that has imported mimikit, and forks; its forks become our children."""

    def __init__(self) -> None:
        process_tree.reap_orphans()  # from now on orphans are ours
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, said: Path
    ) -> Forked:
        """Start `mimikit ARGUMENTS` with this environment; what it says is added to `said`."""
        order = {
            "arguments": [*arguments],
            "environment": {**environment},
            "cwd": str(cwd),
            "said": str(said),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()  # its input closes: it ends


# ---- the process itself ---------------------------------------------------------------------


def main() -> None:
    """Fork for each line that comes; in the fork, be mimikit."""
    _make_all()
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"expected no thread before a fork, got {len(threads)}"
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        pid = _fork_twice()
        if pid == 0:
            _become(order)
            sys.modules["mimikit.__main__"].main(order["arguments"])
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _make_all() -> None:
    """Import everything, and make what the first use of it would."""
    import mimikit
    from mimikit.memory.terms import terms
    from mimikit.tools.planning import PlannerSession
    from mimikit.tools.session import TellerSession

    found = pkgutil.walk_packages(mimikit.__path__, "mimikit.")
    for name in (*(module.name for module in found), *BESIDE):
        importlib.import_module(name)
    for model in _models(BaseModel):
        if model.__module__.startswith("mimikit."):
            model.model_rebuild()
    PlannerSession.specs()
    TellerSession.specs()
    terms("warm")


def _models(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in root.__subclasses__():
        yield model
        yield from _models(model)


def _fork_twice() -> int:
    """0 in the grandchild, which leads a session and is an orphan; here its pid."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork():
            os._exit(0)
        os.setsid()
        os.write(writing, str(os.getpid()).encode())
        return 0
    os.close(writing)  # else a fork that failed would be waited for
    os.waitpid(child, 0)
    pid = int(os.read(reading, 32))
    os.close(reading)
    return pid


def _become(order: dict[str, Any]) -> None:
    """Take what a start gives: descriptors, environment, folder, command line."""
    said = os.open(order["said"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["cwd"])
    sys.argv[1:] = order["arguments"]


if __name__ == "__main__":
    main()
