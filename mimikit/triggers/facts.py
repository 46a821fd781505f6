"""What is told of a trigger wherever it is named: when it runs, what is next, how it went. Pure.

One carrier for the model's input, the tools, the chat, the page and the terminal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mimikit.language.phrases import TABLE, Words, moment_words, say_both
from mimikit.protocol.models import EndStatus, FailureReason
from mimikit.protocol.triggers import TaskDone, TaskFailed, Trigger, TriggerState
from mimikit.triggers import conditions, explain, schedule
from mimikit.triggers.explain import ExplanationContext

TriggerGroup = Literal["attention", "active", "paused", "step"]
"""What it is listed with: what needs its user, goes on, rests, or is a chain's step."""
_CODE = re.compile(r"^(exit code -?\d+) (?=\S)")
_SILENT = frozenset({"waits", "due"})
"""States of which words, next and last say it all."""


@dataclass(frozen=True, slots=True)
class TriggerReport:
    """Each in a few words of each language; None where there is nothing to say."""

    words: Words
    """When it runs."""
    next_at: datetime | None
    next: Words | None
    last: Words | None
    """How its last run went."""
    waits: Words | None
    """What is in its way, or under way."""
    headline: Words
    needs: Words | None
    """Why it needs its user."""
    group: TriggerGroup


def facts(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> TriggerReport:
    """What there is to tell of a trigger whose definition is in force."""
    kind, headline = explain.headline(trigger, state, broken, here)
    next_at = _next_run(trigger, state, here)
    upcoming = None
    if next_at is not None and trigger.enabled and state.blocked_by is None:
        upcoming = say_both("fact_next", moment=moment(next_at, here))
    end, last = state.last_end, None
    if end is not None:
        last = ended("fact_last", end.status, end.failure_reason, end.error, end.at, here)
    elif not state.fire_count:
        last = say_both("fact_never")
    waits = None if kind in _SILENT else headline
    task_id = state.last_task_id
    is_open = task_id is not None and (end is None or end.task_id != task_id)
    if waits is None and is_open and task_id is not None and here.is_live(task_id):
        waits = say_both("fact_under_way")
    words = explain.trigger_words(trigger, here.title_of)
    needs = _needs(trigger, state, broken, here, headline)
    group: TriggerGroup = "attention" if needs else "active"
    if needs is None and not trigger.enabled:
        group = "paused"
    elif needs is None and _is_step(trigger):
        group = "step"
    return TriggerReport(words, next_at, upcoming, last, waits, headline, needs, group)


def _needs(
    trigger: Trigger,
    state: TriggerState,
    broken: str | None,
    here: ExplanationContext,
    headline: Words,
) -> Words | None:
    """What its user should see to; None where all is as they want it."""
    if broken is not None or (not trigger.enabled and state.paused_by):
        return headline
    if not trigger.enabled:
        return None
    if state.blocked_by is not None:
        return headline
    if n := state.failure_streak:
        return say_both("trigger_fails_one" if n == 1 else "trigger_fails", n=n, why=_why(state))
    asks = trigger.condition is not None and conditions.questions(trigger.condition)
    if asks and here.model_missing:
        return say_both("trigger_nobody_to_ask", why=here.model_missing)
    return None


def _why(state: TriggerState) -> Words | str:
    """Why the last run failed: in its own words, where it only went wrong."""
    end = state.last_end
    error, reason = (end.error, end.failure_reason) if end is not None else (None, None)
    if error and reason in ("error", None):
        return _CODE.sub(r"\1: ", error.rstrip("."))
    why = say_both(f"reason_{reason or 'unknown'}")
    return say_both("fact_why", reason=why, error=error.rstrip(".")) if error else why


def _is_step(trigger: Trigger) -> bool:
    """Whether it fires once, as something else has ended."""
    if not trigger.once or trigger.condition is None:
        return False
    leaves = (leaf.condition for leaf in conditions.walk(trigger.condition))
    return any(isinstance(leaf, TaskDone | TaskFailed) for leaf in leaves)


def _next_run(trigger: Trigger, state: TriggerState, here: ExplanationContext) -> datetime | None:
    """The slot it waits for; worked out where the consumer has not looked at it yet."""
    if trigger.schedule is None or state.next_run_at is not None:
        return state.next_run_at
    return schedule.slot_to_wait_for(
        trigger.schedule,
        now=here.now,
        recorded=None,
        last_run_at=state.last_run_at,
        created_at=trigger.created_at,
        zone=here.zone,
    )


def ended(
    key: str,
    status: EndStatus,
    reason: FailureReason | None,
    error: str | None,
    at: datetime,
    here: ExplanationContext,
) -> Words:
    """How a run ended and when; `key` tells whose it was."""
    if status != "failed":
        return say_both(f"{key}_{status}", moment=moment(at, here))
    why = say_both(f"reason_{reason or 'unknown'}")
    if error:
        why = say_both("fact_why", reason=why, error=error)
    return say_both(f"{key}_failed", moment=moment(at, here), why=why)


def moment(at: datetime, here: ExplanationContext) -> Words:
    return {language: moment_words(at, here.zone, language) for language in TABLE}
