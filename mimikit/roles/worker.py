"""The Worker: one task, from its file to its result or its next attempt."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mimikit import permission
from mimikit.config import Settings
from mimikit.engines.base import CancelToken, Outcome, TurnInput
from mimikit.errors import BadSettings
from mimikit.protocol import paths
from mimikit.protocol.models import FailureReason, PageAddress, Task, TaskResult
from mimikit.roles.run import EngineRun, RunContext, run_engine, settle
from mimikit.tasks import queue


def worker_input(context: RunContext, task: Task, now: datetime) -> TurnInput:
    ids = dict.fromkeys([*task.upstream, task.retry_of])
    told = (_result_of(context, task_id) for task_id in ids if task_id)
    upstream = tuple(result for result in told if result is not None)
    return TurnInput(now=now, timezone=context.settings.zone.key, task=task, upstream=upstream)


def _result_of(context: RunContext, task_id: str) -> TaskResult | None:
    """What a task came to; of a plan its summary."""
    view = queue.show(context.files, task_id)
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


def run_task(context: RunContext, task: Task, cancel: CancelToken) -> bool:
    """Run a Worker task to its result or its next attempt; True when it ended.

    Crash: the result is written once, exclusively; without it recovery decides by the same rule.
    """
    started = context.clock.now()
    turn_input = context.insist(lambda: worker_input(context, task, started))
    outcome, engine, final = _outcome(context, task, turn_input, cancel)

    def complete(result: TaskResult) -> TaskResult:
        """The whole of a text too long for the result is written first."""
        text = _shortened(context, task.id, outcome.text)
        if "whole" in text:
            context.files.write(paths.side(task.id), outcome.text.encode(errors="replace"))
        return result.but(
            result={**text, **outcome.data},
            exit_code=outcome.exit_code,
            usage=outcome.usage,
            engine=engine,
            session_id=outcome.session_id,
        )

    retry_delay_s = context.settings.limits.retry_delay_s
    return settle(
        context, task, TaskResult, outcome, started, complete,
        retry_delay_s=retry_delay_s, final=final,
    )  # fmt: skip


def command_refusal(task: Task, settings: Settings, served: PageAddress | None) -> str | None:
    """Why a `command` task may not run; None when it may.

    `served` tells where the page really listens, which need not be what the settings say.
    """
    if task.profile != "command":
        return None
    is_local = settings.web.host in permission.LOOPBACK and (served is None or served.local)
    return permission.command_refusal(
        task.origin,
        task.trigger_origin,
        is_local=is_local,
        allow_commands=settings.web.allow_commands,
        allow_llm_commands=settings.allow_llm_commands,
    )


def _outcome(
    context: RunContext, task: Task, turn_input: TurnInput, cancel: CancelToken
) -> tuple[Outcome, str, bool]:
    """The outcome, the engine's name, and whether trying again could not help."""
    served = context.insist(lambda: context.files.peek(paths.SERVED, PageAddress))
    if refusal := command_refusal(task, context.settings, served):
        context.log.write("audit", "command_refused", taskId=task.id, reason=refusal)
        return _failed(refusal, "refused"), "", True
    try:
        choice = context.engines.for_role("worker", task.profile)
    except BadSettings as error:
        return _failed(str(error), "refused"), "", True
    if choice.waiting:
        return _failed(choice.waiting, "engine_unavailable"), choice.engine.name, False
    is_command = choice.engine.name == "command"
    timeout_s = task.timeout or choice.seat.timeout_s or context.settings.limits.worker_timeout_s
    run = EngineRun(
        run_id=task.id,
        attempt=task.attempts + 1,
        role="worker",
        prompt=task.prompt,
        input=turn_input,
        choice=choice,
        cancel=cancel,
        timeout_s=timeout_s,
        # A command may be silent as long as it may run; an agent that says nothing is stuck.
        idle_timeout_s=timeout_s if is_command else context.settings.limits.idle_timeout_s,
        profile=task.profile,
        template=None if is_command else "worker",
        read_only=task.internal,  # it is asked for a word; nobody asked for work
    )
    outcome = run_engine(context, run, None)
    final = choice.engine.name == "builtin" and outcome.failure_reason == "engine_unavailable"
    return outcome, choice.engine.name, final


def _shortened(context: RunContext, task_id: str, text: str) -> dict[str, Any]:
    """The text, or its start with the place of the whole."""
    data = text.encode(errors="replace")
    limit = context.settings.limits.result_bytes
    if len(data) <= limit:
        return {"text": text}
    short = data[:limit].decode(errors="ignore")
    return {"text": short, "truncated": True, "whole": paths.side(task_id)}


def _failed(error: str, reason: FailureReason) -> Outcome:
    return Outcome("failed", error=error, failure_reason=reason)
