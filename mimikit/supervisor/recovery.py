"""Recovery at start, before any work: finishes what a crash interrupted. Idempotent.

Before it, `processes.py` ends orphan processes and removes scratch folders. After it, operations
recover their own state: summaries (`Archiver.recover`), firings (`TriggerScheduler.load`), turns
(TellerScheduler). Source: spec 7, recovery.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime

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

CHECK_EVERY_S, STRAY_AFTER_S = 2.0, 5.0


def recover(store: Store, applier: CommitApplier, now: datetime) -> None:
    files = store.files
    for folder, records in paths.RECORDS.items():
        files.names(folder, suffix=records.suffix)  # quarantines files of other kinds
    folders = (*paths.FOLDERS, paths.ROOT)
    for folder in folders:
        files.sweep_temps(folder)
    # The newest line files are those that a kill may have left unflushed.
    days = files.names(paths.TRANSCRIPT, suffix=".jsonl")[-2:]
    newest = [f"{paths.LEDGER}/{name}" for name in files.names(paths.LEDGER, suffix=".jsonl")[-1:]]
    newest += [f"{paths.USAGE}/{name}" for name in files.names(paths.USAGE, suffix=".jsonl")[-1:]]
    files.sync_written(folders, [*newest, *(f"{paths.TRANSCRIPT}/{name}" for name in days)])
    # A bad record that cannot be moved away must not prevent the start.
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
        with contextlib.suppress(UnsafeFile), files.quarantine_if_refused(path):
            if task := queue.read(files, seat, path):
                _recover_running(store, applier, task, now, canceled=task.id in canceled)
            else:
                files.load(path, Task)  # quarantines it, as it is not a task


class StrayTasks:
    """Requeues files in `running/` that no thread runs."""

    def __init__(self, store: Store, is_claimed: Callable[[QueueName, str], bool]) -> None:
        """`is_claimed(queue, name)`: true from before the claim of a file until its run is over."""
        self._store, self._is_claimed = store, is_claimed
        self._check_at = 0.0
        self._since: dict[tuple[QueueName, str], float] = {}

    def step(self, _now: datetime) -> bool:
        """Requeue strays older than STRAY_AFTER_S; returns False. Crash: one rename."""
        monotonic = self._store.clock.monotonic()
        if monotonic >= self._check_at:
            self._check_at = monotonic + CHECK_EVERY_S
            known, self._since = self._since, {}
            for seat in paths.QUEUES:
                for name in self._unclaimed(seat):
                    self._since[seat, name] = known.get((seat, name), monotonic)
            for (seat, name), since in list(self._since.items()):
                if monotonic - since >= STRAY_AFTER_S:
                    self._requeue(seat, name)
        return False

    def _unclaimed(self, seat: QueueName) -> list[str]:
        names, store = self._store.files.names(f"{seat}/running"), self._store
        known = {*store.canceling, *store.unreleased, *(run.id for run in store.live.list())}
        return [
            name
            for name in names  # listed first: one that comes meanwhile is claimed
            if name.removesuffix(".json") not in known and not self._is_claimed(seat, name)
        ]

    def _requeue(self, seat: QueueName, name: str) -> None:
        files, task_id = self._store.files, name.removesuffix(".json")
        path, queued = paths.running(seat, task_id), paths.queued(seat, task_id)
        if files.exists(queued) or files.exists(paths.ended(seat, task_id)):
            files.try_quarantine(path, "nobody runs it, and its id was used already")
        # With a result the run is over; a storage error delays its end.
        elif not files.exists(paths.result(seat, task_id)) and files.move(path, queued):
            self._store.log.write("audit", "stray_put_back", path=path)


def last_seen(store: Store) -> datetime | None:
    """When a consumer of this folder last ran; only a killed one leaves its heartbeat."""
    health = store.files.peek(paths.HEALTH, Health)
    return health.beat_at if health else store.runtime.seen_at


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
    if canceled:  # the command was accepted: no retry, and no failure
        begun = task.attempts + (not task.released)
        applier.finish_canceled(task.but(attempts=begun), now)
        return
    if task.released:
        queue.finish_release(files, task)
        return
    if task.profile == REMINDER and seat == "worker":
        queue.end_reminder(files, task.but(created_at=now), task.not_before)
        applier.end_run(seat, task.id)
        return
    # The consumer died during this run: retry it, or end the task.
    ended = RunEnd("failed", "killed", interrupted=True)
    engine_retry_s = store.settings.limits.engine_retry_s
    decision = after_run(task, ended, now, retry_delay_s=0, engine_retry_s=engine_retry_s)
    if isinstance(decision, TaskEnd):
        applier.end_without_engine(task, decision, now, error="mimikit ended while this ran")
    else:
        facts = {"seat": seat, "attempt": task.attempts + 1, "next": True}
        store.ledger.write("interrupted", task.id, now, **facts)
        queue.release(files, decision)
