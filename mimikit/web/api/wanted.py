"""What a request wants done and when, checked by the rules that tasks and triggers share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, ValidationError

from mimikit import permission
from mimikit.config import ProfilesSettings
from mimikit.errors import BadInput
from mimikit.protocol.files import bad_record
from mimikit.protocol.models import MAX_TEXT, Condition, Schedule, to_utc
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest, TriggerFields
from mimikit.web.api.asked import Asked, ClientId
from mimikit.web.site import Site

Prompt = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Title = Annotated[str, StringConstraints(max_length=200)]
ProfileName = Annotated[str, StringConstraints(max_length=32)]
Priority = Annotated[int, Field(ge=0, le=10)]
Timeout = Annotated[float, Field(gt=0, le=7 * 86400)]
Attempts = Annotated[int, Field(ge=1, le=100)]
ZoneName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
TimeText = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Cooldown = Annotated[float, Field(ge=0, le=366 * 86400)]


class NewTask(Asked):
    """A task to be done."""

    prompt: Prompt
    id: ClientId | None = None
    title: Title = ""
    profile: ProfileName = "standard"
    priority: Priority = 5
    timeout: Timeout | None = None
    max_attempts: Attempts = 1


class AskedSchedule(Asked):
    """Times: one of interval, cron, runAt."""

    interval: Annotated[float, Field(ge=1, le=366 * 86400)] | None = None
    cron: Annotated[str, StringConstraints(max_length=200)] | None = None
    timezone: ZoneName | None = None
    run_at: TimeText | None = None


class Timing(Asked):
    """When a trigger fires: one of schedule, condition, when."""

    schedule: AskedSchedule | None = None
    condition: Condition | None = None
    when: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    timezone: ZoneName | None = None
    cooldown: Cooldown | None = None


def given_timing(asked: Timing) -> list[str]:
    """By what the request says when; a well-formed one has one of them."""
    return [name for name in ("schedule", "condition", "when") if getattr(asked, name) is not None]


def timing(asked: Timing, *, now: datetime, zone: ZoneInfo) -> TriggerFields:
    """The schedule, or the condition, that a request asks for, with its cooldown.

    Raises:
        BadInput: it is none, or more than one; names the field.
    """
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
        fields["schedule"] = _in_words(asked.when, now, zone)
    elif asked.schedule is not None:
        fields["schedule"] = _schedule(asked.schedule, asked.timezone, zone)
    return fields


def _in_words(when: str, now: datetime, zone: ZoneInfo) -> Schedule:
    try:
        return requests.schedule_of(when, now=now, zone=zone)
    except BadInput as error:
        raise BadInput(str(error), field="when") from None
    except ValidationError as error:
        raise BadInput(f"when: {bad_record(error)}", field="when") from None


def _schedule(asked: AskedSchedule, timezone: str | None, zone: ZoneInfo) -> Schedule:
    if asked.timezone:
        zone = _own_zone(asked.timezone)
    has_time_of_day = asked.cron is not None or asked.run_at is not None
    return Schedule(
        interval=asked.interval,
        cron=asked.cron,
        timezone=(asked.timezone or timezone) if has_time_of_day else None,
        run_at=_instant(asked.run_at, zone) if asked.run_at is not None else None,
    )


def _own_zone(name: str) -> ZoneInfo:
    try:
        return requests.zone_named(name)
    except BadInput as error:
        raise BadInput(str(error), field="schedule.timezone") from None


def _instant(text: str, zone: ZoneInfo) -> datetime:
    """A time as ISO 8601; one without a zone is meant in the asker's."""
    try:
        time = datetime.fromisoformat(text)
        return to_utc(time if time.tzinfo else time.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        raise BadInput(
            "schedule.runAt: expected a time such as 2026-12-01T09:00:00Z, "
            f"got {text!r}; plain words go into `when`",
            field="schedule.runAt",
        ) from None


def check(here: Site, wanted: TaskRequest) -> None:
    """Only known profiles; commands only where nobody else can reach the page, unless allowed.

    Raises:
        BadInput: it says nothing, or there is no such profile.
        Refused: commands are not taken here.
    """
    requests.check_request(wanted, sorted(ProfilesSettings.model_fields))
    permission.check_http_profile(
        wanted.profile, is_local=here.is_local, allow_commands=here.settings.web.allow_commands
    )


def wanted_of(asked: NewTask) -> TaskRequest:
    """What a request wants done."""
    return TaskRequest(
        prompt=asked.prompt,
        origin="http",
        id=asked.id,
        title=asked.title,
        profile=asked.profile,
        priority=asked.priority,
        timeout=asked.timeout,
        max_attempts=asked.max_attempts,
    )
