"""A server process that an engine keeps between its runs: started on demand, ended when idle."""

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
    """One server process, run by a thread of its own. Thread-safe.

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
        """`ready_s`: how long its start may take. `idle_s`: unused for so long, it is ended."""
        self.name = name
        self.is_ready = threading.Event()
        self.ended: str | None = None
        """How it ended; None while it runs."""
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
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    def start(self) -> None:
        """Start the process; a subclass may raise an EngineError."""
        self._thread.start()

    def wait_ready(self, cancel: CancelToken) -> None:
        """Wait until it serves.

        Raises:
            EngineError: it ended or took too long, or the run was stopped meanwhile.
        """
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
        """Count one more run; False when it is ending."""
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
        """Accept no more runs; end once none is left."""
        with self._lock:
            self._is_retired = True
            is_unused = not self._users
        if is_unused:
            self.stop()

    def stop(self) -> None:
        """Tell it to end; runs that use it are lost."""
        self._stop.cancel("killed")

    def end(self) -> None:
        """End it, and wait until it has ended."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(self._kill_after_s + 5)

    def take(self, stream: Stream, data: bytes) -> None:
        """Called by the thread of the process with what it prints."""
        self._log.add(self._text.feed(data))

    def on_end(self) -> None:
        """Called by the thread of the process once it has ended."""

    def _live(self) -> None:
        ended = "it was stopped"
        try:
            found = process.run(self._program, self.take, self._stop, tick=self._tick)
            if found.stopped is None:
                code = found.exit_code or 0
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
        """Stop it when it was idle for long; returns the seconds until the next check."""
        with self._lock:
            left_s = self._idle_since + self._idle_s - time.monotonic()
            if self._users or left_s > 0:
                return math.inf if self._users else left_s
            self._is_retired = True
        self.stop()
        return math.inf


P = TypeVar("P", bound=KeptProcess)


class KeptServer(Generic[P]):
    """Keeps at most one process for all runs of an engine. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process: P | None = None
        self._key: object = None

    @contextlib.contextmanager
    def use(self, key: object, make: Callable[[], P], cancel: CancelToken) -> Generator[P]:
        """A ready process, for one run.

        It is started when there is none, or the one there has another `key`: that one ends when
        its last run does.

        Raises:
            EngineError: it cannot be started, or the run was stopped meanwhile.
        """
        with self._lock:
            kept = self.process
            if kept is None or key != self._key or not kept.enter():
                if kept is not None:
                    kept.retire()
                kept = make()
                kept.enter()
                self.process, self._key = kept, key  # `close` may end it while it starts
                try:
                    kept.start()
                except EngineError:
                    kept.stop()
                    raise
        try:
            kept.wait_ready(cancel)
            yield kept
        finally:
            kept.leave()

    def close(self) -> None:
        """End the process; a later run starts another."""
        kept, self.process = self.process, None
        if kept is not None:
            kept.end()
