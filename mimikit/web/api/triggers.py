"""Triggers: list, one with its reasons, new ones, edits, and pause, resume, run now, remove."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Annotated, Any, Literal

from flask import Blueprint, Response
from pydantic import StringConstraints

from mimikit.errors import BadInput, Conflict, NotFound
from mimikit.protocol import paths
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Notify, Record, Task, Trigger, time_text
from mimikit.tasks import ledger, queue
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest, TriggerFields
from mimikit.triggers import registry, schedule, words
from mimikit.triggers.explain import ExplanationContext, SlotExplanation
from mimikit.views import chains
from mimikit.views import tasks as shown_tasks
from mimikit.views import triggers as shown
from mimikit.web.api import ordering
from mimikit.web.api.asked import Asked, ClientId, body, path_id, query
from mimikit.web.api.wanted import (
    Attempts,
    NewTask,
    Priority,
    ProfileName,
    Prompt,
    Timeout,
    Timing,
    Title,
    check,
    given_timing,
    timing,
    wanted_of,
)
from mimikit.web.site import Site, answer, site

routes = Blueprint("triggers", __name__)

Overlap = Literal["skip", "queue"]


class NewTrigger(NewTask, Timing):
    """A trigger to be made: what it does, and when."""

    overlap: Overlap = "skip"
    once: bool = False
    notify: Notify = "change"


class Changes(Timing):
    """What is to be different; whatever is not named stays. `id` names the order."""

    id: ClientId | None = None
    prompt: Prompt = ""
    title: Title = ""
    profile: ProfileName = ""
    priority: Priority = 5
    timeout: Timeout | None = None
    max_attempts: Attempts = 1
    overlap: Overlap = "skip"
    once: bool = False
    notify: Notify = "change"


_AS_THEY_ARE = (
    *("prompt", "title", "profile", "priority", "timeout", "overlap", "once", "notify", "cooldown"),
)


# ---- looking


class Zoned(Asked):
    """The zone in which times are told; the workspace's unless given."""

    timezone: Annotated[str, StringConstraints(max_length=64)] | None = None


@routes.get("/api/triggers")
def listed() -> Response:
    """Every trigger."""
    query(Asked)
    here = site()
    return answer({"triggers": shown.listed(here.files, here.shown.situation())})


@routes.get("/api/triggers/<trigger_id>")
def show(trigger_id: str) -> Response:
    """One trigger: why it waits, what it did, and the chain around it; also when it is gone."""
    asked, here = query(Zoned), site()
    id_ = path_id(trigger_id)
    vitals = here.shown.vitals()
    around = here.shown.situation(vitals)
    zone = requests.zone_named(asked.timezone) if asked.timezone else around.zone
    explanation = shown.explained(here.files, id_, dataclasses.replace(around, zone=zone))
    if explanation.state == "unknown":
        raise _no_trigger(id_)
    trace_id, centre = _place_of(here, id_, explanation.slots)
    live = vitals.live
    trace = shown_tasks.in_trace(here.files, trace_id, live)
    chain = chains.around(here.files, trace_id, trace, live, id_)
    return answer(
        {
            "trigger": shown.find(here.files, id_, around),
            "explanation": explanation.model_dump(mode="json", by_alias=True),
            "graph": chains.draw(chain, centre),
        }
    )


def _place_of(here: Site, trigger_id: str, slots: list[SlotExplanation]) -> tuple[str, str]:
    """The trace a trigger belongs to and its node there; of one that is gone, its last run's."""
    trigger, broken = shown.active(here.files, trigger_id)
    if trigger is not None:
        return trigger.trace_id, trigger_id
    ran = next((slot.task_id for slot in slots if slot.task_id), None)
    if broken is None and ran is not None and is_id(ran):
        found = queue.find(here.files, ran)
        return (found.task.trace_id if found else trigger_id), ran
    return trigger_id, trigger_id


@routes.post("/api/triggers/preview")
def preview() -> Response:
    """What a timing means: in words, its next times, and what it costs. Nothing is stored."""
    asked, here = body(Timing), site()
    now = here.clock.now()
    chosen = timing(asked, now=now, zone=here.settings.zone)
    trigger = _new_trigger(here, TaskRequest(prompt="preview", origin="http"), chosen, now)
    around, plan = here.shown.situation(), trigger.schedule
    coming = schedule.upcoming(plan, now=now, zone=here.settings.zone) if plan else []
    return answer(
        {
            "type": trigger.type,
            **shown.timing(plan, trigger.condition, trigger.cooldown),
            "words": words.of_trigger(trigger, around.title_of),
            "next": [time_text(time) for time in coming],
            "notes": _notes(here, trigger, around),
        }
    )


# ---- making


@routes.post("/api/triggers")
def create() -> Response:
    """Make a trigger; the same again under the same id is the same trigger."""
    asked, here = body(NewTrigger), site()
    check(here, wanted_of(asked))
    id_ = _repeated(here, asked) or _made(here, asked)
    trigger, _ = shown.active(here.files, id_)
    notes = _notes(here, trigger, here.shown.situation()) if trigger else []
    return answer({"id": id_, "notes": notes}, 202)


def _made(here: Site, asked: NewTrigger) -> str:
    trigger = _asked_for(here, asked, here.clock.now())
    if not registry.create(here.files, trigger):
        _repeated(here, asked)  # made by another request, at the same time
    return trigger.id


def _asked_for(here: Site, asked: NewTrigger, now: datetime) -> Trigger:
    """The trigger that a request asks for, if it comes at `now`."""
    chosen = timing(asked, now=now, zone=here.settings.zone)
    fields: TriggerFields = {
        **chosen,
        "overlap": asked.overlap,
        "once": asked.once,
        "notify": asked.notify,
    }
    return _new_trigger(here, wanted_of(asked), fields, now)


