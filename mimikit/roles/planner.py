"""The Planner: one request, from its task to a whole plan, written as one record."""

from __future__ import annotations

from datetime import datetime

from mimikit import permission
from mimikit.engines.base import Brief, CancelToken, Outcome
from mimikit.protocol.models import PlanResult, Task
from mimikit.roles import context
from mimikit.roles.run import Job, Office, run_engine
from mimikit.tasks import queue
from mimikit.tasks.after_run import Ended, Finish, after_run
from mimikit.tools.session import Caller, Desk, Effects


def run_plan(office: Office, task: Task, brief: Brief, cancel: CancelToken) -> bool:
    """Run a Planner task to its record or its next attempt; True when it ended.

    Crash: without the record nothing of the plan exists, and recovery decides by the same rule.
    """
    started = office.clock.now()
    choice = office.rack.for_role("planner")
    effects = Effects()
    if choice.waiting:
        outcome = Outcome("failed", error=choice.waiting, failure_reason="engine_unavailable")
    else:
        caller = Caller(
            "planner",
            task.id,
            task.trace_id,
            started,
            by_user=permission.is_by_user(choice.engine.name, task.origin),
            parent=task,
            may_trigger=permission.may_make_triggers(
                task.source_trigger_id, allow_triggers=task.allow_triggers
            ),
            timezone=brief.timezone,
        )
        desk = Desk(caller, office.views, office.limits(), office.on_refused(task.id))
        job = Job(
            run_id=task.id,
            attempt=task.attempts + 1,
            role="planner",
            prompt=context.planner_prompt(brief, office.settings.budgets),
            brief=brief,
            choice=choice,
            cancel=cancel,
            timeout_s=task.timeout or choice.seat.timeout_s or 600,
            idle_timeout_s=office.settings.limits.idle_timeout_s,
            template="planner",
        )
        outcome = run_engine(office, job, desk)
        effects = desk.close()
        outcome = _checked(outcome, effects)
    return _settle(office, task, outcome, effects, started, choice.engine.name)


def _checked(outcome: Outcome, effects: Effects) -> Outcome:
    """A plan that says nothing and does nothing is a failure of its own."""
    acts = effects.tasks or effects.triggers or effects.cancels or effects.orders
    says = outcome.text.strip() or acts
    if outcome.status == "done" and not says and effects.question is None:
        return Outcome("failed", error="the planner gave no plan", failure_reason="error")
    return outcome


def _settle(
    office: Office,
    task: Task,
    outcome: Outcome,
    effects: Effects,
    started: datetime,
    engine: str,
) -> bool:
    now = office.clock.now()
    ended = Ended(outcome.status, outcome.failure_reason, outcome.retry_at)
    limits = office.settings.limits
    match after_run(
        task,
        ended,
        now,
        retry_delay_s=min(limits.retry_delay_s, 5),
        engine_retry_s=limits.engine_retry_s,
    ):
        case Finish(status=status, failure_reason=reason, attempts=attempts):
            base = PlanResult.of(
                task,
                status,
                failure_reason=reason,
                error=outcome.error,
                attempts=attempts,
                started_at=started,
                completed_at=now,
            ).but(summary=outcome.text.strip() or None, usage=outcome.usage, engine=engine)
            plan = _with_effects(base, effects)
            office.insist(lambda: queue.finish(office.files, plan))
            return True
        case release:
            office.insist(lambda: queue.release(office.files, release.task))
            return False


def _with_effects(base: PlanResult, effects: Effects) -> PlanResult:
    if base.status != "done":
        return base
    if (question := effects.question) is not None:
        return base.but(
            status="needs_input",
            question=question.question,
            options=question.options,
            default=question.default,
            question_timeout=question.timeout,
        )
    return base.but(
        tasks=effects.tasks,
        triggers=effects.triggers,
        cancels=effects.cancels,
        orders=effects.orders,
    )
