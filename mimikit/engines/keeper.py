"""Stands in front of a run that has no sandbox: what that starts stays below this process.

A program of its own, which loads nothing of mimikit's and outlives the consumer: when the run has
ended, or the consumer has, it ends all that is left below it, and then itself as the run did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
_LOOK_EVERY_S = 0.5
_GRACE_S = 1.0
_PATIENCE_S = 5.0  # what the kernel has not let go of then is left to it


def keep(owner: int, argv: list[str]) -> int:
    """Run a program to its end or that of `owner`, the parent; gives its exit code."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the program
    if os.getppid() != owner:
        return 1
    plain, env = (signal.SIGPIPE, signal.SIGXFSZ), os.environ
    program = os.posix_spawnp(argv[0], argv, env, setpgroup=0, setsigmask=(), setsigdef=plain)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # who waits for their end waits for the program alone
        os.dup2(null, stream)
    ended = dict[int, int]()
    while program not in ended and os.getppid() == owner:
        signal.sigtimedwait([signal.SIGCHLD], _LOOK_EVERY_S)
        ended = _reaped()
    kill_at, asked = time.monotonic() + (_GRACE_S if program in ended else 0), set[int]()
    while (pids := _children()) and (now := time.monotonic()) < kill_at + _PATIENCE_S:
        for pid in pids if now >= kill_at else pids - asked:  # what they leave comes here
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if now >= kill_at else signal.SIGTERM)
        asked |= pids
        signal.sigtimedwait([signal.SIGCHLD], 0.02)
        _reaped()
    return os.waitstatus_to_exitcode(ended.get(program, signal.SIGKILL))


def _reaped() -> dict[int, int]:
    """The children that have ended since the last look, each with how."""
    ended = dict[int, int]()
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


def _children() -> set[int]:
    with contextlib.suppress(OSError):  # a kernel without that list: the consumer looks itself
        return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()))
    return set()


if __name__ == "__main__":
    code = keep(int(sys.argv[1]), sys.argv[2:])
    if code < 0:  # as it was ended
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with contextlib.suppress(OSError):  # there is nothing to set of SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