def _new_trigger(here: Site, wanted: TaskRequest, fields: TriggerFields, now: datetime) -> Trigger:
    """The trigger, checked.

    Raises:
        BadInput: it can not be made; an id nobody knows is a bad value, not a missing page.
        Conflict: it would wait for itself.
    """
    try:
        return requests.new_trigger(here.files, wanted, fields, now)
    except NotFound as error:
        raise BadInput(str(error), field=error.field) from None


def _repeated(here: Site, asked: NewTrigger) -> str | None:
    """The id of the trigger that this request made when it was sent before; None: it is new.

    Raises:
        Conflict: the id is another trigger's.
    """
    if asked.id is None:
        return None
    known, broken = shown.active(here.files, asked.id)
    if known is not None and broken is None:
        again = _asked_for(here, asked, known.created_at)
        is_same = again.but(enabled=known.enabled, trace_id=known.trace_id) == known
    else:
        run = _run_of_gone(here, asked.id)
        if run is None and broken is None:
            return None
        said = (asked.prompt, asked.title, asked.profile)
        is_same = run is not None and (run.prompt, run.title, run.profile) == said
    if is_same:
        return asked.id
    raise Conflict(
        f"id: expected one that is not taken, got {asked.id!r}, which is another trigger's",
        field="id",
    )


def _run_of_gone(here: Site, trigger_id: str) -> Task | None:
    """The last run of a trigger that fired and is gone; None when none is known."""
    lines = ledger.slots_of(here.files, trigger_id, 1)
    ran = lines[-1].get("taskId") if lines and lines[-1].get("event") == "slot" else None
    found = queue.find(here.files, ran) if isinstance(ran, str) and is_id(ran) else None
    return found.task if found else None


def _notes(here: Site, trigger: Trigger, around: ExplanationContext) -> list[words.Words]:
    every_s = here.settings.triggers.llm_eval_interval_s
    return shown.notes(trigger, around, asked_every_s=every_s)


# ---- changing


@routes.patch("/api/triggers/<trigger_id>")
def edit(trigger_id: str) -> Response:
    """Change it: what can not be is refused here, the rest is an order."""
    here = site()
    id_ = _known(here, trigger_id)
    asked = body(Changes)
    trigger, broken = shown.active(here.files, id_)
    if trigger is None or broken is not None:
        raise Conflict(f"its file is broken: {broken}; mend it there, or remove the trigger")
    changes = _changes(here, trigger, asked)
    new = registry.edited(trigger, changes)
    if {"prompt", "profile"} & changes.keys():
        check(here, TaskRequest(prompt=new.prompt, origin="http", profile=new.profile))
    registry.check_new(here.files, new)
    if new.condition is not None and new.condition != trigger.condition:
        try:
            requests.check_known(here.files, new.condition)
        except NotFound as error:
            raise BadInput(str(error), field=error.field) from None
    return ordering.give(here, "trigger_edit", id_, order_id=asked.id, args=changes)


def _changes(here: Site, trigger: Trigger, asked: Changes) -> dict[str, Any]:
    """The fields to be replaced, by their names on disk."""
    given = asked.model_dump(by_alias=True, mode="json", include=asked.model_fields_set)
    changes = {name: given[name] for name in (*_AS_THEY_ARE, "maxAttempts") if name in given}
    if given_timing(asked):
        chosen = timing(asked, now=here.clock.now(), zone=here.settings.zone)
        changes |= {k: v.to_dict() for k, v in chosen.items() if isinstance(v, Record)}
        if "schedule" in chosen and trigger.condition is not None and trigger.once:
            changes.setdefault("once", False)  # it was meant of the condition that goes
    elif asked.timezone is not None:
        changes["schedule"] = _moved(trigger, requests.zone_named(asked.timezone).key)
    if not changes:
        raise BadInput("expected something to change, got nothing")
    return changes


def _moved(trigger: Trigger, zone: str) -> dict[str, Any]:
    """Its schedule in another zone."""
    if trigger.schedule is None or trigger.schedule.interval is not None:
        raise BadInput(
            "timezone: expected it for a trigger with a time of day, got one without",
            field="timezone",
        )
    return trigger.schedule.to_dict() | {"timezone": zone}


@routes.post("/api/triggers/<trigger_id>/pause")
def pause(trigger_id: str) -> Response:
    """Let it not fire until it is resumed."""
    return _order("trigger_pause", trigger_id)


@routes.post("/api/triggers/<trigger_id>/resume")
def resume(trigger_id: str) -> Response:
    """Let it fire again."""
    return _order("trigger_resume", trigger_id)


@routes.post("/api/triggers/<trigger_id>/run")
def run(trigger_id: str) -> Response:
    """Run it once, now."""
    return _order("trigger_run", trigger_id)


@routes.delete("/api/triggers/<trigger_id>")
def remove(trigger_id: str) -> Response:
    """Remove it."""
    return _order("trigger_remove", trigger_id)


def _order(action: ordering.Action, trigger_id: str) -> Response:
    here = site()
    target = _known(here, trigger_id)
    return ordering.give(here, action, target, order_id=ordering.named())


def _known(here: Site, trigger_id: str) -> str:
    target = path_id(trigger_id)
    if not here.files.exists(paths.trigger(target)):
        raise _no_trigger(target)
    return target


def _no_trigger(trigger_id: str) -> NotFound:
    return NotFound(f"there is no trigger {trigger_id}", field="id")
