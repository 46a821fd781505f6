"""Describes tasks and triggers for prompts, tools, chat and views."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from itertools import count
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from mimikit.engines.base import TaskLine
from mimikit.errors import BadInput, UnsafeFile
from mimikit.language.phrases import Words, say_both
from mimikit.language.plain_text import first_line, indented
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import REMINDER
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import ledger, queue
from mimikit.tasks.queue import TaskSnapshot
from mimikit.tasks.usage import held_for
from mimikit.triggers import explain, registry
from mimikit.triggers.explain import ExplanationContext, TitleOf

_MAX_LEDGER_LOOKUPS = 20
"""Deleted triggers whose title is looked up per answer."""
_ERROR_CHARACTERS = 200


def situation(
    files: Files,
    *,
    now: datetime,
    zone: ZoneInfo,
    paused: bool,
    consumer_up: bool = True,
    model_missing: str | None = None,
) -> ExplanationContext:
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
        model_missing=model_missing,
    )


def titles(files: Files) -> TitleOf:
    """Looks up titles by id, cached; for deleted triggers, up to a limit, in the ledger."""
    lookups = count()

    @cache
    def title_of(id_: str) -> str:
        if not is_id(id_):
            return id_
        trigger, _ = active(files, id_)
        if trigger is not None:
            return title(trigger)
        if found := queue.find(files, id_):
            return found.task.title or first_line(found.task.prompt) or id_
        if next(lookups) >= _MAX_LEDGER_LOOKUPS:
            return id_
        found_titles = [line.get("title") for line in ledger.slots_of(files, id_, 1)]
        return next(
            (text for text in reversed(found_titles) if isinstance(text, str) and text), id_
        )

    return title_of


def title(trigger: Trigger) -> str:
    return trigger.title or first_line(trigger.prompt) or trigger.id


def active(files: Files, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """The active definition, and what is wrong with its file."""
    try:
        trigger, broken = registry.active(files, trigger_id)
        if trigger is not None and broken is not None:
            registry.check(trigger)  # the last good one may be old or damaged
    except UnsafeFile as error:
        return None, str(error)
    except (BadInput, ValidationError):
        return None, "neither the definition nor its last good version can be read"
    return trigger, broken


# ---- lines


def trigger_line(files: Files, trigger_id: str, here: ExplanationContext) -> TaskLine | None:
    """None if there is no active definition."""
    trigger, broken = active(files, trigger_id)
    if trigger is None:
        return None
    state = registry.state(files, trigger_id)
    report, end = explain.report(trigger, state, broken, here), state.last_end
    kind = "reminder" if trigger.profile == REMINDER else "trigger"
    return TaskLine(
        trigger.id,
        title(trigger),
        kind if trigger.enabled else f"{kind}, paused",
        "trigger",
        trigger.created_at,
        words=report.words,
        next=report.next,
        last=report.last,
        waits=report.waits,
        status=end.status if end else None,
        ended_at=end.at if end else None,
    )


def task_line(view: TaskSnapshot, here: ExplanationContext) -> TaskLine:
    task, outcome = view.task, view.outcome
    last, status = None, view.state if view.state in ("done", "failed", "canceled") else None
    if outcome is not None and status is not None:
        error = " ".join((outcome.error or "").split())[:_ERROR_CHARACTERS] or None
        reason, at = outcome.failure_reason, outcome.completed_at
        last = explain.end_words("fact_ended", status, reason, error, at, here)
    return TaskLine(
        task.id,
        task.title or first_line(task.prompt),
        view.state,
        view.seat,
        task.created_at,
        last=last,
        waits=_task_waits(view, here) if view.state == "queued" else None,
        status=status,
        ended_at=outcome.completed_at if outcome and status else None,
    )


def _task_waits(view: TaskSnapshot, here: ExplanationContext) -> Words:
    task = view.task
    if budget := held_for(task.waits_for):
        return say_both(f"fact_waits_{budget}")
    if task.waits_for is not None:
        return say_both("fact_waits_for", engine=task.waits_for)
    if task.not_before is not None and task.not_before > here.now:
        return explain.not_before_words(task.not_before, here)
    return say_both("fact_paused" if here.queues_paused else "fact_queued")


def line_text(line: TaskLine) -> str:
    parts = [f"{line.id} [{line.state}] {line.title}", *(words["en"] for words in line.facts)]
    return indented(" · ".join(parts))
