"""The supervisor's loop: built-in operations in order, at each event and at least every second.

An operation that fails is logged and rests for a second; the others go on. The heartbeat
(`health.json`) is for the page, the terminal and watchdogs.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import mimikit
from mimikit.conversation import inbox
from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, Health
from mimikit.supervisor import recovery
from mimikit.supervisor.archiver import Archiver
from mimikit.supervisor.command_applier import CommandApplier
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.llm_eval import LlmEvalBatch
from mimikit.supervisor.retention import Retention
from mimikit.supervisor.store import Store
from mimikit.supervisor.teller_scheduler import TellerScheduler
from mimikit.supervisor.trigger_scheduler import TriggerScheduler

Operation = Callable[[datetime], bool]
REST_S = 1.0
LONGEST_WAIT_S = 1.0
BEAT = timedelta(seconds=4.5)
TOLD_EVERY = 300
"""An operation that fails in the same way at each try is told at the first and each of so many."""


class Supervisor:
    """Runs the operations. All shared state is written from its thread."""

    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        commands: CommandApplier,
        triggers: TriggerScheduler,
        llm_eval: LlmEvalBatch,
        teller: TellerScheduler,
        archiver: Archiver,
        retention: Retention,
        heartbeat: HeartbeatWriter | None = None,
    ) -> None:
        self.store = store
        self.triggers = triggers
        self.archiver = archiver
        self.retention = retention
        self._heartbeat = heartbeat
        self._applier = applier
        self._resting: dict[str, float] = {}
        self._told: dict[str, tuple[str, int]] = {}
        """The last error of an operation, and how often it came in a row."""
        self._degraded: tuple[str, str] | None = None
        """The operation that failed last, and how, until it succeeds."""
        self.last_tick = store.clock.monotonic()
        """The steady time at which the last pass began."""
        self._operations: list[tuple[str, Operation]] = [
            ("end runs", applier.end_runs),
            ("apply commands", commands.step),
            ("take in", lambda now: inbox.take_in_dropped(store.files, now)),
            ("look at triggers", triggers.refresh_changed),
            ("fire", triggers.fire_due),
            ("ask about conditions", llm_eval.step),
            ("wake", teller.step),
            ("archive", archiver.step),
            ("keep house", retention.step),
        ]

    def start(self) -> None:
        """Recover, then read the triggers. Before it nothing else may look at the state."""
        now = self.store.clock.now()
        recovery.recover(self.store, self._applier, now)
        self.archiver.recover(now)
        self.triggers.load(now)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.tick()
            self.store.events.bell.wait(self._wait_s())

    def tick(self) -> bool:
        """One pass over all operations, repeated while they find work; gives whether any did."""
        worked = False
        for _ in range(1000):
            self.last_tick = self.store.clock.monotonic()
            now = self.store.clock.now()
            again = [self._try(name, operation, now) for name, operation in self._operations]
            if self._heartbeat is not None:
                age_s = self.store.clock.monotonic() - self.last_tick
                self._heartbeat.beat(now, age_s, self._degraded and ": ".join(self._degraded))
            if not any(again):
                break
            worked = True
        return worked

    def _wait_s(self) -> float:
        due = self.triggers.index.next_due()
        if due is None or self._rests("fire"):
            return LONGEST_WAIT_S
        until_due = (due - self.store.clock.now()).total_seconds()
        return min(max(until_due, 0.001), LONGEST_WAIT_S)

    def _try(self, name: str, operation: Operation, now: datetime) -> bool:
        if self._rests(name):
            return False
        try:
            done = operation(now)
        except Exception as error:  # noqa: BLE001 - the loop outlives whatever an operation does
            self._resting[name] = self.store.clock.monotonic() + REST_S
            self._degraded = name, str(error)
            # The same over and over is told only now and then: the log is to last for months.
            last, times = self._told.get(name, ("", 0))
            times = times + 1 if last == repr(error) else 1
            self._told[name] = repr(error), times
            if times == 1 or times % TOLD_EVERY == 0:
                self.store.log.write(
                    "error", "operation_failed", operation=name, error=repr(error), times=times
                )
            if isinstance(error.__cause__, FileNotFoundError):
                # Somebody removed a folder of ours: what is next written in it finds it again.
                with contextlib.suppress(StorageError):
                    self.store.files.make_folders()
            return False
        self._told.pop(name, None)
        if self._degraded and self._degraded[0] == name:
            self._degraded = None
        return done

    def _rests(self, name: str) -> bool:
        return self._resting.get(name, 0) > self.store.clock.monotonic()


class HeartbeatWriter:
    """Writes at most every BEAT, and at once when the seats change."""

    def __init__(
        self,
        store: Store,
        *,
        teller: TellerScheduler,
        queued: Callable[[], dict[str, int]],
        engines: Callable[[], dict[str, EngineStatus]],
    ) -> None:
        """The callables give what only others know."""
        self._store, self._teller = store, teller
        self._queued, self._engines = queued, engines
        self._started_at = store.clock.now()
        self._last: datetime | None = None
        self._shown: object = None

    def beat(self, now: datetime, tick_age_s: float, degraded: str | None) -> None:
        """Write when it is time or something changed."""
        store, waits = self._store, self._teller.waiting
        live, paused = store.live.list(), store.runtime.paused
        seats = [(run.id, run.headline) for run in live]
        shown = (seats, paused, degraded, waits and waits.reason)
        changed = shown != self._shown
        if not changed and self._last is not None and timedelta() <= now - self._last < BEAT:
            return
        self._last, self._shown = now, shown
        try:
            open_files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, no paths
        except OSError:
            open_files = 0
        health = Health(
            pid=os.getpid(),
            version=mimikit.__version__,
            started_at=self._started_at,
            beat_at=now,
            tick_age_s=round(tick_age_s, 2),
            open_files=open_files,
            queued=self._queued(),
            live=live,
            worker_seats=store.settings.max_concurrency,
            paused=paused,
            engines=self._engines() | ({"teller": waits} if waits else {}),
            degraded=degraded,
        )
        try:
            store.files.write(paths.HEALTH, health.to_json(), sync=False)
        except StorageError:
            return
        if changed:
            store.feed.tell("status")
