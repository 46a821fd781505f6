"""Makes the brief of a turn or a run from what lies on disk."""

from __future__ import annotations

from datetime import datetime

from mimikit.conversation import history
from mimikit.engines.base import Brief, ToldResult
from mimikit.protocol.models import Hit, InboxItem, Message, Question, Task, TaskResult
from mimikit.roles.run import Office
from mimikit.tasks import views

RECENT = 5
"""Messages that belong to the query, with less weight."""


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
    asked = "\n".join(item.text for item in inputs)
    conversation = _conversation(office)
    newest = inputs[-1] if inputs else None
    return Brief(
        now=now,
        timezone=(newest and newest.timezone) or settings.zone.key,
        locale=(newest and newest.locale) or "en",
        inputs=inputs,
        results=results,
        conversation=conversation,
        memory=_memory(office, asked, conversation),
        tasks=tuple(office.views.tasks("all")),
        question=question,
        facts=facts,
    )


def planner_brief(office: Office, task: Task, now: datetime) -> Brief:
    """What a Planner's run is given."""
    conversation = _conversation(office)
    return Brief(
        now=now,
        timezone=task.timezone or office.settings.zone.key,
        conversation=conversation,
        memory=_memory(office, task.prompt, conversation),
        tasks=tuple(office.views.tasks("all")),
        task=task,
    )


def worker_brief(office: Office, task: Task, now: datetime) -> Brief:
    """What a Worker's run is given."""
    ids = dict.fromkeys([*task.upstream, task.retry_of])
    told = (_result_of(office, task_id) for task_id in ids if task_id)
    upstream = tuple(result for result in told if result is not None)
    return Brief(now=now, timezone=office.settings.zone.key, task=task, upstream=upstream)


def _result_of(office: Office, task_id: str) -> TaskResult | None:
    """What a task came to; of a plan its summary."""
    view = views.show(office.files, task_id)
    if view is None or view.plan is None or view.plan.status == "needs_input":
        return view.result if view else None
    plan = view.plan
    return TaskResult.of(
        view.task,
        view.plan.status,
        error=plan.error,
        attempts=plan.attempts,
        started_at=plan.started_at,
        completed_at=plan.completed_at,
    ).but(result={"text": plan.summary or ""})


def _memory(office: Office, asked: str, conversation: tuple[Message, ...]) -> tuple[Hit, ...]:
    """What memory has on what is asked; what was said last counts a little."""
    if not asked.strip():
        return ()
    recent = [message.text for message in conversation[-RECENT:]]
    try:
        return tuple(office.views.recall(asked, recent, office.settings.budgets.memory_hits))
    except Exception as error:  # noqa: BLE001 - better an answer without memory than none
        office.log.write("error", "memory_not_searched", error=repr(error))
        return ()


def _conversation(office: Office) -> tuple[Message, ...]:
    limit = office.settings.budgets.conversation_messages
    return tuple(history.page(office.files, limit=limit).messages)
