"""A program as it is started for an engine, what it is given to read, and how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Stream: TypeAlias = Literal["stdout", "stderr"]


class ProgramFeed:
    """What a running program is given to read, by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts = list[bytes]()
        self._ring: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        """Have it written as soon as the program reads; one that has ended reads nothing."""
        with self._lock:
            self._parts.append(data)
        self._ring()

    def attach(self, ring: Callable[[], None]) -> None:
        """`ring` is called whenever there is something to take."""
        self._ring = ring

    def take(self) -> bytes:
        """All that was written since."""
        with self._lock:
            taken, self._parts = b"".join(self._parts), []
        return taken


@dataclass(frozen=True, slots=True)
class Program:
    """What to start, and where it is cut. Units: seconds, bytes."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    mark: str
    timeout_s: float
    idle_timeout_s: float | None = None
    """How long it may be silent; None: as long as it likes."""
    kill_after_s: float = 5
    output_bytes: int = 10_000_000
    """Output that is passed on; one that prints more is ended."""
    stdin: bytes = b""
    """Written to its input, which is closed then; empty: there is no input."""
    feed: ProgramFeed | None = None
    """What is written to its input while it runs."""
    boxed: bool = False
    """Whether bubblewrap stands in front, with which all it started ends."""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How a program ended."""

    exit_code: int | None
    """As subprocess tells it: negative for a signal; None when it never ran."""
    stopped: str | None
    """Why it was ended from here: a cancel's reason, `timeout`, `idle` or `flood`."""
