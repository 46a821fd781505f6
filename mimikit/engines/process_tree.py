"""Whose process is whose: finds everything a program of ours started, and ends it.

Everything of a run is known by its session, by its place in the tree of processes, or by a mark in
its environment where both were left. Orphans become children of this process, so none is out of
sight. What is found by mark alone belongs to a run of this process or of a dead one.

A program that this process starts in a session of its own must be started with `spawn`: a child
nobody knows counts as left behind by a run.

Where there is no /proc (macOS) nothing is found; what a run left is then reached by its group
alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import signal
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from mimikit.engines import resources
from mimikit.engines.process_table import (
    MARK,
    PROC,
    ProcessEntry,
    ancestors,
    descendants,
    end_all,
    look,
    mark_of,
)
from mimikit.errors import EngineError, ProgramLost, shortage_of
from mimikit.protocol import ids

_SWEEP_GRACE_S = 2.0
"""What a dead consumer left may take this long to end by itself: no result waits for it."""
_PATIENCE_S = 5.0
_HAS_PROC = Path("/proc/self/stat").exists()
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
_SET_CHILD_SUBREAPER = 36


_lock = threading.Lock()
"""Held while a program is started and while strays are looked for: a start is never half seen."""
_count = itertools.count(1)
_live: dict[int, tuple[ProcessEntry, str]] = {}
"""The programs this process started with `spawn`, each with its mark, by pid."""


def state_id(state: Path) -> str:
    """A short name of a state folder, the same as long as it stays where it is."""
    real = Path(os.path.realpath(state))
    inode = real.stat().st_ino if real.exists() else 0
    return hashlib.sha256(f"{real}\0{inode}".encode()).hexdigest()[:16]


def scratch_prefix(state: Path) -> str:
    """How the names of temporary folders begin that runs of this state have."""
    return f"mimikit-run-{state_id(state)}-"


def mark(state: Path | None, run_id: str) -> str:
    """A mark that no other run has: whose state, which run, the process that started it, a count.

    Shape: `state:run:pid.started:count`; without a state the first part is empty.
    """
    owner = f"{os.getpid()}.{ids.own_start_time()}"
    return f"{state_id(state) if state else ''}:{run_id}:{owner}:{next(_count)}"


class _Child(subprocess.Popen[bytes]):
    """One that is known before its start, which may fail after it has begun."""


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    mark: str,
    stdin: bool = False,
    given: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, marked; give it to `release` when it has ended.

    `given`: descriptors that stay open in it.

    Raises:
        EngineError: it can not be started; the message says why.
        ProgramLost: it had begun, and was ended, as there was too little memory to follow it.
    """
    child = _Child.__new__(_Child)
    try:
        with _lock, resources.begun_to_be_ended_first():
            _adopt_orphans()
            child.__init__(
                list(argv),
                cwd=cwd,
                env={**env, MARK: mark},
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=given,
            )
            unseen = ProcessEntry(child.pid, os.getpid(), child.pid, child.pid, 0, dead=False)
            _live[child.pid] = look(child.pid) or unseen, mark
    except (OSError, ValueError, MemoryError, RuntimeError) as error:
        if getattr(child, "pid", None) and child.returncode is None:
            give_up(child)
            raise ProgramLost(f"{argv[0]} was ended: {error!r}") from error
        if not shortage_of(error) and not cwd.is_dir():
            raise EngineError(f"expected a folder to work in, got none at {cwd}; make it") from None
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise EngineError(f"{argv[0]} can not be started: {said}") from error
    return child


def give_up(child: subprocess.Popen[bytes]) -> None:
    """Kill a program that can not be followed any more, with its group, and forget it."""
    _live.pop(child.pid, None)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    if child.returncode is None:  # else its number may be another's by now
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired, MemoryError):
            child.wait(_PATIENCE_S)


def release(child: subprocess.Popen[bytes]) -> None:
    """Forget a program that has ended and was waited for."""
    with _lock:
        _live.pop(child.pid, None)


def sweep_leftovers(state_id: str) -> list[int]:
    """End what runs of an earlier, dead consumer of this state left behind; gives the pids found.

    Runs of this process, and of any other that still lives, are left alone.
    """
    left = _Orphaned(state_id)
    found = end_all(left.members, grace_s=_SWEEP_GRACE_S, patience_s=_PATIENCE_S)
    reap_orphans()
    return found


