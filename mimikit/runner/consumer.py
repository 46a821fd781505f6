"""Huey's consumer with two pools, the supervisor's thread, and periodic jobs.

One process, threads only; each pool's threads are Huey workers on that queue's own Huey.
"""

# Huey has no type annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NoReturn

from huey.consumer import Consumer, ConsumerStopped, Worker

from mimikit.clock import Clock
from mimikit.errors import shortage_of
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Task
from mimikit.protocol.watch import CriticalThread, FolderWatch
from mimikit.runner.queues import TaskHuey, TaskStorage, open_queue

_logger = logging.getLogger(__name__)

_HEALTH_EVERY_S = 1
_LOOP_EVERY_S = 0.25  # Huey's default, 0.1, costs too much while idle
_SCHEDULER_EVERY_S = 20  # periodic jobs have a resolution of a minute
_END_AFTER_S = 120.0
_DUMP_S = 10
_STDERR = 2
_DEQUEUE_WAIT_S = 30.0
_SUPERVISOR_JOIN_S = 10.0


# ---- crash-only: a fatal error ends the process with one line

CRASH_EXIT = 70
"""The exit code: EX_SOFTWARE."""
_LOG_S = 5


def end_process(reason: str, log: Callable[[str], object] = lambda _reason: None) -> NoReturn:
    """Exit immediately, after one line on stderr; `log` gets a few seconds to write it."""
    try:
        signal.alarm(_LOG_S)  # a hung thread may hold a lock of the log
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"mimikit ends, to be started again: {reason}\n".encode())
        with contextlib.suppress(Exception):
            log(reason)
    finally:
        os._exit(CRASH_EXIT)


def end_with_threads(end: Callable[[str], object]) -> None:
    """Call `end(reason)` when a CriticalThread dies, or any thread for lack of a resource."""
    otherwise = threading.excepthook

    def thread_died(args: threading.ExceptHookArgs) -> None:
        try:
            shortage, thread = shortage_of(args.exc_value), args.thread
            if shortage is not None:
                end(shortage)
            otherwise(args)
            if CriticalThread.is_one(thread):
                end(f"the {thread.name if thread else ''} thread died: {args.exc_value!r}")
        except MemoryError:
            os._exit(CRASH_EXIT)

    threading.excepthook = thread_died


