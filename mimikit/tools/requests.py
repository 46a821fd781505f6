"""Builds tasks and triggers from requests of terminal, page and tools; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from mimikit import permission
from mimikit.config import ProfilesSettings
from mimikit.errors import BadInput, NotFound
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id, new_id
from mimikit.protocol.models import REMINDER, Notify, Origin, Task, time_text
from mimikit.protocol.notify import default_notify, with_default_notify
from mimikit.protocol.records import bad_record, check_text
from mimikit.protocol.triggers import Condition, Schedule, Trigger
from mimikit.tasks import ledger, queue
from mimikit.triggers import conditions, registry
from mimikit.triggers.schedule import anchored, check_coming

TRIGGER_PROFILES = (*ProfilesSettings.model_fields, REMINDER)


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task or the work of a trigger. Units: seconds."""

    prompt: str
    origin: Origin
    id: str | None = None
    title: str = ""
    profile: str = "standard"
    priority: int = 5
    timeout: float | None = None
    max_attempts: int = 1
    notify: Notify | None = None


class TriggerFields(TypedDict, total=False):
    """Fields that only triggers have."""

    schedule: Schedule
    condition: Condition
    cooldown: float
    once: bool
    overlap: Literal["skip", "queue"]
    enabled: bool


def check_request(request: TaskRequest, profiles: Iterable[str]) -> None:
    """Raises BadInput."""
    permission.check_profile(request.profile, profiles)
    check_text(request.prompt, "prompt")


def new_task(request: TaskRequest, now: datetime) -> Task:
    """Raises BadInput."""
    id_ = request.id or new_id("task", now)
    try:
        notify = request.notify or default_notify(request.profile, request.origin)
        more = {"notify": notify, "notify_given": request.notify is not None}
        return Task.model_validate({**_fields(request, id_, now), **more})
    except ValidationError as error:
        raise bad_record(error) from None


def new_trigger(
    files: Files, request: TaskRequest, fields: TriggerFields, now: datetime
) -> Trigger:
    """Raises BadInput, also if it conflicts with an existing one."""
    id_ = request.id or new_id("trig", now)
    condition = fields.get("condition")
    try:
        type_ = registry.type_of(fields.get("schedule"))
        trigger = Trigger.model_validate({**_fields(request, id_, now), "type": type_, **fields})
    except ValidationError as error:
        raise bad_record(error) from None
    trigger = with_default_notify(trigger)
    registry.check_new(files, trigger)
    if trigger.schedule is not None:
        check_coming(trigger.schedule, now)
    if condition is None:
        return trigger
    return trigger.but(trace_id=check_subjects(files, condition) or id_)


def _fields(request: TaskRequest, id_: str, now: datetime) -> dict[str, Any]:
    return {**asdict(request), "id": id_, "trace_id": id_, "created_at": now}


def check_subjects(files: Files, condition: Condition) -> str | None:
    """The trace of the first task or trigger in a condition. Raises NotFound."""
    traces: list[str] = []
    for subject in sorted(conditions.subjects(condition)):
        check_id(subject)
        if files.exists(paths.trigger(subject)):
            trigger, _ = registry.active(files, subject)
            traces.append(trigger.trace_id if trigger else subject)
            continue
        found = queue.find(files, subject)
        if found is None:  # a deleted trigger: use its last run
            runs = [line.get("taskId") for line in ledger.slots_of(files, subject, 1)]
            last = next((id_ for id_ in reversed(runs) if isinstance(id_, str)), None)
            found = queue.find(files, last) if last else None
        if found is None:
            raise NotFound(
                f"condition: expected the id of a task or trigger, got {subject!r}; "
                "`mimikit tasks` and `mimikit triggers` list them",
                field="condition",
                code="no_subject",
                params={"id": subject},
            )
        traces.append(found.task.trace_id)
    return traces[0] if traces else None


def schedule_of(text: str, *, now: datetime, zone: ZoneInfo) -> Schedule:
    """Reads `tomorrow 9:00`, 「每天早上 9 点」, `in 10m`. Raises BadInput."""
    # Imported late: compiling its patterns is slow.
    from mimikit.language.times import CronTime, InstantTime, RepeatTime, parse_when

    match parse_when(text, now=now, zone=zone):
        case InstantTime(at):
            return Schedule(run_at=at, timezone=zone.key)
        case RepeatTime(seconds, limits):
            key = zone.key if limits.starting or limits.until else None
            return Schedule(interval=seconds, timezone=key, **asdict(limits))
        case CronTime(expression, limits):
            return anchored(Schedule(cron=expression, timezone=zone.key, **asdict(limits)), now)
        case _:
            raise BadInput(
                "when: expected a time such as `tomorrow 9:00`, `in 10m`, `every weekday at 9`, "
                f"or {time_text(now)!r}; got {text[:60]!r}",
                field="when",
                code="bad_when",
            )


def limit_of(text: str, *, now: datetime, zone: ZoneInfo, is_end: bool) -> datetime:
    """The start or end of a schedule: `Friday`, `2026-12-24`, `in 3 days`. Raises BadInput."""
    from mimikit.language.times import parse_limit

    found = parse_limit(text, now=now, zone=zone, is_end=is_end)
    if found is None:
        raise BadInput(f"expected a day or time such as 2026-12-24 or Friday, got {text[:60]!r}")
    return found
