"""A server process shared by an engine's runs: started on demand, stopped when idle."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Generic, TypeVar

from mimikit.engines import process
from mimikit.engines.base import CancelToken
from mimikit.engines.process import Program, Stream
from mimikit.errors import EngineError, ProgramLost
from mimikit.language.plain_text import PlainStream, TextTail

_POLL_S = 0.05
_LOG_CHARACTERS = 4000


class KeptProcess:
    """A server process and the thread that runs it. Thread-safe.

    A subclass sets `is_ready` once the server listens, and may override `start`, `take`,
    `wait_ready` and `on_end`.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        *,
        ready_s: float,
        idle_s: float = math.inf,
        kill_after_s: float = 5.0,
    ) -> None:
        """`ready_s`: timeout of its start. `idle_s`: unused for so long, it is stopped."""
        self.name = name
        self.is_ready = threading.Event()
        self.ended: str | None = None
        """Why it ended; None while it runs."""
        self._program = replace(
            program,
            timeout_s=math.inf,
            idle_timeout_s=None,
            kill_after_s=kill_after_s,
            output_bytes=sys.maxsize,
        )
        self._ready_s, self._idle_s, self._kill_after_s = ready_s, idle_s, kill_after_s
        self._stop = CancelToken()
        self._lock = threading.Lock()
        self._users, self._idle_since, self._is_retired = 0, time.monotonic(), False
        self._log, self._text = TextTail(_LOG_CHARACTERS), PlainStream()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_ready(self, cancel: CancelToken) -> None:
        """Wait until it is ready. Raises EngineError."""
        until = time.monotonic() + self._ready_s
        while not self.is_ready.wait(_POLL_S):
            if cancel.reason is not None:
                raise EngineError(f"the run was stopped before {self.name} was ready")
            if time.monotonic() >= until:
                self.stop()
                raise EngineError(f"{self.name} was not ready within {self._ready_s:g} s")
        if self.ended is not None:
            raise EngineError(f"{self.name} ended before it was ready: {self.ended}")

    def enter(self) -> bool:
        """Register a run; False when the process is ending."""
        with self._lock:
            if self.ended is not None or self._is_retired or self._stop.reason is not None:
                return False
            self._users += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._idle_since = time.monotonic()
            is_unused = self._is_retired and not self._users
        if is_unused:
            self.stop()

    def retire(self) -> None:
        """Accept no more runs; stop after the last one."""
        with self._lock:
            self._is_retired = True
            is_unused = not self._users
        if is_unused:
            self.stop()

    def stop(self) -> None:
        """Stop it without waiting; runs that use it fail."""
        self._stop.cancel("killed")

    def end(self) -> None:
        self.stop()
        if self._thread.is_alive():
            self._thread.join(self._kill_after_s + 5)

    def take(self, stream: Stream, data: bytes) -> None:
        """Called by the process's thread with its output."""
        self._log.add(self._text.feed(data))

    def on_end(self) -> None:
        """Called by the process's thread once it has ended."""

    def _run(self) -> None:
        ended = "it was stopped"
        try:
            outcome = process.run(self._program, self.take, self._stop, tick=self._tick)
            if outcome.stopped is None:
                code = outcome.exit_code or 0
                how = f"by {process.signal_name(code)}" if code < 0 else f"with exit code {code}"
                log = "\n".join(self._log.text().strip().splitlines()[-5:])[-400:]
                ended = f"it ended {how}{': ' if log else ''}{log}"
        except (EngineError, ProgramLost, OSError) as error:
            ended = str(error) or repr(error)
        finally:
            with self._lock:
                self.ended = ended
            self.is_ready.set()
            self.on_end()

    def _tick(self) -> float:
        """Stop it if it was idle too long; returns the seconds until the next check."""
        with self._lock:
            left_s = self._idle_since + self._idle_s - time.monotonic()
            if self._users or left_s > 0:
                return math.inf if self._users else left_s
            self._is_retired = True
        self.stop()
        return math.inf


P = TypeVar("P", bound=KeptProcess)


class KeptServer(Generic[P]):
    """Shares one process among all runs of an engine. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process: P | None = None
        self._key: object = None

    @contextlib.contextmanager
    def use(self, key: object, make: Callable[[], P], cancel: CancelToken) -> Generator[P]:
        """A ready process, for one run.

        It is started when there is none, or when the current one has another `key`: that one stops
        after its last run.

        Raises:
            EngineError: it cannot be started, or the run was stopped.
        """
        with self._lock:
            server = self.process
            if server is None or key != self._key or not server.enter():
                if server is not None:
                    server.retire()
                server = make()
                server.enter()
                self.process, self._key = server, key  # `close` may end it while it starts
                try:
                    server.start()
                except EngineError:
                    server.stop()
                    raise
        try:
            server.wait_ready(cancel)
            yield server
        finally:
            server.leave()

    def close(self) -> None:
        """Stop the process; the next run starts another."""
        server, self.process = self.process, None
        if server is not None:
            server.end()
