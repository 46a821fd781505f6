"""Triggers: their definition, state, last and next runs."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any, Literal

from mimikit.language.phrases import say_both
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import EngineStatus, Instant, Notify, to_utc
from mimikit.protocol.notify import notify_of, notify_words
from mimikit.protocol.triggers import Condition, Schedule, Trigger
from mimikit.tasks import ledger
from mimikit.tasks.queue import TaskState
from mimikit.tools.world import active, title
from mimikit.triggers import conditions, explain, registry
from mimikit.triggers.explain import Explanation, ExplanationContext
from mimikit.triggers.workspace import Workspace
from mimikit.views.base import Title, View, Words

MAX_LISTED = 500
_EVALUATING_PROFILE = "standard"
_NO_MODEL = "no language model is connected"


class RecentRun(View):
    """A run of a trigger; `at`: when it ended, else when it was queued."""

    id: str
    state: TaskState
    at: Instant


class TriggerView(View):
    """A trigger and its state. Units: seconds."""

    id: str
    title: Title
    prompt: str
    profile: str
    priority: int
    type: Literal["recurring", "scheduled", "conditional", "broken"]
    words: Words
    enabled: bool
    created_at: Instant | Literal[""]
    schedule: Schedule | None
    condition: Condition | None
    cooldown: float
    """Minimum time between firings, with the default filled in."""
    once: bool
    overlap: Literal["skip", "queue"]
    notify: Notify
    """Who is notified of its runs, with the default filled in."""
    notify_given: bool
    told: Words
    """`notify` in words."""
    timeout: float | None
    max_attempts: int
    origin: str
    trace_id: str
    last_run_at: Instant | None
    next_run_at: Instant | None
    fire_count: int
    request_count: int
    last_task_id: str | None
    last_verdict: str | None
    failure_streak: int
    """Number of consecutive failures with the same error."""
    paused_by: Literal["breaker"] | None
    """`breaker`: paused automatically after repeated failures."""
    blocked_by: str | None
    """The task or trigger because of which it can never fire."""
    broken: str | None
    headline: Words
    """Why it waits, or when it runs next."""
    last: Words | None
    recent: list[RecentRun]
    """The newest runs, oldest first, those in progress last."""


class TriggerList(View):
    triggers: list[TriggerView]


_BROKEN: dict[str, Any] = {
    "type": "broken", "words": say_both("trigger_never"), "enabled": False, "created_at": "",
    "prompt": "", "profile": "", "priority": 5, "schedule": None, "condition": None, "cooldown": 0,
    "once": False, "overlap": "skip", "notify": "message", "timeout": None, "max_attempts": 1,
    "origin": "file", "notify_given": False, "told": say_both("notify_none"),
}  # fmt: skip


def model_missing(engines: dict[str, EngineStatus]) -> str | None:
    """Why no model can evaluate a condition; None when one can, or it is unknown."""
    engine = engines.get(_EVALUATING_PROFILE)
    if engine is None:
        return None
    if engine.state == "waiting":
        return engine.reason
    return _NO_MODEL if engine.engine == "builtin" else None


def listed(files: ReadOnlyFiles, context: ExplanationContext) -> list[TriggerView]:
    """At most MAX_LISTED triggers, newest first."""
    ids = registry.ids(files)[-MAX_LISTED:]
    views = [trigger for id_ in ids if (trigger := find(files, id_, context))]
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(views, key=lambda trigger: trigger.created_at or never, reverse=True)


def find(files: ReadOnlyFiles, trigger_id: str, context: ExplanationContext) -> TriggerView | None:
    """None when there is no such trigger; a broken one has its reason in `broken`."""
    trigger, broken = active(files, trigger_id)
    if trigger is None and broken is None:
        return None
    state = registry.state(files, trigger_id)
    fields: dict[str, object] = {**vars(state), "broken": broken, "last": None}
    fields["recent"] = context.runs_of(trigger_id)
    if trigger is None:
        _, headline = explain.headline(trigger, state, broken, context)
        named = dict.fromkeys(("id", "title", "trace_id"), trigger_id)
        return TriggerView.model_validate(_BROKEN | fields | named | {"headline": headline})
    current = explain.report(trigger, state, broken, context)
    return TriggerView.of(
        trigger,
        **fields
        | {
            "next_run_at": current.next_at,
            "headline": current.headline,
            "last": current.last,
            "title": title(trigger),
            "notify": notify_of(trigger),
            "told": notify_words(trigger),
            "words": current.words,
            "cooldown": cooldown_of(trigger),
        },
    )


def cooldown_of(trigger: Trigger) -> float:
    """The cooldown with the default filled in. Units: seconds."""
    if trigger.condition is None:
        return trigger.cooldown or 0
    return conditions.cooldown_of(trigger.condition, trigger.cooldown)


def explained(files: ReadOnlyFiles, trigger_id: str, context: ExplanationContext) -> Explanation:
    """Why a trigger did or did not fire; also for a removed one."""
    trigger, broken = active(files, trigger_id)
    lines = ledger.slots_of(files, trigger_id, explain.MAX_SLOTS)
    with_slots = dataclasses.replace(context, slots=[line for line in lines if _is_valid(line)])
    return explain.explain(trigger, registry.state(files, trigger_id), broken, with_slots)


def notes(trigger: Trigger, context: ExplanationContext, *, asked_every_s: float) -> list[Words]:
    """Warnings about the costs of a trigger, and about why it cannot run."""
    result = explain.notes(trigger, asked_every_s=asked_every_s)
    if result and context.model_missing:
        result.append(say_both("trigger_nobody_to_ask_now", why=context.model_missing))
    plan = trigger.schedule
    if plan is not None and plan.run_at is not None and plan.run_at <= context.now:
        result.append(say_both("trigger_time_passed"))
    return result


def matches_now(trigger: Trigger, workspace: Workspace) -> list[Words]:
    """How many files its condition matches, if it has any to watch."""
    watched = conditions.watched(trigger.condition) if trigger.condition else ()
    count = sum(len(workspace.list_files(pattern) or ()) for pattern in watched)
    return [say_both("matches_now", n=count)] if watched else []


def _is_valid(line: dict[str, Any]) -> bool:
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
