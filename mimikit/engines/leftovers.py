"""Starts programs so that all they start can be found again, and finds it.

Everything of a run is known by its session, by its place in the tree of processes, or by a mark in
its environment where both were left. Orphans become children of this process, so none is out of
sight. What is found by mark alone belongs to a run of this process or of a dead one.

A program that this process starts in a session of its own must be started with `spawn`: a child
nobody knows counts as left behind by a run.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimikit.engines import proctree
from mimikit.engines.proctree import Proc
from mimikit.errors import EngineError
from mimikit.protocol import process_id

MARK = "MIMIKIT_RUN"
_SWEEP_GRACE_S = 2.0
"""What a dead consumer left may take this long to end by itself: no result waits for it."""
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class _Leader:
    proc: Proc
    mark: str


_lock = threading.Lock()
"""Held while a program is started and while strays are looked for: a start is never half seen."""
_count = itertools.count(1)
_live: dict[int, _Leader] = {}
"""The programs this process started with `spawn`, by pid."""


def state_id(state: Path) -> str:
    """A short name of a state folder, the same as long as it stays where it is."""
    real = Path(os.path.realpath(state))
    inode = real.stat().st_ino if real.exists() else 0
    return hashlib.sha256(f"{real}\0{inode}".encode()).hexdigest()[:16]


def mark(state: Path | None, run_id: str) -> str:
    """A mark that no other run has: whose state, which run, the process that started it, a count.

    Shape: `state:run:pid.started:count`; without a state the first part is empty.
    """
    owner = f"{os.getpid()}.{process_id.own_start_time()}"
    return f"{state_id(state) if state else ''}:{run_id}:{owner}:{next(_count)}"


def spawn(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], mark: str, stdin: bool = False
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, marked; give it to `release` when it has ended.

    Raises:
        EngineError: it can not be started; the message says why.
    """
    with _lock:
        proctree.adopt_orphans()
        try:
            child = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env={**env, MARK: mark},
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise EngineError(_no_start(argv, cwd, error)) from None
        unseen = Proc(child.pid, os.getpid(), child.pid, child.pid, started=0, dead=False)
        _live[child.pid] = _Leader(proctree.look(child.pid) or unseen, mark)
    return child


def release(child: subprocess.Popen[bytes]) -> None:
    """Forget a program that has ended and was waited for."""
    with _lock:
        _live.pop(child.pid, None)


def sweep_leftovers(state_id: str) -> list[int]:
    """End what runs of an earlier, dead consumer of this state left behind; gives the pids found.

    Runs of this process, and of any other that still lives, are left alone.
    """
    pack = _Orphaned(state_id)
    found, _ = proctree.end_all(pack.members, grace_s=_SWEEP_GRACE_S, patience_s=_PATIENCE_S)
    reap_orphans()
    return found


def reap_orphans() -> None:
    """Take note of adopted children that have ended, so that none stays as a zombie."""
    _has_strays()


class _Pack:
    """Processes that belong together. One that was found stays a member until it is gone.

    Else it could be lost on the way: what led to it ends before it does.
    """

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()

    def members(self) -> list[Proc]:
        """All that live, and all that stands below them."""
        with _lock:
            procs = proctree.everyone()
            mine = self._roots(procs)
            mine |= {pid for pid, proc in procs.items() if (pid, proc.started) in self._known}
            mine |= proctree.descendants(mine, procs)
            mine -= proctree.ancestors(os.getpid(), procs) | self._spared(procs)
        reap_orphans()
        found = [procs[pid] for pid in mine if pid in procs and not procs[pid].dead]
        self._known.update((proc.pid, proc.started) for proc in found)
        return found

    def _roots(self, procs: dict[int, Proc]) -> set[int]:
        """Those that can be told by themselves."""
        raise NotImplementedError

    def _spared(self, procs: dict[int, Proc]) -> set[int]:
        """Those that are somebody else's for certain."""
        raise NotImplementedError


class Family(_Pack):
    """Everything that belongs to one run: found by session, by descent, by mark."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        """The family of a child that `spawn` gave and `release` has not had yet."""
        super().__init__()
        self._leader = _live[child.pid].proc
        self._mark = _live[child.pid].mark

    def _roots(self, procs: dict[int, Proc]) -> set[int]:
        return {self._leader.pid} | {proc.pid for proc in procs.values() if self._is_mine(proc)}

    def _spared(self, procs: dict[int, Proc]) -> set[int]:
        return set(_live) - {self._leader.pid}

    def may_remain(self) -> bool:
        """Whether the ended leader may have left something behind. Cheap.

        Only this process's own children are looked at: what a dead leader leaves is one of them.
        """
        return _has_strays()

    def _is_mine(self, proc: Proc) -> bool:
        if proc.started < self._leader.started or proc.dead:
            return False
        if self._leader.pid in (proc.session, proc.group):
            return True
        value = proctree.variable(proc.pid, MARK)
        return value == self._mark or (value is None and self._is_likely_mine(proc))

    def _is_likely_mine(self, proc: Proc) -> bool:
        """Whether an unmarked stray can be nobody else's: no other run is old enough to own it."""
        others = [leader.proc for pid, leader in _live.items() if pid != self._leader.pid]
        return _is_strange(proc) and not any(other.started <= proc.started for other in others)


def _has_strays() -> bool:
    """Whether an adopted child lives; dead ones are taken note of."""
    with _lock:
        pids = proctree.children() if proctree.adopt_orphans() else None
        if pids is None:
            return True
        kids = (proctree.look(pid) for pid in pids if pid not in _live)
        strange = [proc for proc in kids if proc and _is_strange(proc)]
        for proc in strange:
            if proc.dead:
                proctree.reap(proc.pid)
        return any(not proc.dead for proc in strange)


def _is_strange(proc: Proc) -> bool:
    """Whether it is our child, but neither spawned nor started the plain way."""
    return proc.ppid == os.getpid() and proc.pid not in _live and proc.session != os.getsid(0)


class _Orphaned(_Pack):
    """What is left of all runs of a state whose owners are gone: found by mark and by session."""

    def __init__(self, state_id: str) -> None:
        super().__init__()
        self._state_id = state_id

    def _roots(self, procs: dict[int, Proc]) -> set[int]:
        marked = {
            pid for pid in procs if _is_orphaned(proctree.variable(pid, MARK), self._state_id)
        }
        marked -= self._spared(procs) | proctree.ancestors(os.getpid(), procs)
        sessions = {procs[pid].session for pid in marked}
        sessions = {session for session in sessions if session not in procs or session in marked}
        return marked | {proc.pid for proc in procs.values() if proc.session in sessions}

    def _spared(self, procs: dict[int, Proc]) -> set[int]:
        return set(_live) | proctree.descendants(_live, procs)


def _is_orphaned(value: str | None, state_id: str) -> bool:
    """Whether a mark names a run of this state whose owner is gone, or has forgotten it."""
    state, _, rest = (value or "").partition(":")
    if not value or state != state_id:
        return False
    owner = rest.partition(":")[2].partition(":")[0]
    pid, _, started = owner.partition(".")
    if pid == str(os.getpid()) and started == process_id.own_start_time():
        return value not in {leader.mark for leader in _live.values()}
    return not pid.isdigit() or process_id.start_time(int(pid)) != started


def _no_start(argv: Sequence[str], cwd: Path, error: OSError | ValueError) -> str:
    """Why a program could not be started, in words."""
    if not cwd.is_dir():
        return f"expected a folder to work in, got none at {cwd}; make it"
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return f"{argv[0]} can not be started: {said}"
