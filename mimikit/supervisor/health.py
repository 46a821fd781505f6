"""The consumer's heartbeat: `health.json`, for the page, the terminal and watchdogs."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta

import mimikit
from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, Health, LiveRun
from mimikit.supervisor.books import Books

BEAT = timedelta(seconds=4.5)


class Heartbeat:
    """Writes at most every BEAT, and at once when the seats change."""

    def __init__(
        self,
        books: Books,
        *,
        worker_seats: int,
        queued: Callable[[], dict[str, int]],
        engines: Callable[[], dict[str, EngineStatus]],
        teller_waits: Callable[[], EngineStatus | None],
    ) -> None:
        """The callables give what only others know."""
        self._books = books
        self._worker_seats = worker_seats
        self._queued, self._engines, self._teller_waits = queued, engines, teller_waits
        self._started_at = books.clock.now()
        self._last: datetime | None = None
        self._shown: tuple[object, ...] = ()
        self.degraded: str | None = None

    def beat(self, now: datetime, tick_age_s: float) -> bool:
        """Write when it is time or something changed; gives whether it did."""
        books = self._books
        live = books.live.list()
        waits = self._teller_waits()
        reason = waits.reason if waits else None
        shown = (_seats(live), books.runtime.paused, self.degraded, reason)
        changed = shown != self._shown
        due = self._last is None or now - self._last >= BEAT or now < self._last
        if not (changed or due):
            return False
        self._last, self._shown = now, shown
        try:
            books.files.write(
                paths.HEALTH, self._health(now, live, tick_age_s).to_json(), sync=False
            )
        except StorageError:
            return False
        if changed:
            books.feed.tell("status")
        return changed

    def _health(self, now: datetime, live: list[LiveRun], tick_age_s: float) -> Health:
        engines = self._engines()
        if waits := self._teller_waits():
            engines["teller"] = waits
        return Health(
            pid=os.getpid(),
            version=mimikit.__version__,
            started_at=self._started_at,
            beat_at=now,
            tick_age_s=round(tick_age_s, 2),
            open_files=_open_files(),
            queued=self._queued(),
            live=live,
            worker_seats=self._worker_seats,
            paused=self._books.runtime.paused,
            engines=engines,
            degraded=self.degraded,
        )


def _seats(live: list[LiveRun]) -> tuple[tuple[str, str], ...]:
    return tuple((run.id, run.headline) for run in live)


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, no paths
    except OSError:
        return 0
