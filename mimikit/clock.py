"""The only place that asks the machine for the time.

Deciders take `now`; whoever needs the time is given a Clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells wall time and a steady time."""

    def now(self) -> datetime:
        """Wall time, aware, UTC, cut to milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; for deadlines."""
        ...


class SystemClock:
    def now(self) -> datetime:
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return time.monotonic()
