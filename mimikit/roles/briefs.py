"""Makes the brief of a turn or a run from what lies on disk."""

from __future__ import annotations

from datetime import datetime

from mimikit.conversation import history
from mimikit.engines.base import Brief, ToldResult
from mimikit.protocol.models import InboxItem, Question, Task
from mimikit.roles.office import Office
from mimikit.tasks import views


def teller_brief(
    office: Office,
    items: tuple[InboxItem, ...],
    results: tuple[ToldResult, ...],
    question: Question | None,
    now: datetime,
    facts: dict[str, str],
) -> Brief:
    """What a Teller's turn is given."""
    inputs = tuple(item for item in items if item.kind != "task_result")
    settings = office.settings
    query = " ".join(item.text[:2000] for item in inputs)
    newest = inputs[-1] if inputs else None
    return Brief(
        now=now,
        timezone=(newest and newest.timezone) or settings.zone.key,
        locale=(newest and newest.locale) or "en",
        inputs=inputs,
        results=results,
        conversation=_conversation(office),
        memory=tuple(office.views.search(query, settings.budgets.memory_hits)) if query else (),
        tasks=tuple(office.views.tasks("all")),
        question=question,
        facts=facts,
    )


def planner_brief(office: Office, task: Task, now: datetime) -> Brief:
    """What a Planner's run is given."""
    hits = office.views.search(task.prompt[:2000], office.settings.budgets.memory_hits)
    return Brief(
        now=now,
        timezone=office.settings.zone.key,
        conversation=_conversation(office),
        memory=tuple(hits),
        tasks=tuple(office.views.tasks("all")),
        task=task,
    )


def worker_brief(office: Office, task: Task, now: datetime) -> Brief:
    """What a Worker's run is given."""
    upstream = tuple(
        view.result
        for task_id in [task.retry_of]
        if task_id and (view := views.show(office.files, task_id)) and view.result
    )
    return Brief(now=now, timezone=office.settings.zone.key, task=task, upstream=upstream)


def _conversation(office: Office):
    limit = office.settings.budgets.conversation_messages
    return tuple(history.page(office.files, limit=limit).messages)
