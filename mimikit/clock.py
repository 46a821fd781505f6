"""Access to the machine's clocks, and detection of clock jumps.

Pure functions take `now`; all other code gets a Clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

JUMP = timedelta(minutes=1)
"""Smaller steps of the wall clock are ordinary corrections (NTP)."""
JUMP_AT_START = timedelta(days=7)
"""Smallest jump forwards while no consumer ran; a shorter gap counts as switched off."""
DELETE_PAUSE = timedelta(days=1)
"""After a clock jump, nothing is deleted for this long."""
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware, UTC, cut to milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; for deadlines."""
        ...

    def uptime(self) -> float:
        """Monotonic seconds that include suspend: tells a suspend from a clock jump."""
        ...


class SystemClock:
    def now(self) -> datetime:
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> float:
        return time.clock_gettime(_BOOT_CLOCK)


class ClockWatch:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._booted_at = self._boot_time()

    def jump(self) -> timedelta:
        """How far the wall clock jumped since `settle`, else 0."""
        by = self._boot_time() - self._booted_at
        return by if abs(by) >= JUMP else timedelta()

    def settle(self) -> None:
        self._booted_at = self._boot_time()

    def _boot_time(self) -> datetime:
        return self._clock.now() - timedelta(seconds=self._clock.uptime())


def jump_at_start(last_seen: datetime | None, now: datetime) -> timedelta:
    """How far the clock jumped while no consumer ran, else 0. Pure.

    last_seen: when a consumer last wrote that it runs.
    """
    by = now - last_seen if last_seen is not None else timedelta()
    return by if by <= -JUMP or by >= JUMP_AT_START else timedelta()


def may_delete(jumped_at: datetime | None, now: datetime) -> bool:
    """Whether the last clock jump is long enough ago. Pure."""
    return jumped_at is None or abs(now - jumped_at) >= DELETE_PAUSE
