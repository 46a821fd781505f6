"""Recovery at start, before any work: finishes what a crash left half done.

Every step is idempotent. Orphan processes and scratch folders are gone by then (app.py); some
operations recover their own right after: summaries (`Archiver.recover`), firings
(`TriggerScheduler.load`), turns (TellerScheduler). Source: spec 7, recovery.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta

from mimikit.errors import UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.models import REMINDER, QueueName, Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import Health
from mimikit.protocol.triggers import PlanResult
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import RunEnd, TaskEnd, after_run

LOOK_EVERY_S, STRAY_AFTER_S = 2.0, 5.0
CRASHES = 3
CRASH_WINDOW = timedelta(minutes=5)
BACK_OFF = timedelta(seconds=30)


def recover(store: Store, applier: CommitApplier, now: datetime) -> None:
    files = store.files
    for folder, records in paths.RECORDS.items():
        files.names(folder, suffix=records.suffix)  # sets aside what can be no record
    folders = (*paths.FOLDERS, paths.ROOT)
    for folder in folders:
        files.sweep_temps(folder)
    # The newest line files are those that a kill may have left unflushed.
    days = files.names(paths.TRANSCRIPT, suffix=".jsonl")[-2:]
    newest = [f"{paths.LEDGER}/{name}" for name in files.names(paths.LEDGER, suffix=".jsonl")[-1:]]
    newest += [f"{paths.USAGE}/{name}" for name in files.names(paths.USAGE, suffix=".jsonl")[-1:]]
    files.settle(folders, [*newest, *(f"{paths.TRANSCRIPT}/{name}" for name in days)])
    # A record that cannot be set aside is no reason not to start.
    with contextlib.suppress(UnsafeFile):
        applier.apply_turns()
    for plan in files.load_all("planner/results", PlanResult):
        if plan.status != "needs_input" or files.exists(paths.running("planner", plan.id)):
            with contextlib.suppress(UnsafeFile):
                applier.apply(plan)
    running: list[tuple[QueueName, str]] = [
        (seat, name) for seat in paths.QUEUES for name in files.names(f"{seat}/running")
    ]
    commands = queue.waiting_commands(files) if running else []
    canceled = {command.target for command in commands if command.action == "cancel"}
    for seat, name in running:
        path = paths.running(seat, name.removesuffix(".json"))
        with contextlib.suppress(UnsafeFile), files.carried_out(path):
            if task := queue.read(files, seat, path):
                _recover_running(store, applier, task, now, canceled=task.id in canceled)
            else:  # not a task: into quarantine with it, with the reason
                files.load(path, Task)


class StrayTasks:
    """Requeues files in `running/` that no thread runs."""

    def __init__(self, store: Store, is_claimed: Callable[[QueueName, str], bool]) -> None:
        """`is_claimed(seat, name)`: from before a file is claimed until its run is over."""
        self._store, self._is_claimed = store, is_claimed
        self._look_at = 0.0
        self._since: dict[tuple[QueueName, str], float] = {}

    def step(self, _now: datetime) -> bool:
        """Requeue what has been a stray for a while; gives False. Crash: one rename."""
        monotonic = self._store.clock.monotonic()
        if monotonic >= self._look_at:
            self._look_at = monotonic + LOOK_EVERY_S
            known, self._since = self._since, {}
            for seat in paths.QUEUES:
                for name in self._strays(seat):
                    self._since[seat, name] = known.get((seat, name), monotonic)
            for (seat, name), since in list(self._since.items()):
                if monotonic - since >= STRAY_AFTER_S:
                    self._put_back(seat, name)
        return False

    def _strays(self, seat: QueueName) -> list[str]:
        names, store = self._store.files.names(f"{seat}/running"), self._store
        known = {*store.canceling, *store.held, *(run.id for run in store.live.list())}
        return [
            name
            for name in names  # listed first: one that comes meanwhile is claimed
            if name.removesuffix(".json") not in known and not self._is_claimed(seat, name)
        ]

    def _put_back(self, seat: QueueName, name: str) -> None:
        files, task_id = self._store.files, name.removesuffix(".json")
        path, queued = paths.running(seat, task_id), paths.queued(seat, task_id)
        if files.exists(queued) or files.exists(paths.ended(seat, task_id)):
            files.set_aside(path, "nobody runs it, and its id was used already")
        elif files.exists(paths.result(seat, task_id)):
            pass  # the run is over; the disk refuses its end for now
        elif files.move(path, queued):
            self._store.log.write("audit", "stray_put_back", path=path)


def last_seen(store: Store) -> datetime | None:
    """When a consumer of this folder last ran: its heartbeat stays only when it was killed."""
    health = store.files.peek(paths.HEALTH, Health)
    return health.beat_at if health else store.runtime.seen_at


def back_off(starts: list[datetime], now: datetime) -> timedelta:
    """How long to start no task, after starts that did not end cleanly. Pure.

    Messages need no back-off: a turn that was cut short twice is ended by code.
    """
    recent = [start for start in starts if abs(now - start) < CRASH_WINDOW]
    return BACK_OFF if len(recent) >= CRASHES else timedelta()


def _recover_running(
    store: Store, applier: CommitApplier, task: Task, now: datetime, *, canceled: bool
) -> None:
    files, seat = store.files, task.role
    if seat == "worker":
        if result := files.load(paths.result("worker", task.id), TaskResult):
            applier.apply(result)
            return
    elif files.exists(paths.plan_done(task.id)):
        queue.leave_running(files, seat, task.id)
        return
    if canceled:  # the command was accepted: no next attempt, and no failure either
        begun = task.attempts + (not task.released)
        applier.finish_canceled(task.but(attempts=begun), now)
        return
    if task.released:
        queue.finish_release(files, task)
        return
    if task.profile == REMINDER and seat == "worker":  # its words can be told as well now
        queue.end_reminder(files, task.but(created_at=now), task.not_before)
        applier.end_run(seat, task.id)
        return
    # The consumer died under this run: a failed attempt, or the task's end.
    ended = RunEnd("failed", "killed", interrupted=True)
    engine_retry_s = store.settings.limits.engine_retry_s
    decision = after_run(task, ended, now, retry_delay_s=0, engine_retry_s=engine_retry_s)
    if isinstance(decision, TaskEnd):
        applier.end_without_engine(task, decision, now, error="the consumer ended while this ran")
    else:
        facts = {"seat": seat, "attempt": task.attempts + 1, "next": True}
        store.ledger.write("interrupted", task.id, now, **facts)
        queue.release(files, decision)
