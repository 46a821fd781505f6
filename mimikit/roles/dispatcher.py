"""Runs a claimed task: the Planner turns it into a plan, the Worker into a result."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from mimikit import permission
from mimikit.config import Settings
from mimikit.engines.base import CancelToken, Done, Failed, Outcome, TurnInput
from mimikit.engines.changes import RunRecording
from mimikit.engines.circuit import MAX_REST_S
from mimikit.errors import BadSettings, StorageError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import REMINDER, EngineSession, FailureReason, QueueName, Task
from mimikit.protocol.results import TaskDiff, TaskResult
from mimikit.protocol.runtime import PageAddress
from mimikit.roles.improvement import ImprovementRun, improvement_plan
from mimikit.roles.metering import run_with_failover
from mimikit.roles.result_type import typed_result
from mimikit.roles.run import Attempt, RunContext, truncate_to_file
from mimikit.roles.turn_context import read_attachments, with_context
from mimikit.sandbox.worker import hidden_paths
from mimikit.tasks import queue
from mimikit.tasks.retry import WAITING, RunEnd, TaskEnd, after_run, result_of
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import Effects, ToolCaller

MAX_ERROR_CHARACTERS = 100_000


def dispatch(context: RunContext, queue_name: QueueName, claimed: Task) -> bool:
    """Run a claimed task; False if it was released for another attempt.

    An unexpected error fails the task.
    Crash: before `released` is cleared no engine has started, so recovery counts no attempt.
    """
    started = context.clock.now()
    cancel = context.live.start(claimed.id, queue_name, claimed.title or claimed.prompt, started)
    context.feed.publish("task", id=claimed.id, seat=queue_name)
    context.engines.set_waiting(queue_name, claimed.id, None)
    try:
        task = claimed
        if claimed.released:
            task = claimed.but(released=False, waits_for=None)
            context.retry_on_storage_error(
                lambda: context.files.save(paths.running(queue_name, task.id), task)
            )
        run = run_planner if queue_name == "planner" else run_worker
        return run(context, task, cancel)
    except Exception as error:
        if shortage_of(error) or (isinstance(error, StorageError) and context.stopping.is_set()):
            raise  # recovery decides
        context.log.write("error", "run_fault", taskId=claimed.id, error=repr(error))
        end = TaskEnd("failed", "error", claimed.attempts + 1)
        message = f"internal error: {error}"
        now = context.clock.now()
        result = result_of(claimed.but(role=queue_name), end, started, now, error=message)
        context.retry_on_storage_error(lambda: queue.finish(context.files, result))
        return True
    finally:
        context.live.end(claimed.id)


# ---- Planner


def run_planner(context: RunContext, task: Task, cancel: CancelToken) -> bool:
    """Run a Planner task; False if it was released for another attempt.

    Crash: the plan is written as one record; without it recovery decides by the same rule.
    """
    started = context.clock.now()
    # A command that builtin's Teller understood is planned by builtin.
    by_code = task.origin == "builtin" and task.parent_task_id is None
    choice = context.engines.for_role("planner", by_code=by_code)
    effects, engine = Effects(), choice.engine.name
    outcome: Outcome
    if choice.waiting:
        outcome = Failed("engine_unavailable", choice.waiting)
    else:
        timezone = task.timezone or context.settings.zone.key
        locale = task.locale or "en"
        bare = TurnInput(now=started, timezone=timezone, locale=locale, task=task)
        turn_input = context.retry_on_storage_error(lambda: with_context(context, bare))
        caller = ToolCaller(
            task.id,
            task.trace_id,
            started,
            by_user=permission.is_by_user(choice.engine.name, task.origin),
            remote=task.remote,
            parent=task,
            may_trigger=permission.may_make_triggers(
                task.source_trigger_id, allow_triggers=task.allow_triggers
            ),
            timezone=timezone,
            locale=task.locale,
            files=task.files,
        )
        session = context.open_session(PlannerSession, caller)
        attempt = Attempt(
            task.id, task.attempts + 1, "planner", turn_input, choice, cancel, session
        )
        outcome = run_with_failover(context, attempt)
        effects, engine = session.close(), outcome.engine
        if task.improvement is not None:
            outcome = improvement_plan(context, task, effects, outcome)
        acts = effects.tasks or effects.triggers or effects.cancels or effects.commands
        answers = outcome.text.strip() or effects.question
        if outcome.status == "done" and not acts and not answers:
            outcome = Failed("error", "the planner gave no plan")

    if (end := end_or_release(context, task, outcome, engine)) is None:
        return False
    fields: dict[str, object] = {
        "summary": truncate_to_file(context, task.id, outcome.text.strip()) or None,
        "usage": outcome.usage,
        "engine": engine,
    }
    if end.status == "done" and (question := effects.question) is not None:
        fields |= {
            "status": "needs_input",
            "question": question.question,
            "options": question.options,
            "default": question.default,
            "question_timeout": question.timeout,
        }
    elif end.status == "done":
        planned = ("tasks", "triggers", "cancels", "commands")
        fields |= {name: getattr(effects, name) for name in planned}
    _finish(context, task, end, outcome, started, fields)
    return True


# ---- Worker


def _upstream(context: RunContext, task: Task) -> tuple[TaskResult, ...]:
    """Results of the earlier steps; of a plan its summary."""
    found: list[TaskResult] = []
    for task_id in filter(None, dict.fromkeys([*task.upstream, task.retry_of])):
        view = queue.show(context.files, task_id)
        outcome = view and view.outcome
        if view is None or outcome is None:
            continue
        if isinstance(outcome, TaskResult):
            found.append(outcome)
        elif outcome.status != "needs_input":
            result = TaskResult.of(
                view.task,
                outcome.status,
                error=outcome.error,
                attempts=outcome.attempts,
                started_at=outcome.started_at,
                completed_at=outcome.completed_at,
            )
            found.append(result.but(result={"text": outcome.summary or ""}))
    return tuple(found)


def run_worker(context: RunContext, task: Task, cancel: CancelToken) -> bool:
    """Run a Worker task; False if it was released for another attempt.

    Crash: the result is written once, exclusively; without it recovery decides by the same rule.
    """
    started = context.clock.now()
    run = _worker_run(context, task, started, cancel)
    outcome, task = run.outcome, task.but(engine_session=run.session)
    if (end := end_or_release(context, task, outcome, run.engine)) is None:
        return False
    short = truncate_to_file(context, task.id, outcome.text, note=False)
    text: dict[str, object] = {"text": short}
    if short != outcome.text:
        text |= {"truncated": True, "whole": paths.side(task.id)}
    type_, more = typed_result(task, end.status, outcome.text, run.diff, used_tools=run.used_tools)
    fields: dict[str, object] = {
        "result_type": type_,
        "result": {**text, **outcome.data, **more},
        "diff": paths.diff(task.id) if run.diff else None,
        "exit_code": outcome.exit_code,
        "usage": outcome.usage,
        "engine": run.engine,
        "session_id": outcome.session_id,
    }
    _finish(context, task, end, outcome, started, fields)
    return True


def _save_diff(context: RunContext, task: Task, recording: RunRecording) -> TaskDiff | None:
    """Write and return the task's changes, of this attempt and earlier ones.

    Crash: it is written before the result that names it; retention removes one without a result.
    """
    path, found = paths.diff(task.id), None
    try:
        found = recording.diff(task.id, task.attempts + 1)
    except (OSError, ValueError, RecursionError) as error:  # the run itself is done
        context.log.write("error", "changes_not_seen", taskId=task.id, error=repr(error))
    earlier = context.retry_on_storage_error(lambda: context.files.load(path, TaskDiff))
    if found is None:
        return earlier
    diff = (earlier.then(found) if earlier else found).but(interrupted=task.interruptions)
    context.retry_on_storage_error(lambda: context.files.save(path, diff))
    return diff


def task_refusal(task: Task, settings: Settings, files: Files) -> str | None:
    """Why a `command` task may not run; None if it may.

    The pages report the addresses that they really listen on. A task that came by a remote page
    stays refused when that page is stopped.
    """
    if task.profile != "command":
        return None
    pages = files.load_all(paths.PAGES, PageAddress)
    is_local = settings.web.host in permission.LOOPBACK and all(page.local for page in pages)
    return permission.command_refusal(
        task.origin,
        task.trigger_origin,
        is_local=is_local and not task.remote,
        allow_commands=settings.web.allow_commands,
        allow_llm_commands=settings.allow_llm_commands,
    )


@dataclass(frozen=True, slots=True)
class _WorkerRun:
    outcome: Outcome
    engine: str = ""
    diff: TaskDiff | None = None
    used_tools: bool = False
    session: EngineSession | None = None


def _worker_run(context: RunContext, task: Task, now: datetime, cancel: CancelToken) -> _WorkerRun:
    upstream = context.retry_on_storage_error(lambda: _upstream(context, task))
    refusal = context.retry_on_storage_error(
        partial(task_refusal, task, context.settings, context.files)
    )
    if refusal is not None:
        context.log.write("audit", "command_refused", taskId=task.id, reason=refusal)
        return _WorkerRun(Failed("refused", refusal))
    if task.profile == REMINDER:  # only if queued by hand
        return _WorkerRun(Done(task.prompt, data=queue.lateness(task.not_before, now)))
    try:
        by_code = task.profile == "deferred" and task.covers is not None
        choice = context.engines.for_role("worker", task.profile, by_code=by_code)
    except BadSettings as error:
        return _WorkerRun(Failed("refused", str(error)))
    engine = choice.engine.name
    if choice.waiting:
        reason: FailureReason = "refused" if engine == "command" else "engine_unavailable"
        return _WorkerRun(Failed(reason, choice.waiting), engine, session=task.engine_session)
    timezone, locale = task.timezone or context.settings.zone.key, task.locale or "en"
    attached = context.retry_on_storage_error(lambda: read_attachments(context, task.files))
    turn_input = TurnInput(
        now, timezone, locale, task=task, upstream=upstream, attachments=attached
    )
    session = task.engine_session

    def save_session(new: EngineSession) -> None:
        """Crash: recovery starts the next attempt from the running file."""
        nonlocal session
        if new == session:
            return
        session = new
        try:
            path = paths.running("worker", task.id)
            context.files.save(path, task.but(engine_session=session))
        except StorageError as error:  # then the next attempt starts a new session
            context.log.write("error", "session_not_kept", taskId=task.id, error=str(error))

    improvement = task.improvement and ImprovementRun(context, task, choice, cancel)
    workspace = improvement.prepare() if improvement else context.workspace
    if not isinstance(workspace, Path):
        return _WorkerRun(workspace, engine)
    with _recorded(context, task, engine, workspace) as recording:
        attempt = Attempt(
            task.id,
            task.attempts + 1,
            "worker",
            turn_input,
            choice,
            cancel,
            on_session=save_session,
            resume=None if improvement else task.engine_session,  # the copy is a fresh one
            workspace=workspace,
        )
        if recording is not None:
            attempt = replace(attempt, on_event=recording.event)
        outcome = run_with_failover(context, attempt)
        diff = recording and _save_diff(context, task, recording)
    if improvement:
        outcome = improvement.finish(workspace, outcome)
    used_tools = engine != "command" and recording is not None and recording.used_tools
    return _WorkerRun(outcome, outcome.engine, diff, used_tools, session)


def _recorded(
    context: RunContext, task: Task, engine: str, workspace: Path
) -> contextlib.AbstractContextManager[RunRecording | None]:
    """Records a run's changes; of the owner's own commands only that they run."""
    if task.internal or engine == "builtin":  # they change nothing
        return contextlib.nullcontext()
    excluded = [context.state, *hidden_paths(context.settings.sandbox)]
    return context.changes.recording(workspace, excluded, with_diff=engine != "command")


# ---- after the run


def _finish(
    context: RunContext,
    task: Task,
    end: TaskEnd,
    outcome: Outcome,
    started: datetime,
    fields: Mapping[str, object],
) -> None:
    error = outcome.error and outcome.error[:MAX_ERROR_CHARACTERS]
    result = result_of(task, end, started, context.clock.now(), error=error).but(**fields)
    context.retry_on_storage_error(lambda: queue.finish(context.files, result))


def end_or_release(
    context: RunContext, task: Task, outcome: Outcome, engine: str
) -> TaskEnd | None:
    """How the task ends; None: it was released for another attempt."""
    now, limits = context.clock.now(), context.settings.limits
    failed = outcome if isinstance(outcome, Failed) else None
    retry_at = failed and failed.retry_at
    for_tokens = outcome.reason == "budget"
    final = (for_tokens and retry_at is None) or (failed is not None and failed.never_fits)
    is_planner = task.role == "planner"
    if not is_planner:  # a retry cannot help until the user changes something
        lacks_model = engine == "builtin" and outcome.reason == "engine_unavailable"
        final = final or outcome.reason == "refused" or (lacks_model and retry_at is None)
    is_waiting = outcome.reason in WAITING and not for_tokens
    waits = context.engines.wait_reason(engine, task.role) if is_waiting else None
    if waits is not None:  # a fallback: normally the supervisor ends the wait
        retry_at = max(waits.until or now, now) + timedelta(seconds=MAX_REST_S)
    died = failed is not None and failed.want == "broken" and failed.acted
    ended = RunEnd(outcome.status, outcome.reason, retry_at, final=final, interrupted=died)
    retry_delay_s = min(limits.retry_delay_s, 5) if is_planner else limits.retry_delay_s
    engine_retry_s = limits.engine_retry_s
    match after_run(task, ended, now, retry_delay_s=retry_delay_s, engine_retry_s=engine_retry_s):
        case TaskEnd() as end:
            return end
        case release:
            if for_tokens:
                release = release.but(waits_for=context.usage.waits_for(task.id))
            elif is_waiting:
                # The engine has recovered, or another one is available.
                is_over = failed is not None and failed.want is not None and waits is None
                choice = context.engines.for_role(task.role, task.profile)
                has_other = choice.waiting is None and choice.engine.name != engine
                if is_over or has_other:
                    release = release.but(not_before=now)
                else:
                    release = release.but(waits_for=engine)
            context.retry_on_storage_error(lambda: queue.release(context.files, release))
            if waits is not None and release.waits_for == engine:
                # After the release: a task that is not queued counts as removed.
                context.engines.set_waiting(task.role, task.id, engine, task.profile)
            return None
