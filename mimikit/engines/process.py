"""Runs one program for an engine, and ends it with all its children.

It is ended by its deadline, its idle timeout, too much output or a cancel. With bubblewrap its
process namespace ends with it, else its process group is killed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, TypeAlias

from mimikit.engines.base import CancelToken, Outcome, stop_outcome
from mimikit.engines.process_marks import MARK
from mimikit.errors import EngineError, ProgramLost, shortage_of

Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, bytes], None]
Tick: TypeAlias = Callable[[], float]

OUTPUT_FACTOR = 10
"""A program may print so many times `output_bytes` before it is ended."""
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "SHELL", "TMPDIR", MARK)
_NETWORK_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_CHUNK_BYTES = 65536
_POLL_S = 1.0
_REAP_TIMEOUT_S = 5.0


class ProgramFeed:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts = list[bytes]()
        self._wake: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        with self._lock:
            self._parts.append(data)
        self._wake()

    def attach(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def take(self) -> bytes:
        with self._lock:
            taken, self._parts = b"".join(self._parts), []
        return taken


@dataclass(frozen=True, slots=True)
class Program:
    """What to start, and its limits. Units: seconds, bytes."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    timeout_s: float
    idle_timeout_s: float | None = None
    kill_after_s: float = 5
    output_bytes: int = 10_000_000
    """A program that prints more is ended."""
    stdin: bytes = b""
    feed: ProgramFeed | None = None
    boxed: bool = False
    """Whether it runs under bubblewrap."""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    exit_code: int | None
    """Negative for a signal; None when it never ran."""
    stopped: str | None
    """Why we ended it: the cancel's reason, `timeout`, `idle` or `flood`."""


