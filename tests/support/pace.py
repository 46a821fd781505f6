"""Limits that guard against something endless: they grow with how slow this machine is just now."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable

USUAL_S = 0.012
"""So long the loop below takes on an ordinary machine, of processor."""
LOOK_EVERY_S = 10


def within(limit_s: float) -> float:
    """A limit that holds on an ordinary, free machine, longer where this one is slow or busy.

    How busy it is tells the load of the last minute, and how long a loop takes just now: the load
    is late, and knows nothing of a processor that others of the same machine are given meanwhile.
    """
    load = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return limit_s * max(_slowness() * load, _slowness_now(int(time.monotonic() / LOOK_EVERY_S)))


@functools.lru_cache(maxsize=1)
def _slowness_now(_look: int) -> float:
    """The same with what others have of the processor; looked at seldom, as it takes a while."""
    return min(_loop_s(time.perf_counter) for _ in range(3)) / USUAL_S


@functools.cache
def _slowness() -> float:
    """How many times longer the processor takes here than usual; at least 1."""
    return max(1.0, min(_loop_s(time.thread_time) for _ in range(3)) / USUAL_S)


def _loop_s(clock: Callable[[], float]) -> float:
    began = clock()
    for _ in range(300_000):
        pass
    return clock() - began
