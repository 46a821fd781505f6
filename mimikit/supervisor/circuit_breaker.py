"""Carries out what the end of a trigger's run comes to, and pauses one that keeps failing."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent, PlanResult
from mimikit.supervisor.code_turns import telling
from mimikit.supervisor.run_end import after_end
from mimikit.supervisor.store import Store
from mimikit.triggers import registry


def settled_end(store: Store, task: Task, result: TaskResult, *, waited_for: bool) -> EndIntent:
    """What follows from the end of a run; of a trigger's it is written down first, once."""
    files, trigger_id = store.files, task.source_trigger_id
    trigger, broken = registry.active(files, trigger_id) if trigger_id else (None, None)
    if trigger is None:
        return EndIntent(told=telling(task, result, None, waited_for=waited_for))
    state = registry.state(files, trigger.id)
    if task.id not in state.ends:
        if broken is not None:  # what is no definition can not be paused
            trigger = trigger.but(enabled=False)
        under_way = {
            id_
            for id_ in state.ends
            if any(files.exists(paths.running(seat, id_)) for seat in paths.QUEUES)
        }
        state = after_end(trigger, state, task, result, waited_for=waited_for, under_way=under_way)
        registry.save_state(files, trigger.id, state)
        store.feed.tell("trigger", id=trigger.id)
    return state.ends[task.id]


def plan_end(store: Store, task: Task, plan: PlanResult, end: EndIntent) -> EndIntent:
    """The same for a plan that its trigger runs; one that made work speaks through that.

    end: what follows where no trigger is to be paused.
    """
    made = plan.tasks or plan.triggers
    if task.source_trigger_id is None or plan.status == "needs_input" or made:
        return end
    result = TaskResult.of(
        task,
        plan.status,
        attempts=plan.attempts,
        started_at=plan.started_at,
        completed_at=plan.completed_at,
        failure_reason=plan.failure_reason,
        error=plan.error,
    )
    settled = settled_end(store, task, result, waited_for=False)
    return settled if settled.trips else end


def break_circuit(store: Store, task: Task) -> None:
    """Pause the trigger of a run that failed like those before it; it may be repeated."""
    trigger_id = task.source_trigger_id or ""
    trigger, broken = registry.active(store.files, trigger_id)
    if trigger is not None and broken is None and trigger.enabled:
        registry.save(store.files, trigger.but(enabled=False))
        store.log.write("audit", "circuit_broken", triggerId=trigger_id, taskId=task.id)
        store.trigger_changed(trigger_id)
