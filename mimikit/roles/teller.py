"""The Teller: runs one turn and returns its commit record, which the supervisor applies."""

from __future__ import annotations

import queue as queues
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from mimikit import permission
from mimikit.engines.base import CancelToken, Failed, Outcome, TurnInput
from mimikit.engines.registry import CODE_ENGINES, EngineChoice
from mimikit.errors import StorageError, shortage_of
from mimikit.language import phrases, promises
from mimikit.memory.terms import terms
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import FailureReason, InboxItem, Message, TurnRecord
from mimikit.protocol.watch import CriticalThread
from mimikit.roles.metering import run_with_failover
from mimikit.roles.run import Attempt, RunContext, truncate_to_file
from mimikit.roles.turn_context import with_context
from mimikit.tools.session import Effects, TellerSession, ToolCaller

MAX_NOTE = 2000


@dataclass(frozen=True, slots=True)
class TurnJob:
    """A turn to run, with its inputs."""

    id: str
    attempt: int
    items: tuple[InboxItem, ...]
    input: TurnInput
    """Still without memory and conversation."""
    choice: EngineChoice
    cancel: CancelToken
    trace_id: str
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """A record to commit, or an error."""

    job: TurnJob
    record: TurnRecord | None = None
    error: str = ""
    failure_reason: FailureReason | None = None
    refused: bool = False
    """By a content filter, for good."""
    is_final: bool = False
    """Another attempt would not help."""
    retry_at: datetime | None = None
    partial: str = ""
    """What the user has seen of a reply that was not completed."""


def run_turn(context: RunContext, job: TurnJob) -> TurnOutcome:
    """Run the engine; writes nothing but a long text. A storage error costs no attempt."""
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
        files=[file.ref for file in turn_input.attachments],
        question_open=question is not None and bool(question.planner_task_id or not answered),
    )
    session = context.open_session(TellerSession, caller)
    attempt = Attempt(job.id, job.attempt, "teller", turn_input, job.choice, job.cancel, session)
    outcome = run_with_failover(context, attempt)
    replies = _replies(context, attempt, session, outcome)
    if outcome.status == "done" and _is_unkept(attempt, session.effects, replies):
        outcome, replies = _ask_again(context, attempt, session, outcome, replies)
    effects = session.close()
    partial = "" if outcome.status == "done" else _text(context, job.id, outcome)
    if isinstance(outcome, Failed):
        failed = outcome
        is_final = failed.refused or failed.never_fits
        ended = (failed.error, failed.reason, failed.refused, is_final, failed.retry_at)
        return TurnOutcome(job, None, *ended, partial)
    if outcome.status != "done" or not replies:
        error = outcome.error or "the model gave no reply"
        return TurnOutcome(job, None, error, outcome.reason or "error", partial=partial)
    replies[-1] = "\n\n".join([replies[-1], *outcome.notices])
    record = _record(job, turn_input, outcome, effects, replies, started, context.clock.now())
    return TurnOutcome(job, record)


def _text(context: RunContext, run_id: str, outcome: Outcome) -> str:
    return truncate_to_file(context, derived_id("msg", run_id, "0"), outcome.text.strip())


def _replies(
    context: RunContext, attempt: Attempt, session: TellerSession, outcome: Outcome
) -> list[str]:
    text = _text(context, attempt.run_id, outcome)
    replies, question = list(session.effects.replies), session.effects.question
    if text and (not replies or not session.is_over):  # else it only accompanies the final call
        replies += [text] if text not in replies else []
    return replies or ([question.question] if question is not None else [])


def _is_unkept(attempt: Attempt, effects: Effects, replies: list[str]) -> bool:
    """Whether the replies promise later work, and nothing that is set up has to do with it."""
    text = "\n".join(replies)
    if attempt.choice.engine.name in CODE_ENGINES or not promises.has_promise(text):
        return False
    if effects.tasks or effects.question or effects.answers:
        return False
    about = _subject("\n".join([text, *(item.text for item in attempt.input.inputs)]))
    live = (line for line in attempt.input.tasks if line.status is None)
    # It may well mean a task that waits or runs; a trigger only if it is about the same.
    return not any(line.words is None or about & _subject(line.title) for line in live)


