"""The turns that code takes by itself, and who is to tell a result.

Pure: who commits them stands elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from mimikit.conversation.drafts import StreamedReply
from mimikit.engines.registry import CODEX, OPENCODE, want_words
from mimikit.language import phrases
from mimikit.language.phrases import Language, ToldReminder, ToldResult, Words
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    REMINDER,
    AnsweredQuestion,
    EngineStatus,
    InboxItem,
    Message,
    Question,
    Role,
    Task,
    TurnRecord,
    to_utc,
)
from mimikit.protocol.results import TaskResult
from mimikit.protocol.self_awake import Improvement
from mimikit.protocol.triggers import LastRun, PlanResult, TriggerState
from mimikit.roles.teller import user_messages
from mimikit.tasks.queue import TaskSnapshot

Told = Literal["teller", "message"]
MOST_OF_AN_ERROR = 200
"""Characters of it that are kept beside a trigger."""


def code_record(turn_id: str, now: datetime) -> TurnRecord:
    """A turn of code's in which nothing is said yet."""
    return TurnRecord(id=turn_id, author="code", started_at=now, completed_at=now)


def ended_record(
    base: TurnRecord,
    items: Sequence[InboxItem],
    said: StreamedReply,
    why: Words | None,
    language: Language,
    results: Sequence[Message],
) -> TurnRecord:
    """The turn that says of itself that it failed, or (no `why`) was stopped.

    What the user said bears that, what had been said of the reply stays, a line tells of it, and
    what it was to tell is told by code: the messages `results`.
    """
    ended = "failed" if why else "stopped"
    own = [m.but(ended=ended, why=why) for m in user_messages(tuple(items), base.id)]
    ids = [message.id for message in own]
    partial = Message(
        id=derived_id("msg", base.id, "0"),
        role="agent",
        text=said.text,
        created_at=base.completed_at,
        turn_id=base.id,
        in_reply_to=ids,
        engine=said.engine or None,
        ended=ended,
    )
    text = phrases.say(f"turn_{ended}", language, error=why[language] if why else None)
    line = system_message(base, text, task_ids=[])  # it is not what came of the work
    line = line.but(in_reply_to=ids, failed=ended == "failed", ended=ended)
    messages = [*own, *([partial] if said.text else []), line, *results]
    return base.but(consumed=[item.id for item in items], messages=messages)


def question_message(question: Question, record: TurnRecord) -> Message:
    """The question as it stands in the transcript once it is answered."""
    return Message(
        id=derived_id("msg", record.id, "question"),
        role="agent",
        text=question.question,
        created_at=question.created_at,
        turn_id=record.id,
        question_id=question.question_id,
    )


def answered_question(
    question: Question, answer: str | None, *, by_user: bool = False
) -> AnsweredQuestion:
    """A question with the answer it got, from the user or as its time was over."""
    return AnsweredQuestion(
        question_id=question.question_id,
        question=question.question,
        options=question.options,
        default=question.default,
        answer=answer,
        by_user=by_user,
    )


def with_answer(
    record: TurnRecord, question: Question | None, items: Sequence[InboxItem]
) -> TurnRecord:
    """A turn that closes a question, with that beside the words of the user which answer it."""
    closed = {record.closes_question, *(answer.question_id for answer in record.answers)}
    if question is None or question.question_id not in closed:
        return record
    said = [item for item in items if item.kind != "task_result"]
    given = [item for item in said if item.question_id == question.question_id] or said[-1:]
    answers = [a.text for a in record.answers if a.question_id == question.question_id]
    messages = [
        m.but(answered=answered_question(question, (answers or [m.text])[0], by_user=True))
        if m.id in {item.id for item in given}
        else m
        for m in record.messages
    ]
    return record.but(messages=messages)


