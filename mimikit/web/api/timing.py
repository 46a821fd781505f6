"""When a trigger fires, as a request says it: a schedule, a condition or plain words."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, ValidationError

from mimikit.errors import BadInput
from mimikit.protocol.models import to_utc
from mimikit.protocol.records import bad_record
from mimikit.protocol.triggers import Condition, Schedule
from mimikit.tools import requests
from mimikit.tools.requests import TriggerFields
from mimikit.web.api.routing import Input, bad_value

WHEN = ("schedule", "condition", "when")

ZoneName = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class ScheduleInput(Input):
    """Times: one of interval, cron, runAt. Units: seconds."""

    interval: Annotated[float, Field(ge=1, le=366 * 86400)] | None = None
    cron: Annotated[str, StringConstraints(max_length=200)] | None = None
    timezone: ZoneName | None = None
    run_at: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None


class TimingInput(Input):
    """When a trigger fires: one of schedule, condition, when (plain words). Units: seconds."""

    schedule: ScheduleInput | None = None
    condition: Condition | None = None
    when: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    timezone: ZoneName | None = None
    cooldown: Annotated[float, Field(ge=0, le=366 * 86400)] | None = None


def given_timing(asked: TimingInput) -> list[str]:
    """By what the request says when; a well-formed one has one of them."""
    return [name for name in WHEN if getattr(asked, name) is not None]


def timing(asked: TimingInput, *, now: datetime, zone: ZoneInfo) -> TriggerFields:
    """The schedule or the condition a request asks for; BadInput unless it is one of them."""
    given = given_timing(asked)
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise BadInput(
            f"schedule: expected one of schedule, condition, when; got {got}", field="schedule"
        )
    zone = requests.zone_named(asked.timezone) if asked.timezone else zone
    fields = TriggerFields()
    if asked.cooldown is not None:
        fields["cooldown"] = asked.cooldown
    if asked.condition is not None:
        fields["condition"] = asked.condition
    elif asked.when is not None:
        try:
            with bad_value("when"):
                fields["schedule"] = requests.schedule_of(asked.when, now=now, zone=zone)
        except ValidationError as error:
            raise BadInput(f"when: {bad_record(error)}", field="when", code="bad_time") from None
    elif asked.schedule is not None:
        fields["schedule"] = _schedule(asked.schedule, asked.timezone, zone)
    return fields


def _schedule(asked: ScheduleInput, timezone: str | None, zone: ZoneInfo) -> Schedule:
    if asked.timezone:
        with bad_value("schedule.timezone"):
            zone = requests.zone_named(asked.timezone)
    run_at = None
    if asked.run_at is not None:
        try:
            time = datetime.fromisoformat(asked.run_at)
            run_at = to_utc(time if time.tzinfo else time.replace(tzinfo=zone))
        except (ValueError, OverflowError):
            raise BadInput(
                "schedule.runAt: expected a time such as 2026-12-01T09:00:00Z, "
                f"got {asked.run_at!r}; plain words go into `when`",
                field="schedule.runAt",
                code="bad_time",
            ) from None
    has_time_of_day = asked.cron is not None or asked.run_at is not None
    return Schedule(
        interval=asked.interval,
        cron=asked.cron,
        timezone=asked.timezone or (timezone if has_time_of_day else None),
        run_at=run_at,
    )
