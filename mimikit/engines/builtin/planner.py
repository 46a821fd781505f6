"""The engine `builtin` as Planner: converts a command to a tool call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic.alias_generators import to_camel

from mimikit.engines.base import Done, Failed, Outcome, RunSpec, TaskLine, ToolReply, TurnInput
from mimikit.engines.builtin import grammar, intents, references
from mimikit.engines.builtin.intents import BadSentence, Commanding, Intent, PlainSentence
from mimikit.engines.builtin.references import MAX_TITLE, label, one_line, task_list
from mimikit.engines.builtin.reminders import RemindIntent
from mimikit.engines.builtin.shell_lines import IsProgram
from mimikit.language import phrases
from mimikit.language.day_times import PastTime
from mimikit.language.phrases import Language, Limits, code, interval_words, paragraphs, say
from mimikit.language.times import CronTime, InstantTime, RepeatTime, parse_when, when_words
from mimikit.protocol import notify
from mimikit.protocol.models import REMINDER, Notify, time_text
from mimikit.protocol.triggers import Schedule


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call, and its schedule in words."""

    tool: str
    arguments: dict[str, Any]
    """Without those of the command itself."""
    words: str = ""
    when: str = ""
    """Shorter than `words`, for a title."""


def plan_of(
    intent: Commanding | RemindIntent, turn_input: TurnInput, now: datetime, language: Language
) -> PlannedCall | str:
    """The tool call, or the reply if it cannot be planned."""
    match intent:
        case intents.RunIntent():
            return PlannedCall("delegate", {"type": "oneshot"})
        case intents.EveryIntent(seconds):
            words = interval_words(seconds, language)
            return PlannedCall("schedule", {"type": "recurring", "interval": seconds}, words, words)
        case intents.AtIntent(when):
            return _plan_at(when, turn_input.timezone, now, language)
        case RemindIntent(when):
            return _plan_at(when, turn_input.timezone, now, language, "reminding_passed")
        case intents.WhenFileIntent(path, change):
            condition = {"type": f"file_{change}", "params": {"path": path}}
            words = say(f"when_{change}", language, path=code(path))
            more = {"type": "conditional", "condition": condition}
            return PlannedCall("schedule", more, words, path)
        case intents.AfterIntent(reference):
            return _plan_after(reference, turn_input.tasks, language)


def _plan_at(
    text: str, timezone: str, now: datetime, language: Language, passed: str = "time_passed"
) -> PlannedCall | str:
    """`passed`: the phrase for a time in the past."""
    zone = phrases.named_zone(timezone) or ZoneInfo("UTC")
    try:
        when = parse_when(text, now=now, zone=zone)
    except PastTime as past:
        return say(passed, language, when=when_words(InstantTime(past.at), zone, language))
    if when is None:
        return say("time_unclear", language, words=code(text))
    more: dict[str, Any]
    match when:
        case InstantTime(at):
            more = {"type": "scheduled", "runAt": time_text(at)}
        case RepeatTime(seconds, limits):
            more = {"type": "recurring", "interval": seconds, **_limits(limits)}
        case CronTime(expression, limits):
            more = {"type": "recurring", "cron": expression, "timezone": zone.key}
            more |= _limits(limits)
    return PlannedCall("schedule", more, when_words(when, zone, language), text)


def _limits(limits: Limits) -> dict[str, str | float]:
    """As arguments of `schedule`."""
    own = {field.name: getattr(limits, field.name) for field in fields(limits)}
    return {
        to_camel(name): time_text(value) if isinstance(value, datetime) else value
        for name, value in own.items()
        if value is not None
    }


