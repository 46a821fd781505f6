"""The consumer: Huey's, with two pools, the supervisor's thread, and bells for periodic tasks.

One process, threads only. A pool serves one queue; the threads of both are Huey's workers on that
queue's own Huey. What is to be done in a run, in a tick, at a stop is given in as callables: this
room knows Huey and the threads, nothing else.
"""

# Huey carries no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from huey.consumer import Consumer, ConsumerStopped, Worker

from mimikit.clock import Clock
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Task
from mimikit.protocol.watch import BoundedThread, FolderWatch, LastingThread
from mimikit.runner.queues import TaskHuey, TaskStorage, open_queue

_logger = logging.getLogger(__name__)

_HEALTH_EVERY_S = 1
_LOOP_EVERY_S = 0.25  # Huey looks ten times a second; an idle machine feels that
_SCHEDULER_EVERY_S = 20  # it only rings, by the minute
_HUNG_AFTER_S = 30.0
_END_AFTER_S = 120.0
_LONGEST_STEP_S = 2.0
"""Between two looks at the supervisor; what is more was time in which nobody ran."""
_REPORT_S = 5.0
_GRACE_S = 10.0
_DUMP_S = 10
_STDERR = 2
HUNG_EXIT = 70
"""The exit code of a consumer that ended itself as it hung: EX_SOFTWARE."""
_DEQUEUE_WAIT_S = 30.0
_FALL_TOLD_S = 10.0
_SUPERVISOR_JOIN_S = 10.0


