"""Triggers in words: when they ran and will run, why they wait, what they did before."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from mimikit.language.phrases import say_both
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import EngineStatus, Instant, Notify, to_utc
from mimikit.protocol.notify import notify_of, notify_words
from mimikit.protocol.runtime import Health
from mimikit.protocol.triggers import Condition, Schedule, Trigger
from mimikit.tasks import ledger
from mimikit.tools import world
from mimikit.tools.world import active, title
from mimikit.triggers import conditions, explain, registry
from mimikit.triggers.explain import Explanation, ExplanationContext
from mimikit.views.base import Title, View, Words

MAX_LISTED = 500
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
    notify_given: bool
    """Whether that was asked for."""
    told: Words
    """The same in words."""
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
    """So many runs in a row failed in the same way."""
    paused_by: Literal["breaker"] | None
    """Who paused it, where that was not its user."""
    blocked_by: str | None
    """The task or trigger because of which it can never fire."""
    broken: str | None
    """Why its file cannot be read."""
    headline: Words
    """Why it waits, or what comes next."""
    last: Words | None
    """How its last run went."""


class TriggerList(View):
    triggers: list[TriggerView]


_BROKEN: dict[str, Any] = {
    "type": "broken", "words": say_both("trigger_never"), "enabled": False, "created_at": "",
    "prompt": "", "profile": "", "priority": 5, "schedule": None, "condition": None, "cooldown": 0,
    "once": False, "overlap": "skip", "notify": "message", "timeout": None, "max_attempts": 1,
    "origin": "file", "notify_given": False, "told": say_both("notify_none"),
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
    missing = model_missing(health.engines if health else {})
    return world.situation(
        files, now=now, zone=zone, paused=paused, consumer_up=consumer_up, model_missing=missing
    )


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
    known: dict[str, object] = {**vars(state), "broken": broken, "last": None}
    if trigger is None:
        _, headline = explain.headline(trigger, state, broken, here)
        named = dict.fromkeys(("id", "title", "trace_id"), trigger_id)
        return TriggerView.model_validate(_BROKEN | known | named | {"headline": headline})
    told = explain.report(trigger, state, broken, here)
    return TriggerView.of(
        trigger,
        **known
        | {
            "next_run_at": told.next_at,
            "headline": told.headline,
            "last": told.last,
            "title": title(trigger),
            "notify": notify_of(trigger),
            "told": notify_words(trigger),
            "words": told.words,
            "cooldown": cooldown_of(trigger),
        },
    )


def cooldown_of(trigger: Trigger) -> float:
    """The cooldown in force. Units: seconds."""
    if trigger.condition is None:
        return trigger.cooldown or 0
    return conditions.cooldown_of(trigger.condition, trigger.cooldown)


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