def environment(
    *, names: Iterable[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Allow-listed variables of this process, those in `names`, and `more`."""
    chosen = {
        name: value
        for name, value in os.environ.items()
        if (name in _PASSED_VARIABLES or name.startswith("LC_")) and not is_secret(name)
    }
    named = {name: os.environ[name] for name in names if name in os.environ}
    return {"PATH": os.defpath, **chosen, **named, **(more or {})}


def is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def owners_environment(keys: Iterable[str], more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without `keys` and MIMIKIT_*, for the owner's commands."""
    hidden = {*keys, *(name for name in os.environ if name.startswith("MIMIKIT_"))} - {MARK}
    return {name: value for name, value in os.environ.items() if name not in hidden} | dict(more)


def network_environment(names: Iterable[str]) -> dict[str, str]:
    """`environment` for a program that reaches its server, there or on this machine."""
    env = environment(names=(*_NETWORK_VARIABLES, *names))
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(filter(None, (env.get(name), "127.0.0.1", "localhost")))
    return env


def run(
    program: Program,
    on_output: OnOutput,
    cancel: CancelToken,
    *,
    busy: Callable[[], bool] = lambda: False,
    tick: Tick = lambda: math.inf,
) -> ProgramOutcome:
    """Run a program to its end. Raises EngineError if it cannot start.

    The callbacks run in this thread. `busy`: whether it may be silent now; `tick` is called
    regularly and returns the seconds until it wants the next call.
    """
    if cancel.reason:
        return ProgramOutcome(None, cancel.reason)
    return _Run(program, on_output, cancel, busy, tick).execute()


def output(
    argv: Sequence[str],
    *,
    cwd: Path = Path("/"),
    env: Mapping[str, str] | None = None,
    timeout_s: float = 20,
    cancel: CancelToken | None = None,
) -> tuple[int | None, str, str]:
    """Exit code, stdout and stderr of a program that belongs to no task.

    The exit code is None after a timeout, 127 if the program cannot start.
    """
    parts: dict[Stream, list[bytes]] = {"stdout": [], "stderr": []}
    program = Program(argv, cwd, env or environment(), timeout_s)
    cancel = cancel or CancelToken()
    try:
        ended = run(program, lambda stream, data: parts[stream].append(data), cancel)
    except (EngineError, ProgramLost) as error:
        return None if isinstance(error, ProgramLost) or shortage_of(error) else 127, "", str(error)
    stdout, stderr = (b"".join(data).decode(errors="replace") for data in parts.values())
    return None if ended.stopped else ended.exit_code, stdout, stderr


def stopped_outcome(ended: ProgramOutcome, program: Program, text: str = "") -> Outcome | None:
    """The outcome of a program that we ended; None if it ended by itself."""
    if ended.stopped is None:
        return None
    limits = {"idle": program.idle_timeout_s or 0, "flood": program.output_bytes}
    return stop_outcome(ended.stopped, text, limits.get(ended.stopped, program.timeout_s))


def signal_name(exit_code: int) -> str:
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


@dataclass
class _Run:
    program: Program
    on_output: OnOutput
    cancel: CancelToken
    busy: Callable[[], bool]
    tick: Tick
    _stopped: str | None = None
    _kill_at: float | None = None
    _exited: bool = False
    _read_bytes: int = 0

    def execute(self) -> ProgramOutcome:
        program = self.program
        with contextlib.ExitStack() as stack:
            try:
                self._selector = stack.enter_context(selectors.DefaultSelector())
                self._waker, self._alarm = map(stack.enter_context, socket.socketpair())
            except OSError as error:
                raise EngineError(f"no program can be started: {error.strerror}") from error
            self._alarm.setblocking(False)
            self._selector.register(self._waker, selectors.EVENT_READ, self._on_wake)
            self._unwritten = memoryview(program.stdin)
            self._idle_s = math.inf if program.idle_timeout_s is None else program.idle_timeout_s
            earlier, self.cancel.has_begun = self.cancel.has_begun, True
            try:
                self._child = _start(program)
            except EngineError:
                self.cancel.has_begun = earlier
                raise
            try:
                try:
                    self._watch(stack)
                    self._loop()
                finally:
                    self._finish()
            except OSError as error:
                # An EngineError would mean that the program never started.
                raise ProgramLost(f"{program.argv[0]} was ended: {error!r}") from None
        return ProgramOutcome(self._child.returncode, self._stopped)

    def _watch(self, stack: contextlib.ExitStack) -> None:
        """Register output, input, the child's exit and the cancel with the selector."""
        self._started_at = self._last_output_at = time.monotonic()
        named: tuple[Stream, ...] = ("stdout", "stderr")
        for name, pipe in zip(named, (self._child.stdout, self._child.stderr), strict=True):
            if pipe:
                stack.callback(pipe.close)
                os.set_blocking(pipe.fileno(), False)
                read = functools.partial(self._read, name, pipe)
                self._selector.register(pipe, selectors.EVENT_READ, read)
        if stdin := self._child.stdin:
            stack.callback(_close, stdin)
            os.set_blocking(stdin.fileno(), False)
            if self.program.stdin:
                write = functools.partial(self._write, stdin)
                self._selector.register(stdin, selectors.EVENT_WRITE, write)
            if (feed := self.program.feed) is not None:
                feed.attach(self._wake)
                self._wake()  # input may be queued already
        try:
            handle = os.pidfd_open(self._child.pid)
        except (OSError, AttributeError):  # no pidfd here (macOS): a thread waits for it

            def wait() -> None:
                self._child.wait()
                self._wake()

            threading.Thread(target=wait, daemon=True).start()
        else:
            stack.callback(os.close, handle)
            self._selector.register(handle, selectors.EVENT_READ, self._on_exit)
        self.cancel.on_cancel(lambda _reason: self._wake())

    def _loop(self) -> None:
        """Handle events until the child has exited, or ignores SIGTERM for too long."""
        while not self._exited and not (self._kill_at and time.monotonic() >= self._kill_at):
            deadline = self._started_at + self.program.timeout_s
            next_at = self._kill_at or min(deadline, self._last_output_at + self._idle_s)
            wait_s = max(0.0, min(_POLL_S, self.tick(), next_at - time.monotonic()))
            for key, _ in self._selector.select(wait_s):
                key.data()
            if self._exited or self._stopped is not None:
                continue
            if (reason := self._limit(time.monotonic())) is not None:
                self._stopped = reason
                self._kill_at = time.monotonic() + self.program.kill_after_s
                self._terminate()

    def _terminate(self) -> None:
        """Send SIGTERM; in a box to the programs in it, as bubblewrap itself would kill them."""
        inner = _descendants(self._child.pid)[1:] if self.program.boxed else []
        for pid in inner:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
        if not inner:
            self._signal_group(signal.SIGTERM)

    def _limit(self, now: float) -> str | None:
        if self.cancel.reason:
            return self.cancel.reason
        if now >= self._started_at + self.program.timeout_s:
            return "timeout"
        if self._read_bytes > self.program.output_bytes:
            return "flood"
        if now >= self._last_output_at + self._idle_s:
            if not self.busy():
                return "idle"
            self._last_output_at = now
        return None

    def _finish(self) -> None:
        """Kill the process group, reap the child after that: its pid names the group."""
        self._signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(None if self._exited else _REAP_TIMEOUT_S)
        # Drain the pipes; bounded, as an escaped process may keep writing.
        for key in list(self._selector.get_map().values()):
            if key.fileobj in (self._child.stdout, self._child.stderr):
                for _ in range(64):
                    if not key.data():
                        break

    def _signal_group(self, signum: int) -> None:
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signum)

    def _read(self, name: Stream, pipe: IO[bytes]) -> bool:
        try:
            data = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(pipe)
            return False
        self._last_output_at = time.monotonic()
        room = max(0, self.program.output_bytes - self._read_bytes)
        self._read_bytes += len(data)
        if room:
            self.on_output(name, data[:room])
        return True

    def _write(self, stdin: IO[bytes]) -> None:
        try:
            written = os.write(stdin.fileno(), self._unwritten[:_CHUNK_BYTES])
        except BlockingIOError:
            return
        except OSError:  # it closed its input
            written = len(self._unwritten)
        self._unwritten = self._unwritten[written:]
        if not self._unwritten:
            self._selector.unregister(stdin)
            if self.program.feed is None:
                _close(stdin)

    def _feed(self) -> None:
        stdin, feed = self._child.stdin, self.program.feed
        if stdin is None or feed is None or not (more := feed.take()):
            return
        if not self._unwritten:
            write = functools.partial(self._write, stdin)
            self._selector.register(stdin, selectors.EVENT_WRITE, write)
        self._unwritten = memoryview(bytes(self._unwritten) + more)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._alarm.send(b"!")

    def _on_wake(self) -> None:
        self._waker.recv(1024)
        self._feed()
        if self._child.returncode is not None:
            self._exited = True

    def _on_exit(self) -> None:
        self._exited = True


def _close(stdin: IO[bytes]) -> None:
    with contextlib.suppress(OSError):
        stdin.close()


def _start(program: Program) -> subprocess.Popen[bytes]:
    """Start a program in its own session. Raises EngineError."""
    cwd, has_input = program.cwd, bool(program.stdin) or program.feed is not None
    try:
        return subprocess.Popen(
            program.argv,
            cwd=cwd,
            env=program.env,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if not shortage_of(error) and not cwd.is_dir():
            raise EngineError(f"expected a folder to work in, got none at {cwd}; make it") from None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise EngineError(f"{program.argv[0]} cannot be started: {reason}") from error


def _descendants(pid: int) -> list[int]:
    """Parents first; empty without /proc."""
    found = list[int]()
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_bytes().split())
    return [*found, *(inner for child in found for inner in _descendants(child))]
