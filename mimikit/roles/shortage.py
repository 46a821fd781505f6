"""What this machine has too little of to begin a run: open files, memory, processes.

Whoever meets it notes it; for a while nothing is begun then, and what was tried costs no attempt.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

from mimikit.clock import Clock
from mimikit.errors import shortage_of

PAUSE_S = 1.0
"""So long nothing is begun after a want was met; then it is tried again."""
_OF_A_RUN = 24
"""Files that a run needs open at a time, about."""
_PROCESSES_OF_A_RUN = 4
"""And processes, with their sandbox; an agent has more, and meets the limit itself."""
_LOOK_EVERY_S = 1.0
_CGROUPS, _OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def few_files(open_files: int, limit: int) -> str | None:
    """Why no run should begin with so many open files; None when there is room for two. Pure."""
    if limit <= 0 or open_files + 2 * _OF_A_RUN <= limit:
        return None
    return f"{open_files} of {limit} files are open; close some or raise the limit (`ulimit -n`)"


def few_processes(processes: int, limit: int) -> str | None:
    """Why no run should begin with so many of a group's processes in use. Pure."""
    if processes + 2 * _PROCESSES_OF_A_RUN <= limit:
        return None
    return f"{processes} of {limit} processes are in use; end some or raise the limit (`pids.max`)"


def process_limits(groups: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> Iterator[tuple[int, int]]:
    """How many processes are, and may be, in each control group around this one that has a limit.

    In version 1 the groups that count processes lie in a tree of their own.
    """
    for line in own.read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "pids"):
            continue
        top = groups / kinds
        inner = top / path.lstrip("/")
        for group in (inner, *inner.parents):
            # None at the top, nor where the path is one that only the host of a container sees.
            with contextlib.suppress(OSError, ValueError):
                limit = int((group / "pids.max").read_text())  # `max` is none
                yield int((group / "pids.current").read_text()), limit
            if group == top:
                break


class RunShortage:
    """What there is too little of now. Safe between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._noted: str | None = None
        self._until = self._look_at = float("-inf")
        self._few: str | None = None
        self.open_files = 0
        """At the last look; 0 where that can not be told."""

    def note(self, error: BaseException) -> str | None:
        """What an error says there was too little of; None when it says nothing of that kind."""
        reason = shortage_of(error)
        if reason is not None:
            with self._lock:
                self._noted, self._until = reason, self._clock.monotonic() + PAUSE_S
        return reason

    def reason(self) -> str | None:
        """Why nothing should begin now; None when it may."""
        with self._lock:
            now = self._clock.monotonic()
            if now >= self._look_at:
                self._look_at, self._few = now + _LOOK_EVERY_S, self._look()
            return self._noted if now < self._until else self._few

    def _look(self) -> str | None:
        try:
            self.open_files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, no paths
        except OSError as error:
            return shortage_of(error)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if few := few_files(self.open_files, limit):
            return few
        with contextlib.suppress(OSError, ValueError):  # there are no control groups here
            return next(filter(None, (few_processes(*one) for one in process_limits())), None)
        return None
