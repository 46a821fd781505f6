"""What a file in a queue folder means as a Task, whether a program or a person wrote it.

Pure: bytes and a name in, a Task or a reason out. A hand-made `{"prompt": "date"}` is a whole task;
what it leaves out is filled from the file's name, its folder and the time it was seen.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord
from mimikit.protocol.files import MAX_RECORD_BYTES, bad_record
from mimikit.protocol.ids import check_id, derived_id
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import QueueName, Task, time_text

SUFFIX = ".json"
_FILLED = ("id", "createdAt", "traceId", "origin", "notify")
_TIME_LENGTH = len("2026-01-28T09:30:00.000Z")


def parse_task(name: str, data: bytes, seat: QueueName, seen_at: datetime) -> Task:
    """The task that the file `name` holds, with what a hand-made one leaves out.

    The file's stem is the id, the folder decides the role; `seen_at` stands for a missing time of
    creation, and the trace follows from the id, so that reading it again gives the same task.

    Raises:
        BadRecord: it is none; the text says what was expected and what was got.
    """
    return read_task(name, data, seat, seen_at)[0]


def read_task(name: str, data: bytes, seat: QueueName, seen_at: datetime) -> tuple[Task, bool]:
    """As `parse_task`; and whether the bytes are whole, or something had to be filled in."""
    if len(data) > MAX_RECORD_BYTES:
        raise BadRecord(f"expected at most {MAX_RECORD_BYTES} bytes, got more")
    task_id = _stem(name)
    given = parse_object(data)
    if given.get("id") not in (None, task_id):
        raise BadRecord(
            f"id: expected {task_id!r}, the name of the file, got {given['id']!r}; "
            "name both alike, or leave the id out",
            field="id",
        )
    filled = _filled(given, task_id, seat, seen_at)
    whole = filled is given
    text = data.removeprefix(b"\xef\xbb\xbf") if whole else json.dumps(filled).encode()
    try:
        return Task.model_validate_json(text), whole
    except ValidationError as error:
        raise bad_record(error) from None


def order_of(task: Task) -> tuple[int, bool, str, str]:
    """The place of a task in its queue, smaller first.

    Order: priority falling, internal runs first, older first, then by id.
    """
    return (-task.priority, not task.internal, time_text(task.created_at), task.id)


def ready_at(task: Task) -> float | None:
    """When it may be claimed, in seconds since 1970; None means at once."""
    return task.not_before.timestamp() if task.not_before else None


def glance(name: str, data: bytes) -> tuple[tuple[int, bool, str, str], float | None] | None:
    """`order_of` and `ready_at` of a file as our own programs write it, three times faster.

    It validates nothing but what it reads: good for putting 100,000 files in order, not for running
    one. None means: read it properly.
    """
    try:
        given: dict[str, Any] = json.loads(data.decode())
        created, priority = given["createdAt"], given.get("priority", 5)
        internal, not_before = given.get("internal", False), given.get("notBefore")
        if given["id"] + SUFFIX != name or len(created) != _TIME_LENGTH or created[-1] != "Z":
            return None
        if type(priority) is not int or type(internal) is not bool:
            return None
        due = None if not_before is None else datetime.fromisoformat(not_before)
        if due is not None and due.tzinfo is None:
            return None
        order = (-priority, not internal, created, name.removesuffix(SUFFIX))
        return order, due.timestamp() if due else None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return None


def _stem(name: str) -> str:
    if not name.endswith(SUFFIX):
        raise BadRecord(f"expected a name that ends in {SUFFIX}, got {name!r}")
    try:
        return check_id(name.removesuffix(SUFFIX))
    except BadInput as error:
        raise BadRecord(str(error), field="id") from None


def _filled(
    given: dict[str, Json], task_id: str, seat: QueueName, seen_at: datetime
) -> dict[str, Json]:
    """`given` itself when nothing is missing, else a copy with the rest."""
    missing = [key for key in _FILLED if given.get(key) is None]
    if not missing and given.get("role") == seat:
        return given
    known: dict[str, Json] = {
        "id": task_id,
        "createdAt": time_text(seen_at),
        "traceId": derived_id("trace", task_id),
        "origin": "file",
        "notify": "message",
    }
    return given | {key: known[key] for key in missing} | {"role": seat}
