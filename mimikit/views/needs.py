"""What waits for its user, in the order in which it matters: the same for page and terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Literal

from mimikit.language.plain_text import first_line, plain
from mimikit.language.reasons import reason_words
from mimikit.protocol import paths, schema
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import EngineStatus, Instant
from mimikit.tasks.queue import dismissal_id
from mimikit.tasks.recent import EndedRun, RecentLedger
from mimikit.views.base import Title, View, Words
from mimikit.views.messages import QuestionView, open_question
from mimikit.views.status import Consumer, is_paused, quarantined
from mimikit.views.tasks import find_view
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import BudgetView

SPAN = timedelta(hours=24)
"""So far back a failure is looked for."""
MOST_FAILURES = 50
MOST_TRIGGERS = 20
LATE = timedelta(minutes=2)
"""A trigger that is due for so long is late."""
LEAST_FREE = 500 * 2**20
"""Bytes of the disk."""
NeedKind = Literal[
    "consumer", "question", "failure", "breaker", "late", "broken", "blocked",
    "engine", "budget", "paused", "degraded", "corrupt", "disk",
]  # fmt: skip
"""consumer: it is down, or hangs; breaker: a trigger that was paused as it failed again and again;
late: one that is due and does not fire; blocked: one that can never fire; paused: the queues are;
corrupt: files that could not be read."""


class NeedView(View):
    """One thing that waits for its user."""

    kind: NeedKind
    id: str
    """Of the same thing the same."""
    at: Instant | None
    """Since when; of a failure its end."""
    title: Title
    why: Words | None
    error: str | None
    """In the words of whoever told it."""
    failure_reason: str | None
    task_id: str | None
    trigger_id: str | None
    count: int
    """How many failures, late triggers or files this stands for; of the disk, the free bytes."""
    engine: EngineStatus | None
    question: QuestionView | None


def needs(
    files: ReadOnlyFiles,
    consumer: Consumer,
    listed: list[TriggerView],
    budget: BudgetView,
    recent: RecentLedger,
    title_of: Callable[[str], str],
    now: datetime,
) -> list[NeedView]:
    """Everything that waits for its user at this moment."""
    late = [one for one in listed if _is_late(one, now)]
    found = [*_whole(files, consumer, len(late), now), *_questions(files)]
    broken_off = {one.id for one in listed if _is_broken_off(one)}
    found += _failures(files, recent, title_of, broken_off)
    if consumer.on_page == "ok" and not is_paused(files, consumer.current):
        found += [_of_trigger("late", one, at=one.next_run_at) for one in late[:MOST_TRIGGERS]]
    found += [need for one in listed if (need := _trigger(one))][:MOST_TRIGGERS]
    minds = consumer.current.minds.values() if consumer.current else ()
    found += [
        _need("engine", mind.engine, title=mind.engine, at=mind.since, engine=mind)
        for mind in minds
        if mind.state == "waiting" and mind.messages + mind.tasks
    ]
    if budget.until is not None and budget.until > now and budget.messages + budget.tasks:
        count = budget.messages + budget.tasks
        found.append(_need("budget", "budget", at=budget.until, count=count))
    return found


def open_failures(recent: RecentLedger) -> list[tuple[EndedRun, int]]:
    """Failures that nothing made good; of each trigger the last, and how many. Pure.

    A trigger's later success makes its failures good, a retry the one failure that it repeats.
    Order: the newest first.
    """
    groups: dict[str, list[EndedRun]] = {}
    for run in recent.runs:
        key = run.trigger_id or run.id
        if run.internal or run.failure_reason == "upstream":
            continue
        if run.status == "failed" and run.id not in recent.retried:
            groups.setdefault(key, []).append(run)
        elif run.status == "done" and run.trigger_id:
            groups.pop(key, None)
    found = [(failed[-1], len(failed)) for failed in groups.values()]
    return sorted(found, key=lambda it: it[0].ended_at, reverse=True)


def _need(kind: NeedKind, id_: str, **facts: object) -> NeedView:
    empty = dict.fromkeys(NeedView.model_fields) | {"title": "", "count": 1}
    return NeedView.model_validate(empty | facts | {"kind": kind, "id": f"{kind}-{id_}"})


def _whole(
    files: ReadOnlyFiles, consumer: Consumer, late: int, now: datetime
) -> Iterator[NeedView]:
    """What keeps everything else from going on."""
    if consumer.on_page != "ok" and consumer.state != "starting":
        health = consumer.health
        facts = {"at": health and health.beat_at, "error": consumer.on_page, "count": late}
        yield _need("consumer", "consumer", **facts)
    current = consumer.current
    if current is not None and current.degraded:
        said = plain(current.degraded)
        yield _need("degraded", "degraded", error=said, why=reason_words(said))
    if (newer := schema.why_newer(files)) is not None:
        yield _need("degraded", "newer", error=newer, why=reason_words(newer))
    if is_paused(files, current):
        yield _need("paused", "queues", count=late)
    free = free_bytes(files)
    if free is not None and free < LEAST_FREE:
        yield _need("disk", "disk", count=free)
    if corrupt := quarantined(files):
        yield _need("corrupt", "files", count=corrupt)


def free_bytes(files: ReadOnlyFiles) -> int | None:
    """What is free on the disk of the state folder; None where it does not tell."""
    try:
        return shutil.disk_usage(files.fs.root).free
    except OSError:
        return None


def _questions(files: ReadOnlyFiles) -> Iterator[NeedView]:
    if question := open_question(files):
        facts = {"at": question.created_at, "title": question.question, "question": question}
        yield _need("question", question.question_id, **facts)


def _failures(
    files: ReadOnlyFiles,
    recent: RecentLedger,
    title_of: Callable[[str], str],
    broken_off: set[str],
) -> Iterator[NeedView]:
    """Failures but those of triggers that were paused for them: these are told of as such."""
    left = MOST_FAILURES
    for run, count in open_failures(recent):
        id_ = dismissal_id(run.id)
        if run.trigger_id in broken_off:
            continue
        if files.exists(paths.command(id_)) or files.exists(paths.command_done(id_)):
            continue
        known = find_view(files, run.id)
        told = known.outcome.error if known and known.outcome else None
        error = first_line(plain(told), 200) if told else None
        yield _need(
            "failure",
            run.id,
            at=run.ended_at,
            title=run.title or title_of(run.trigger_id or run.id),
            error=error,
            why=reason_words(error),
            failure_reason=run.failure_reason,
            task_id=run.id,
            trigger_id=run.trigger_id,
            count=count,
        )
        left -= 1
        if not left:
            return


def _is_late(trigger: TriggerView, now: datetime) -> bool:
    due = trigger.next_run_at
    is_on = trigger.enabled and not trigger.broken and not trigger.blocked_by
    return is_on and due is not None and due < now - LATE


def _is_broken_off(trigger: TriggerView) -> bool:
    return trigger.paused_by == "breaker" and not trigger.enabled


def _trigger(trigger: TriggerView) -> NeedView | None:
    """What is wrong with a trigger that its user may mend."""
    if trigger.broken:
        said = {"error": trigger.broken, "why": trigger.broken_words}
        return _of_trigger("broken", trigger, **said)
    if _is_broken_off(trigger):
        return _of_trigger("breaker", trigger, at=trigger.last_run_at, count=trigger.failure_streak)
    if trigger.blocked_by and trigger.enabled:
        return _of_trigger("blocked", trigger)
    return None


def _of_trigger(kind: NeedKind, trigger: TriggerView, **facts: object) -> NeedView:
    told = {"title": trigger.title, "trigger_id": trigger.id, "why": trigger.headline}
    return _need(kind, trigger.id, **told | facts)
