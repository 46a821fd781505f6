"""Deletes expired records and logs after the retention time, with a log line each.

Nothing is deleted until 24 h after a clock jump. Huey's periodic job calls `ring`, sometimes twice
or not at all, so whether a pass is due is decided here.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from mimikit.clock import may_delete
from mimikit.log import rotated_logs
from mimikit.protocol import paths
from mimikit.supervisor.store import Store
from mimikit.tasks.usage import is_summed_up

EVERY = timedelta(hours=20)
BATCH = 200
_EXPIRING = (
    *(paths.RUNS, paths.SIDE, paths.DIFFS, paths.TURN_PROMPTS, paths.TURNS_DONE, paths.USAGE),
    *(paths.COMMANDS_DONE, "planner/done", "planner/ended", "worker/ended", "worker/results"),
)


class Retention:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._requested = threading.Event()
        self._requested.set()
        self._todo: list[str] = []

    def ring(self) -> None:
        """Request a pass; from any thread."""
        self._requested.set()

    def step(self, now: datetime) -> bool:
        """Remove the next batch; always False, as the next tick is soon enough."""
        if not may_delete(self._store.runtime.clock_jumped_at, now):
            self._todo = []
            return False
        if not self._todo and self._requested.is_set():
            self._requested.clear()
            last = self._store.runtime.last_retention_at
            if last is None or abs(now - last) >= EVERY:
                self._todo = self._expired(now)
                self._store.save_runtime(last_retention_at=now)
        batch, self._todo = self._todo[:BATCH], self._todo[BATCH:]
        for path in batch:
            self._store.files.remove(path)
            self._store.log.write("audit", "expired", path=path)
        return False

    def _expired(self, now: datetime) -> list[str]:
        """Paths past the retention time, and the oldest rotated logs above the size limit."""
        files, settings = self._store.files, self._store.settings.retention
        limit_ns = int((now - timedelta(days=settings.days)).timestamp() * 1e9)
        needed = {name.removeprefix("res-") for name in files.names(paths.INBOX)}
        needed |= {f"{run.id}.jsonl" for run in self._store.live.list()}
        expired: list[str] = []
        for folder in _EXPIRING:
            for name, stat in files.stats(folder, suffix=paths.RECORDS[folder].suffix).items():
                is_needed = folder == paths.USAGE and not is_summed_up(files, name[:10])
                if stat.mtime_ns < limit_ns and name not in needed and not is_needed:
                    expired.append(f"{folder}/{name}")
        left = settings.logs_mb * 2**20
        for name in reversed(rotated_logs(files)):
            if (stat := files.stat(name)) is not None:
                left -= stat.size
                if stat.mtime_ns < limit_ns or left < 0:
                    expired.append(name)
        return expired
