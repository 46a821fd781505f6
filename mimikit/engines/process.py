"""Runs one program for an engine, from its start to the end of everything it started.

Output is passed on as it comes and cut where it is too much; a deadline, a limit of silence, of
memory and of processes, and a cancel end it. This module knows nothing of engines' protocols.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, get_args

from mimikit.engines import keeper, process_table, process_tree
from mimikit.engines.base import CancelToken, Outcome
from mimikit.engines.program import Program, ProgramOutcome, Stream
from mimikit.engines.resources import Excess, ResourceWatch
from mimikit.errors import EngineError, ProgramLost, shortage_of
from mimikit.protocol.watch import BoundedThread

OnOutput: TypeAlias = Callable[[Stream, bytes], None]
Tick: TypeAlias = Callable[[], float]

FLOOD = 10
"""Times the output that is shown after which an endless printer is ended."""
_PASSED_ON = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "SHELL", "TMPDIR")
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_CHUNK_BYTES = 65536
_LOOK_EVERY_S = 1.0
"""If the next look comes so much later, this process stood still: that is no time of the run's."""
_LEFTOVER_GRACE_S = 1.0
_PATIENCE_S = 5.0
_KEEPER = (sys.executable, "-I", "-S", keeper.__file__)
_FRONT = 2
"""A sandbox that holds nothing yet: bubblewrap, and what will be the first process in it."""