class PooledConsumer(Consumer):
    """Huey's consumer with a pool of threads for each queue of one state folder.

    The caller holds the folder's lock. Order of a stop: claim nothing more, `on_stopping`, wait for
    the workers, then for the supervisor, which so sees the outcome of the last run. Units: seconds.

    watch: who tells of new files in the queues; None: the folders are looked at every 50 ms.
    threads: how many threads serve each queue.
    run_task: does a claimed task and writes its result, on a pool thread; the supervisor then
        moves its file out of `running/`. It never raises; should it, that is logged.
    supervise: runs on its own thread until its event is set, to be looked at every second or
        so; it is started again a second after it fails.
    wake_supervisor: called after that event is set, so that its thread need not wake by itself.
    periodic: name → (cron, ring): five cron fields in UTC, and what to call then, briefly. Minutes
        may be missed or come twice: whoever is rung decides from files whether work is due.
    on_stopping: no task is claimed any more; let the runs end. May wait; the workers are then
        given `shutdown_timeout_s` more.
    last_step: the steady time at which the supervisor's last operation began. When that is the
        same for 30 s, `on_hung(age_s, stack)` is called; after 120 s it is called again, and the
        process ends itself, as by a kill: nobody else can take the place of a thread that hangs.
        Where the main thread stands still, or can not do so, a thread that waits for nobody does.
    others: by name, what starts another thread again if it died, and gives whether it had. They
        are asked each second. `fallen` tells of what died for a while; `on_fall(names)` is told
        of it once in that while.
    is_known_id: whether an id was used before; a dropped file that uses it again is quarantined.
        It is asked for every file on its way into and out of the queue: it must be quick.
    handle_signals: SIGTERM, SIGINT and SIGHUP stop it, where `run` is called in the main thread.
    """

    def __init__(
        self,
        files: Files,
        *,
        watch: FolderWatch | None,
        threads: Mapping[QueueName, int],
        run_task: Callable[[QueueName, Task], None],
        supervise: Callable[[threading.Event], None],
        wake_supervisor: Callable[[], None] = lambda: None,
        periodic: Mapping[str, tuple[str, Callable[[], None]]] | None = None,
        on_stopping: Callable[[], None] = lambda: None,
        last_step: Callable[[], float] | None = None,
        on_hung: Callable[[float, str], None] = lambda _age_s, _stack: None,
        others: Mapping[str, Callable[[], bool]] | None = None,
        on_fall: Callable[[str], None] = lambda _names: None,
        is_known_id: Callable[[str], bool] = lambda _task_id: False,
        clock: Clock | None = None,
        shutdown_timeout_s: float = 30.0,
        handle_signals: bool = True,
        settle_s: float = 2.0,
    ) -> None:
        self.hueys: dict[QueueName, TaskHuey] = {
            queue: open_queue(
                queue,
                files,
                run_task,
                is_known_id,
                watch=watch,
                clock=clock,
                read_timeout=_DEQUEUE_WAIT_S,
                settle_s=settle_s,
            )
            for queue in threads
        }
        self.storages: dict[QueueName, TaskStorage] = {s: h.storage for s, h in self.hueys.items()}
        first = next(iter(self.hueys.values()))
        for name, (cron, ring) in (periodic or {}).items():
            first.ring_at(name, cron, ring)
        # Huey makes its workers while it is made: which slot serves which queue comes first.
        self._slots: list[QueueName] = [
            queue for queue, count in threads.items() for _ in range(count)
        ]
        self._next_slot = itertools.count()
        self._supervise = supervise
        self._wake_supervisor = wake_supervisor
        self._on_stopping = on_stopping
        self._last_step = last_step
        self._on_hung = on_hung
        self._others, self._on_fall = others or {}, on_fall
        self._fallen, self._fallen_until = "", 0.0
        self._step_at, self._looked_at, self._still_s = 0.0, time.monotonic(), 0.0
        """The step that was under way at the last look, when that was, for how long it had been."""
        self._is_told = False
        self._handle_signals = handle_signals
        self._started = self._stopping = False
        self._stop_guard = threading.RLock()
        self._supervisor_stop = threading.Event()
        self._supervisor = LastingThread("supervisor")
        self._watchdog = LastingThread("watchdog")
        super().__init__(
            first,
            workers=len(self._slots),
            health_check_interval=_HEALTH_EVERY_S,
            shutdown_timeout=shutdown_timeout_s,
            scheduler_interval=_SCHEDULER_EVERY_S,
        )
        self._stop_flag_timeout = _LOOP_EVERY_S
        # All of them are graceful, and none of them starts the program anew.
        self._signal_actions = dict.fromkeys(
            (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), (False, True)
        )

    def run(self) -> None:
        """Serve until `stop` is called or a signal comes; returns when everything has ended."""
        self.start()
        checked_at = time.monotonic()
        with contextlib.suppress(ConsumerStopped):
            while True:
                checked_at = self.loop(checked_at)
        self.stop()

    def start(self) -> None:
        """Start the threads; signals are taken from the first moment on."""
        self._set_signal_handlers()
        with self._stop_guard:
            if not self._stopping:
                self._looked_at = time.monotonic()
                self._watchdog.begin(self._watch_over)
                self._supervisor.begin(self._run_supervisor)
                super().start()
                self._started = True

    def stop(self, graceful: bool = True) -> None:
        """Stop claiming, let the runs end, wait for every thread; from any thread.

        It happens once; whoever comes second waits for the first.
        """
        with self._stop_guard:
            if self._stopping:
                return
            self._stopping = True
            self.stop_flag.set()
            for storage in self.storages.values():
                storage.stop()
            try:
                self._on_stopping()
            except Exception:
                _logger.exception("the runs could not be told to end")
            if self._started and not self._join_workers():
                _logger.warning("not every run ended within %s s", self.shutdown_timeout)
            self._supervisor_stop.set()
            self._wake_supervisor()
            self._supervisor.join(_SUPERVISOR_JOIN_S)
            for storage in self.storages.values():
                storage.close()

    def end_soon(self) -> None:
        """Claim nothing any more; `run` stops everything and returns. From any thread."""
        self._handle_signal(signal.SIGTERM, None)

    def queued(self) -> dict[str, int]:
        """How many wait in each queue, as far as known: free of cost."""
        return {queue: storage.depth for queue, storage in self.storages.items()}

    def upcoming(self, queue: QueueName, most: int) -> list[str]:
        """The names of the files that are next in a queue: as cheap however many there are."""
        return self.storages[queue].upcoming(most)

    def is_claimed(self, queue: QueueName, name: str) -> bool:
        """Whether a thread has that file of `running/`."""
        return name in self.storages[queue].claimed

    def set_paused(self, paused: bool) -> None:
        """Claim nothing, or go on; waiting threads look at once."""
        for storage in self.storages.values():
            storage.paused = paused
            storage.wake()

    def check_worker_health(self) -> bool:
        """Bring back what died, each thread in its role; see whether the supervisor ticks."""
        if self.stop_flag.is_set():
            return True
        fallen: list[str] = []
        try:
            fallen.extend(self._bring_back())
        except (RuntimeError, MemoryError) as error:  # no thread is to be had: in a second, then
            _logger.warning("a thread that died could not be started again: %s", error)
            fallen.append("a thread")
        now = time.monotonic()
        if fallen:
            self._fallen = ", ".join(fallen)
            _logger.error("died, and was started again: %s", self._fallen)
            if now >= self._fallen_until:
                self._on_fall(self._fallen)
            self._fallen_until = now + _FALL_TOLD_S
        self._look_at_step(now)
        return not fallen

    def fallen(self) -> str | None:
        """What has died within the last seconds, for people; None: nothing."""
        is_told = time.monotonic() < self._fallen_until
        return f"died of an error, and was started again: {self._fallen}" if is_told else None

    def _bring_back(self) -> Iterator[str]:
        """Start again each thread that died, in its role; gives what for."""
        for slot, (_, thread) in enumerate(self.worker_threads):
            if _is_dead(thread):
                worker = self._worker_for(slot)
                again = self._create_process(worker, f"Worker-{slot + 1}")
                self.worker_threads[slot] = (worker, again)
                again.start()
                yield f"{self._slots[slot]} pool"
        if _is_dead(self.scheduler):
            self.scheduler = self._create_process(self._create_scheduler(), "Scheduler")
            self.scheduler.start()
            yield "scheduler"
        if self._supervisor.begin(self._run_supervisor):
            yield "supervisor"
        if self._watchdog.begin(self._watch_over):
            yield "watchdog"
        for storage in self.storages.values():
            storage.bring_back()
        for name, bring_back in self._others.items():
            if bring_back():
                yield name

    # ---- Huey's hooks -----------------------------------------------------------------------

    def _create_process(self, process: Any, name: str) -> threading.Thread:
        return BoundedThread(super()._create_process(process, name).run, name)

    def _create_worker(self) -> Worker:
        return self._worker_for(next(self._next_slot))

    def _worker_for(self, slot: int) -> Worker:
        return Worker(
            huey=self.hueys[self._slots[slot]],
            stop_flag=self.stop_flag,
            default_delay=self.default_delay,
            max_delay=self.max_delay,
            backoff=self.backoff,
        )

    def _set_signal_handlers(self) -> None:
        if self._handle_signals and threading.current_thread() is threading.main_thread():
            super()._set_signal_handlers()

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        self._signum = signum
        for storage in self.storages.values():
            storage.halt()  # at once; the rest is done by `loop` within 0.25 s

    # ---- the supervisor ---------------------------------------------------------------------

    def _run_supervisor(self) -> None:
        try:
            self._supervise(self._supervisor_stop)
        except Exception:
            _logger.exception("the supervisor failed")

    def _look_at_step(self, now: float) -> None:
        """Tell of an operation that does not come to its end; at last end this process.

        Only time counts in which this thread ran as well: after a sleep, or a SIGSTOP, nobody has
        hung for as long as the clock says.
        """
        lived_s, self._looked_at = min(now - self._looked_at, _LONGEST_STEP_S), now
        step_at = self._last_step() if self._last_step else now
        if step_at != self._step_at:
            self._step_at, self._still_s, self._is_told = step_at, 0.0, False
            return
        self._still_s += lived_s
        is_over = self._still_s > _END_AFTER_S
        if is_over or (self._still_s > _HUNG_AFTER_S and not self._is_told):
            self._is_told = True
            try:
                self._tell_hung()
                if is_over:
                    faulthandler.dump_traceback(sys.stderr, all_threads=True)
            finally:
                if is_over:
                    os._exit(HUNG_EXIT)

    def _watch_over(self) -> None:
        """End this process when the supervisor or the main thread stands still for too long.

        What hangs may hold any lock, that of the log as well, and memory may be out: this takes no
        lock, writes no file and asks for next to nothing. It counts seconds it slept itself, so a
        SIGSTOP, or a machine that sleeps, is one second at most.
        """
        step_at = looked_at = 0.0
        still_s = unseen_s = 0
        while not self.stop_flag.is_set():
            time.sleep(1)
            with contextlib.suppress(MemoryError):
                step = self._last_step() if self._last_step else self._looked_at
                still_s = still_s + 1 if step == step_at else 0
                unseen_s = unseen_s + 1 if looked_at == self._looked_at else 0
                step_at, looked_at = step, self._looked_at
            if max(still_s, unseen_s) > _END_AFTER_S + _GRACE_S and not self.stop_flag.is_set():
                signal.alarm(_DUMP_S)  # should even this wait, as for a terminal that is held
                try:
                    faulthandler.dump_traceback(_STDERR, all_threads=True)
                finally:
                    os._exit(HUNG_EXIT)

    def _tell_hung(self) -> None:
        """Report where the supervisor stands; on a thread of its own, which may hang as well."""
        age_s = self._still_s
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - public by its docs
        frame = frames.get((self._supervisor.thread and self._supervisor.thread.ident) or 0)
        stack = "".join(traceback.format_stack(frame)) if frame else "no stack"
        _logger.error("the supervisor has stood still for %.0f s:\n%s", age_s, stack)

        def report() -> None:
            try:
                self._on_hung(age_s, stack)
            except Exception:
                _logger.exception("the report of the hung supervisor failed")

        thread = BoundedThread(report, "hung-report")
        with contextlib.suppress(RuntimeError, MemoryError):  # no thread: the line above says it
            thread.start()
            thread.join(_REPORT_S)


def _is_dead(thread: Any) -> bool:
    return not thread.is_alive()
