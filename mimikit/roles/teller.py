"""The Teller: one turn, from frozen inputs to a commit record that is not applied yet."""

from __future__ import annotations

import queue as queues
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mimikit import permission
from mimikit.engines.base import CancelToken, Failed, Outcome, TurnInput
from mimikit.engines.registry import EngineChoice
from mimikit.errors import StorageError, shortage_of
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import FailureReason, InboxItem, Message, TurnRecord
from mimikit.protocol.watch import CriticalThread
from mimikit.roles.metering import run_metered
from mimikit.roles.run import Attempt, RunContext, cut_to_side
from mimikit.roles.turn_context import with_context
from mimikit.tools.session import Effects, TellerSession, ToolCaller


@dataclass(frozen=True, slots=True)
class TurnJob:
    """A turn to take, with the inputs it started with."""

    id: str
    attempt: int
    items: tuple[InboxItem, ...]
    input: TurnInput
    """Without memory and conversation."""
    choice: EngineChoice
    cancel: CancelToken
    trace_id: str
    is_last: bool = False
    """No attempt follows."""


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """A record to commit, or why there is none."""

    job: TurnJob
    record: TurnRecord | None = None
    error: str = ""
    failure_reason: FailureReason | None = None
    retry_at: datetime | None = None


def take_turn(context: RunContext, job: TurnJob) -> TurnOutcome:
    """Run the engine and make a record; nothing is written. A failing disk costs no attempt."""
    started = context.clock.now()
    try:
        turn_input = context.retry_on_storage_error(lambda: with_context(context, job.input))
    except StorageError as error:
        return TurnOutcome(job, None, str(error), "engine_unavailable")
    question = job.input.question
    answered = question and any(item.question_id == question.question_id for item in job.items)
    caller = ToolCaller(
        job.id,
        job.trace_id,
        job.input.now,
        by_user=permission.is_by_user(job.choice.engine.name),
        remote=any(item.remote for item in job.items),
        timezone=turn_input.timezone,
        locale=turn_input.locale,
        question_open=question is not None and bool(question.planner_task_id or not answered),
    )
    session = context.open_session(TellerSession, caller)
    outcome = run_metered(
        context,
        Attempt(job.id, job.attempt, "teller", turn_input, job.choice, job.cancel, session),
    )
    effects = session.close()
    said = cut_to_side(context, derived_id("msg", job.id, "0"), outcome.text.strip())
    replies = list(effects.replies)
    if said and (not replies or not session.is_over):  # else it was said beside the final call
        replies += [said] if said not in replies else []
    if not replies and effects.question is not None:
        replies = [effects.question.question]
    if outcome.status != "done" or not replies:
        error = outcome.error or "the model gave no reply"
        retry_at = outcome.retry_at if isinstance(outcome, Failed) else None
        return TurnOutcome(job, None, error, outcome.reason or "error", retry_at)
    record = _record(job, turn_input, outcome, effects, replies, started, context.clock.now())
    return TurnOutcome(job, record)


def user_messages(items: tuple[InboxItem, ...], turn_id: str) -> list[Message]:
    """For the transcript."""
    return [
        Message(
            id=item.id,
            role="user",
            text=item.text,
            created_at=item.created_at,
            turn_id=turn_id,
            quote=item.quote,
        )
        for item in items
        if item.kind != "task_result"
    ]


def _record(
    job: TurnJob,
    turn_input: TurnInput,
    outcome: Outcome,
    effects: Effects,
    replies: list[str],
    started: datetime,
    now: datetime,
) -> TurnRecord:
    said = user_messages(job.items, job.id)
    answered = [message.id for message in said]
    told = [item.task_id for item in job.items if item.task_id]
    of = {item.trigger_id for item in job.items}
    of_trigger = of.pop() if len(of) == 1 else None
    answers = [
        Message(
            id=derived_id("msg", job.id, str(number)),
            role="agent",
            text=text,
            created_at=now,
            turn_id=job.id,
            in_reply_to=answered,
            task_ids=[*told, *(task.id for task in effects.tasks)],
            usage=outcome.usage,
            duration_ms=max(0, int((now - started).total_seconds() * 1000)),
            engine=job.choice.engine.name,
            trigger_id=of_trigger,
        )
        for number, text in enumerate(replies)
    ]
    return TurnRecord(
        id=job.id,
        author="teller",
        attempt=job.attempt,
        consumed=[item.id for item in job.items],
        messages=[*said, *answers],
        tasks=effects.tasks,
        question=effects.question,
        answers=effects.answers,
        cancels=effects.cancels,
        remembered=effects.remembered,
        backlog=effects.backlog,
        usage=outcome.usage,
        engine=job.choice.engine.name,
        injected=list(turn_input.memory),
        started_at=started,
        completed_at=now,
    )


def outcome_of(context: RunContext, job: TurnJob) -> TurnOutcome:
    """Take a turn; every error but a shortage becomes an outcome."""
    try:
        return take_turn(context, job)
    except Exception as error:
        if shortage_of(error):
            raise
        context.log.write("error", "turn_fault", turnId=job.id, error=repr(error))
        return TurnOutcome(job, None, str(error), "error")


class TellerThread:
    """Takes turns one at a time on its own thread."""

    def __init__(self, context: RunContext, ring: Callable[[], None]) -> None:
        """`ring` wakes the supervisor when a turn ended."""
        self._context, self._ring = context, ring
        self._jobs: queues.SimpleQueue[TurnJob | None] = queues.SimpleQueue()
        self._done: queues.SimpleQueue[TurnOutcome] = queues.SimpleQueue()
        self._thread = CriticalThread("teller")
        self._thread.begin(self._run)

    def start(self, job: TurnJob) -> None:
        self._jobs.put(job)

    def outcomes(self) -> list[TurnOutcome]:
        """Those since the last call."""
        found: list[TurnOutcome] = []
        while not self._done.empty():
            found.append(self._done.get())
        return found

    def close(self, timeout_s: float) -> None:
        self._jobs.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put(outcome_of(self._context, job))
            self._ring()
