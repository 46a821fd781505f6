"""Marks the processes of runs by an environment variable, so that a later consumer finds orphans.

Without bubblewrap a killed consumer may leave runs behind. Only processes that carry a mark of this
state folder, made by a consumer that is gone, are ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import time
from pathlib import Path

from mimikit.protocol import ids

MARK = "MIMIKIT_RUN"
_PROC = Path("/proc")
_GRACE_S, _PATIENCE_S, _LOOK_S = 2.0, 5.0, 0.05
_count = itertools.count(1)


def state_id(state: Path) -> str:
    """A short name of a state folder; another folder in its place has another."""
    real = Path(os.path.realpath(state))
    inode = real.stat().st_ino if real.exists() else 0
    return hashlib.sha256(f"{real}\0{inode}".encode()).hexdigest()[:16]


def scratch_prefix(state: Path) -> str:
    """Of the names of this state's temporary folders."""
    return f"mimikit-run-{state_id(state)}-"


def mark(state: Path | None, run_id: str) -> str:
    """A unique mark, `state:run:pid.started:count`; without a state its first part is empty."""
    owner = f"{os.getpid()}.{ids.own_start_time()}"
    return f"{state_id(state) if state else ''}:{run_id}:{owner}:{next(_count)}"


def is_leftover(mark: str, state_id: str) -> bool:
    """Whether a mark names a run of this state whose owner is gone."""
    state, _, rest = mark.partition(":")
    pid, _, started = rest.rpartition(":")[0].rpartition(":")[2].partition(".")
    return state == state_id and pid.isdecimal() and ids.start_time(int(pid)) != started


def sweep_leftovers(state_id: str) -> list[int]:
    """End orphans of a dead consumer of this state (SIGTERM, then SIGKILL); returns their pids.

    Finds nothing without /proc (macOS).
    """
    found, begun = set[int](), time.monotonic()
    while left := _leftovers(state_id):
        passed_s = time.monotonic() - begun
        if passed_s > _GRACE_S + _PATIENCE_S:
            break
        for pid in left if passed_s > _GRACE_S else left - found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if passed_s > _GRACE_S else signal.SIGTERM)
        found |= left
        time.sleep(_LOOK_S)
    return sorted(found)


def _leftovers(state_id: str) -> set[int]:
    if not (_PROC / "self/stat").exists():
        return set()
    pids = {int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdecimal()}
    return {pid for pid in pids - _above() if is_leftover(_mark_of(pid), state_id)}


def _mark_of(pid: int) -> str:
    """The mark in a process's environment; empty if it has none, or has ended."""
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(f"{MARK}=".encode()):
                return entry.partition(b"=")[2].decode(errors="replace")
    return ""


def _above() -> set[int]:
    """This process and its ancestors: a run may have started the consumer."""
    found, pid = set[int](), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            stat = (_PROC / str(pid) / "stat").read_bytes()
        except OSError:
            break
        pid = int(stat[stat.rindex(b")") + 2 :].split()[1])
    return found
