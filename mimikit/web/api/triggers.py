"""Triggers: list, show, preview, create, edit, pause, resume, run, remove; snooze."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, cast
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, model_validator

from mimikit.errors import BadInput, Conflict, NotFound
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json
from mimikit.protocol.models import REMINDER, Action, Instant, Record, Task
from mimikit.protocol.notify import notify_of, notify_words
from mimikit.protocol.triggers import Condition, Schedule, Trigger
from mimikit.tasks import ledger, queue
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest, TriggerFields
from mimikit.triggers import registry, schedule
from mimikit.triggers.explain import trigger_words
from mimikit.views import chains
from mimikit.views import triggers as views
from mimikit.views.base import View, Words
from mimikit.web.api import tasks
from mimikit.web.api.routing import (
    Answer,
    ClientId,
    EndpointRegistry,
    Input,
    Site,
    bad_value,
    current_site,
    existing,
    id_taken,
    read_time,
)
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandInput

area = EndpointRegistry("triggers")

WHEN = ("schedule", "condition", "when")

ZoneName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
MomentText = Annotated[str, StringConstraints(min_length=1, max_length=64)]

_COMPARED = (
    *("prompt", "title", "profile", "priority", "schedule", "condition", "cooldown", "once"),
    *("overlap", "notify", "timeout", "max_attempts"),
)
"""Fields that a repeated request must have in common with the first."""

_VIEW_KEYS = frozenset(field.alias for field in views.TriggerView.model_fields.values())


class ScheduleInput(Input):
    """One of interval, cron, runAt; and limits of its times. Units: seconds."""

    interval: Annotated[float, Field(ge=1, le=366 * 86400)] | None = None
    cron: Annotated[str, StringConstraints(max_length=200)] | None = None
    timezone: ZoneName | None = None
    run_at: MomentText | None = None
    starting: MomentText | None = None
    until: MomentText | None = None
    times: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    lateness: Annotated[float, Field(ge=0, le=366 * 86400)] | None = None
    every_days: Annotated[int, Field(ge=2, le=366)] | None = None
    every_weeks: Annotated[int, Field(ge=2, le=52)] | None = None


class TimingInput(Input):
    """When a trigger fires: one of schedule, condition, when (plain words). Units: seconds."""

    schedule: ScheduleInput | None = None
    condition: Condition | None = None
    when: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    timezone: ZoneName | None = None
    cooldown: Annotated[float, Field(ge=0, le=366 * 86400)] | None = None


class TriggerInput(tasks.TaskInput, TimingInput):
    overlap: Literal["skip", "queue"] = "skip"
    once: bool = False


class NewTriggerInput(TriggerInput):
    """A new trigger; the JSON of `GET` is accepted, too."""

    enabled: bool = True
    notify_given: bool | None = None
    """Whether `notify` was chosen; by default it was if there is one."""

    @model_validator(mode="before")
    @classmethod
    def _of_view(cls, given: dict[str, Json]) -> dict[str, Json]:
        asked = {field.alias for field in cls.model_fields.values()}
        return {key: value for key, value in given.items() if key in asked or key not in _VIEW_KEYS}


class TriggerChanges(TriggerInput):
    """The fields to change. `id` is the command's."""

    prompt: tasks.Prompt = ""
    profile: tasks.ProfileName = ""


class SnoozeInput(Input):
    """When to repeat a reminder, in words; `id` is the new trigger's."""

    when: Annotated[str, StringConstraints(min_length=1, max_length=500)] = "in 10 minutes"
    timezone: ZoneName | None = None
    id: ClientId | None = None


class TriggerPreview(View):
    type: str
    schedule: Schedule | None
    condition: Condition | None
    cooldown: float
    words: Words
    next: list[Instant]
    notes: list[Words]


class CreatedTrigger(View):
    id: str
    told: Words | None
    notes: list[Words]
    """Warnings about its costs, and about why it cannot run."""


def timing_fields(body: TimingInput) -> list[str]:
    return [name for name in WHEN if getattr(body, name) is not None]


def timing(body: TimingInput, *, now: datetime, zone: ZoneInfo) -> TriggerFields:
    """The schedule or condition of a request; BadInput unless there is exactly one."""
    present = timing_fields(body)
    if len(present) != 1:
        got = " and ".join(present) or "none"
        raise BadInput(
            f"schedule: expected one of schedule, condition, when; got {got}", field="schedule"
        )
    zone = schedule.time_zone(body.timezone) if body.timezone else zone
    fields = TriggerFields()
    if body.cooldown is not None:
        fields["cooldown"] = body.cooldown
    if body.condition is not None:
        fields["condition"] = body.condition
    elif body.when is not None:
        with bad_value("when"):
            fields["schedule"] = requests.schedule_of(body.when, now=now, zone=zone)
    elif body.schedule is not None:
        fields["schedule"] = _schedule(body.schedule, body.timezone, now, zone)
    return fields


