"""A program of an engine: how it is started and ended, and whether its owner has logged in."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mimikit.engines.base import Failed, Outcome, RunSpec
from mimikit.protocol.models import EngineWant, Role

_REMEMBER_S = 5.0

Stream: TypeAlias = Literal["stdout", "stderr"]


class ProgramFeed:
    """Input for a running program, written from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts = list[bytes]()
        self._ring: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        """Queue input; a program that has ended reads nothing."""
        with self._lock:
            self._parts.append(data)
        self._ring()

    def attach(self, ring: Callable[[], None]) -> None:
        self._ring = ring

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
    mark: str
    timeout_s: float
    idle_timeout_s: float | None = None
    """None: no idle timeout."""
    kill_after_s: float = 5
    output_bytes: int = 10_000_000
    """A program that prints more is ended."""
    stdin: bytes = b""
    """Written to its input, which is then closed; empty: no input."""
    feed: ProgramFeed | None = None
    boxed: bool = False
    """Whether it runs under bubblewrap, so that all it started ends with it."""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    exit_code: int | None
    """Negative for a signal; None when it never ran."""
    stopped: str | None
    """Why it was ended from here: the cancel's reason, `timeout`, `idle` or `flood`."""


class ProgramEngine:
    """Knows whether the program is there, and whether its owner has logged in anew."""

    def __init__(self) -> None:
        self._logged_out: object = None
        """The login with which the program was logged out."""
        self.recheck()

    def check_program(self) -> str | None:
        """Why the program cannot be used; the answer is remembered for some seconds."""
        raise NotImplementedError

    def login_files(self) -> list[Path]:
        raise NotImplementedError

    def carry_out(self, request: RunSpec) -> Outcome:
        raise NotImplementedError

    def unavailable(self, role: Role | None = None) -> str | None:
        return self._check()

    def recheck(self) -> None:
        @functools.lru_cache(maxsize=1)
        def check(_slot: float) -> str | None:
            return self.check_program()

        self._check = lambda: check(time.monotonic() // _REMEMBER_S)

    def is_mended(self, want: EngineWant) -> bool:
        """Whether the program, or another login, is there; for the rest a run has to try."""
        self.recheck()
        if want == "logged_out" and self._logged_out == self._login():
            return False
        return want in ("missing", "logged_out") and self.unavailable() is None

    def run(self, request: RunSpec) -> Outcome:
        login = self._login()
        outcome = self.carry_out(request)
        if isinstance(outcome, Failed) and outcome.want == "logged_out":
            self._logged_out = login
        return outcome

    def _login(self) -> object:
        return list(map(file_stamp, self.login_files()))


def file_stamp(path: Path) -> tuple[int, int, int] | None:
    """Changes when the file is replaced or written."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None
