"""Triggers: list, show, preview, create, edit, pause, resume, run now, remove; snooze."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, ValidationError, model_validator

from mimikit.errors import BadInput, Conflict, NotFound
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json
from mimikit.protocol.models import REMINDER, Instant, Record, Task, to_utc
from mimikit.protocol.notify import notify_of, notify_words
from mimikit.protocol.records import bad_record
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
    id_taken,
    site,
)
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandInput

area = EndpointRegistry("triggers")

WHEN = ("schedule", "condition", "when")

ZoneName = Annotated[str, StringConstraints(min_length=1, max_length=64)]

_COMPARED = (
    *("prompt", "title", "profile", "priority", "schedule", "condition", "cooldown", "once"),
    *("overlap", "notify", "timeout", "max_attempts"),
)
"""What makes it another trigger under the same id; it may have been paused since."""

_VIEW_KEYS = frozenset(field.alias for field in views.TriggerView.model_fields.values())


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


class TriggerQuery(Input):
    """The zone of the times in words; the workspace's unless given."""

    timezone: Annotated[str, StringConstraints(max_length=64)] | None = None


class TriggerInput(tasks.TaskInput, TimingInput):
    overlap: Literal["skip", "queue"] = "skip"
    once: bool = False


class NewTriggerInput(TriggerInput):
    """A new trigger; what `GET` gives may be posted again."""

    enabled: bool = True
    notify_given: bool | None = None
    """Whether `notify` was chosen, as `GET` gives it; else it was where `notify` is given."""

    @model_validator(mode="before")
    @classmethod
    def _of_view(cls, given: dict[str, Json]) -> dict[str, Json]:
        """Without what only a view has: when it ran, why it waits, its origin."""
        asked = {field.alias for field in cls.model_fields.values()}
        return {key: value for key, value in given.items() if key in asked or key not in _VIEW_KEYS}


class TriggerChanges(TriggerInput):
    """The fields to change; the others stay. `id` is the command's."""

    prompt: tasks.Prompt = ""
    profile: tasks.ProfileName = ""


class SnoozeInput(Input):
    """When a reminder comes again, in plain words; `id` is the new trigger's."""

    may_be_empty = True
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
    """Who is told of its runs."""
    notes: list[Words]
    """Costs, and what keeps it from running."""


def given_timing(body: TimingInput) -> list[str]:
    return [name for name in WHEN if getattr(body, name) is not None]


def timing(body: TimingInput, *, now: datetime, zone: ZoneInfo) -> TriggerFields:
    """The schedule or the condition a request asks for; BadInput unless it is one of them."""
    present = given_timing(body)
    if len(present) != 1:
        got = " and ".join(present) or "none"
        raise BadInput(
            f"schedule: expected one of schedule, condition, when; got {got}", field="schedule"
        )
    zone = requests.zone_named(body.timezone) if body.timezone else zone
    fields = TriggerFields()
    if body.cooldown is not None:
        fields["cooldown"] = body.cooldown
    if body.condition is not None:
        fields["condition"] = body.condition
    elif body.when is not None:
        try:
            with bad_value("when"):
                fields["schedule"] = requests.schedule_of(body.when, now=now, zone=zone)
        except ValidationError as error:
            raise BadInput(f"when: {bad_record(error)}", field="when") from None
    elif body.schedule is not None:
        fields["schedule"] = _schedule(body.schedule, body.timezone, zone)
    return fields


def _schedule(body: ScheduleInput, timezone: str | None, zone: ZoneInfo) -> Schedule:
    if body.timezone:
        with bad_value("schedule.timezone"):
            zone = requests.zone_named(body.timezone)
    run_at = None
    if body.run_at is not None:
        try:
            time = datetime.fromisoformat(body.run_at)
            run_at = to_utc(time if time.tzinfo else time.replace(tzinfo=zone))
        except (ValueError, OverflowError):
            raise BadInput(
                "schedule.runAt: expected a time such as 2026-12-01T09:00:00Z, "
                f"got {body.run_at!r}; plain words go into `when`",
                field="schedule.runAt",
            ) from None
    has_time_of_day = body.cron is not None or body.run_at is not None
    return Schedule(
        interval=body.interval,
        cron=body.cron,
        timezone=body.timezone or (timezone if has_time_of_day else None),
        run_at=run_at,
    )


# ---- looking


