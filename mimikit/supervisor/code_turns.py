"""Turns made by code, without a model. Pure; the schedulers commit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from mimikit.config import OWN_ENGINES
from mimikit.engines.registry import CODE, CODE_ENGINES, CODEX, OPENCODE, problem_words
from mimikit.language import phrases
from mimikit.language.phrases import Language, ReminderNotice, ResultNotice, Words
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    REMINDER,
    EngineStatus,
    InboxItem,
    Message,
    Question,
    Role,
    Task,
    TurnRecord,
    parse_time,
)
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.teller import TurnOutcome, user_messages


def code_record(turn_id: str, now: datetime) -> TurnRecord:
    return TurnRecord(id=turn_id, author="code", started_at=now, completed_at=now)


def text_turn(turn_id: str, text: str, now: datetime) -> TurnRecord:
    base = code_record(turn_id, now)
    return base.but(messages=[system_message(base, text, task_ids=[])])


def unfinished_turn(
    base: TurnRecord,
    items: Sequence[InboxItem],
    language: Language,
    error: str | None,
    outcome: TurnOutcome | None,
) -> TurnRecord:
    """The turn of a reply that failed with `error`, or was stopped: keeps what had come of it."""
    refused = outcome is not None and outcome.refused
    asked = [m.but(withheld=refused) for m in user_messages(tuple(items), base.id)]
    partial = outcome.partial if outcome is not None and not refused else ""
    if outcome is not None and partial:
        message = Message(
            id=derived_id("msg", base.id, "0"),
            role="agent",
            text=partial,
            created_at=base.completed_at,
            turn_id=base.id,
            engine=outcome.job.choice.engine.name,
            error=error,
        )
    else:
        key = "turn_refused" if refused else "turn_stopped" if error is None else "turn_failed"
        message = system_message(base, phrases.say(key, language, error=error), task_ids=[])
    message = message.but(
        in_reply_to=[m.id for m in asked],
        task_ids=[item.task_id for item in items if item.task_id],
        failed=error is not None,
        stopped=error is None,
    )
    return base.but(consumed=[item.id for item in items], messages=[*asked, message])


def waiting_counts(messages: int, tasks: int, language: Language) -> str:
    """`2 messages and 1 task`."""
    counts = (("messages", messages), ("tasks", tasks))
    found = [
        phrases.say(f"{name}_one" if count == 1 else f"{name}_some", language, n=count)
        for name, count in counts
        if count
    ]
    return phrases.say("engine_and", language).join(found)


def question_message(question: Question, record: TurnRecord) -> Message:
    return Message(
        id=derived_id("msg", record.id, "question"),
        role="agent",
        text=question.question,
        created_at=question.created_at,
        turn_id=record.id,
        question_id=question.question_id,
        options=question.options,
    )


_BY_OWNER = ("missing", "logged_out", "account", "region", "unknown_model")
"""Problems that do not pass by themselves."""


def engine_waits(status: EngineStatus, language: Language, now: datetime, zone: ZoneInfo) -> str:
    """Why an engine is unavailable, how much waits for it, and what the user can do."""
    problem, is_own = status.problem, status.engine in OWN_ENGINES
    mend, said = f"engine_mend_{problem}", ""
    if problem == "logged_out" and status.engine != CODEX:
        mend = "engine_mend_opencode" if status.engine == OPENCODE else "engine_mend_key"
    if status.reason and not (problem == "logged_out" and is_own):
        said = phrases.say("engine_said", language, error=status.reason.rstrip(". "))
    after = "engine_goes_on_when_mended" if problem in _BY_OWNER else "engine_goes_on"
    known = mend in phrases.TABLE["en"]
    return phrases.say(
        "engine_waits",
        language,
        why=problem_words(status, now, zone)[language],
        said=said,
        after=phrases.say(after, language),
        what=waiting_counts(status.messages, status.tasks, language),
        mend=phrases.say(mend, language, engine=status.engine) if known else "",
    )


def status_facts(
    roles: Sequence[Role],
    queued: int,
    seats: int,
    engines: Mapping[str, EngineStatus],
    now: datetime,
    zone: ZoneInfo,
) -> tuple[Words, ...]:
    """What runs and waits, and the engine of each role and profile, or why it is unavailable.

    roles: of the runs in progress. seats: the number of Workers.
    """
    served: dict[tuple[str, str], list[str]] = {}
    for name, status in engines.items():
        served.setdefault((status.engine, status.state), []).append(name)
    found = [
        phrases.say_both(
            "status_work", running=len(roles) - roles.count("teller"), queued=queued, seats=seats
        )
    ]
    if all(engine in CODE_ENGINES for engine, _ in served):
        return (*found, phrases.say_both("no_model_connected"))
    for (engine, state), names in served.items():
        who = {it: ", ".join(phrases.role(name, it) for name in names) for it in phrases.TABLE}
        if state == "ready" and engine != "command":
            key = "status_no_model" if engine == CODE else "status_serves"
            found.append(phrases.say_both(key, names=who, engine=engine))
        elif state != "ready":
            why = problem_words(engines[names[0]], now, zone)
            found.append(phrases.say_both("status_waits", names=who, why=why))
    return tuple(found)


def result_notice(task: Task, outcome: TaskResult | PlanResult) -> ResultNotice:
    """A result with its request, for a prompt or a message."""
    is_plan = isinstance(outcome, PlanResult)
    return ResultNotice(
        title=task.title or task.prompt[:60],
        prompt=task.prompt,
        seat="planner" if is_plan else "worker",
        status=outcome.status,
        text=(outcome.summary or "") if is_plan else outcome.text,
        error=outcome.error,
        failure_reason=outcome.failure_reason,
        task_id=task.id,
        trigger_id=task.source_trigger_id,
        reminder=None if is_plan else _reminder_notice(task, outcome),
    )


def _reminder_notice(task: Task, result: TaskResult) -> ReminderNotice | None:
    """The lateness of a reminder; None: not a reminder, or it did not end as done."""
    if task.profile != REMINDER or result.status != "done":
        return None
    planned, missed = result.result.get("plannedAt"), result.result.get("missed")
    planned_at = parse_time(planned)
    return ReminderNotice(task.timezone, planned_at, missed if isinstance(missed, int) else 0)


def message_turn(
    items: Sequence[InboxItem],
    notices: Sequence[ResultNotice],
    language: Language,
    record_base: TurnRecord,
    zone: ZoneInfo,
) -> TurnRecord:
    """The turn that reports results without a model, and consumes their inbox items.

    One message for the results of each trigger, one for all others, and one for each reminder, in
    its own language.
    """
    groups: dict[str | None, list[ResultNotice]] = {}
    messages: list[Message] = []
    for result in notices:
        if result.reminder is None:
            groups.setdefault(result.trigger_id, []).append(result)
            continue
        own = phrases.language(result.prompt, language)
        text = phrases.reminder(result.prompt, result.reminder, own, zone)
        messages.append(
            system_message(record_base, text, task_ids=[result.task_id]).but(
                id=derived_id("msg", "reminder", result.task_id), reminder=result.prompt
            )
        )
    for trigger_id, results in groups.items():
        text, ids = phrases.results(results, language), [result.task_id for result in results]
        messages.append(
            system_message(record_base, text, task_ids=ids).but(
                id=derived_id("msg", record_base.id, "system", trigger_id or ""),
                trigger_id=trigger_id,
            )
        )
    return record_base.but(consumed=[item.id for item in items], messages=messages)


def system_message(record: TurnRecord, text: str, *, task_ids: list[str]) -> Message:
    return Message(
        id=derived_id("msg", record.id, "system"),
        role="system",
        text=text,
        created_at=record.completed_at,
        turn_id=record.id,
        task_ids=task_ids,
    )
