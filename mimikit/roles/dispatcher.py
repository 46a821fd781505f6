"""Runs a claimed task: the Planner turns it into a plan, the Worker into a result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from mimikit import permission
from mimikit.config import Settings
from mimikit.engines.base import CancelToken, Done, Failed, Outcome, TurnInput
from mimikit.engines.changes import RunRecording
from mimikit.engines.circuit import MAX_REST_S
from mimikit.errors import BadSettings, StorageError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import (
    REMINDER,
    EndStatus,
    EngineSession,
    FailureReason,
    QueueName,
    Task,
)
from mimikit.protocol.results import TaskDiff, TaskResult
from mimikit.protocol.runtime import PageAddress
from mimikit.roles.metering import run_metered
from mimikit.roles.result_type import typed_result
from mimikit.roles.run import (
    Attempt,
    RunContext,
    cut_to_side,
)
from mimikit.roles.turn_context import with_context
from mimikit.sandbox.worker import hidden_paths
from mimikit.tasks import queue
from mimikit.tasks.retry import WAITING, RunEnd, TaskEnd, after_run, result_of
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import Effects, ToolCaller

MAX_ERROR_CHARACTERS = 100_000


def dispatch(context: RunContext, queue_name: QueueName, claimed: Task) -> bool:
    """Have a claimed task carried out; True when it ended, False when it is to be tried again.

    Whatever goes wrong, the task gets an end.
    Crash: before the mark of its release is gone, which would hide that this attempt began, no
    engine was started, and recovery brings the task back uncounted.
    """
    started = context.clock.now()
    cancel = context.live.start(claimed.id, queue_name, claimed.title or claimed.prompt, started)
    context.feed.tell("task", id=claimed.id, seat=queue_name)
    context.engines.waits(queue_name, claimed.id, None)
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
        message = f"a fault of mimikit's own: {error}"
        now = context.clock.now()
        result = result_of(claimed.but(role=queue_name), end, started, now, error=message)
        context.retry_on_storage_error(lambda: queue.finish(context.files, result))
        return True
    finally:
        context.live.end(claimed.id)


# ---- the Planner: one request, from its task to a whole plan, written as one record


def run_planner(context: RunContext, task: Task, cancel: CancelToken) -> bool:
    """Run a Planner task to its record or its next attempt; True when it ended.

    Crash: without the record nothing of the plan exists, and recovery decides by the same rule.
    """
    started = context.clock.now()
    # A command that builtin's Teller understood is planned by builtin.
    by_code = task.origin == "builtin" and task.parent_task_id is None
    choice = context.engines.for_role("planner", by_code=by_code)
    effects = Effects()
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
        )
        session = context.open_session(PlannerSession, caller)
        attempt = Attempt(
            task.id, task.attempts + 1, "planner", turn_input, choice, cancel, session
        )
        outcome = run_metered(context, attempt)
        effects = session.close()
        acts = effects.tasks or effects.triggers or effects.cancels or effects.commands
        says_or_asks = outcome.text.strip() or effects.question
        if outcome.status == "done" and not acts and not says_or_asks:
            outcome = Failed("error", "the planner gave no plan")

    def facts(status: EndStatus) -> dict[str, object]:
        """Fields of the PlanResult."""
        told: dict[str, object] = {
            "summary": cut_to_side(context, task.id, outcome.text.strip()) or None,
            "usage": outcome.usage,
            "engine": choice.engine.name,
        }
        if status != "done":
            return told
        if (question := effects.question) is not None:
            return told | {
                "status": "needs_input",
                "question": question.question,
                "options": question.options,
                "default": question.default,
                "question_timeout": question.timeout,
            }
        planned = ("tasks", "triggers", "cancels", "commands")
        return told | {name: getattr(effects, name) for name in planned}

    retry_delay_s = min(context.settings.limits.retry_delay_s, 5)
    engine = choice.engine.name
    return end_or_retry(
        context, task, outcome, started, facts, engine=engine, retry_delay_s=retry_delay_s
    )


# ---- the Worker: one task, from its file to its result or its next attempt


def _upstream(context: RunContext, task: Task) -> tuple[TaskResult, ...]:
    """Results of the tasks that this one builds on; a plan's summary."""
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
    """Run a Worker task to its result or its next attempt; True when it ended.

    Crash: the result is written once, exclusively; without it recovery decides by the same rule.
    """
    started = context.clock.now()
    run = _worker_run(context, task, started, cancel)
    outcome, task = run.outcome, task.but(engine_session=run.session)

    def facts(status: EndStatus) -> dict[str, object]:
        """Fields of the TaskResult."""
        short = cut_to_side(context, task.id, outcome.text, note=False)
        text: dict[str, object] = {"text": short}
        if short != outcome.text:
            text |= {"truncated": True, "whole": paths.side(task.id)}
        type_, more = typed_result(task, status, outcome.text, run.diff, looked=run.used_tools)
        return {
            "result_type": type_,
            "result": {**text, **outcome.data, **more},
            "diff": paths.diff(task.id) if run.diff else None,
            "exit_code": outcome.exit_code,
            "usage": outcome.usage,
            "engine": run.engine,
            "session_id": outcome.session_id,
        }

    delay_s = context.settings.limits.retry_delay_s
    return end_or_retry(
        context,
        task,
        outcome,
        started,
        facts,
        engine=run.engine,
        retry_delay_s=delay_s,
        final=run.final,
    )