def _subject(text: str) -> set[str]:
    return {term for term in terms(text) if len(term) > 1} - promises.COMMON_TERMS


def _ask_again(
    context: RunContext,
    attempt: Attempt,
    session: TellerSession,
    outcome: Outcome,
    replies: list[str],
) -> tuple[Outcome, list[str]]:
    """Run again with the fact that nothing was set up; a promise that stays says so itself."""
    session.effects.replies.clear()
    context.feed.publish("delta", turnId=attempt.run_id, text="", reset=True)
    note = phrases.say("promise_note", "en", reply=" ".join(" ".join(replies).split())[:MAX_NOTE])
    second = run_with_failover(context, replace(attempt, input=replace(attempt.input, note=note)))
    new = _replies(context, attempt, session, second) if second.status == "done" else []
    outcome = replace(outcome, usage=outcome.usage + second.usage)
    if new and not _is_unkept(attempt, session.effects, new):
        return outcome, new
    *before, last = new or replies
    line = phrases.say("promise_unkept", phrases.language(last, attempt.input.locale))
    return outcome, [*before, f"{last}\n\n{line}"]


def user_messages(items: tuple[InboxItem, ...], turn_id: str) -> list[Message]:
    return [
        Message(
            id=item.id,
            role="user",
            text=item.text,
            created_at=item.created_at,
            turn_id=turn_id,
            quote=item.quote,
            files=item.files,
            question_id=item.question_id,
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
    inputs = user_messages(job.items, job.id)
    reported = [item.task_id for item in job.items if item.task_id]
    triggers = {item.trigger_id for item in job.items}
    trigger_id = triggers.pop() if len(triggers) == 1 else None
    answers = [
        Message(
            id=derived_id("msg", job.id, str(number)),
            role="agent",
            text=text,
            created_at=now,
            turn_id=job.id,
            in_reply_to=[message.id for message in inputs],
            task_ids=[*reported, *(task.id for task in effects.tasks)],
            usage=outcome.usage,
            duration_ms=max(0, int((now - started).total_seconds() * 1000)),
            engine=outcome.engine,
            trigger_id=trigger_id,
        )
        for number, text in enumerate(replies)
    ]
    if effects.question is not None and answers:
        question = effects.question
        answers[-1] = answers[-1].but(question_id=question.question_id, options=question.options)
    return TurnRecord(
        id=job.id,
        author="teller",
        attempt=job.attempt,
        consumed=[item.id for item in job.items],
        messages=[*inputs, *answers],
        tasks=effects.tasks,
        question=effects.question,
        answers=effects.answers,
        cancels=effects.cancels,
        remembered=effects.remembered,
        forgotten=effects.forgotten,
        backlog=effects.backlog,
        usage=outcome.usage,
        engine=outcome.engine,
        injected=list(turn_input.memory),
        started_at=started,
        completed_at=now,
    )


def turn_outcome(context: RunContext, job: TurnJob) -> TurnOutcome:
    """Run a turn; every error but a shortage becomes an outcome."""
    try:
        return run_turn(context, job)
    except Exception as error:
        if shortage_of(error):
            raise
        context.log.write("error", "turn_fault", turnId=job.id, error=repr(error))
        return TurnOutcome(job, None, str(error), "error")


class TellerThread:
    """Runs turns one at a time on its own thread."""

    def __init__(self, context: RunContext, wake: Callable[[], None]) -> None:
        """`wake` is called after each turn."""
        self._context, self._wake = context, wake
        self._jobs: queues.SimpleQueue[TurnJob | None] = queues.SimpleQueue()
        self._done: queues.SimpleQueue[TurnOutcome] = queues.SimpleQueue()
        self._thread = CriticalThread("teller")
        self._thread.begin(self._run)

    def start(self, job: TurnJob) -> None:
        self._jobs.put(job)

    def outcomes(self) -> list[TurnOutcome]:
        found: list[TurnOutcome] = []
        while not self._done.empty():
            found.append(self._done.get())
        return found

    def close(self, timeout_s: float) -> None:
        self._jobs.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put(turn_outcome(self._context, job))
            self._wake()
