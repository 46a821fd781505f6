"""Whose process is whose: what Linux tells in /proc about everything a run started.

A process is known by its number and its start time together: a number alone is used again. Where
there is no /proc (macOS) nothing is found; what a run left is then reached by its group alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
HAS_PROC = Path("/proc/self/stat").exists()
_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Proc:
    """One process as the kernel shows it."""

    pid: int
    ppid: int
    group: int
    session: int
    started: int
    """Ticks since boot; with the pid it names one process."""
    dead: bool
    """A zombie: it has ended, its parent has not looked yet."""


def look(pid: int) -> Proc | None:
    """What the kernel knows of `pid`; None when there is no such process."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The command name may hold blanks and brackets: count fields from its closing bracket.
    field = stat[stat.rindex(b")") + 2 :].split()
    ids = (int(field[1]), int(field[2]), int(field[3]), int(field[19]))
    return Proc(pid, *ids, dead=field[0] in (b"Z", b"X"))


def everyone() -> dict[int, Proc]:
    """Every process that can be seen, by pid."""
    if not HAS_PROC:
        return {}
    found = (look(int(entry.name)) for entry in os.scandir(PROC) if entry.name.isdigit())
    return {proc.pid: proc for proc in found if proc}


def variable(pid: int, name: str) -> str | None:
    """A variable of the environment a process was started with; None if it has none such."""
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    start = name.encode() + b"="
    values = (entry[len(start) :] for entry in environ.split(b"\0") if entry.startswith(start))
    value = next(values, None)
    return None if value is None else value.decode(errors="replace")


def descendants(roots: Iterable[int], procs: dict[int, Proc]) -> set[int]:
    """Everything that stands below `roots`, themselves left out."""
    below: dict[int, list[int]] = {}
    for proc in procs.values():
        below.setdefault(proc.ppid, []).append(proc.pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        fresh = [child for child in below.get(todo.pop(), []) if child not in found]
        found.update(fresh)
        todo += fresh
    return found


def ancestors(pid: int, procs: dict[int, Proc]) -> set[int]:
    """Everything that stands above `pid`, itself included."""
    found = {pid}
    while (proc := procs.get(pid)) and proc.ppid not in found:
        pid = proc.ppid
        found.add(pid)
    return found


def children() -> list[int] | None:
    """The direct children of this process; None where the kernel does not list them."""
    pids: list[int] = []
    try:
        for thread in os.scandir("/proc/self/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                pids += map(int, (Path(thread.path) / "children").read_bytes().split())
    except OSError:
        return None
    return pids if _lists_children() else None


@functools.cache
def _lists_children() -> bool:
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


@functools.cache
def adopt_orphans() -> bool:
    """From now on whatever a run leaves behind becomes this process's child, and so is found.

    False where the system has no such thing.
    """
    if not HAS_PROC:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def send(proc: Proc, signum: int) -> bool:
    """Send a signal to that very process; False when it is gone or not ours to end."""
    handle = _handle(proc.pid)
    try:
        now = look(proc.pid)
        if now is None or now.started != proc.started or now.dead:
            return False
        if handle is None:
            os.kill(proc.pid, signum)
        else:
            signal.pidfd_send_signal(handle, signum)
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def _handle(pid: int) -> int | None:
    """A descriptor of a process, which never becomes another's; None where there is none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # gone, or a system without such descriptors
        return None


def reap(pid: int) -> None:
    """Take note of the end of an adopted child, so that it does not stay as a zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def wait_gone(procs: Collection[Proc], timeout_s: float) -> None:
    """Wait until all of them have ended, or `timeout_s` has passed."""
    poll = select.poll()
    handles: set[int] = set()
    deadline = time.monotonic() + timeout_s
    try:
        for proc in procs:
            if (handle := _handle(proc.pid)) is not None:
                handles.add(handle)
                poll.register(handle, select.POLLIN)
        waiting = len(handles)
        if not handles:
            poll.poll(20)  # nothing to wait on: do not spin
        while waiting and (left_s := deadline - time.monotonic()) > 0:
            for handle, _ in poll.poll(left_s * 1000):
                poll.unregister(handle)
                waiting -= 1
    finally:
        for handle in handles:
            os.close(handle)


def end_all(
    find: Callable[[], list[Proc]], *, grace_s: float, patience_s: float
) -> tuple[list[int], list[int]]:
    """End what `find` gives until it gives nothing: asked first, killed after `grace_s`.

    Gives the pids that were found, and those still there `patience_s` after the kill. What was
    found once is not lost: that its parent has ended meanwhile may hide it from `find`.
    """
    seen: dict[int, Proc] = {}

    def present() -> list[Proc]:
        found = {proc.pid: proc for proc in find()}
        hidden = {pid: proc for pid, proc in seen.items() if pid not in found}
        found |= {pid: proc for pid, proc in hidden.items() if _still_lives(proc)}
        seen.update(found)
        return list(found.values())

    ask_until = time.monotonic() + grace_s
    asked: set[int] = set()
    while (procs := present()) and (left_s := ask_until - time.monotonic()) > 0:
        for proc in procs:
            if proc.pid not in asked:
                send(proc, signal.SIGTERM)
        asked |= {proc.pid for proc in procs}
        wait_gone(procs, min(left_s, 0.5))
    kill_until = time.monotonic() + patience_s
    while procs and time.monotonic() < kill_until:
        for proc in procs:
            send(proc, signal.SIGKILL)
        wait_gone(procs, 0.2)
        procs = present()
    return sorted(seen), sorted(proc.pid for proc in procs)


def _still_lives(proc: Proc) -> bool:
    now = look(proc.pid)
    return now is not None and now.started == proc.started and not now.dead