def _kept_diff(context: RunContext, task: Task, recording: RunRecording) -> TaskDiff | None:
    """What the task has changed up to now, this attempt and those before it, once it is written.

    Crash: it lies there before the result that names it; what names none lies there for its time.
    """
    path, found = paths.diff(task.id), None
    try:
        found = recording.diff(task.id, task.attempts + 1)
    except (OSError, ValueError, RecursionError) as error:  # the run itself is done
        context.log.write("error", "changes_not_seen", taskId=task.id, error=repr(error))
    earlier = context.retry_on_storage_error(lambda: context.files.load(path, TaskDiff))
    if found is None:
        return earlier
    whole = (earlier.then(found) if earlier else found).but(interrupted=task.interruptions)
    context.retry_on_storage_error(lambda: context.files.save(path, whole))
    return whole


def task_refusal(task: Task, settings: Settings, files: Files) -> str | None:
    """Why a `command` task may not run; None when it may.

    Every page tells where it really listens, which need not be what the settings say. What came by
    one that others reach stays refused when that is gone.
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
    final: bool = False
    """A retry cannot help."""
    diff: TaskDiff | None = None
    looked: bool = False
    """It ran commands or used tools."""
    session: EngineSession | None = None
    """For the next attempt to resume."""


@dataclass
class _SessionKeeper:
    """Stores the engine's session for the next attempt."""

    context: RunContext
    task: Task
    engine: str

    @property
    def known(self) -> str | None:
        """The session of an earlier attempt with this engine."""
        session = self.task.engine_session
        return session.id if session is not None and session.engine == self.engine else None

    def keep(self, session_id: str) -> None:
        """Crash: it is in the running file, from which recovery starts the next attempt."""
        if session_id == self.known:
            return
        session = EngineSession(engine=self.engine, id=session_id)
        self.task = self.task.but(engine_session=session)
        try:
            self.context.files.save(paths.running("worker", self.task.id), self.task)
        except StorageError as error:  # then the next attempt starts afresh
            self.context.log.write(
                "error", "session_not_kept", taskId=self.task.id, error=str(error)
            )