def environment(
    *, names: Iterable[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The few variables a program is given; secrets only if in `names` (of ours) or `more`."""
    chosen = {
        name: value
        for name, value in os.environ.items()
        if (name in _PASSED_ON or name.startswith("LC_")) and not _SECRET.search(name)
    }
    named = {name: os.environ[name] for name in names if name in os.environ}
    return {"PATH": os.defpath, **chosen, **named, **(more or {})}


def run(
    program: Program,
    on_output: OnOutput,
    cancel: CancelToken,
    *,
    busy: Callable[[], bool] = lambda: False,
    tick: Tick = lambda: math.inf,
) -> ProgramOutcome:
    """Run a program to its end, and end all it started; what it prints comes in this thread.

    `busy` tells whether it may be silent now (it waits for a tool). `tick` is called often, and
    gives the seconds after which it wants to be called again.

    Raises:
        EngineError: it can not be started.
    """
    if cancel.reason:
        return ProgramOutcome(None, cancel.reason)
    return _Run(program, on_output, cancel, busy, tick).carry_out()


def output(
    argv: Sequence[str],
    *,
    cwd: Path = Path("/"),
    env: Mapping[str, str] | None = None,
    timeout_s: float = 20,
) -> tuple[int | None, str, str]:
    """The exit code, output and complaints of a short run that belongs to no task.

    It is a run like any other, so what it leaves behind is ended. What takes too long, or finds too
    little of something to be started, has no exit code; what can not be started has a shell's.
    """
    said: dict[Stream, list[bytes]] = {"stdout": [], "stderr": []}
    program = Program(argv, cwd, env or environment(), process_tree.mark(None, "probe"), timeout_s)
    try:
        ended = run(program, lambda stream, data: said[stream].append(data), CancelToken())
    except (EngineError, ProgramLost) as error:
        return None if isinstance(error, ProgramLost) or shortage_of(error) else 127, "", str(error)
    stdout, stderr = (b"".join(parts).decode(errors="replace") for parts in said.values())
    return None if ended.stopped else ended.exit_code, stdout, stderr


def stopped_outcome(ended: ProgramOutcome, program: Program, text: str = "") -> Outcome | None:
    """The outcome of a run that was ended from here; None when it ended by itself."""
    if ended.stopped is None:
        return None
    if ended.stopped in ("canceled", "killed"):
        return Outcome.stopped(ended.stopped, text)
    memory_mb, processes = program.most.memory / 1e6, program.most.processes
    if ended.stopped == "flood":
        said = f"ended: it printed more than {program.output_bytes} bytes"
    elif ended.stopped == "memory":
        said = f"ended: it took more than {memory_mb:.0f} MB of memory (limits.run_memory_mb)"
    elif ended.stopped == "processes":
        said = f"ended: it had more than {processes:g} processes (limits.run_processes)"
    else:
        silent = ended.stopped == "idle"
        limit_s = program.idle_timeout_s if silent else program.timeout_s
        return late_outcome(limit_s or 0.0, text, silent=silent)
    return Outcome("failed", text, said, "error")


def late_outcome(limit_s: float, text: str = "", *, silent: bool = False) -> Outcome:
    """The outcome of a run that took too long, or was silent for so long."""
    said = f"ended: {'silent for' if silent else 'not done within'} {limit_s:g} s"
    return Outcome("failed", text, said, "timeout")


def signal_name(exit_code: int) -> str:
    """The name of the signal in subprocess's negative exit code."""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


class _Waker:
    """Wakes a waiting selector from another thread, until it is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = True
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def ring(self) -> None:
        with self._lock:
            if self._open:
                with contextlib.suppress(BlockingIOError):
                    os.write(self._writer, b"!")

    def close(self) -> None:
        with self._lock:
            self._open = False
            os.close(self.reader)
            os.close(self._writer)


@dataclass
class _Run:
    """One run. Lives in one thread."""

    program: Program
    on_output: OnOutput
    cancel: CancelToken
    busy: Callable[[], bool]
    tick: Tick
    _stopped: str | None = None
    _kill_at: float | None = None
    _exited: bool = False
    _read_bytes: int = 0
    _leftovers: tuple[int, ...] = ()

    def carry_out(self) -> ProgramOutcome:
        program = self.program
        with contextlib.ExitStack() as stack:
            try:
                self._selector = stack.enter_context(selectors.DefaultSelector())
                self._waker = _Waker()
            except OSError as error:
                raise EngineError(f"no program can be started: {error.strerror}") from error
            stack.callback(self._waker.close)
            self._selector.register(self._waker.reader, selectors.EVENT_READ, self._woken)
            self._is_kept = program.kept and sys.platform == "linux"
            front = [*_KEEPER, str(os.getpid())] if self._is_kept else []
            self._unwritten = memoryview(program.stdin)
            self._idle_s = math.inf if program.idle_timeout_s is None else program.idle_timeout_s
            earlier, self.cancel.has_begun = self.cancel.has_begun, True
            try:
                self._child = process_tree.spawn(
                    [*front, *program.argv],
                    cwd=program.cwd,
                    env=program.env,
                    mark=program.mark,
                    stdin=bool(program.stdin) or program.feed is not None,
                    given=() if program.boxed is None else (program.boxed,),
                )
            except EngineError:
                self.cancel.has_begun = earlier
                raise
            try:
                stack.callback(process_tree.release, self._child)
                self._family = process_tree.RunProcesses(self._child)
                self._resources = ResourceWatch(program.most, self._family.members)
                try:
                    self._watch(stack)
                    self._follow()
                finally:
                    self._finish()
            except (OSError, MemoryError, RuntimeError) as error:
                # No EngineError: it had begun, whatever there was too little of afterwards.
                process_tree.give_up(self._child)
                raise ProgramLost(f"{program.argv[0]} was ended: {error!r}") from None
        begun = True
        if program.boxed is not None and self._child.returncode == 1:
            # As bubblewrap ends that can make no sandbox; what runs in one has not this file.
            begun = b'"exit-code"' in os.pread(program.boxed, _CHUNK_BYTES, 0)
            self.cancel.has_begun = earlier or begun
        return ProgramOutcome(self._child.returncode, self._stopped, self._leftovers, begun)

    def _watch(self, stack: contextlib.ExitStack) -> None:
        """Let the selector wake on output, on the child's end and on a cancel."""
        self._begun = self._heard = self._looked = time.monotonic()
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
                feed.attach(self._waker.ring)
                self._waker.ring()  # it may hold something already
        try:
            handle = os.pidfd_open(self._child.pid)
        except (OSError, AttributeError):  # it can not be watched as a file: a thread waits for it

            def wait() -> None:
                self._child.wait()
                self._waker.ring()

            BoundedThread(wait).start()
        else:
            stack.callback(os.close, handle)
            self._selector.register(handle, selectors.EVENT_READ, self._noticed_exit)
        self.cancel.on_cancel(lambda _reason: self._waker.ring())

    def _follow(self) -> None:
        """Pass output on until the child has ended, or does not end when told to."""
        while not self._exited and not (self._kill_at and time.monotonic() >= self._kill_at):
            too_long = self._begun + self.program.timeout_s
            look_at = self._kill_at or min(too_long, self._heard + self._idle_s)
            wait_s = max(0.0, min(_LOOK_EVERY_S, self.tick(), look_at - time.monotonic()))
            found = self._selector.select(wait_s)
            if self._is_kept:  # what it started may have stopped the keeper
                self._signal_group(signal.SIGCONT)
            # By this time all is judged: what passes until the next look is seen there.
            now = time.monotonic()
            late_s, self._looked = now - self._looked - wait_s, now
            if late_s > _LOOK_EVERY_S:
                self._forgive(late_s)
            for key, _ in found:
                key.data()
            if late_s > _LOOK_EVERY_S:
                continue  # what has come meanwhile, an end above all, counts before any limit
            if not self._exited and self._stopped is None and (reason := self._limit(now)):
                self._stopped = reason
                if reason in get_args(Excess):  # there is no time to ask
                    if not self._is_kept:
                        self._signal_group(signal.SIGKILL)
                    process_table.kill_groups(self._family.members(), spared=self._child.pid)
                    self._kill_at = now
                    continue
                self._kill_at = time.monotonic() + self.program.kill_after_s
                # Who stands where is looked up before anything has ended.
                members = self._family.members()
                boxed = self.program.boxed is not None and len(members) > _FRONT
                if not boxed:
                    self._signal_group(signal.SIGTERM)
                own = self._child.pid
                told = [p for p in members if (p.pid if boxed else p.group) != own]
                process_table.send_all(told, signal.SIGTERM)

    def _forgive(self, late_s: float) -> None:
        """This process was stopped so long: neither limit nor grace runs meanwhile."""
        self._begun += late_s
        self._heard += late_s
        if self._kill_at is not None:
            self._kill_at += late_s

    def _limit(self, now: float) -> str | None:
        """Why the run may not go on."""
        if self.cancel.reason:
            return self.cancel.reason
        if now >= self._begun + self.program.timeout_s:
            return "timeout"
        if self._read_bytes > self.program.output_bytes:
            return "flood"
        if now >= self._heard + self._idle_s:
            if not self.busy():
                return "idle"
            self._heard = now
        return self._resources.excess()

    def _finish(self) -> None:
        """End what is left, in any case. The child is waited for last: its pid names the group."""
        if self._stopped or not self._exited or process_tree.reap_orphans():
            grace_s = 0.0
            if self._kill_at is not None:
                grace_s = max(0.0, self._kill_at - time.monotonic())
            elif self._exited:
                grace_s = min(_LEFTOVER_GRACE_S, self.program.kill_after_s)
            # Until the keeper is the last, nothing is out of its sight.
            keeper = self._child.pid if self._is_kept else 0
            found = process_table.end_all(
                lambda: [proc for proc in self._family.members() if proc.pid != keeper],
                grace_s=grace_s,
                patience_s=_PATIENCE_S,
            )
            if self.program.boxed is None:  # else they ended by themselves, seen or not
                self._leftovers = tuple(pid for pid in found if pid != self._child.pid)
        self._signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(None if self._exited else _PATIENCE_S)
        # Read what still lies in the pipes; bounded, for what could not be ended may write on.
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
        """Pass on what has come on a stream; False when nothing has."""
        try:
            data = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(pipe)
            return False
        self._heard = time.monotonic()
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
        except OSError:  # it does not want to read: its own affair
            written = len(self._unwritten)
        self._unwritten = self._unwritten[written:]
        if not self._unwritten:
            self._selector.unregister(stdin)
            if self.program.feed is None:
                _close(stdin)

    def _feed(self) -> None:
        """Begin to write what the program was given since."""
        stdin, feed = self._child.stdin, self.program.feed
        if stdin is None or feed is None or not (more := feed.take()):
            return
        if not self._unwritten:
            write = functools.partial(self._write, stdin)
            self._selector.register(stdin, selectors.EVENT_WRITE, write)
        self._unwritten = memoryview(bytes(self._unwritten) + more)

    def _woken(self) -> None:
        os.read(self._waker.reader, 1024)
        self._feed()
        if self._child.returncode is not None:
            self._exited = True

    def _noticed_exit(self) -> None:
        self._exited = True


def _close(stdin: IO[bytes]) -> None:
    with contextlib.suppress(OSError):
        stdin.close()
