"""The steps of a chain: who waits for a task to be done, and how a step ends that can not run.

A step is a trigger that fires once, when what its condition names is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.triggers import TaskDone, Trigger
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd, result_of
from mimikit.triggers import conditions, registry
from mimikit.triggers.decide import make_run

UPSTREAM = "upstream "
"""So the slot of a step begins that did not run because of the task or trigger that follows."""


def titles_after(files: Files, task: Task, candidates: Callable[[str], Iterable[str]]) -> list[str]:
    """Titles of the steps, near and far, that wait for this task to be done.

    candidates: ids of triggers that may wait for a task or trigger.
    """
    waiting = [task.id, *filter(None, [task.retry_of])]
    if task.source_trigger_id and not registry.exists(files, task.source_trigger_id):
        waiting.append(task.source_trigger_id)  # that was a step itself
    found: dict[str, str] = {}
    while waiting:
        subject = waiting.pop()
        for step in _steps_of(files, subject, candidates(subject)):
            if step.id not in found:
                found[step.id] = step.title or step.id
                waiting.append(step.id)
    return list(found.values())


def _steps_of(files: Files, subject: str, ids: Iterable[str]) -> Iterator[Trigger]:
    for trigger_id in sorted(ids):
        trigger = registry.active(files, trigger_id)[0]
        if trigger and subject in _awaited(trigger):
            yield trigger


def is_step(trigger: Trigger) -> bool:
    """Whether it is a step that waits for what comes before it to be done."""
    return bool(_awaited(trigger))


def _awaited(trigger: Trigger) -> set[str]:
    """The tasks or triggers that a step waits for; empty: it is none, or is paused."""
    if not (trigger.once and trigger.condition and trigger.enabled):
        return set()
    leaves = (leaf.condition for leaf in conditions.walk(trigger.condition))
    return {it.params.task_id for it in leaves if isinstance(it, TaskDone)}


def end_step(
    store: Store, trigger: Trigger, lost_to: str, now: datetime, said: str | None = None
) -> None:
    """End a step that can not run any more: as a task that was canceled, reason `upstream`.

    lost_to: the task or trigger before it, or the job that was canceled. said: why, if not for what
        was before it.
    Crash: its end stands there before its definition goes, and has always the same id.
    """
    files, slot = store.files, f"{UPSTREAM}{lost_to}"
    before = store.ledger.results_of(lost_to)  # of a trigger, its last run
    run, end = make_run(trigger, slot, now), TaskEnd("canceled", "upstream", 0)
    run = run.but(parent_task_id=before[-1] if before else trigger.parent_task_id)
    said = said or f"{lost_to}, which it waited for, did not succeed"
    queue.finish(files, result_of(run, end, now, now, error=said))
    if store.ledger.end_of(run.id) is None:
        files.save(paths.running(run.role, run.id), run)
    # Before the definition goes, after which nobody looks here again: the disk may refuse that.
    store.events.ended_runs.put((run.role, run.id))
    if store.ledger.newest_slot(trigger.id) != slot:
        facts = {"state": "skipped", "reason": "upstream", "taskId": run.id}
        title = trigger.title or None
        store.ledger.write("slot", trigger.id, now, slot=slot, title=title, **facts)
    registry.remove(files, trigger.id)
    store.feed.tell("trigger", id=trigger.id)


def is_left_over(store: Store, trigger_id: str) -> bool:
    """Whether the state of this trigger is what is left of a step that ended so."""
    return (store.ledger.newest_slot(trigger_id) or "").startswith(UPSTREAM)
