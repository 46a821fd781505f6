"""Trigger definitions and their state: two files, as users edit one while code writes the other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord, Conflict, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Trigger, TriggerState
from mimikit.triggers import conditions, definition


def create(files: Files, trigger: Trigger) -> bool:
    """Store a definition; False when its id exists (a replay)."""
    return files.save_new(paths.trigger(trigger.id), trigger)


def check_new(files: Files, trigger: Trigger) -> None:
    """Raise BadInput unless this trigger can fire and can be stored beside the others.

    Raises:
        BadInput: a field can not be used.
        Conflict: it would wait for itself; the text names the way.
    """
    definition.check(trigger)
    if way := cycle_of(files, trigger):
        raise Conflict(
            f"condition: expected no circle, got {' → '.join(way)}: each would wait for the next",
            field="condition",
        )


def cycle_of(files: Files, trigger: Trigger, *, accepted: bool = False) -> list[str] | None:
    """The way by which this trigger would wait for itself; None when there is none.

    accepted: go by what the consumer has accepted of the others, not by what lies there.
    """
    if trigger.condition is None:
        return None

    def names_of(trigger_id: str) -> frozenset[str]:
        other = last_good(files, trigger_id) if accepted else active(files, trigger_id)[0]
        return conditions.subjects(other.condition) if other and other.condition else frozenset()

    named = conditions.subjects(trigger.condition)
    return definition.find_cycle(trigger.id, sorted(named), names_of)


def ids(files: Files) -> list[str]:
    """Ids of every definition."""
    return [name.removesuffix(".json") for name in files.names(paths.TRIGGERS)]


def states(files: Files) -> set[str]:
    """Ids of every trigger of which something is known."""
    return {name.removesuffix(".json") for name in files.names(paths.TRIGGER_STATE)}


def read(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """A definition and, when its file is broken, the reason; the file stays where it is."""
    path = paths.trigger(trigger_id)
    try:
        stat, data = files.stat(path), files.read(path)
    except UnsafeFile as error:
        return None, str(error)
    if stat is None or data is None:
        return None, None
    try:
        seen_at = datetime.fromtimestamp(stat.mtime_ns / 1e9, UTC)
        return definition.parse(trigger_id, data, seen_at), None
    except BadRecord as error:
        return None, str(error)


def active(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """The definition in force: the file's, or the last good one while the file is broken."""
    trigger, broken = read(files, trigger_id)
    return (trigger, None) if broken is None else (last_good(files, trigger_id), broken)


def last_good(files: Files, trigger_id: str) -> Trigger | None:
    """The definition as the consumer accepted it last."""
    return sound(state(files, trigger_id).last_good)


def sound(definition_: dict[str, Any] | None) -> Trigger | None:
    """A remembered definition; None when there is none, or it was damaged."""
    try:
        good = Trigger.model_validate(definition_, strict=False) if definition_ else None
        if good is not None:
            definition.check(good)
    except (ValidationError, BadInput):
        return None
    return good


def state(files: Files, trigger_id: str) -> TriggerState:
    """What the consumer knows of it; a fresh state when nothing yet."""
    found = files.load(paths.trigger_state(trigger_id), TriggerState) or TriggerState()
    return _migrated(found) if found.__pydantic_extra__ else found


def _migrated(old: TriggerState) -> TriggerState:
    """A state as an earlier format had it: one memory for the whole condition.

    Source: spec 1, records: lastSeenResultId and lastMtime (milliseconds) are read on.
    """
    extra = old.__pydantic_extra__ or {}
    used = extra.get("lastSeenResultId") or extra.get("lastMtime")
    if old.seen or not isinstance(used, (str, int, float)):
        return old
    return old.but(seen={conditions.ROOT: used}, initialized=True)


def save_state(files: Files, trigger_id: str, new: TriggerState) -> None:
    """Record what the consumer knows."""
    files.save(paths.trigger_state(trigger_id), new)


def save(files: Files, trigger: Trigger) -> None:
    """Replace a definition on its owner's order."""
    files.save(paths.trigger(trigger.id), trigger)


def exists(files: Files, trigger_id: str) -> bool:
    """Whether anything of a trigger is there, if only what a removal that was cut short left."""
    named = (paths.trigger(trigger_id), paths.trigger_state(trigger_id))
    return any(files.exists(path) for path in named)


def remove(files: Files, trigger_id: str) -> bool:
    """Remove a trigger; False when there was none. Its slots stay in the ledger.

    Crash: the definition goes first, so a trigger without one is never fired.
    """
    existed = exists(files, trigger_id)
    files.remove(paths.trigger(trigger_id))
    files.remove(paths.trigger_state(trigger_id))
    return existed
