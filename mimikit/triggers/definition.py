"""What makes a trigger whole: fills in what a hand-made one leaves out, refuses what can not fire.

Pure: bytes or records in, a checked Trigger or a reason out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord
from mimikit.protocol.files import MAX_RECORD_BYTES, bad_record
from mimikit.protocol.ids import check_id, derived_id
from mimikit.protocol.json import Json, dump_line, line_of, parse_object
from mimikit.protocol.models import Schedule, Trigger, time_text
from mimikit.triggers import conditions, schedule


def parse(trigger_id: str, data: bytes, seen_at: datetime) -> Trigger:
    """The trigger that the file `{trigger_id}.json` holds.

    `{"prompt": "date", "schedule": {"interval": 60}}` is a whole one: id, type, times and trace
    follow from the file's name, its content and `seen_at`.

    Raises:
        BadRecord: it is none; the text gives the line.
    """
    if len(data) > MAX_RECORD_BYTES:
        raise BadRecord(f"expected at most {MAX_RECORD_BYTES} bytes, got more")
    given = parse_object(data)
    try:
        if given.get("id") not in (None, trigger_id):
            raise BadRecord(
                f"id: expected {trigger_id!r} as in the file's name, got {given['id']!r}",
                field="id",
            )
        trigger = Trigger.model_validate_json(dump_line(_filled(given, trigger_id, seen_at)))
        check(trigger)
    except ValidationError as error:
        raise _with_line(bad_record(error), data) from None
    except BadInput as error:
        raise _with_line(error, data) from None
    return trigger


def check(trigger: Trigger) -> None:
    """Raise BadInput, with its field, unless this trigger can fire."""
    check_id(trigger.id)
    if not trigger.prompt.strip():
        raise BadInput("prompt: expected some text, got only blanks", field="prompt")
    if (trigger.schedule is None) == (trigger.condition is None):
        got = "none" if trigger.schedule is None else "both"
        raise BadInput(f"expected a schedule or a condition, got {got}", field="schedule")
    if trigger.schedule is not None:
        schedule.check(trigger.schedule)
    if trigger.condition is not None:
        conditions.check(trigger.condition)
    fitting = type_of(trigger.schedule)
    if trigger.type != fitting:
        raise BadInput(
            f"type: expected {fitting!r}, as the schedule or condition says; got {trigger.type!r}",
            field="type",
        )


def type_of(schedule_: Schedule | None) -> str:
    """The type that follows from a schedule, or from a condition where there is none."""
    if schedule_ is None:
        return "conditional"
    return "scheduled" if schedule_.run_at is not None else "recurring"


def edited(trigger: Trigger, changes: dict[str, Any]) -> Trigger:
    """The trigger with some fields replaced, by their names on disk, and checked.

    A schedule replaces a condition and the other way round.

    Raises:
        BadInput: the result can not fire; its field says why.
    """
    given = {**trigger.to_dict(), **changes}
    if changes.get("schedule") is not None:
        given["condition"] = None
    elif changes.get("condition") is not None:
        given["schedule"] = None
    kept = {"id", "createdAt", "origin", "traceId", "parentTaskId"}
    given |= {name: value for name, value in trigger.to_dict().items() if name in kept}
    try:
        new = Trigger.model_validate_json(dump_line(given))
        new = new.but(type=type_of(new.schedule))
    except ValidationError as error:
        complaint = bad_record(error)
        raise BadInput(str(complaint), field=complaint.field) from None
    except (ValueError, TypeError):
        raise BadInput("expected what JSON can hold: no NaN, no half characters") from None
    check(new)
    return new


def find_cycle(
    trigger_id: str, named: Iterable[str], names_of: Callable[[str], Iterable[str]]
) -> list[str] | None:
    """The chain by which a trigger would wait for itself: `[id, …, id]`; None when there is none.

    Args:
        trigger_id: of the trigger to be made or edited.
        named: the ids its condition names.
        names_of: the ids that an existing trigger's condition names.
    """
    came_from: dict[str, str] = dict.fromkeys(named, trigger_id)
    waiting = list(came_from)
    while waiting:
        here = waiting.pop()
        if here == trigger_id:
            way = [trigger_id]
            at = came_from[here]
            while at != trigger_id:
                way.append(at)
                at = came_from[at]
            return [trigger_id, *reversed(way)] if len(way) > 1 else [trigger_id, trigger_id]
        for following in names_of(here):
            if following not in came_from:
                came_from[following] = here
                waiting.append(following)
    return None


def _filled(given: dict[str, Json], trigger_id: str, seen_at: datetime) -> dict[str, Json]:
    plan = given.get("schedule")
    timed = isinstance(plan, dict)
    once = timed and plan.get("runAt") is not None
    known: dict[str, Json] = {
        "id": trigger_id,
        "type": "scheduled" if once else "recurring" if timed else "conditional",
        "createdAt": time_text(seen_at),
        "traceId": derived_id("trace", trigger_id),
        "origin": "file",
    }
    return given | {name: value for name, value in known.items() if given.get(name) is None}


def _with_line(error: BadInput, data: bytes) -> BadRecord:
    """The complaint with the line of the field it is about."""
    line = line_of(data, error.field) if error.field else None
    return BadRecord(f"line {line}: {error}" if line else str(error), field=error.field)
