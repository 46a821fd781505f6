"""The Planner: one request, from its task to a whole plan, written as one record."""

from __future__ import annotations

from datetime import datetime

from mimikit import permission
from mimikit.engines.base import CancelToken, Outcome, TurnInput
from mimikit.protocol.models import PlanResult, Task
from mimikit.roles import prompts
from mimikit.roles.run import EngineRun, RunContext, recall, recent_messages, run_engine, settle
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import Effects, ToolCaller


def planner_input(context: RunContext, task: Task, now: datetime) -> TurnInput:
    conversation = recent_messages(context)
    return TurnInput(
        now=now,
        timezone=task.timezone or context.settings.zone.key,
        conversation=conversation,
        memory=recall(context, task.prompt, conversation),
        tasks=tuple(context.reader.tasks("all")),
        task=task,
    )


def run_plan(context: RunContext, task: Task, cancel: CancelToken) -> bool:
    """Run a Planner task to its record or its next attempt; True when it ended.

    Crash: without the record nothing of the plan exists, and recovery decides by the same rule.
    """
    started = context.clock.now()
    turn_input = context.insist(lambda: planner_input(context, task, started))
    choice = context.engines.for_role("planner")
    effects = Effects()
    if choice.waiting:
        outcome = Outcome("failed", error=choice.waiting, failure_reason="engine_unavailable")
    else:
        caller = ToolCaller(
            task.id,
            task.trace_id,
            started,
            by_user=permission.is_by_user(choice.engine.name, task.origin),
            parent=task,
            may_trigger=permission.may_make_triggers(
                task.source_trigger_id, allow_triggers=task.allow_triggers
            ),
            timezone=turn_input.timezone,
        )
        session = context.open_session(PlannerSession, caller)
        run = EngineRun(
            run_id=task.id,
            attempt=task.attempts + 1,
            role="planner",
            prompt=prompts.planner_prompt(turn_input, context.settings.budgets),
            input=turn_input,
            choice=choice,
            cancel=cancel,
            timeout_s=task.timeout or choice.seat.timeout_s or 600,
            idle_timeout_s=context.settings.limits.idle_timeout_s,
            template="planner",
        )
        outcome = run_engine(context, run, session)
        effects = session.close()
        outcome = _checked(outcome, effects)

    def complete(plan: PlanResult) -> PlanResult:
        summary = outcome.text.strip() or None
        plan = plan.but(summary=summary, usage=outcome.usage, engine=choice.engine.name)
        return _with_effects(plan, effects)

    retry_delay_s = min(context.settings.limits.retry_delay_s, 5)
    return settle(
        context, task, PlanResult, outcome, started, complete, retry_delay_s=retry_delay_s
    )


def _checked(outcome: Outcome, effects: Effects) -> Outcome:
    """A plan that says nothing and does nothing is a failure of its own."""
    acts = effects.tasks or effects.triggers or effects.cancels or effects.commands
    says = outcome.text.strip() or acts
    if outcome.status == "done" and not says and effects.question is None:
        return Outcome("failed", error="the planner gave no plan", failure_reason="error")
    return outcome


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
        commands=effects.commands,
    )