@area.route("GET", "/api/triggers", views.TriggerList, query=Input)
def listed(_: Input) -> views.TriggerList:
    """Every trigger."""
    here = site()
    return views.TriggerList(triggers=views.listed(here.files, here.state.situation()))


@area.route("GET", "/api/triggers/<trigger_id>", chains.TriggerDetail, query=TriggerQuery)
def show(query: TriggerQuery, trigger_id: str) -> chains.TriggerDetail:
    """One trigger: why it waits, what it did, and its chain; also one that was removed."""
    here = site()
    consumer = here.state.consumer()
    zone = requests.zone_named(query.timezone) if query.timezone else here.settings.zone
    detail = chains.trigger_detail(
        here.files, trigger_id, here.state.situation(consumer), consumer.live, zone
    )
    if detail is None:
        raise NotFound(f"there is no trigger {trigger_id}", field="id")
    used = here.state.usage.of_trigger(trigger_id, here.clock.now())
    return detail.model_copy(update={"usage": used})


@area.route("POST", "/api/triggers/preview", TriggerPreview, body=TimingInput)
def preview(body: TimingInput) -> TriggerPreview:
    """A timing in words, its next times, and its costs. Nothing is stored."""
    here = site()
    now = here.clock.now()
    chosen = timing(body, now=now, zone=here.settings.zone)
    with bad_value():
        request = TaskRequest(prompt="preview", origin="http")
        trigger = requests.new_trigger(here.files, request, chosen, now)
    around, plan = here.state.situation(), trigger.schedule
    every_s = here.settings.triggers.llm_eval_interval_s
    return TriggerPreview(
        type=trigger.type,
        schedule=plan,
        condition=trigger.condition,
        cooldown=views.cooldown_of(trigger),
        words=trigger_words(trigger, around.title_of),
        next=schedule.upcoming(plan, now=now, zone=here.settings.zone) if plan else [],
        notes=views.notes(trigger, around, asked_every_s=every_s),
    )


# ---- making


@area.route("POST", "/api/triggers", {202: CreatedTrigger}, body=NewTriggerInput)
def create(body: NewTriggerInput) -> CreatedTrigger:
    """Make a trigger; the same again under the same id is the same trigger."""
    here = site()
    tasks.check_request(here, tasks.request_of(body), requests.TRIGGER_PROFILES)
    id_ = _repeated(here, body)
    if id_ is None:
        new = _asked_for(here, body, here.clock.now())
        id_ = new.id
        if not registry.create(here.files, new):
            _repeated(here, body)  # made by another request, at the same time
    trigger, _ = views.active(here.files, id_)
    every_s, around = here.settings.triggers.llm_eval_interval_s, here.state.situation()
    notes = views.notes(trigger, around, asked_every_s=every_s) if trigger else []
    told = notify_words(trigger) if trigger else None
    return CreatedTrigger(id=id_, told=told, notes=notes)


@area.route("POST", "/api/tasks/<task_id>/snooze", {202: CreatedTrigger}, body=SnoozeInput)
def snooze(body: SnoozeInput, task_id: str) -> CreatedTrigger:
    """Repeat a reminder once, at another time."""
    here = site()
    location = queue.find(here.files, task_id, seats=("worker",))
    if location is None or location.task.profile != REMINDER:
        raise NotFound(f"there is no reminder {task_id[:128]}", field="id")
    reminder = location.task
    again = NewTriggerInput(
        prompt=reminder.prompt, title=reminder.title, profile=REMINDER, **dict(body)
    )
    plan = timing(again, now=here.clock.now(), zone=here.settings.zone).get("schedule")
    if plan is None or plan.run_at is None:
        raise BadInput(f"when: expected one time, got {body.when[:60]!r}", field="when")
    return create(again)


def _asked_for(here: Site, body: NewTriggerInput, now: datetime) -> Trigger:
    fields = timing(body, now=now, zone=here.settings.zone)
    fields.update(overlap=body.overlap, once=body.once, enabled=body.enabled)
    with bad_value():
        trigger = requests.new_trigger(here.files, tasks.request_of(body), fields, now)
    return trigger if body.notify_given is None else trigger.but(notify_given=body.notify_given)