def _plan_after(reference: str, tasks: Sequence[TaskLine], language: Language) -> PlannedCall | str:
    found = references.resolve_upstream(reference, tasks)
    if len(found) > 1:
        which = say("after_which", language, reference=one_line(reference, 100))
        return paragraphs(which, task_list(found, language))
    if not found and not references.TASK_ID.match(reference):
        none = say("after_none", language, reference=one_line(reference, 100))
        return paragraphs(none, task_list([t for t in tasks if t.seat != "planner"], language))
    task_id = found[0].id if found else reference
    name = label(found[0], tasks, language) if found else task_id
    words = say("when_done", language, task=code(name))
    return PlannedCall("delegate", {"type": "oneshot", "after": [task_id]}, words, reference)


def notify_text(wish: Notify | None, plan: PlannedCall) -> phrases.Words:
    args = plan.arguments
    is_standing = plan.tool == "schedule" and args["type"] == "conditional"
    schedule: Schedule | None = None
    if args["type"] == "recurring":
        schedule = Schedule(interval=args.get("interval"), cron=args.get("cron"))
    usual = notify.default_notify("command", "builtin", schedule=schedule, is_standing=is_standing)
    times = "each" if schedule else "gathered" if is_standing else "once"
    return notify.words(wish or usual, times)


def bad_sentence(sentence: BadSentence, language: Language) -> str:
    if sentence.reason == "remind_or_run":
        text, command = (one_line(it, MAX_TITLE) for it in (sentence.words, sentence.command))
        return say("remind_or_run", language, when=sentence.when, text=text, command=command)
    when = sentence.when and f"{sentence.when}{' ' if language == 'zh' else ': '}"
    return say(sentence.reason, language, words=code(one_line(sentence.words, 60)), when=when)


def sentence_language(text: str, intent: Intent, locale: str) -> Language:
    """Detects the language without the command, path or task name."""
    if isinstance(intent, Commanding):
        for name in ("command", "path", "reference"):
            text = text.replace(getattr(intent, name, " "), " ", 1)
    return phrases.language(text, locale)


# ---- Planner


def plan(request: RunSpec, is_program: IsProgram) -> Outcome:
    task, locale = request.input.task, request.input.locale
    if task is None:
        error = say("plan_no_task", phrases.language("", locale))
        return Failed("error", error)
    intent = grammar.parse(task.prompt, is_program)
    language = sentence_language(task.prompt, intent, locale)
    request.callbacks.on_event("note", say("note_planning", language), {})
    if task.parent_task_id is not None and task.source_trigger_id is None:
        # A follow-up to another engine's question is not the user's own text.
        intent = PlainSentence(task.prompt)
    if isinstance(intent, BadSentence):
        return Done(bad_sentence(intent, language))
    if isinstance(intent, intents.SwitchIntent):
        found = references.triggers(intent.reference, request.input.tasks)
        switch = {"id": found[0].id if found else intent.reference, "action": intent.action}
        return _outcome(call_tool(request, "change_trigger", switch), language)
    if not isinstance(intent, Commanding | RemindIntent):
        return Done(say("plan_unknown", language, connect=say("connect", language)))
    plan = plan_of(intent, request.input, task.created_at, language)
    if isinstance(plan, str):
        return Done(plan)
    is_reminder = isinstance(intent, RemindIntent)
    text, profile = (intent.text, REMINDER) if is_reminder else (intent.command, "command")
    work = {"prompt": text, "title": title_of(text), "profile": profile}
    wish = None if is_reminder else intent.notify
    work |= {"notify": wish} if wish else {}
    return _outcome(call_tool(request, plan.tool, {**work, **plan.arguments}), language)


def _outcome(reply: ToolReply, language: Language) -> Outcome:
    if reply.ok:
        return Done()
    error = say("plan_refused", language, reason=reply.text)
    return Failed("refused", error)


# ---- parts


def call_tool(request: RunSpec, name: str, arguments: dict[str, Any]) -> ToolReply:
    reply = request.tools.call(name, arguments)
    request.callbacks.on_event(
        "tool", name, {"arguments": arguments, "ok": reply.ok, "reply": reply.text}
    )
    return reply


def title_of(command: str) -> str:
    return one_line(command.strip().partition("\n")[0], MAX_TITLE)
