"""Marks the processes of runs by an environment variable, so that orphans can be killed.

Without bubblewrap a killed consumer may leave runs behind. Only processes with a mark of this state
folder and of a dead consumer are killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from pathlib import Path

from mimikit.protocol import ids

MARK = "MIMIKIT_RUN"
_PROC = Path("/proc")
_TERM_S, _KILL_S, _POLL_S = 2.0, 5.0, 0.05


def state_id(state: Path) -> str:
    real = Path(os.path.realpath(state))
    inode = real.stat().st_ino if real.exists() else 0
    return hashlib.sha256(f"{real}\0{inode}".encode()).hexdigest()[:16]


def scratch_prefix(state: Path) -> str:
    return f"mimikit-run-{state_id(state)}-"


def mark_environment(state: Path) -> None:
    """From now on children of this process inherit `state:pid.started`."""
    os.environ[MARK] = f"{state_id(state)}:{os.getpid()}.{ids.own_start_time()}"


def is_orphan(mark: str, state_id: str) -> bool:
    state, _, owner = mark.partition(":")
    pid, _, started = owner.partition(".")
    return state == state_id and pid.isdecimal() and ids.start_time(int(pid)) != started


def kill_orphans(state_id: str) -> list[int]:
    """SIGTERM, then SIGKILL; returns their pids. Finds none without /proc (macOS)."""
    found, started = set[int](), time.monotonic()
    while left := _orphans(state_id):
        passed_s = time.monotonic() - started
        if passed_s > _TERM_S + _KILL_S:
            break
        for pid in left if passed_s > _TERM_S else left - found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if passed_s > _TERM_S else signal.SIGTERM)
        found |= left
        time.sleep(_POLL_S)
    return sorted(found)


def _orphans(state_id: str) -> set[int]:
    if not (_PROC / "self/stat").exists():
        return set()
    pids = {int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdecimal()}
    return {pid for pid in pids - _self_and_ancestors() if is_orphan(_mark_of(pid), state_id)}


def _mark_of(pid: int) -> str:
    """From a process's environment; empty if it has none, or has ended."""
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(f"{MARK}=".encode()):
                return entry.partition(b"=")[2].decode(errors="replace")
    return ""


def _self_and_ancestors() -> set[int]:
    """Never killed: a run may have started the consumer."""
    found, pid = set[int](), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            stat = (_PROC / str(pid) / "stat").read_bytes()
        except OSError:
            break
        pid = int(stat[stat.rindex(b")") + 2 :].split()[1])
    return found
