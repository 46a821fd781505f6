"""Stores trigger definitions and state in separate files: users edit the first, code the second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord, Conflict, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id, derived_id
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.models import REMINDER, time_text
from mimikit.protocol.notify import with_default_notify
from mimikit.protocol.records import (
    bad_record,
    check_stem,
    check_text,
    max_record_bytes,
    written_at,
)
from mimikit.protocol.triggers import Schedule, TaskDone, Trigger, TriggerState
from mimikit.triggers import conditions, schedule


def parse(trigger_id: str, data: bytes, seen_at: datetime) -> Trigger:
    """Parse the file `{trigger_id}.json`.

    `{"prompt": "date", "schedule": {"interval": 60}}` is enough: id, type, times and trace follow
    from the file's name, its content and `seen_at`.

    Raises:
        BadRecord: it is invalid; `field` says where.
    """
    fields = parse_object(data)
    try:
        check_stem(fields.get("id"), trigger_id)
        is_typed = fields.get("type") is not None
        defaults: dict[str, Json] = {
            "id": trigger_id,
            "type": "conditional",
            "createdAt": time_text(seen_at),
            "traceId": derived_id("trace", trigger_id),
            "origin": "file",
            "notifyGiven": fields.get("notify") is not None,
        }
        fields |= {name: value for name, value in defaults.items() if fields.get(name) is None}
        trigger = Trigger.model_validate_json(dump_line(fields))
        trigger = trigger if is_typed else trigger.but(type=type_of(trigger.schedule))
        check(trigger)
    except (ValidationError, BadInput) as error:
        complaint = bad_record(error) if isinstance(error, ValidationError) else error
        raise BadRecord(str(complaint), field=complaint.field) from None
    return trigger


def check(trigger: Trigger) -> None:
    check_id(trigger.id)
    check_text(trigger.prompt, "prompt")
    if trigger.profile == REMINDER and trigger.role != "worker":
        raise BadInput(f"role: expected none for a reminder, got {trigger.role!r}", field="role")
    if (trigger.schedule is None) == (trigger.condition is None):
        got = "none" if trigger.schedule is None else "both"
        raise BadInput(f"expected a schedule or a condition, got {got}", field="schedule")
    if trigger.schedule is not None:
        schedule.check(trigger.schedule)
    if trigger.condition is not None:
        conditions.check(trigger.condition)
    expected = type_of(trigger.schedule)
    if trigger.type != expected:
        raise BadInput(
            f"type: expected {expected!r} by its schedule or condition, got {trigger.type!r}",
            field="type",
        )


def type_of(plan: Schedule | None) -> Literal["recurring", "scheduled", "conditional"]:
    if plan is None:
        return "conditional"
    return "scheduled" if plan.run_at is not None else "recurring"


def is_step(trigger: Trigger) -> bool:
    """Whether it is a step of a plan: it runs once, after other tasks of its plan."""
    leaves = [it for _, it in conditions.walk(trigger.condition)] if trigger.condition else []
    waits = any(isinstance(leaf, TaskDone) for leaf in leaves)
    of_tasks = all(leaf.type in ("task_done", "task_failed", "and", "or") for leaf in leaves)
    return trigger.once and trigger.origin != "file" and waits and of_tasks


def edited(trigger: Trigger, changes: Mapping[str, object]) -> Trigger:
    """A validated copy with some fields (names as on disk) replaced; raises BadInput.

    A schedule replaces a condition and vice versa.
    """
    before = trigger.to_dict()
    fields = {**before, **changes}
    if changes.get("schedule") is not None:
        fields["condition"] = None
    elif changes.get("condition") is not None:
        fields["schedule"] = None
    if not trigger.notify_given and "notify" not in changes:
        fields["notify"] = None  # the default of the new type
    fixed = {"id", "createdAt", "origin", "remote", "traceId", "parentTaskId"}
    fields |= {name: value for name, value in before.items() if name in fixed}
    try:
        new = Trigger.model_validate_json(dump_line(fields))
        new = new.but(type=type_of(new.schedule))
        if trigger.notify is not None or "notify" in changes:
            new = with_default_notify(new)
    except ValidationError as error:
        raise bad_record(error) from None
    except (ValueError, TypeError):
        raise BadInput("expected valid JSON: no NaN, no lone surrogates") from None
    check(new)
    return new


def find_cycle(
    trigger_id: str, named: Iterable[str], names_of: Callable[[str], Iterable[str]]
) -> list[str] | None:
    """A dependency cycle through the trigger, as `[id, …, id]`; None: no cycle.

    `named`: the ids in its condition; `names_of`: those in the condition of another trigger.
    """
    came_from: dict[str, str] = dict.fromkeys(named, trigger_id)
    waiting = list(came_from)
    while waiting and trigger_id not in came_from:
        here = waiting.pop()
        for following in names_of(here):
            if following not in came_from:
                came_from[following] = here
                waiting.append(following)
    if trigger_id not in came_from:
        return None
    way = [trigger_id, came_from[trigger_id]]
    while way[-1] != trigger_id:
        way.append(came_from[way[-1]])
    return way[::-1]


# ---- files


def create(files: Files, trigger: Trigger) -> bool:
    """Store a new definition; False: its id exists (a replay)."""
    return files.save_new(paths.trigger(trigger.id), trigger)


def check_new(files: Files, trigger: Trigger) -> None:
    """Validate a new trigger; raises BadInput, or Conflict for a dependency cycle."""
    check(trigger)
    if cycle := cycle_of(files, trigger):
        way = " → ".join(cycle)
        message = f"condition: expected no cycle, got {way}: each would wait for the next"
        raise Conflict(message, field="condition", code="condition_cycle")


def cycle_of(files: Files, trigger: Trigger, *, accepted: bool = False) -> list[str] | None:
    """A dependency cycle through this trigger; None: no cycle.

    accepted: use the definitions that the consumer accepted last, not the files.
    """
    if trigger.condition is None:
        return None

    def names_of(trigger_id: str) -> frozenset[str]:
        other = last_good(files, trigger_id) if accepted else active(files, trigger_id)[0]
        return conditions.subjects(other.condition) if other and other.condition else frozenset()

    named = conditions.subjects(trigger.condition)
    return find_cycle(trigger.id, sorted(named), names_of)


def ids(files: Files) -> list[str]:
    return [name.removesuffix(".json") for name in files.names(paths.TRIGGERS)]


def read(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """A definition, or the reason why its file is invalid; the file is not moved."""
    path = paths.trigger(trigger_id)
    try:
        stat, data = files.stat(path), files.read(path, max_bytes=max_record_bytes(Trigger))
        if stat is None or data is None:
            return None, None
        return parse(trigger_id, data, written_at(stat)), None
    except (UnsafeFile, BadRecord) as error:
        return None, str(error)


def active(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """The definition in effect: the file's, or the last good one while the file is invalid."""
    trigger, broken = read(files, trigger_id)
    return (trigger, None) if broken is None else (last_good(files, trigger_id), broken)


