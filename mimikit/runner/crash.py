"""Crash-only: what the consumer cannot live through ends it with one line; `up` starts it again.

Want of memory, threads or descriptors, a thread that died or hangs, a state folder that went: the
start recovers from all of them as from a kill.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import NoReturn

from mimikit.errors import shortage_of
from mimikit.protocol.watch import CriticalThread

CRASH_EXIT = 70
"""The exit code: EX_SOFTWARE."""
_LOG_S = 5
_STDERR = 2


def end_process(reason: str, log: Callable[[str], object] = lambda _reason: None) -> NoReturn:
    """End this process as a kill would, after one line; `log` gets a few seconds to keep it."""
    try:
        signal.alarm(_LOG_S)  # what hangs may hold any lock, that of the log or the terminal too
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"mimikit ends, to be started again: {reason}\n".encode())
        with contextlib.suppress(Exception):
            log(reason)
    finally:
        os._exit(CRASH_EXIT)


def end_with_threads(end: Callable[[str], object]) -> None:
    """Call `end(reason)` when a CriticalThread dies, or any thread of a shortage."""
    otherwise = threading.excepthook

    def thread_died(args: threading.ExceptHookArgs) -> None:
        try:
            shortage, thread = shortage_of(args.exc_value), args.thread
            if shortage is not None:
                end(shortage)
            otherwise(args)
            if CriticalThread.is_one(thread):
                end(f"the {thread.name if thread else ''} thread died: {args.exc_value!r}")
        except MemoryError:  # none is left to say so
            os._exit(CRASH_EXIT)

    threading.excepthook = thread_died
