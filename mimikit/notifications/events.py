"""Which ends of work, and which questions, are told outside of the page, and in what words. Pure.

Source: spec 6, notifications.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from mimikit.language import phrases
from mimikit.language.phrases import Language
from mimikit.language.plain_text import first_line, plain
from mimikit.notify_settings import EventKind, NotifySettings
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import REMINDER, Question, Task, to_utc
from mimikit.protocol.notifications import NotificationEvent
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent, PlanResult

MOST_LISTED = 20
"""Events of one notification that are named; of more the number is said."""
_TITLE, _FACTS, _WHOLE = 120, 200, 1000
"""Characters: of a title, of a result's or an error's first line, of what is told as it is."""
_URGENCY: tuple[EventKind, ...] = ("question", "reminder", "breaker", "failed", "canceled", "done")


def kind_of_end(
    task: Task, outcome: TaskResult | PlanResult, end: EndIntent, settings: NotifySettings
) -> EventKind | None:
    """What the end of a run is told as; None: it is not told outside of the page."""
    if task.internal or end.told is None or outcome.status == "needs_input":
        return None
    if end.trips:
        return "breaker"
    if outcome.status != "done":
        return "failed" if outcome.status == "failed" else "canceled"
    if task.profile == REMINDER:
        return "reminder"
    took_s = (outcome.completed_at - outcome.started_at).total_seconds()
    is_told = task.profile == "specialist" or took_s >= settings.done_after_s
    return "done" if is_told and task.profile != "deferred" else None


def event_of_end(
    task: Task,
    outcome: TaskResult | PlanResult,
    end: EndIntent,
    settings: NotifySettings,
    zone: ZoneInfo,
) -> NotificationEvent | None:
    """The event of a run's end; None where no channel is for it."""
    kind = kind_of_end(task, outcome, end, settings)
    channels = settings.channels_for(kind) if kind else []
    if kind is None or not channels:
        return None
    language = phrases.language(task.prompt, task.locale or "en")
    name = first_line(task.title or task.prompt, _TITLE)
    title, text = phrases.say(f"note_{kind}", language, title=name), ""
    if kind == "reminder":
        title, text = _reminder_title(task, outcome, language, zone), plain(task.prompt)[:_WHOLE]
    elif settings.details:
        said = outcome.text if isinstance(outcome, TaskResult) else outcome.summary
        text = first_line(plain((said if kind == "done" else outcome.error) or ""), _FACTS)
    return NotificationEvent(
        id=derived_id("note", "end", task.id),
        kind=kind,
        title=title,
        text=text,
        language=language,
        channels=channels,
        created_at=outcome.completed_at,
        not_before=end.not_before,
        task_id=task.id,
    )


def event_of_question(question: Question, settings: NotifySettings) -> NotificationEvent | None:
    """The event of a question that is asked; None where no channel is for it."""
    if not (channels := settings.channels_for("question")):
        return None
    language = phrases.language(question.question)
    options = "".join(f"\n- {option}" for option in question.options)
    return NotificationEvent(
        id=derived_id("note", "question", question.question_id),
        kind="question",
        title=phrases.say("note_question", language),
        text=plain(f"{question.question}{options}")[:_WHOLE],
        language=language,
        channels=channels,
        created_at=question.created_at,
        question_id=question.question_id,
    )


def words_of(events: Sequence[NotificationEvent]) -> tuple[str, str]:
    """Title and text of one notification of some events; of many not all are named."""
    if len(events) == 1:
        return events[0].title, events[0].text
    ordered = sorted(events, key=lambda it: (_URGENCY.index(it.kind), it.created_at, it.id))
    language = ordered[0].language
    lines = [_line(event) for event in ordered[:MOST_LISTED]]
    if more := len(ordered) - len(lines):
        lines.append(phrases.say("note_more", language, n=more))
    return phrases.say("note_several", language, n=len(ordered)), "\n".join(lines)


def _line(event: NotificationEvent) -> str:
    colon = "：" if event.language == "zh" else ": "
    said = first_line(event.text, _FACTS)
    return f"• {event.title}{colon}{said}" if said else f"• {event.title}"


def _reminder_title(
    task: Task, outcome: TaskResult | PlanResult, language: Language, zone: ZoneInfo
) -> str:
    """Whether it comes late is said, with the time it was meant for."""
    planned = outcome.result.get("plannedAt") if isinstance(outcome, TaskResult) else None
    try:
        at = to_utc(datetime.fromisoformat(planned)) if isinstance(planned, str) else None
    except ValueError:
        at = None
    if at is None:
        return phrases.say("note_reminder", language)
    own = phrases.named_zone(task.timezone) or zone
    return phrases.say("note_reminder_late", language, when=phrases.moment_words(at, own, language))