def engine_waits(status: EngineStatus, language: str, now: datetime, zone: ZoneInfo) -> str:
    """Why an engine is waited for, how much waits, and what may be done."""
    what = [
        phrases.say(f"{name}_one" if count == 1 else f"{name}_some", language, n=count)
        for name, count in (("messages", status.messages), ("tasks", status.tasks))
        if count
    ]
    own = "zh" if language == "zh" else "en"
    mend = f"engine_mend_{status.want}"
    if status.want == "logged_out" and status.engine != CODEX:
        mend = "engine_mend_opencode" if status.engine == OPENCODE else "engine_mend_key"
    return phrases.say(
        "engine_waits",
        language,
        why=want_words(status, now, zone)[own],
        what=phrases.say("engine_and", language).join(what),
        mend=phrases.say(mend, language, engine=status.engine)
        if mend in phrases.TABLE["en"]
        else "",
    )


def status_facts(
    roles: Sequence[Role],
    queued: int,
    seats: int,
    engines: Mapping[str, EngineStatus],
    now: datetime,
    zone: ZoneInfo,
) -> tuple[Words, ...]:
    """What runs and waits, and who serves which roles and profiles, or why those wait.

    roles: of what runs. queued: how many tasks. seats: how many Workers there may be.
    """
    served: dict[tuple[str, str], list[str]] = {}
    for name, status in engines.items():
        served.setdefault((status.engine, status.state), []).append(name)
    found = [
        phrases.say_both(
            "status_work",
            running=len(roles) - roles.count("teller"),
            queued=queued,
            busy=roles.count("worker"),
            seats=seats,
        )
    ]
    for (engine, state), names in served.items():
        if engine == "command":
            continue
        who = {
            language: {"en": ", ", "zh": "、"}[language].join(
                phrases.say(f"seat_{name}", language) for name in names
            )
            for language in phrases.TABLE
        }
        is_all = len(names) == len(engines) - ("command" in engines)
        if state != "ready":
            why = want_words(engines[names[0]], now, zone)
            found.append(phrases.say_both("status_waits", names=who, why=why))
        elif engine == "builtin":
            found.append(phrases.say_both("status_no_mind" if is_all else "status_code", names=who))
        elif is_all:
            found.append(phrases.say_both("status_mind", engine=engine))
        else:
            found.append(phrases.say_both("status_serves", names=who, engine=engine))
    return tuple(found)


def told_result(task: Task, outcome: TaskResult | PlanResult) -> ToldResult:
    """A result with what was asked, for an input or a message."""
    is_plan = isinstance(outcome, PlanResult)
    return ToldResult(
        title=task.title or task.prompt[:60],
        prompt=task.prompt,
        seat="planner" if is_plan else "worker",
        status=outcome.status,
        text=(outcome.summary or "") if is_plan else outcome.text,
        error=outcome.error,
        failure_reason=outcome.failure_reason,
        task_id=task.id,
        trigger_id=task.source_trigger_id,
        reminder=None if is_plan else _told_reminder(task, outcome),
    )


def told_entry(item: InboxItem, known: TaskSnapshot | None) -> ToldResult:
    """A result that waits to be told, also where nothing of its task is left."""
    if known is not None and known.outcome is not None:
        told = told_result(known.task, known.outcome)
        return replace(told, steps=tuple(item.steps), paused=item.tripped)
    task_id = item.task_id or item.id
    return ToldResult(
        title=item.text or task_id,
        prompt="",
        seat=item.seat or "worker",
        status="failed",
        text="",
        error="its record is gone",
        failure_reason=None,
        task_id=task_id,
    )


def _told_reminder(task: Task, result: TaskResult) -> ToldReminder | None:
    """What is told of a reminder; None: it is none, or it did not come to its time."""
    if task.profile != REMINDER or result.status != "done":
        return None
    planned, missed = result.result.get("plannedAt"), result.result.get("missed")
    try:
        planned_at = to_utc(datetime.fromisoformat(planned)) if isinstance(planned, str) else None
    except ValueError:
        planned_at = None
    return ToldReminder(task.timezone, planned_at, missed if isinstance(missed, int) else 0)


