"""Names for messages: sorted as text they are in Huey's order, higher priority and older first."""

from __future__ import annotations

import math
import os
import secrets
import struct
import threading

from mimikit.clock import Clock

_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1


class Namer:
    """Makes names that are never used twice, by this process or another."""

    def __init__(self, clock: Clock) -> None:
        """Take the time from `clock`; where it stands or goes back, the names still count on."""
        self._clock = clock
        self._guard = threading.Lock()
        self._pid = 0
        self._maker = ""
        self._last = 0

    def name(self, priority: float | None) -> str:
        """Higher priority first, then the earlier one."""
        return f"{falling(priority or 0)}-{self.suffix()}"

    def suffix(self) -> str:
        """The microsecond of its making, never the same twice, and who made it."""
        with self._guard:
            if self._pid != os.getpid():
                self._pid, self._maker = os.getpid(), secrets.token_hex(4)
            # The clock has milliseconds; what comes within one counts on.
            now = int(self._clock.now().timestamp() * 1000) * 1000
            self._last = max(now, self._last + 1)
            return f"{self._last:014x}-{self._maker}.json"


def falling(priority: float) -> str:
    """Any number as text that sorts the other way round: the bits of a float, made to count up."""
    if math.isnan(priority):
        raise ValueError("priority: expected a number, got nan")
    (bits,) = struct.unpack(">Q", struct.pack(">d", 0.0 - priority))
    return f"{bits ^ (_ALL_BITS if bits >> 63 else _SIGN):016x}"