def reap_orphans() -> bool:
    """Take note of adopted children that have ended; gives whether one lives. Cheap.

    Only this process's own children are looked at: what a dead leader leaves is one of them.
    """
    with _lock:
        if not (_adopt_orphans() and _LISTS_CHILDREN):
            return True
        pids: list[int] = []
        try:
            for thread in os.scandir("/proc/self/task"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    pids += map(int, (Path(thread.path) / "children").read_bytes().split())
        except OSError:
            return True
        strange = [proc for pid in pids if (proc := look(pid)) and _is_strange(proc)]
        for proc in strange:
            if proc.dead:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(proc.pid, os.WNOHANG)
        return any(not proc.dead for proc in strange)


class _Group:
    """Processes that belong together. One that was found stays a member until it is gone.

    Else it could be lost on the way: what led to it ends before it does.
    """

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()

    def tell(self, procs: dict[int, ProcessEntry]) -> tuple[set[int], set[int]]:
        """Those that are told by themselves, and those that are somebody else's for certain."""
        raise NotImplementedError

    def members(self) -> list[ProcessEntry]:
        """All that live, and all that stands below them."""
        with _lock:
            names = [entry.name for entry in os.scandir(PROC)] if _HAS_PROC else []
            pids = [int(name) for name in names if name.isdigit()]
            procs = {pid: proc for pid in pids if (proc := look(pid))}
            mine, spared = self.tell(procs)
            mine |= {pid for pid, proc in procs.items() if (pid, proc.started) in self._known}
            # What ends a moment before its parent may be made anew by it: its session tells it.
            begun = {pid for pid, _ in self._known if pid not in procs or pid in mine}
            mine |= {pid for pid, proc in procs.items() if proc.session in begun}
            mine |= descendants(mine, procs)
            mine -= ancestors(os.getpid(), procs) | spared
        reap_orphans()
        found = [procs[pid] for pid in mine if pid in procs and not procs[pid].dead]
        self._known.update((proc.pid, proc.started) for proc in found)
        return found


class RunProcesses(_Group):
    """Everything that belongs to one run: found by session, by descent, by mark."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        """`child`: one that `spawn` gave and `release` has not had yet."""
        super().__init__()
        self._leader, self._mark = _live[child.pid]

    def tell(self, procs: dict[int, ProcessEntry]) -> tuple[set[int], set[int]]:
        mine = {proc.pid for proc in procs.values() if self._is_mine(proc)}
        return mine | {self._leader.pid}, set(_live) - {self._leader.pid}

    def _is_mine(self, proc: ProcessEntry) -> bool:
        if proc.started < self._leader.started or proc.dead:
            return False
        if self._leader.pid in (proc.session, proc.group):
            return True
        value = mark_of(proc.pid)
        if value is not None or not _is_strange(proc):
            return value == self._mark
        # An unmarked stray is ours if no other run is old enough to own it.
        others = [other for other, _ in _live.values() if other.pid != self._leader.pid]
        return all(other.started > proc.started for other in others)


def _is_strange(proc: ProcessEntry) -> bool:
    """Whether it is our child, but neither spawned nor started the plain way."""
    return proc.ppid == os.getpid() and proc.pid not in _live and proc.session != os.getsid(0)


class _Orphaned(_Group):
    """What is left of all runs of a state whose owners are gone: found by mark and by session."""

    def __init__(self, state_id: str) -> None:
        super().__init__()
        self._state_id = state_id

    def tell(self, procs: dict[int, ProcessEntry]) -> tuple[set[int], set[int]]:
        spared = set(_live) | descendants(_live, procs)
        marked = {pid for pid in procs if self._is_orphaned(mark_of(pid) or "")}
        marked -= spared | ancestors(os.getpid(), procs)
        sessions = {procs[pid].session for pid in marked}
        sessions = {session for session in sessions if session not in procs or session in marked}
        return marked | {proc.pid for proc in procs.values() if proc.session in sessions}, spared

    def _is_orphaned(self, mark: str) -> bool:
        """Whether a mark names a run of this state whose owner is gone, or has forgotten it."""
        state, _, rest = mark.partition(":")
        if not mark or state != self._state_id:
            return False
        pid, _, started = rest.partition(":")[2].partition(":")[0].partition(".")
        if pid == str(os.getpid()) and started == ids.own_start_time():
            return mark not in {known for _, known in _live.values()}
        return not pid.isdigit() or ids.start_time(int(pid)) != started


@functools.cache
def _adopt_orphans() -> bool:
    """From now on whatever a run leaves behind becomes this process's child, and so is found.

    False where the system has no such thing.
    """
    if not _HAS_PROC:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