def message_turn(
    items: Sequence[InboxItem],
    told: Sequence[ToldResult],
    language: Language,
    record_base: TurnRecord,
    zone: ZoneInfo,
) -> TurnRecord:
    """The turn by which code tells results, consuming their entries: no mind.

    Results are one message, and those of each trigger are; each reminder is one of its own, in the
    language of its words.
    """
    groups: dict[str | None, list[ToldResult]] = {}
    for result in told:
        if result.reminder is None:
            groups.setdefault(result.trigger_id, []).append(result)
    messages = [
        reminder_message(record_base, result, result.reminder, language, zone)
        for result in told
        if result.reminder is not None
    ]
    for trigger_id, results in groups.items():
        text, ids = phrases.results(results, language), [result.task_id for result in results]
        messages.append(
            system_message(record_base, text, task_ids=ids).but(
                id=derived_id("msg", record_base.id, "system", trigger_id or ""),
                trigger_id=trigger_id,
            )
        )
    return record_base.but(consumed=[item.id for item in items], messages=messages)


def reminder_message(
    record: TurnRecord, told: ToldResult, how: ToldReminder, language: Language, zone: ZoneInfo
) -> Message:
    """A reminder as it stands in the chat; the same one has the same id, whatever tells it."""
    own = phrases.language(told.prompt, language)
    text = phrases.reminder(told.prompt, how, own, zone)
    return system_message(record, text, task_ids=[told.task_id]).but(
        id=derived_id("msg", "reminder", told.task_id), reminder=told.prompt
    )


def system_message(record: TurnRecord, text: str, *, task_ids: list[str]) -> Message:
    """A message of the system's own."""
    return Message(
        id=derived_id("msg", record.id, "system"),
        role="system",
        text=text,
        created_at=record.completed_at,
        turn_id=record.id,
        task_ids=task_ids,
    )


def improvement_words(run: Improvement, language: str) -> str:
    """What is said of an improvement that came to something."""
    if run.end == "proposed":
        return phrases.say("self_awake_proposed", language, what=run.why)
    files = "self_awake_file" if len(run.files) == 1 else "self_awake_files"
    return phrases.say(
        "self_awake_committed",
        language,
        how=phrases.say("self_awake_asked" if run.asked else "self_awake_idle", language),
        title=phrases.code(run.title),
        branch=run.branch,
        files=phrases.say(files, language, n=len(run.files)),
        why=run.why,
    )


def left_words(path: str, language: str) -> str:
    """What is said of a worktree that stays, as somebody may work there."""
    return phrases.say("self_awake_left", language, path=phrases.code(path))


def telling(
    task: Task, result: TaskResult, before: TriggerState | None, *, waited_for: bool = False
) -> Told | None:
    """Who tells this result: the Teller, a plain message, or nobody. Source: spec 0.

    waited_for: it is an inner step of a chain, which goes on with it or ends.
    """
    if task.profile == REMINDER:
        return "message"
    if task.internal or task.notify == "none" or result.failure_reason == "upstream":
        return None
    if waited_for and result.status == "canceled":
        return "message"
    notify = "failure" if waited_for and not task.notify_given else task.notify
    if notify == "teller":
        return "message" if result.status == "canceled" else "teller"
    if notify == "failure":
        return "message" if result.status == "failed" else None
    if notify == "change":
        if result.status == "canceled":
            return None
        # No outcome yet: the first run, which is a change.
        changed = before is None or before.last_outcome != outcome_hash(result)
        return "message" if changed or result.status == "failed" else None
    return "message"


def last_run(result: TaskResult) -> LastRun:
    """What is kept beside a trigger of a run that ended."""
    error = " ".join((result.error or "").split())
    return LastRun(
        task_id=result.id,
        status=result.status,
        at=result.completed_at,
        failure_reason=result.failure_reason,
        error=error[:MOST_OF_AN_ERROR] or None,
    )


def outcome_hash(result: TaskResult) -> str:
    """What `notify: change` compares: status and text."""
    return hashlib.sha256(f"{result.status}\x00{result.text}".encode()).hexdigest()[:16]
