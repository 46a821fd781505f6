"""The task that a firing makes. Pure: its id follows from the trigger and the slot."""

from __future__ import annotations

from datetime import datetime

from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Task, Trigger


def make_run(trigger: Trigger, slot: str, now: datetime, upstream: tuple[str, ...] = ()) -> Task:
    """The run of a trigger for one slot; the same slot always gives the same id.

    Args:
        trigger: as defined.
        slot: a planned time, a condition's edge or an order, by name.
        now: the time.
        upstream: the tasks whose results it builds on.
    """
    return Task(
        id=derived_id("task", trigger.id, slot),
        role=trigger.role,
        profile=trigger.profile,
        title=trigger.title,
        prompt=trigger.prompt,
        priority=trigger.priority,
        created_at=now,
        max_attempts=trigger.max_attempts,
        timeout=trigger.timeout,
        trace_id=trigger.trace_id,
        parent_task_id=upstream[0] if upstream else trigger.parent_task_id,
        source_trigger_id=trigger.id,
        triggered_at=now,
        notify=trigger.notify,
        origin="trigger",
        trigger_origin=trigger.origin,
        allow_triggers=trigger.allow_triggers,
        upstream=list(upstream),
    )
