"""Trigger definitions and their state: two files, as users edit one while code writes the other."""

from __future__ import annotations

from pydantic import ValidationError

from mimikit.errors import BadRecord
from mimikit.protocol import paths
from mimikit.protocol.files import Files, decode
from mimikit.protocol.models import Trigger, TriggerState


def create(files: Files, trigger: Trigger) -> bool:
    """Store a definition; False when its id exists (a replay)."""
    return files.save_new(paths.trigger(trigger.id), trigger)


def ids(files: Files) -> list[str]:
    """Ids of every definition."""
    return [name.removesuffix(".json") for name in files.names(paths.TRIGGERS)]


def read(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """A definition and, when its file is broken, the reason; the file stays where it is."""
    data = files.read(paths.trigger(trigger_id))
    if data is None:
        return None, None
    try:
        trigger = decode(data, Trigger)
    except BadRecord as error:
        return None, str(error)
    if trigger.id != trigger_id:
        return None, f"id: expected {trigger_id!r} as in the file's name, got {trigger.id!r}"
    return trigger, None


def active(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """The definition in force: the file's, or the last good one while the file is broken."""
    trigger, broken = read(files, trigger_id)
    if broken is None:
        return trigger, None
    try:
        good = state(files, trigger_id).last_good
        return (Trigger.model_validate(good, strict=False) if good else None), broken
    except ValidationError:
        return None, broken


def state(files: Files, trigger_id: str) -> TriggerState:
    """What the consumer knows of it; a fresh state when nothing yet."""
    return files.load(paths.trigger_state(trigger_id), TriggerState) or TriggerState()


def save_state(files: Files, trigger_id: str, new: TriggerState) -> None:
    """Record what the consumer knows."""
    files.save(paths.trigger_state(trigger_id), new)


def save(files: Files, trigger: Trigger) -> None:
    """Replace a definition on its owner's order."""
    files.save(paths.trigger(trigger.id), trigger)


def remove(files: Files, trigger_id: str) -> bool:
    """Remove a trigger; False when there was none. Its slots stay in the ledger.

    Crash: the definition goes first, so a trigger without one is never fired.
    """
    existed = files.remove(paths.trigger(trigger_id))
    files.remove(paths.trigger_state(trigger_id))
    return existed