def last_good(files: Files, trigger_id: str) -> Trigger | None:
    return sound(state(files, trigger_id).last_good)


def sound(definition: Mapping[str, object] | None) -> Trigger | None:
    """Parse a recorded definition; None: missing or damaged."""
    try:
        good = Trigger.model_validate_json(dump_line(definition)) if definition else None
        if good is not None:
            check(good)
    except (ValueError, BadInput):
        return None
    return good


def state(files: Files, trigger_id: str) -> TriggerState:
    stored = files.load(paths.trigger_state(trigger_id), TriggerState) or TriggerState()
    # An earlier format had one value for the whole condition: an id, or a time in milliseconds.
    extra = stored.__pydantic_extra__ or {}
    used = extra.get("lastSeenResultId") or extra.get("lastMtime")
    if stored.seen or not isinstance(used, (str, int, float)):
        return stored
    return stored.but(seen={conditions.ROOT: used}, initialized=True)


def save_state(files: Files, trigger_id: str, new: TriggerState) -> None:
    files.save(paths.trigger_state(trigger_id), new)


def exists(files: Files, trigger_id: str) -> bool:
    """Whether any file of a trigger exists; an interrupted removal may leave one."""
    return any(
        files.exists(path) for path in (paths.trigger(trigger_id), paths.trigger_state(trigger_id))
    )


def remove(files: Files, trigger_id: str) -> None:
    """Remove a trigger; its slots stay in the ledger.

    Crash: the definition is removed first; without it nothing fires.
    """
    files.remove(paths.trigger(trigger_id))
    files.remove(paths.trigger_state(trigger_id))