def _worker_run(context: RunContext, task: Task, now: datetime, cancel: CancelToken) -> _WorkerRun:
    upstream = context.retry_on_storage_error(lambda: _upstream(context, task))
    refusal = context.retry_on_storage_error(
        partial(task_refusal, task, context.settings, context.files)
    )
    if refusal is not None:
        context.log.write("audit", "command_refused", taskId=task.id, reason=refusal)
        return _WorkerRun(Failed("refused", refusal), final=True)
    if task.profile == REMINDER:  # only if queued by hand
        return _WorkerRun(Done(task.prompt, data=queue.lateness(task.not_before, now)))
    try:
        by_code = task.profile == "deferred" and task.covers is not None
        choice = context.engines.for_role("worker", task.profile, by_code=by_code)
    except BadSettings as error:
        return _WorkerRun(Failed("refused", str(error)), final=True)
    engine = choice.engine.name
    sessions = _SessionKeeper(context, task, engine)
    if choice.waiting:
        lasts = engine == "command"  # only the owner can supply what it lacks
        reason: FailureReason = "refused" if lasts else "engine_unavailable"
        failed = Failed(reason, choice.waiting)
        return _WorkerRun(failed, engine, lasts, session=task.engine_session)
    timezone, locale = task.timezone or context.settings.zone.key, task.locale or "en"
    turn_input = TurnInput(now, timezone, locale, task=task, upstream=upstream)
    with _recorded(context, task, engine) as recording:
        attempt = Attempt(
            task.id,
            task.attempts + 1,
            "worker",
            turn_input,
            choice,
            cancel,
            on_session=sessions.keep,
            resume=sessions.known,
        )
        if recording is not None:
            attempt = replace(attempt, on_event=recording.event)
        outcome = run_metered(context, attempt)
        diff = recording and _kept_diff(context, task, recording)
    final = (
        engine == "builtin"
        and isinstance(outcome, Failed)
        and outcome.reason == "engine_unavailable"
        and outcome.retry_at is None
    )
    looked = engine != "command" and recording is not None and recording.used_tools
    return _WorkerRun(outcome, engine, final, diff, looked, sessions.task.engine_session)


def _recorded(
    context: RunContext, task: Task, engine: str
) -> contextlib.AbstractContextManager[RunRecording | None]:
    """Records what a run changes; of the owner's own commands only that they run."""
    if task.internal or engine == "builtin":  # they change nothing
        return contextlib.nullcontext()
    closed = [context.state, *hidden_paths(context.settings.sandbox)]
    return context.changes.recording(context.workspace, closed, with_diff=engine != "command")


# ---- the end of a run: for good, with another attempt, or waiting for its engine


def end_or_retry(
    context: RunContext,
    task: Task,
    outcome: Outcome,
    started: datetime,
    facts: Callable[[EndStatus], Mapping[str, object]],
    *,
    engine: str,
    retry_delay_s: float,
    final: bool = False,
) -> bool:
    """True when it ended.

    `facts`: result fields only the role knows; `final`: a retry cannot help.
    """
    now = context.clock.now()
    failed = outcome if isinstance(outcome, Failed) else None
    retry_at = failed and failed.retry_at
    for_tokens = outcome.reason == "budget"
    final = final or (for_tokens and retry_at is None)
    is_waiting = outcome.reason in WAITING and not for_tokens
    waits = context.engines.wait_of(engine, task.role) if is_waiting else None
    if waits is not None:  # the supervisor ends the wait; this is the fallback
        retry_at = max(waits.until or now, now) + timedelta(seconds=MAX_REST_S)
    ended = RunEnd(outcome.status, outcome.reason, retry_at, final=final)
    engine_retry_s = context.settings.limits.engine_retry_s
    match after_run(task, ended, now, retry_delay_s=retry_delay_s, engine_retry_s=engine_retry_s):
        case TaskEnd() as end:
            error = outcome.error and outcome.error[:MAX_ERROR_CHARACTERS]
            result = result_of(task, end, started, now, error=error)
            context.retry_on_storage_error(
                lambda: queue.finish(context.files, result.but(**facts(end.status)))
            )
            return True
        case release:
            if for_tokens:
                release = release.but(waits_for=context.usage.waits_for(task.id))
            elif is_waiting:
                # The engine or another one serves again: no need to wait.
                is_over = failed is not None and failed.want is not None and waits is None
                is_over = is_over or _other_serves(context, task, engine)
                release = release.but(not_before=now) if is_over else release.but(waits_for=engine)
            context.retry_on_storage_error(lambda: queue.release(context.files, release))
            if waits is not None and release.waits_for == engine:
                # After the release: a task that is not queued counts as removed.
                context.engines.waits(task.role, task.id, engine, task.profile)
            return False


def _other_serves(context: RunContext, task: Task, engine: str) -> bool:
    """Whether another engine can take the task now."""
    choice = context.engines.for_role(task.role, task.profile)
    return choice.waiting is None and choice.engine.name != engine
