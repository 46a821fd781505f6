"""Deletes ended things after their retention time, a line of the log each.

Nothing is deleted until 24 h after a clock jump. The bell is rung by Huey's periodic jobs; whether
work is due is decided here from files and settings, since such bells skip and double.
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
LOOK_EVERY = timedelta(minutes=1)
BATCH = 200
"""Removals in one pass: a tick must not be held up by a month of runs."""
_SUFFIXES = {
    paths.RUNS: ".jsonl",
    paths.SIDE: ".txt",
    paths.DIFFS: ".json",
    paths.TURN_PROMPTS: ".json",
    paths.TURNS_DONE: ".json",
    paths.COMMANDS_DONE: ".json",
    "planner/done": ".json",
    "planner/ended": ".json",
    "worker/ended": ".json",
    "worker/results": ".json",
    paths.USAGE: ".jsonl",
}


class Retention:
    """Removes ended things older than the retention time, some at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rung = threading.Event()
        self._rung.set()
        self._todo: list[str] = []
        self._looked: dict[str, int] = {}
        """The time of each folder of records when it was looked through."""
        self._look_at: datetime | None = None

    def ring(self) -> None:
        """It may be time; any thread may say so."""
        self._rung.set()

    def step(self, now: datetime) -> bool:
        """Remove the next few; gives False, as it never hurries another pass."""
        if self._look_at is None or not now < self._look_at <= now + LOOK_EVERY:
            self._look_at = now + LOOK_EVERY
            self._set_aside()
        if not may_delete(self._store.runtime.clock_jumped_at, now):
            self._todo = []
            return False
        if not self._todo and self._rung.is_set():
            self._rung.clear()
            last = self._store.runtime.last_retention_at
            if last is None or abs(now - last) >= EVERY:
                self._todo = self._expired(now)
                self._store.save_runtime(last_retention_at=now)
        batch, self._todo = self._todo[:BATCH], self._todo[BATCH:]
        for path in batch:
            self._store.files.remove(path)
            self._store.log.write("audit", "expired", path=path)
        return False

    def _set_aside(self) -> None:
        """Have what can be no record leave the folders in which nobody looks for one by name."""
        for folder, records in paths.RECORDS.items():
            stat = self._store.files.stat(folder)
            if stat is not None and stat.mtime_ns != self._looked.get(folder):
                self._store.files.names(folder, suffix=records.suffix)
                self._looked[folder] = stat.mtime_ns

    def _expired(self, now: datetime) -> list[str]:
        """Everything past its time that nothing needs; of rotated logs also what is too much."""
        files, settings = self._store.files, self._store.settings.retention
        limit_ns = int((now - timedelta(days=settings.days)).timestamp() * 1e9)
        needed = {name.removeprefix("res-") for name in files.names(paths.INBOX)}
        needed |= {f"{run.id}.jsonl" for run in self._store.live.list()}
        found: list[str] = []
        for folder, suffix in _SUFFIXES.items():
            for name, stat in files.stats(folder, suffix=suffix).items():
                is_kept = folder == paths.USAGE and not is_summed_up(files, name[:10])
                if stat.mtime_ns < limit_ns and name not in needed and not is_kept:
                    found.append(f"{folder}/{name}")
        left = settings.logs_mb * 2**20
        for name in reversed(rotated_logs(files)):
            if (stat := files.stat(name)) is not None:
                left -= stat.size
                if stat.mtime_ns < limit_ns or left < 0:
                    found.append(name)
        return found
