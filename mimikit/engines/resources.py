"""What a run takes of the machine, memory and processes, and whether that is too much.

Looked at each second or so, so a limit is passed before it is noticed; what no look is fast enough
for is the kernel's, which is told to end a run before anything else when memory is out. Only where
there is a /proc (Linux).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from mimikit.config import LimitSettings
from mimikit.engines.process_table import PROC, ProcessEntry

Excess: TypeAlias = Literal["memory", "processes"]

_EVERY_S = 1.0
_LEAST_OFTEN_S = 10.0
_REST = 20
"""A look that took so long is followed by so many times that without one."""
_OF_THE_MACHINE = 0.75
_MORE_BADNESS = 500
"""By which, of 1,000, a run stands before what runs it when the kernel looks for what to end."""


class RunResources(NamedTuple):
    """Memory in bytes and a number of processes: what is taken, or may be at most."""

    memory: float = math.inf
    processes: float = math.inf

    def over(self, most: RunResources) -> Excess | None:
        """What of it is more than that."""
        if self.memory > most.memory:
            return "memory"
        return "processes" if self.processes > most.processes else None


UNLIMITED = RunResources()


def most_of(limits: LimitSettings) -> RunResources:
    """What a run may take by these settings."""
    memory = math.inf
    if limits.run_memory_mb is not None:
        memory = limits.run_memory_mb * 1e6
    else:
        with contextlib.suppress(OSError, LookupError):  # no /proc: nothing is looked at anyway
            memory = _sizes(PROC / "meminfo")["MemTotal"] * _OF_THE_MACHINE
    return RunResources(memory, limits.run_processes)


class ResourceWatch:
    """Looks at what one run takes, and not more often than a look is worth."""

    def __init__(self, most: RunResources, members: Callable[[], list[ProcessEntry]]) -> None:
        self._most, self._members = most, members
        self._look_at = -math.inf

    def excess(self) -> Excess | None:
        """What the run takes too much of now; None also between two looks."""
        now = time.monotonic()
        if now < self._look_at:
            return None
        over = None
        with contextlib.suppress(OSError, MemoryError):  # too little to look: the next one may
            over = self._found()
        cost_s = time.monotonic() - now
        self._look_at = now + cost_s + min(max(_EVERY_S, _REST * cost_s), _LEAST_OFTEN_S)
        return over

    def _found(self) -> Excess | None:
        # What the whole machine does not take no run takes: mostly that is all there is to read.
        if _taken_by_all().over(self._most) is None:
            return None
        found = self._members()
        over = _taken(found, _private).over(self._most)
        if over == "memory":  # pages that a fork shares with its parent were counted for each
            over = _taken(found, _proportional).over(self._most)
        return over


@contextlib.contextmanager
def begun_to_be_ended_first() -> Generator[None]:
    """Have the kernel end what is started here before others when memory is out.

    It is inherited at the start; what is set afterwards, what it has started by then would lack.
    """
    badness = PROC / "self" / "oom_score_adj"
    own: str | None = None
    with contextlib.suppress(OSError, ValueError):
        own = badness.read_text()
        badness.write_text(str(min(int(own) + _MORE_BADNESS, 1000)))
    try:
        yield
    finally:
        if own is not None:
            with contextlib.suppress(OSError):
                badness.write_text(own)


def _taken(procs: Iterable[ProcessEntry], memory: Callable[[int], int]) -> RunResources:
    sizes = list[int]()
    for proc in procs:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            sizes.append(memory(proc.pid))
    return RunResources(sum(sizes), len(sizes))


def _private(pid: int) -> int:
    """Memory of a process in bytes, in swap too, without what it maps from files; cheap."""
    said = _sizes(PROC / str(pid) / "status")
    return said.get("RssAnon", 0) + said.get("VmSwap", 0)


def _proportional(pid: int) -> int:
    """The same, where pages of several processes count for each in part; its cost is its size."""
    said = dict[str, int]()
    with contextlib.suppress(OSError):
        said = _sizes(PROC / str(pid) / "smaps_rollup")
    if "Pss_Anon" not in said:  # a kernel that does not tell
        return _private(pid)
    return said["Pss_Anon"] + said.get("SwapPss", 0)


def _taken_by_all() -> RunResources:
    """What is taken of this machine, at most: threads, for one, are no processes."""
    with contextlib.suppress(OSError, ValueError, LookupError):
        said = _sizes(PROC / "meminfo")
        swapped = said.get("SwapTotal", 0) - said.get("SwapFree", 0)
        tasks = int((PROC / "loadavg").read_bytes().split()[3].partition(b"/")[2])
        return RunResources(said["MemTotal"] - said["MemAvailable"] + swapped, tasks)
    return UNLIMITED  # nobody tells: the run itself is looked at


def _sizes(path: Path) -> dict[str, int]:
    """The sizes that the kernel tells there, in bytes. Raises OSError."""
    said = dict[str, int]()
    for line in path.read_text(errors="replace").splitlines():
        name, _, size = line.partition(":")
        if size.endswith(" kB"):
            said[name] = 1024 * int(size.removesuffix(" kB"))
    return said