def _repeated(here: Site, body: NewTriggerInput) -> str | None:
    """The id of the trigger that this request made before; None: it is new.

    Raises Conflict when the id is another trigger's.
    """
    if body.id is None:
        return None
    existing, broken = views.active(here.files, body.id)
    if existing is not None and broken is None:
        is_same = _meaning(_asked_for(here, body, existing.created_at)) == _meaning(existing)
    else:
        run = _last_run_of_removed(here, body.id)
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


def _last_run_of_removed(here: Site, trigger_id: str) -> Task | None:
    """The last run of a trigger that fired and was removed, if known."""
    lines = ledger.slots_of(here.files, trigger_id, 1)
    ran = lines[-1].get("taskId") if lines and lines[-1].get("event") == "slot" else None
    found = queue.find(here.files, ran) if isinstance(ran, str) and is_id(ran) else None
    return found.task if found else None


# ---- changing


@area.route("PATCH", "/api/triggers/<trigger_id>", COMMAND_ANSWERS, body=TriggerChanges)
def edit(body: TriggerChanges, trigger_id: str) -> Answer:
    """Change it. Invalid changes are refused at once; the rest is a command."""
    here = site()
    _check_there(here, trigger_id)
    trigger, broken = views.active(here.files, trigger_id)
    if trigger is None or broken is not None:
        raise Conflict(f"its file is broken: {broken}; fix it there, or remove the trigger")
    changes = _changes(here, trigger, body)
    new = registry.edited(trigger, changes)
    if {"prompt", "profile"} & changes.keys():
        request = TaskRequest(prompt=new.prompt, origin="http", profile=new.profile)
        tasks.check_request(here, request, requests.TRIGGER_PROFILES)
    registry.check_new(here.files, new)
    if new.condition is not None and new.condition != trigger.condition:
        with bad_value():
            requests.check_known(here.files, new.condition)
    return tasks.give_command(here, "trigger_edit", trigger_id, command_id=body.id, args=changes)


def _changes(here: Site, trigger: Trigger, body: TriggerChanges) -> dict[str, Any]:
    changes = body.model_dump(
        by_alias=True, mode="json", exclude_unset=True, exclude={"id", "timezone", *WHEN}
    )
    if given_timing(body):
        chosen = timing(body, now=here.clock.now(), zone=here.settings.zone)
        changes |= {k: v.to_dict() for k, v in chosen.items() if isinstance(v, Record)}
        if "schedule" in chosen and trigger.condition is not None and trigger.once:
            changes.setdefault("once", False)  # it belonged to the condition
    elif body.timezone is not None:
        zone = requests.zone_named(body.timezone).key
        if trigger.schedule is None or trigger.schedule.interval is not None:
            raise BadInput(
                "timezone: expected it for a trigger with a time of day, got one without",
                field="timezone",
            )
        changes["schedule"] = trigger.schedule.to_dict() | {"timezone": zone}
    if not changes:
        raise BadInput("expected something to change, got nothing")
    return changes


@area.route("POST", "/api/triggers/<trigger_id>/pause", COMMAND_ANSWERS, body=CommandInput)
def pause(body: CommandInput, trigger_id: str) -> Answer:
    """Pause it."""
    return _command("trigger_pause", trigger_id, body)


@area.route("POST", "/api/triggers/<trigger_id>/resume", COMMAND_ANSWERS, body=CommandInput)
def resume(body: CommandInput, trigger_id: str) -> Answer:
    """Resume it."""
    return _command("trigger_resume", trigger_id, body)


@area.route("POST", "/api/triggers/<trigger_id>/run", COMMAND_ANSWERS, body=CommandInput)
def run(body: CommandInput, trigger_id: str) -> Answer:
    """Run it once, now."""
    return _command("trigger_run", trigger_id, body)


@area.route("DELETE", "/api/triggers/<trigger_id>", COMMAND_ANSWERS, body=CommandInput)
def remove(body: CommandInput, trigger_id: str) -> Answer:
    """Remove it."""
    return _command("trigger_remove", trigger_id, body)


def _command(action: tasks.Action, trigger_id: str, body: CommandInput) -> Answer:
    here = site()
    _check_there(here, trigger_id)
    return tasks.give_command(here, action, trigger_id, command_id=body.id)


def _check_there(here: Site, trigger_id: str) -> None:
    if not here.files.exists(paths.trigger(trigger_id)):
        raise NotFound(f"there is no trigger {trigger_id}", field="id")