def _schedule(body: ScheduleInput, timezone: str | None, now: datetime, zone: ZoneInfo) -> Schedule:
    if body.timezone:
        zone = schedule.time_zone(body.timezone, "schedule.timezone")
    if body.cron is not None:
        schedule.check_cron(body.cron)
    moments = (body.cron, body.run_at, body.starting, body.until)
    has_moment = any(moment is not None for moment in moments)
    plan = Schedule(
        interval=body.interval,
        cron=body.cron,
        timezone=body.timezone or (timezone if has_moment else None),
        run_at=read_time(body.run_at, "schedule.runAt", zone),
        starting=read_time(body.starting, "schedule.starting", zone),
        until=read_time(body.until, "schedule.until", zone),
        **body.model_dump(include={"times", "lateness", "every_days", "every_weeks"}),
    )
    return schedule.anchored(plan, now, zone)


@area.route("GET", "/api/triggers", views.TriggerList, query=Input)
def listed(_: Input) -> views.TriggerList:
    """Every trigger."""
    site = current_site()
    situation = site.state.situation(reader=site.reader)
    return views.TriggerList(triggers=views.listed(site.files, situation))


@area.route("GET", "/api/triggers/<trigger_id>", chains.TriggerDetail, query=Input)
def show(_: Input, trigger_id: str) -> chains.TriggerDetail:
    """A trigger, why it waits, its runs and its chain; also a removed one."""
    site = current_site()
    consumer = site.state.consumer()
    situation = site.state.situation(consumer, site.reader)
    found = chains.trigger_detail(site.files, trigger_id, situation, consumer.live)
    detail = existing(found, f"trigger {trigger_id}")
    used = site.state.usage.of_trigger(trigger_id, site.clock.now())
    job = site.state.jobs.find(trigger_id, consumer.live)
    return detail.model_copy(update={"usage": used, "job": job})


@area.route("POST", "/api/triggers/preview", TriggerPreview, body=TimingInput)
def preview(body: TimingInput) -> TriggerPreview:
    """Describe a timing in words, with its next times and costs; nothing is stored."""
    site = current_site()
    now = site.clock.now()
    chosen = timing(body, now=now, zone=site.settings.zone)
    with bad_value():
        request = TaskRequest(prompt="preview", origin="http")
        trigger = requests.new_trigger(site.files, request, chosen, now)
    around, plan = site.state.situation(reader=site.reader), trigger.schedule
    every_s = site.settings.triggers.llm_eval_interval_s
    return TriggerPreview(
        type=trigger.type,
        schedule=plan,
        condition=trigger.condition,
        cooldown=views.cooldown_of(trigger),
        words=trigger_words(trigger, around),
        next=schedule.upcoming(plan, now=now, zone=site.settings.zone) if plan else [],
        notes=views.notes(trigger, around, asked_every_s=every_s),
    )


@area.route("POST", "/api/triggers", {202: CreatedTrigger}, body=NewTriggerInput)
def create(body: NewTriggerInput) -> CreatedTrigger:
    """Create a trigger; idempotent by id."""
    site = current_site()
    tasks.check_request(site, tasks.request_of(body), requests.TRIGGER_PROFILES)
    id_ = _repeated(site, body)
    if id_ is None:
        new = _trigger_of(site, body, site.clock.now())
        id_ = new.id
        if not registry.create(site.files, new):
            _repeated(site, body)  # a concurrent request
    trigger, _ = views.active(site.files, id_)
    every_s, around = site.settings.triggers.llm_eval_interval_s, site.state.situation()
    notes = views.notes(trigger, around, asked_every_s=every_s) if trigger else []
    told = notify_words(trigger) if trigger else None
    return CreatedTrigger(id=id_, told=told, notes=notes)


@area.route("POST", "/api/tasks/<task_id>/snooze", {202: CreatedTrigger}, body=SnoozeInput)
def snooze(body: SnoozeInput, task_id: str) -> CreatedTrigger:
    """Repeat a reminder once, at another time."""
    site = current_site()
    location = queue.find(site.files, task_id, seats=("worker",))
    if location is None or location.task.profile != REMINDER:
        raise NotFound(f"there is no reminder {task_id[:128]}", field="id")
    reminder = location.task
    again = NewTriggerInput(
        prompt=reminder.prompt, title=reminder.title, profile=REMINDER, **dict(body)
    )
    plan = timing(again, now=site.clock.now(), zone=site.settings.zone).get("schedule")
    if plan is None or plan.run_at is None:
        message = f"when: expected one time, got {body.when[:60]!r}"
        raise BadInput(message, field="when", code="bad_when")
    return create(again)


def _trigger_of(site: Site, body: NewTriggerInput, now: datetime) -> Trigger:
    """The trigger of a request at `now`."""
    fields = timing(body, now=now, zone=site.settings.zone)
    fields.update(overlap=body.overlap, once=body.once, enabled=body.enabled)
    with bad_value():
        trigger = requests.new_trigger(site.files, tasks.request_of(body), fields, now)
    return trigger if body.notify_given is None else trigger.but(notify_given=body.notify_given)


