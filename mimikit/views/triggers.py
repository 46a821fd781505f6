"""Triggers in words: when they ran and will run, why they wait, what they did before."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from mimikit.errors import BadInput, UnsafeFile
from mimikit.language.phrases import say_both
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import EngineStatus, Health, Instant, Notify, to_utc
from mimikit.protocol.notify import notify_of
from mimikit.protocol.triggers import Condition, Schedule, Trigger
from mimikit.tasks import ledger, queue
from mimikit.triggers import conditions, explain, registry, schedule
from mimikit.triggers.explain import Explanation, ExplanationContext, TitleOf
from mimikit.views.base import Title, View, Words, first_line

MAX_LISTED = 500
_MOST_GONE = 20
"""So many titles of triggers that are gone are looked for in one answer."""
_ASKED = "standard"
"""The profile whose model is asked about conditions."""
_NO_MODEL = "no language model is connected"


class TriggerView(View):
    """One trigger as it stands now; of a broken one, what can still be said. Units: seconds."""

    id: str
    title: Title
    prompt: str
    profile: str
    priority: int
    type: Literal["recurring", "scheduled", "conditional", "broken"]
    words: Words
    """When it runs."""
    enabled: bool
    created_at: Instant | Literal[""]
    schedule: Schedule | None
    condition: Condition | None
    cooldown: float
    """The one in force."""
    once: bool
    overlap: Literal["skip", "queue"]
    notify: Notify
    """Who is told of its runs: as asked for, else what is usual for its kind."""
    timeout: float | None
    max_attempts: int
    origin: str
    trace_id: str
    last_run_at: Instant | None
    next_run_at: Instant | None
    fire_count: int
    last_task_id: str | None
    last_verdict: str | None
    failure_streak: int
    blocked_by: str | None
    """The task or trigger because of which it can never fire."""
    broken: str | None
    """Why its file cannot be read."""
    headline: Words
    """Why it waits, or what comes next."""


class TriggerList(View):
    triggers: list[TriggerView]


_BROKEN: dict[str, Any] = {
    "type": "broken", "words": say_both("trigger_never"), "enabled": False, "created_at": "",
    "prompt": "", "profile": "", "priority": 5, "schedule": None, "condition": None, "cooldown": 0,
    "once": False, "overlap": "skip", "notify": "message", "timeout": None, "max_attempts": 1,
    "origin": "file",
}  # fmt: skip
"""What is shown of a definition that can not be read."""


# ---- what an explanation is made from


def situation(
    files: ReadOnlyFiles,
    *,
    now: datetime,
    zone: ZoneInfo,
    consumer_up: bool,
    health: Health | None,
    paused: bool,
) -> ExplanationContext:
    """The world around the triggers, as the state files have it."""

    def is_live(task_id: str) -> bool:
        places = (queue.where(files, seat, task_id) for seat in paths.QUEUES)
        return any(place in ("queued", "running") for place in places)

    return ExplanationContext(
        now=now,
        zone=zone,
        title_of=titles(files),
        consumer_up=consumer_up,
        queues_paused=paused,
        is_live=is_live,
        model_missing=model_missing(health.engines if health else {}),
    )


def titles(files: ReadOnlyFiles) -> TitleOf:
    """Titles of tasks and triggers by their ids; each is looked up once.

    Of triggers that are gone the ledger knows it, which is asked for a few only.
    """
    gone = count()

    @cache
    def title_of(id_: str) -> str:
        if not is_id(id_):
            return id_
        trigger, _ = active(files, id_)
        if trigger is not None:
            return title(trigger)
        if found := queue.find(files, id_):
            return found.task.title or first_line(found.task.prompt) or id_
        if next(gone) >= _MOST_GONE:
            return id_
        told = [line.get("title") for line in ledger.slots_of(files, id_, 1)]
        return next((text for text in reversed(told) if isinstance(text, str) and text), id_)

    return title_of


def title(trigger: Trigger) -> str:
    return trigger.title or first_line(trigger.prompt) or trigger.id


def model_missing(engines: dict[str, EngineStatus]) -> str | None:
    """Why no model can be asked about a condition; None when one can, or nobody knows.

    Args:
        engines: by profile, from the heartbeat.
    """
    asked = engines.get(_ASKED)
    if asked is None:
        return None
    if asked.state == "waiting":
        return asked.reason
    return _NO_MODEL if asked.engine == "builtin" else None


# ---- lists


def listed(files: ReadOnlyFiles, here: ExplanationContext) -> list[TriggerView]:
    """Triggers, newest first; of very many the newest by name."""
    ids = registry.ids(files)[-MAX_LISTED:]
    found = [trigger for id_ in ids if (trigger := find(files, id_, here))]
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda trigger: trigger.created_at or never, reverse=True)


def find(files: ReadOnlyFiles, trigger_id: str, here: ExplanationContext) -> TriggerView | None:
    """One trigger; None when there is none. A broken one is shown with its reason."""
    trigger, broken = active(files, trigger_id)
    if trigger is None and broken is None:
        return None
    state = registry.state(files, trigger_id)
    _, headline = explain.headline(trigger, state, broken, here)
    known: dict[str, object] = {**vars(state), "broken": broken, "headline": headline}
    if trigger is None:
        named = dict.fromkeys(("id", "title", "trace_id"), trigger_id)
        return TriggerView.model_validate(_BROKEN | known | named)
    if state.next_run_at is None and trigger.schedule is not None:
        # The consumer has not looked at it yet: the slot it waits for is worked out here.
        known["next_run_at"] = schedule.slot_to_wait_for(
            trigger.schedule,
            now=here.now,
            recorded=None,
            last_run_at=state.last_run_at,
            created_at=trigger.created_at,
            zone=here.zone,
        )
    return TriggerView.of(
        trigger,
        **known,
        title=title(trigger),
        words=explain.trigger_words(trigger, here.title_of),
        cooldown=cooldown_of(trigger),
        notify=notify_of(trigger),
    )


def cooldown_of(trigger: Trigger) -> float:
    """The cooldown in force. Units: seconds."""
    if trigger.condition is None:
        return trigger.cooldown or 0
    return conditions.cooldown_of(trigger.condition, trigger.cooldown)


def active(files: ReadOnlyFiles, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """The definition in force and what is wrong with its file, whatever that is."""
    try:
        trigger, broken = registry.active(files, trigger_id)
        if trigger is not None and broken is not None:
            registry.check(trigger)  # the last good one may be of an older version, or damaged
    except UnsafeFile as error:
        return None, str(error)
    except (BadInput, ValidationError):
        return None, "neither the definition nor its last good version can be read"
    return trigger, broken


# ---- one


def explained(files: ReadOnlyFiles, trigger_id: str, here: ExplanationContext) -> Explanation:
    """Everything there is to say about one trigger; also about one that is gone."""
    trigger, broken = active(files, trigger_id)
    lines = ledger.slots_of(files, trigger_id, explain.MAX_SLOTS)
    there = dataclasses.replace(here, slots=[line for line in lines if _is_sound(line)])
    return explain.explain(trigger, registry.state(files, trigger_id), broken, there)


def notes(trigger: Trigger, here: ExplanationContext, *, asked_every_s: float) -> list[Words]:
    """What whoever makes this trigger should know: costs, and what is in its way."""
    told = explain.notes(trigger, asked_every_s=asked_every_s)
    if told and here.model_missing:
        told.append(say_both("trigger_nobody_to_ask_now", why=here.model_missing))
    plan = trigger.schedule
    if plan is not None and plan.run_at is not None and plan.run_at <= here.now:
        told.append(say_both("trigger_time_passed"))
    return told


def _is_sound(line: dict[str, Any]) -> bool:
    """Whether a line of the ledger is as it was written; hands and disks damage some."""
    try:
        times = [datetime.fromisoformat(line[key]) for key in ("at", "plannedAt") if key in line]
        list(map(to_utc, times))
    except (TypeError, ValueError):
        return False
    texts = (line.get(key) for key in ("slot", "state", "reason", "taskId"))
    return (
        len(times) > 0
        and all(time.tzinfo is not None for time in times)
        and all(text is None or isinstance(text, str) for text in texts)
        and isinstance(line.get("missed", 0), int)
    )
