"""A program to run, its input while it runs, and how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

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
