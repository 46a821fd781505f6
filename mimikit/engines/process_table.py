"""The table of processes, as the kernel shows it; ending some of them.

A process is known by its number and its start in ticks since boot: a number alone is used again,
and a start by the wall clock, as psutil tells it, moves when the clock is set. One read of its
`stat` gives number, parent, group and session of one moment. Where there is no /proc (macOS)
nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

MARK = "MIMIKIT_RUN"
"""The variable by which a run's processes are known."""
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process as the kernel shows it."""

    pid: int
    ppid: int
    group: int
    session: int
    started: int
    """Ticks since boot; with the pid it names one process."""
    dead: bool
    """A zombie: it has ended, its parent has not looked yet."""

    def lives(self) -> bool:
        """Whether it is there still, by a new look."""
        now = look(self.pid)
        return now is not None and now.started == self.started and not now.dead


def look(pid: int) -> ProcessEntry | None:
    """What the kernel knows of `pid`; None when there is no such process."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The command name may hold blanks and brackets: count fields from its closing bracket.
    field = stat[stat.rindex(b")") + 2 :].split()
    ids = map(int, (*field[1:4], field[19]))
    return ProcessEntry(pid, *ids, dead=field[0] in (b"Z", b"X"))


def mark_of(pid: int) -> str | None:
    """The mark in the environment a process was started with; None if it has none."""
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    marks = [entry for entry in environ.split(b"\0") if entry.startswith(f"{MARK}=".encode())]
    return marks[0].partition(b"=")[2].decode(errors="replace") if marks else None


def descendants(roots: Iterable[int], procs: dict[int, ProcessEntry]) -> set[int]:
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


def ancestors(pid: int, procs: dict[int, ProcessEntry]) -> set[int]:
    """Everything that stands above `pid`, itself included."""
    found = {pid}
    while (proc := procs.get(pid)) and proc.ppid not in found:
        pid = proc.ppid
        found.add(pid)
    return found


def send(proc: ProcessEntry, signum: int) -> None:
    """Send a signal to that very process, if it is there still and ours to end."""
    handle = _handle(proc.pid)
    with contextlib.suppress(OSError):
        if proc.lives():
            if handle is None:
                os.kill(proc.pid, signum)
            else:
                signal.pidfd_send_signal(handle, signum)
    if handle is not None:
        os.close(handle)


def send_all(procs: Iterable[ProcessEntry], signum: int) -> None:
    """Send a signal to all of them as at one moment.

    One after the other, a shell would go on with its next command as the one before has ended.
    """
    procs = list(procs)
    for step in (signal.SIGSTOP, signum, signal.SIGCONT):
        for proc in procs:
            send(proc, step)


def kill_groups(procs: Iterable[ProcessEntry], *, spared: int) -> None:
    """Kill the groups of all of them, each at one moment, but for one.

    While it is done one by one, more may be started than is ended.
    """
    for group, proc in {proc.group: proc for proc in procs}.items():
        if group != spared and proc.lives():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)


def _handle(pid: int) -> int | None:
    """A descriptor of a process, which never becomes another's; None where there is none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # gone, or a system without such descriptors
        return None


def _wait_gone(procs: Collection[ProcessEntry], timeout_s: float) -> None:
    """Wait until all of them have ended, or `timeout_s` has passed."""
    deadline = time.monotonic() + timeout_s
    with contextlib.ExitStack() as stack:
        poll = select.poll()
        handles = [handle for proc in procs if (handle := _handle(proc.pid)) is not None]
        for handle in handles:
            stack.callback(os.close, handle)
            poll.register(handle, select.POLLIN)
        if not handles:
            poll.poll(20)  # nothing to wait on: do not spin
        while handles and (left_s := deadline - time.monotonic()) > 0:
            for handle, _ in poll.poll(left_s * 1000):
                poll.unregister(handle)
                handles.remove(handle)


def end_all(
    find: Callable[[], list[ProcessEntry]], *, grace_s: float, patience_s: float
) -> list[int]:
    """End what `find` gives until it gives nothing: asked first, killed after `grace_s`.

    Gives the pids that were found; `patience_s` after the kill it gives up on those of others.
    What was found once is not lost: that its parent has ended meanwhile may hide it from `find`.
    """
    seen: dict[int, ProcessEntry] = {}

    def present() -> list[ProcessEntry]:
        found = {proc.pid: proc for proc in find()}
        found |= {p: proc for p, proc in seen.items() if p not in found and proc.lives()}
        seen.update(found)
        return list(found.values())

    ask_until = time.monotonic() + grace_s
    asked: set[int] = set()
    while (procs := present()) and (left_s := ask_until - time.monotonic()) > 0:
        send_all((proc for proc in procs if proc.pid not in asked), signal.SIGTERM)
        asked |= {proc.pid for proc in procs}
        _wait_gone(procs, min(left_s, 0.5))
    kill_until = time.monotonic() + patience_s
    while procs and time.monotonic() < kill_until:
        send_all(procs, signal.SIGKILL)
        _wait_gone(procs, 0.2)
        procs = present()
    return sorted(seen)
