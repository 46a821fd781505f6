"""The supervisor's loop: built-in operations in order, at each event and at least every second.

An operation that fails is logged and backs off for a second; the others go on. The heartbeat
(`health.json`) is for the page, the terminal and watchdogs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import mimikit
from mimikit.clock import ClockWatch, jump_at_start
from mimikit.conversation import inbox
from mimikit.errors import StorageError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, QueueName
from mimikit.protocol.runtime import Health
from mimikit.supervisor import recovery
from mimikit.supervisor.archiver import Archiver
from mimikit.supervisor.command_applier import CommandApplier
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.consumer_lock import StateGuard
from mimikit.supervisor.llm_eval import LlmEvalBatch
from mimikit.supervisor.notifier import Notifier
from mimikit.supervisor.retention import Retention
from mimikit.supervisor.self_awake import ImprovementScheduler
from mimikit.supervisor.store import Store
from mimikit.supervisor.teller_scheduler import TellerScheduler
from mimikit.supervisor.trigger_scheduler import TriggerScheduler
from mimikit.tasks import queue

Operation = Callable[[datetime], bool]
REST_S = 1.0
LONGEST_WAIT_S = 1.0
BEAT = timedelta(seconds=4.5)
LOG_EVERY = 300
"""A repeated failure of an operation is logged the first and each 300th time."""


@dataclass(frozen=True, slots=True)
class Failure:
    error: str
    text: str
    times: int
    """Identical ones in a row."""
    retry_at: float
    """Monotonic."""


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
        notifier: Notifier,
        archiver: Archiver,
        retention: Retention,
        self_awake: ImprovementScheduler,
        guard: StateGuard,
        rest: CrashRest,
        heartbeat: HeartbeatWriter | None,
        is_claimed: Callable[[QueueName, str], bool],
    ) -> None:
        """`is_claimed(seat, name)`: whether a thread has that file in `running/`."""
        self.store = store
        self.triggers = triggers
        self.archiver, self.notifier = archiver, notifier
        self.retention = retention
        self._rest, self._heartbeat = rest, heartbeat
        self._applier, self._teller = applier, teller
        self._clock_watch = ClockWatch(store.clock)
        self.failures: dict[str, Failure] = {}
        """By operation, the newest last; removed when it succeeds."""
        self.last_tick = store.clock.monotonic()
        self.last_step = self.last_tick
        """When the last operation, or wait for the next pass, began. Monotonic."""
        self._operations: list[tuple[str, Operation]] = [
            ("check the state folder", guard.step),
            ("back off after crashes", rest.step),
            ("watch the clock", self._watch_clock),
            ("end runs", applier.end_runs),
            ("apply commands", commands.step),
            ("requeue stray tasks", recovery.StrayTasks(store, is_claimed).step),
            ("read the drop file", lambda now: inbox.read_drop_file(store.files, now)),
            # Before what may take long: the user must not wait for it.
            ("run the Teller", teller.step),
            ("send notifications", notifier.step),
            ("refresh triggers", triggers.refresh_changed),
            ("fire triggers", triggers.fire_due),
            ("evaluate llm conditions", llm_eval.step),
            ("archive memory", archiver.step),
            ("improve while idle", self_awake.step),
            ("delete expired files", retention.step),
            ("checkpoint the ledger", store.ledger.keep_up),
        ]

    def start(self) -> None:
        """Recover, then read the triggers; before anything else reads the state."""
        now = self.store.clock.now()
        last_seen = recovery.last_seen(self.store)
        self.notifier.follow_channels()  # what recovery ends is sent too
        recovery.recover(self.store, self._applier, now)
        if by := jump_at_start(last_seen, now):
            self._clock_jumped(by, now)
        self.archiver.recover(now)
        self.triggers.load(now)
        self.triggers.remove_orphaned_states(now)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.tick(stop)
            self.last_step = self.store.clock.monotonic()
            self.store.events.bell.wait(self._wait_s())

    def tick(self, stop: threading.Event | None = None, passes: int = 1000) -> bool:
        """One pass over all operations, repeated while they find work; returns whether any did."""
        worked = False
        for _ in range(passes):
            self.last_tick = self.store.clock.monotonic()
            now = self.store.clock.now()
            again = [self._try(name, operation, now) for name, operation in self._operations]
            if self._heartbeat is not None:
                age_s = self.store.clock.monotonic() - self.last_tick
                failing = [f"{name}: {one.text}" for name, one in self.failures.items()][-1:]
                self._heartbeat.beat(now, age_s, self._rest.reason or "".join(failing) or None)
            worked = worked or any(again)
            if not any(again) or (stop is not None and stop.is_set()):
                break
        return worked

    def _watch_clock(self, now: datetime) -> bool:
        if by := self._clock_watch.jump():
            self._clock_jumped(by, now)
            self._clock_watch.settle()
        return False

    def _clock_jumped(self, by: timedelta, now: datetime) -> None:
        """Log the jump, pause deletion, recompute waits.

        Crash: the next start sees a jump back again; a wait that is shortened twice ends early.
        """
        self.store.log.write("audit", "clock_jumped", seconds=by.total_seconds())
        self.store.save_runtime(clock_jumped_at=now)
        self.triggers.replan(now)
        if by < timedelta():
            queue.shorten_waits(self.store.files, -by, self.store.unreleased)
        self._teller.clock_jumped(by)  # last: it moves a question once

    def _wait_s(self) -> float:
        due = self.triggers.index.next_due()
        if due is None or self._is_backing_off("fire triggers"):
            return LONGEST_WAIT_S
        until_due = (due - self.store.clock.now()).total_seconds()
        return min(max(until_due, 0.001), LONGEST_WAIT_S)

    def _try(self, name: str, operation: Operation, now: datetime) -> bool:
        monotonic = self.last_step = self.store.clock.monotonic()
        if self._is_backing_off(name):
            return False
        try:
            done = operation(now)
        except Exception as error:
            if shortage_of(error):
                raise  # it ends the process
            last = self.failures.pop(name, None)
            times = last.times + 1 if last is not None and last.error == repr(error) else 1
            self.failures[name] = Failure(repr(error), str(error), times, monotonic + REST_S)
            if times == 1 or times % LOG_EVERY == 0:
                facts = {"operation": name, "error": repr(error), "times": times}
                self.store.log.write("error", "operation_failed", **facts)
            return False
        self.failures.pop(name, None)
        return done

    def _is_backing_off(self, name: str) -> bool:
        failure = self.failures.get(name)
        return failure is not None and failure.retry_at > self.store.clock.monotonic()


class CrashRest:
    """After several crashes, starts no task for a while; messages are answered meanwhile."""

    def __init__(self, store: Store, changed: Callable[[], None]) -> None:
        """`changed` is called when tasks may start again."""
        self._store, self._changed, self._until = store, changed, float("-inf")
        self.reason: str | None = None
        """Why no task starts now, for users."""

    def note_start(self, now: datetime) -> str | None:
        """Record a start of the consumer; returns why tasks have to wait, if they do."""
        store = self._store
        wait_s = recovery.back_off(list(store.runtime.starts), now).total_seconds()
        store.save_runtime(starts=[*store.runtime.starts, now][-recovery.CRASHES :])
        if wait_s:
            window_min = recovery.CRASH_WINDOW.total_seconds() / 60
            crashes = f"{recovery.CRASHES} crashes within {window_min:g} minutes"
            self.reason = f"tasks wait for {wait_s:g} s after {crashes}; messages are answered"
            self._until = store.clock.monotonic() + wait_s
            store.log.write("error", "tasks_rest", seconds=wait_s)
        return self.reason

    def step(self, _now: datetime) -> bool:
        if self.reason is not None and self._store.clock.monotonic() >= self._until:
            self.reason = None
            self._changed()
        return False


class HeartbeatWriter:
    """Writes `health.json` every BEAT, and immediately when something changes."""

    def __init__(
        self,
        store: Store,
        *,
        teller: TellerScheduler,
        queued: Callable[[], dict[str, int]],
        engines: Callable[[], dict[str, EngineStatus]],
        skipped: Callable[[], str | None],
        self_awake: ImprovementScheduler,
    ) -> None:
        self._store, self._teller, self._self_awake = store, teller, self_awake
        self._queued, self._engines, self._skipped = queued, engines, skipped
        self._started_at = store.clock.now()
        self._last: datetime | None = None
        self._shown: object = None

    def beat(self, now: datetime, tick_age_s: float, degraded: str | None) -> None:
        store, waits = self._store, self._teller.waiting
        degraded = degraded or self._skipped()
        live, paused = store.live.list(), store.runtime.paused
        seats = [(run.id, run.headline) for run in live]
        engines, budget = dict(self._teller.engines.shown), self._teller.budget.status(now)
        tokens = budget.but(used=0)
        why = self._self_awake.why
        shown = (seats, paused, degraded, waits and waits.reason, engines, tokens, why)
        changed = shown != self._shown
        if not changed and self._last is not None and abs(now - self._last) < BEAT:
            return
        self._last, self._shown = now, shown
        health = Health(
            pid=os.getpid(),
            version=mimikit.__version__,
            started_at=self._started_at,
            beat_at=now,
            tick_age_s=round(tick_age_s, 2),
            queued=self._queued(),
            live=live,
            worker_seats=store.settings.max_concurrency,
            paused=paused,
            engines=self._engines() | ({"teller": waits} if waits else {}),
            by_engine=engines,
            self_awake=why,
            budget=budget,
            degraded=degraded,
        )
        try:
            store.files.write(paths.HEALTH, health.to_json(), sync=False)
        except StorageError as error:
            if shortage_of(error):
                raise
            return
        if changed:
            store.feed.publish("status")
