"""Keeps the folder from growing for ever: what has ended is removed after its time.

Not on the word of a clock that leapt: that must have gone on from there for a day. A machine that
is on for some hours every few days can not be told from one whose clock leaps at each start: there
the time of an earlier start is gone by, once the consumer has lived for a day since. What is
removed stands in the log.

The bell is rung by Huey's periodic jobs; whether there is something to do is decided here, from
files and settings, since such bells skip and double.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta

from mimikit.clock import CONFIRMED_AFTER
from mimikit.conversation import attachments
from mimikit.log import rotated_logs
from mimikit.protocol import paths
from mimikit.protocol.runtime import ClockDoubt
from mimikit.supervisor.store import Store
from mimikit.tasks.usage import is_summed_up

EVERY = timedelta(hours=20)
LOOK_EVERY = timedelta(minutes=1)
LIVED_EVERY_S = 600
"""So much of what it has lived a consumer that is killed may lose."""
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
    paths.NOTIFICATIONS_DONE: ".json",
    paths.NOTIFICATIONS: ".jsonl",
    paths.USAGE: ".jsonl",
    paths.HOOKS_DONE: ".json",
}
SIGNED_DAYS = 400
"""So long a signature is remembered: one that tells no time is good until then, and no longer seen.
"""


def after_leap(doubt: ClockDoubt | None, was: datetime, now: datetime, *, ran: bool) -> ClockDoubt:
    """What is believed when the clock, which showed `was`, shows `now`. Pure.

    ran: this was seen while the consumer ran; else ahead may only be time in which nobody did.
    """
    if doubt is not None and was <= now and not ran:
        return doubt.but(leapt_at=now)
    believed = min(doubt.believed if doubt else was, now)
    return ClockDoubt(leapt_at=now, believed=believed, proving=now)


def after_living(doubt: ClockDoubt, now: datetime, lived_s: float) -> ClockDoubt | None:
    """What is believed when the consumer has lived for so much more; None: the clock. Pure."""
    if abs(now - doubt.leapt_at) >= CONFIRMED_AFTER:
        return None
    if doubt.lived_s + lived_s < CONFIRMED_AFTER.total_seconds():
        return doubt.but(lived_s=doubt.lived_s + lived_s)
    return doubt.but(believed=doubt.proving, proving=now, lived_s=0.0)


class Retention:
    """Removes ended things older than the retention time, some at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rung = threading.Event()
        self._rung.set()
        self._todo: list[str] = []
        self._sent: Iterator[str | None] = iter(())
        """Which of the files that were sent are to go."""
        self._sent_limit_ns = 0
        self._looked: dict[str, int] = {}
        """The time of each folder of records when it was looked through."""
        self._look_at: datetime | None = None
        self._doubt: ClockDoubt | None = None
        self._lived_from = store.clock.monotonic()
        """Since then no life is written down."""

    def ring(self) -> None:
        """It may be time; any thread may say so."""
        self._rung.set()

    def step(self, now: datetime) -> bool:
        """Remove the next few; gives False, as it never hurries another pass."""
        if self._look_at is None or not now < self._look_at <= now + LOOK_EVERY:
            self._look_at = now + LOOK_EVERY
            self._set_aside()
        until = self._believed(now)
        if not self._todo and self._rung.is_set():
            self._rung.clear()
            last = self._store.runtime.last_retention_at
            if last is None or not timedelta() <= now - last < EVERY:
                self._todo = self._expired(until)
                days = timedelta(days=self._store.settings.files.days)
                self._sent_limit_ns = int((until - days).timestamp() * 1e9)
                self._sent = attachments.expired(self._store.files, self._sent_limit_ns)
                self._store.save_runtime(last_retention_at=now)
        batch, self._todo = self._todo[:BATCH], self._todo[BATCH:]
        files, log = self._store.files, self._store.log
        for path in batch:
            files.remove(path)
            log.write("audit", "expired", path=path)
        for file_id in itertools.islice(self._sent, BATCH):
            if file_id is None:
                break
            for path in attachments.remove_expired(files, file_id, self._sent_limit_ns):
                log.write("audit", "expired", path=path)
        return False

    def _believed(self, now: datetime) -> datetime:
        """So late it certainly is; what was decided before the clock leapt is decided anew."""
        store, steady = self._store, self._store.clock.monotonic()
        doubt = store.runtime.clock_doubt
        if doubt != self._doubt:
            self._todo, self._sent = [], iter(())
            self._doubt, self._lived_from = doubt, steady
        if doubt is not None:
            lived_s = steady - self._lived_from
            new = after_living(doubt, now, lived_s)
            is_later = new is None or new.proving != doubt.proving
            if is_later:
                store.save_runtime(last_retention_at=None)
                self._rung.set()
            if is_later or lived_s >= LIVED_EVERY_S:
                store.save_runtime(clock_doubt=new)
                self._doubt, self._lived_from = new, steady
        return store.believed(now)

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
        signed_ns = int((now - timedelta(days=SIGNED_DAYS)).timestamp() * 1e9)
        for name, stat in files.stats(paths.HOOKS_SEEN, suffix=".json").items():
            if stat.mtime_ns < signed_ns:
                found.append(f"{paths.HOOKS_SEEN}/{name}")
        left = settings.logs_mb * 2**20
        for number, name in enumerate(reversed(rotated_logs(files))):
            if (stat := files.stat(name)) is not None:
                left -= stat.size
                # The newest stays, however large: the next one is numbered after it.
                if stat.mtime_ns < limit_ns or (left < 0 and number):
                    found.append(name)
        return found
