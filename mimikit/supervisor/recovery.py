"""What is done at start before anything else: make true what a crash left half done.

Every step is idempotent, so a crash in here only means doing it again. Source: spec 7, recovery.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit.conversation import turns
from mimikit.protocol import paths
from mimikit.protocol.models import PlanResult, QueueName, Task, TaskResult
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.store import Store
from mimikit.tasks import commands, queue
from mimikit.tasks.after_run import RunEnd, TaskEnd, after_run

CRASHES = 3
CRASH_WINDOW = timedelta(minutes=5)
BACK_OFF = timedelta(seconds=30)


def recover(store: Store, applier: CommitApplier, now: datetime) -> None:
    """Bring the state folder to a state no crash is visible in."""
    folders = (*paths.FOLDERS, paths.ROOT)
    for folder in folders:
        store.files.sweep_temps(folder)
    store.files.settle(folders, _newest_lines(store))
    replay_commits(store, applier)
    canceled = {o.target for o in commands.waiting(store.files) if o.action == "cancel"}
    for seat in paths.QUEUES:
        for name in store.files.names(f"{seat}/running"):
            task_id = name.removesuffix(".json")
            _recover_running(store, applier, seat, task_id, now, canceled=task_id in canceled)


def _newest_lines(store: Store) -> list[str]:
    """The files of lines that were written last: those a kill may have left unflushed."""
    ledgers = store.files.names(paths.LEDGER, suffix=".jsonl")[-1:]
    days = store.files.names(paths.TRANSCRIPT, suffix=".jsonl")[-2:]
    return [f"{paths.LEDGER}/{name}" for name in ledgers] + [
        f"{paths.TRANSCRIPT}/{name}" for name in days
    ]


def replay_commits(store: Store, applier: CommitApplier) -> None:
    """Apply every commit record that is not applied yet."""
    for record in turns.unapplied(store.files):
        applier.apply_turn(record)
    for plan in store.files.load_all("planner/results", PlanResult):
        if plan.status != "needs_input" or store.files.exists(paths.running("planner", plan.id)):
            applier.apply_plan(plan)


def waiting_plans(store: Store) -> list[PlanResult]:
    """Plans that wait for an answer, oldest first."""
    plans = store.files.load_all("planner/results", PlanResult)
    return sorted(
        (plan for plan in plans if plan.status == "needs_input"), key=lambda p: p.completed_at
    )


def back_off(starts: list[datetime], now: datetime) -> timedelta:
    """How long to wait before working, after starts that did not end cleanly. Pure."""
    recent = [start for start in starts if now - start < CRASH_WINDOW]
    return BACK_OFF if len(recent) >= CRASHES else timedelta()


def _recover_running(
    store: Store,
    applier: CommitApplier,
    seat: QueueName,
    task_id: str,
    now: datetime,
    *,
    canceled: bool,
) -> None:
    path = paths.running(seat, task_id)
    task = queue.read(store.files, seat, path)
    if task is None:
        store.files.load(path, Task)  # not a task: into quarantine with it, with the reason
        return
    if seat == "worker":
        result = store.files.load(paths.result("worker", task_id), TaskResult)
        if result is not None:
            applier.end_worker(result)
            return
    elif store.files.exists(paths.plan_done(task_id)):
        queue.leave_running(store.files, seat, task_id)
        return
    if canceled:  # the command was accepted: no next attempt, and no failure either
        begun = task.attempts + (not task.released)
        applier.finish_canceled(task.but(attempts=begun), now)
        return
    if task.released:
        queue.finish_release(store.files, task)
        return
    _end_interrupted(store, applier, seat, task, now)


def _end_interrupted(
    store: Store, applier: CommitApplier, seat: QueueName, task: Task, now: datetime
) -> None:
    """The consumer died under this run: a failed attempt, or the task's end."""
    limits = store.settings.limits
    ended = RunEnd("failed", "killed", interrupted=True)
    error = "the consumer ended while this ran"
    decision = after_run(task, ended, now, retry_delay_s=0, engine_retry_s=limits.engine_retry_s)
    if not isinstance(decision, TaskEnd):
        store.ledger.write(
            "interrupted", task.id, now, seat=seat, attempt=task.attempts + 1, next=True
        )
        queue.release(store.files, decision.task)
        return
    applier.end_without_engine(task, decision, now, error=error)