def _repeated(site: Site, body: NewTriggerInput) -> str | None:
    """The id of the trigger that this request created before, if any.

    Raises Conflict for another trigger with this id.
    """
    if body.id is None:
        return None
    existing, broken = views.active(site.files, body.id)
    if existing is not None and broken is None:
        is_same = _meaning(_trigger_of(site, body, existing.created_at)) == _meaning(existing)
    else:
        run = _last_run_of_removed(site, body.id)
        if run is None and broken is None:
            return None
        asked = (body.prompt, body.title, body.profile)
        is_same = run is not None and (run.prompt, run.title, run.profile) == asked
    if is_same:
        return body.id
    raise id_taken(body.id, "trigger")


def _meaning(trigger: Trigger) -> dict[str, object]:
    shown = trigger.but(
        title=plain(views.title(trigger)),
        cooldown=views.cooldown_of(trigger),
        notify=notify_of(trigger),
    )
    return shown.model_dump(include={*_COMPARED})


def _last_run_of_removed(site: Site, trigger_id: str) -> Task | None:
    lines = ledger.slots_of(site.files, trigger_id, 1)
    ran = lines[-1].get("taskId") if lines and lines[-1].get("event") == "slot" else None
    found = queue.find(site.files, ran) if isinstance(ran, str) and is_id(ran) else None
    return found.task if found else None


@area.route("PATCH", "/api/triggers/<trigger_id>", COMMAND_ANSWERS, body=TriggerChanges)
def edit(body: TriggerChanges, trigger_id: str) -> Answer:
    """Change a trigger by a command; invalid changes are refused first."""
    site = current_site()
    _check_exists(site, trigger_id)
    trigger, broken = views.active(site.files, trigger_id)
    if trigger is None or broken is not None:
        message = f"its file is broken: {broken}; fix it there, or remove the trigger"
        raise Conflict(message, code="trigger_broken")
    changes = _changes(site, trigger, body)
    new = registry.edited(trigger, changes)
    if {"prompt", "profile"} & changes.keys():
        request = TaskRequest(prompt=new.prompt, origin="http", profile=new.profile)
        tasks.check_request(site, request, requests.TRIGGER_PROFILES)
    registry.check_new(site.files, new)
    if new.condition is not None and new.condition != trigger.condition:
        with bad_value():
            requests.check_subjects(site.files, new.condition)
    return tasks.submit_command(site, "trigger_edit", trigger_id, command_id=body.id, args=changes)


def _changes(site: Site, trigger: Trigger, body: TriggerChanges) -> dict[str, Any]:
    changes = body.model_dump(
        by_alias=True, mode="json", exclude_unset=True, exclude={"id", "timezone", *WHEN}
    )
    if timing_fields(body):
        chosen = timing(body, now=site.clock.now(), zone=site.settings.zone)
        if plan := chosen.get("schedule"):
            given = body.schedule.model_fields_set if body.schedule else ()
            chosen["schedule"] = schedule.with_limits_of(trigger.schedule, plan, given)
        changes |= {k: v.to_dict() for k, v in chosen.items() if isinstance(v, Record)}
        if "schedule" in chosen and trigger.condition is not None and trigger.once:
            changes.setdefault("once", False)  # it applies to conditions
    elif body.timezone is not None:
        zone = schedule.time_zone(body.timezone).key
        if trigger.schedule is None or trigger.schedule.interval is not None:
            raise BadInput(
                "timezone: expected it for a trigger with a time of day, got one without",
                field="timezone",
            )
        changes["schedule"] = trigger.schedule.to_dict() | {"timezone": zone}
    if not changes:
        raise BadInput("expected something to change, got nothing", code="nothing_to_change")
    return changes


def _declare_command(name: str, method: str, rule: str, text: str) -> None:
    def handler(body: CommandInput, trigger_id: str) -> Answer:
        site = current_site()
        _check_exists(site, trigger_id)
        action = cast("Action", f"trigger_{name}")
        return tasks.submit_command(site, action, trigger_id, command_id=body.id)

    handler.__name__, handler.__doc__ = name, text
    area.route(method, rule, COMMAND_ANSWERS, body=CommandInput)(handler)


_declare_command("pause", "POST", "/api/triggers/<trigger_id>/pause", "Pause a trigger.")
_declare_command("resume", "POST", "/api/triggers/<trigger_id>/resume", "Resume a trigger.")
_declare_command("run", "POST", "/api/triggers/<trigger_id>/run", "Run a trigger now.")
_declare_command("remove", "DELETE", "/api/triggers/<trigger_id>", "Remove a trigger.")


def _check_exists(site: Site, trigger_id: str) -> None:
    if not site.files.exists(paths.trigger(trigger_id)):
        raise NotFound(f"there is no trigger {trigger_id}", field="id")