class PooledConsumer(Consumer):
    """Huey's consumer with a pool of threads for each queue of one state folder.

    The caller holds the folder's lock. Order of a stop: claim nothing more, `on_stopping`, wait for
    the workers, then for the supervisor, which applies the last results. Units: seconds.

    watch: notifies of new files in the queues; None: the folders are listed every 50 ms.
    run_task: runs on a pool thread and writes the result; it never raises.
    supervise: runs on its own thread until its event is set; `wake_supervisor` is called then.
    periodic: name → (cron, ring): five cron fields in UTC. Minutes may be skipped or repeated: the
        callee decides from files whether work is due.
    on_stopping: ends the runs. May wait; the workers then get `shutdown_timeout_s` more.
    last_step: the monotonic time at which the supervisor's last operation began.
    crash: ends the process: a thread died, or the supervisor or main thread hung for 120 s.
    is_known_id: whether an id was used before. Called for every file: must be fast.
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
        crash: Callable[[str], object] = end_process,
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
        # Before Huey's __init__, which creates the workers.
        queues: list[QueueName] = [q for q, count in threads.items() for _ in range(count)]
        self._next_queue = iter(queues)
        self._supervise = supervise
        self._wake_supervisor = wake_supervisor
        self._on_stopping = on_stopping
        self._last_step = last_step
        self._crash = crash
        self._main_looped_at = time.monotonic()
        self._handle_signals = handle_signals
        self._started = self._stopping = False
        self._stop_guard = threading.RLock()
        self._supervisor_stop = threading.Event()
        self._supervisor = CriticalThread("supervisor")
        self._watchdog = CriticalThread("watchdog")
        super().__init__(
            first,
            workers=len(queues),
            health_check_interval=_HEALTH_EVERY_S,
            shutdown_timeout=shutdown_timeout_s,
            scheduler_interval=_SCHEDULER_EVERY_S,
        )
        self._stop_flag_timeout = _LOOP_EVERY_S
        # All stop gracefully; Huey would restart on SIGHUP.
        self._signal_actions = dict.fromkeys(
            (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), (False, True)
        )

    def run(self) -> None:
        """Run until `stop` is called or a signal comes; returns when all threads have ended."""
        self.start()
        checked_at = time.monotonic()
        with contextlib.suppress(ConsumerStopped):
            while True:
                checked_at = self.loop(checked_at)
        self.stop()

    def start(self) -> None:
        self._set_signal_handlers()
        with self._stop_guard:
            if not self._stopping:
                self._main_looped_at = time.monotonic()
                self._watchdog.begin(self._run_watchdog)
                self._supervisor.begin(self._run_supervisor)
                super().start()
                self._started = True

    def stop(self, graceful: bool = True) -> None:
        """Stop claiming, let the runs end, wait for every thread. Thread-safe; happens once."""
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
                _logger.exception("the runs could not be stopped")
            if self._started and not self._join_workers():
                _logger.warning("not every run ended within %s s", self.shutdown_timeout)
            self._supervisor_stop.set()
            self._wake_supervisor()
            self._supervisor.join(_SUPERVISOR_JOIN_S)
            for storage in self.storages.values():
                storage.close()

    def queued(self) -> dict[str, int]:
        return {queue: storage.depth for queue, storage in self.storages.items()}

    def upcoming(self, queue: QueueName, most: int) -> list[str]:
        return self.storages[queue].upcoming(most)

    def is_claimed(self, queue: QueueName, name: str) -> bool:
        return name in self.storages[queue].claimed

    def set_paused(self, paused: bool) -> None:
        for storage in self.storages.values():
            storage.paused = paused

    def check_worker_health(self) -> bool:
        self._main_looped_at = time.monotonic()
        if self.stop_flag.is_set():
            return True
        threads: list[Any] = [*(thread for _, thread in self.worker_threads), self.scheduler]
        died = [thread.name for thread in threads if not thread.is_alive()]
        if died:
            self._crash(f"the {', '.join(died)} thread died")
        return not died

    # ---- Huey's hooks -----------------------------------------------------------------------

    def _create_process(self, process: Any, name: str) -> threading.Thread:
        made = super()._create_process(process, name)
        return threading.Thread(target=made.run, name=name, daemon=True)

    def _create_worker(self) -> Worker:
        return Worker(
            huey=self.hueys[next(self._next_queue)],
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
            storage.halt()  # `loop` does the rest within 0.25 s

    # ---- the supervisor ---------------------------------------------------------------------

    def _run_supervisor(self) -> None:
        try:
            self._supervise(self._supervisor_stop)
        except Exception as error:
            _logger.exception("the supervisor failed")
            self._crash(shortage_of(error) or f"the supervisor failed: {error!r}")

    def _run_watchdog(self) -> None:
        """End the process when the supervisor or the main thread hangs.

        Time is counted in sleeps, so that a SIGSTOP or a suspend counts as one second.
        """
        step_at = main_looped_at = 0.0
        hung_s = unseen_s = 0
        while not self.stop_flag.is_set():
            time.sleep(1)
            step = self._last_step() if self._last_step else self._main_looped_at
            hung_s = hung_s + 1 if step == step_at else 0
            unseen_s = unseen_s + 1 if main_looped_at == self._main_looped_at else 0
            step_at, main_looped_at = step, self._main_looped_at
            if max(hung_s, unseen_s) > _END_AFTER_S and not self.stop_flag.is_set():
                signal.alarm(_DUMP_S)  # in case stderr blocks
                faulthandler.dump_traceback(_STDERR, all_threads=True)
                who = "supervisor" if hung_s > _END_AFTER_S else "main"
                self._crash(f"the {who} thread hung for {_END_AFTER_S:g} s")
                return
