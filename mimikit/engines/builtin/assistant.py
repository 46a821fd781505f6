"""What the engine `builtin` does as Teller and as Planner.

It understands the sentences of `grammar`, says what it did with them, and says plainly what it can
not do. It reads the request's input and acts through the request's tools, nothing else; the same
request gives the same calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from mimikit.engines.base import EngineRequest, Outcome, TaskLine, ToolReply, TurnInput
from mimikit.engines.builtin import grammar, intents
from mimikit.engines.builtin.intents import BadSentence, Commanding, Intent, PlainSentence, Shown
from mimikit.engines.builtin.references import (
    asked,
    failed,
    named,
    one_line,
    resolve,
    resolve_upstream,
    task_list,
    told_of,
    triggers,
    words_of,
)
from mimikit.engines.builtin.reminders import NoticedIntent, RemindIntent, SnoozeIntent
from mimikit.engines.builtin.shell_lines import IsProgram
from mimikit.language import phrases
from mimikit.language.phrases import Language, code, fence, interval_words, paragraphs, say
from mimikit.language.times import InstantTime, PastTime, RepeatTime, parse_when, when_words
from mimikit.protocol import notify
from mimikit.protocol.models import REMINDER, Hit, InboxItem, Message, Notify, time_text
from mimikit.protocol.triggers import Schedule

_TITLE = 80
_HIT = 320
_ENDED = frozenset({"done", "failed", "canceled"})
_ID = re.compile(r"(?:task|trig)-[A-Za-z0-9._-]+\Z")


# ---- Teller


class Turn:
    """One turn: what each input asks for is done in order, then results are told."""

    def __init__(self, request: EngineRequest, is_program: IsProgram) -> None:
        self._request = request
        self._input = request.input
        self._is_program = is_program
        self._question = request.input.question
        self._declined: set[str] = set()
        self._sentence = ""
        # At first that of the newest input, else of what the user said last; then each input's own.
        said = [m.text for m in self._input.conversation if m.role == "user"]
        said += [item.text for item in self._input.inputs]
        newest = said[-1] if said else ""
        intent = grammar.parse(newest, is_program)
        self._language: Language = sentence_language(newest, intent, self._input.locale)

    def take(self) -> Outcome:
        inputs, results, language = self._input.inputs, self._input.results, self._language
        parts: list[str] = []
        if inputs:
            self._request.on_event("note", say("note_reading", language), {})
        for item in inputs:
            if self._request.cancel.reason is not None:
                return Outcome.stopped(self._request.cancel.reason)
            parts.append(self._answer(item))
        if results:
            self._request.on_event("note", say("note_telling", language), {})
            parts.append(phrases.results(results, language))
        return Outcome("done", paragraphs(*parts) or self._show("status"))

    def _answer(self, item: InboxItem) -> str:
        """Do what one input asks for; gives what to say about it."""
        self._sentence = text = item.text.strip()
        intent = self._meant(text, item)
        self._language = sentence_language(text, intent, item.locale or self._input.locale)
        question = self._question
        if question is not None and text:
            options = {option.strip().casefold() for option in question.options}
            if isinstance(intent, PlainSentence) or text.casefold() in options:
                self._question = None
                arguments = {"questionId": question.question_id, "text": text}
                return self._said(_call(self._request, "answer_question", arguments), "answered")
        if isinstance(intent, RemindIntent):
            return self._remind(item, intent)
        if isinstance(intent, intents.RunIntent):
            title, words, told = _title(intent.command), {}, ""
            if intent.notify is not None:
                told = notify.words(intent.notify, "once")[self._language]
        elif isinstance(intent, Commanding):
            # Passed on to the Planner, word for word, if it can be planned.
            plan = plan_of(intent, self._input, self._input.now, self._language)
            if isinstance(plan, str):
                return plan
            title, words = _title(f"{plan.when}: {intent.command}"), {"when": plan.words}
            told = _told(intent.notify, plan)[self._language]
        else:
            return self._attend(intent)
        reply = _call(self._request, "delegate", {"prompt": item.text, "title": title})
        key, command = "started_now" if told else "started", fence(intent.command, "sh")
        key = "scheduled" if words else key
        said = self._said(reply, key, command=command, **words)
        return paragraphs(said, told) if reply.ok else said

    def _meant(self, text: str, item: InboxItem) -> Intent:
        """What one input asks for; right after a reminder it may be an answer to it."""
        told = told_reminder(self._input.conversation, item.quote)
        intent = (grammar.parse_answer(text) if told else None) or grammar.parse(
            text, self._is_program
        )
        if not isinstance(intent, SnoozeIntent):
            return intent
        if told is None:
            return BadSentence("reminding_none", text)
        language = phrases.language(text, item.locale or self._input.locale)
        return RemindIntent(intent.when or say("in_a_while", language), told)

    def _remind(self, item: InboxItem, intent: RemindIntent) -> str:
        """Have the Planner set up a reminder; of one that is put off it is told the words."""
        plan = plan_of(intent, self._input, self._input.now, self._language)
        if isinstance(plan, str):
            return plan
        is_whole = isinstance(grammar.parse(item.text), RemindIntent)
        prompt = item.text if is_whole else say("remind_me", self._language, when=intent.when)
        prompt += "" if is_whole else intent.text
        arguments = {"prompt": prompt, "title": _title(intent.text)}
        key = "reminding_at" if plan.arguments["type"] == "scheduled" else "reminding"
        facts = {"when": plan.words, "said": intent.when, "text": intent.text}
        return self._said(_call(self._request, "delegate", arguments), key, **facts)

    def _attend(self, intent: Intent) -> str:
        """Do what no command is run for."""
        language, memory = self._language, self._input.memory
        match intent:
            case intents.RememberIntent(content):
                reply = _call(self._request, "remember", {"content": content, "longTerm": True})
                return self._said(reply, "remembered", content=one_line(content, 200))
            case intents.RecallIntent(about):
                key = "recall_has" if memory else "recall_none"
                head = say(key, language, about=one_line(about, 100))
                return paragraphs(head, _hits(memory), say("recall_by_search", language))
            case intents.ChangeBacklogIntent(action, item):
                reply = _call(self._request, "update_backlog", {"action": action, "item": item})
                # The answer ends with the item that was found to be meant.
                whole = reply.text.partition(": ")[2] or item
                return self._said(reply, f"backlog_{action}", item=one_line(whole, 200))
            case intents.CancelIntent(reference):
                return self._cancel(reference)
            case intents.SwitchIntent(action, reference):
                return self._switch(action, reference)
            case intents.ShowIntent(what):
                return self._show(what)
            case NoticedIntent():
                return say("reminder_noticed", language)
            case BadSentence(reason):
                return say(reason, language)
            case intents.FailedIntent(day):
                return failed(self._input, day, language)
            case intents.AskIntent(asks, reference) if found := asked(self._input, asks, reference):
                return told_of(asks, found, language)
            case _ if language in self._declined:
                return ""  # that a mind is missing is said once, however many inputs need one
            case _:
                self._declined.add(language)
                has = say("memory_has" if memory else "memory_none", language)
                connect = f"{say('connect', language)} {say('hint', language)}"
                return paragraphs(say("no_model", language), has, _hits(memory), connect)

    def _show(self, what: Shown) -> str:
        language = self._language
        match what:
            case "help":
                return say("help", language, connect=say("connect", language))
            case "status":
                facts = [f"- {name}: {value}" for name, value in self._input.facts.items()]
                if not facts:
                    return say("status_none", language)
                return paragraphs(say("status", language), "\n".join(facts))
            case "tasks":
                reply = _call(self._request, "list_tasks", {"scope": "all"})
                if reply.ok and self._input.tasks:
                    listed = task_list(self._input.tasks, language)
                    return paragraphs(say("tasks", language), listed)
                return self._said(reply, "tasks_none")
            case "backlog":
                reply = _call(self._request, "update_backlog", {"action": "list"})
                if reply.ok and reply.text.startswith("- "):
                    return paragraphs(say("backlog", language), reply.text)
                return self._said(reply, "backlog_none")

    def _cancel(self, reference: str) -> str:
        language, tasks = self._language, self._input.tasks
        found = resolve(reference, tasks)
        active = [task for task in tasks if task.state not in _ENDED]
        if len(found) == 1 or (not found and _ID.match(reference)):
            task_id = found[0].id if found else reference
            reply = _call(self._request, "cancel_task", {"id": task_id})
            return self._said(reply, "canceling", task=named(task_id, found))
        if not active:
            return say("cancel_empty", language)
        which = say("cancel_which", language)
        if found or not words_of(reference):
            return paragraphs(which, task_list(found or active, language))
        none = say("cancel_none", language, reference=one_line(reference, 100))
        return paragraphs(none, which, task_list(active, language))

    def _switch(self, action: Literal["pause", "resume"], reference: str) -> str:
        """Have the Planner pause a trigger, or let it go on."""
        found = triggers(reference, self._input.tasks)
        if len(found) == 1:
            prompt = f"{action} {found[0].id}"
            reply = _call(self._request, "delegate", {"prompt": prompt, "title": prompt})
            return self._said(reply, f"{action}_doing", trigger=named(found[0].id, found))
        if not found:
            return say("switch_none", self._language, reference=one_line(reference, 100))
        which = say("switch_which", self._language)
        return paragraphs(which, task_list(found, self._language))

    def _said(self, reply: ToolReply, key: str, **values: object) -> str:
        """What to say of a tool's reply, which may be a refusal."""
        if reply.ok:
            return say(key, self._language, **values)
        what = code(one_line(self._sentence, _TITLE))
        return say("refused", self._language, what=what, reason=reply.text)


def is_command(text: str, tasks: Callable[[], Sequence[TaskLine]], is_program: IsProgram) -> bool:
    """Whether a message needs no mind, though one is there: `tasks`, `status`, `cancel`, `run:`.

    What is to be canceled must be there: else it is talk, such as "stop worrying".
    """
    match grammar.parse(text.strip(), is_program):
        case intents.ShowIntent(what):
            return what in ("help", "status", "tasks")
        case intents.RunIntent():
            return True
        case intents.CancelIntent(reference):
            return not words_of(reference) or bool(
                _ID.match(reference) or resolve(reference, tasks())
            )
        case _:
            return False


def sentence_language(text: str, intent: Intent, locale: str) -> Language:
    """The language a sentence is in; a command, a path, a task's name inside it do not count."""
    if isinstance(intent, Commanding):
        for name in ("command", "path", "reference"):
            text = text.replace(getattr(intent, name, " "), " ", 1)
    return phrases.language(text, locale)


def told_reminder(conversation: Sequence[Message], quote: str | None) -> str | None:
    """The words of the reminder that is answered: the one quoted, or told just before."""
    for message in reversed(conversation):
        if message.reminder is not None and (not quote or quote in message.text):
            return message.reminder
        if message.role != "system" and not quote:
            return None
    return None


def _told(asked: Notify | None, plan: PlannedCall) -> phrases.Words:
    """Who is told of a command that is planned so, in words."""
    given = plan.arguments
    is_standing = plan.tool == "schedule" and given["type"] == "conditional"
    schedule: Schedule | None = None
    if given["type"] == "recurring":
        schedule = Schedule(interval=given.get("interval"), cron=given.get("cron"))
    usual = notify.usual("command", "builtin", schedule=schedule, is_standing=is_standing)
    times = "each" if schedule else "gathered" if is_standing else "once"
    return notify.words(asked or usual, times)


# ---- what a sentence comes to


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """The tool call that does what a sentence asks for, and when that is."""

    tool: str
    arguments: dict[str, Any]
    """Besides the command's own."""
    words: str = ""
    """When it runs, for the user."""
    when: str = ""
    """The same in few words, for a title."""


def plan_of(
    intent: Commanding | RemindIntent, turn_input: TurnInput, now: datetime, language: Language
) -> PlannedCall | str:
    """What a sentence comes to when it is said `now`, or what to answer if it can not be done."""
    match intent:
        case intents.RunIntent():
            return PlannedCall("delegate", {"type": "oneshot"})
        case intents.EveryIntent(seconds):
            words = interval_words(seconds, language)
            return PlannedCall("schedule", {"type": "recurring", "interval": seconds}, words, words)
        case intents.AtIntent(when):
            return _plan_at(when, turn_input.timezone, now, language)
        case RemindIntent(when):
            zone, passed = turn_input.timezone, "reminding_passed"
            return _plan_at(when, zone, now, language, passed)
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
    """`passed`: the phrase for a time that is over."""
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
        case RepeatTime(seconds):
            more = {"type": "recurring", "interval": seconds}
        case _:
            more = {"type": "recurring", "cron": when.expression, "timezone": zone.key}
    return PlannedCall("schedule", more, when_words(when, zone, language), text)


def _plan_after(reference: str, tasks: Sequence[TaskLine], language: Language) -> PlannedCall | str:
    found = resolve_upstream(reference, tasks)
    if len(found) > 1:
        which = say("after_which", language, reference=one_line(reference, 100))
        return paragraphs(which, task_list(found, language))
    if not found and not _ID.match(reference):
        none = say("after_none", language, reference=one_line(reference, 100))
        return paragraphs(none, task_list([t for t in tasks if t.seat != "planner"], language))
    task_id = found[0].id if found else reference
    words = say("when_done", language, task=named(task_id, found))
    return PlannedCall("delegate", {"type": "oneshot", "after": [task_id]}, words, reference)


# ---- Planner


def plan(request: EngineRequest, is_program: IsProgram) -> Outcome:
    """Have the command of a plan carried out when it asks for it; its outcome says what was not."""
    task, locale = request.input.task, request.input.locale
    if task is None:
        error = say("plan_no_task", phrases.language("", locale))
        return Outcome("failed", error=error, failure_reason="error")
    intent = grammar.parse(task.prompt, is_program)
    language = sentence_language(task.prompt, intent, locale)
    request.on_event("note", say("note_planning", language), {})
    if task.parent_task_id is not None and task.source_trigger_id is None:
        # It goes on from a question another engine asked: no longer the user's bare sentence.
        intent = PlainSentence(task.prompt)
    if isinstance(intent, BadSentence):
        return Outcome("done", say(intent.reason, language))
    if isinstance(intent, intents.SwitchIntent):
        found = triggers(intent.reference, request.input.tasks)
        switch = {"id": found[0].id if found else intent.reference, "action": intent.action}
        return _planned(_call(request, "change_trigger", switch), language)
    if not isinstance(intent, Commanding | RemindIntent):
        return Outcome("done", say("plan_unknown", language, connect=say("connect", language)))
    plan = plan_of(intent, request.input, task.created_at, language)
    if isinstance(plan, str):
        return Outcome("done", plan)
    is_reminder = isinstance(intent, RemindIntent)
    text, profile = (intent.text, REMINDER) if is_reminder else (intent.command, "command")
    work = {"prompt": text, "title": _title(text), "profile": profile}
    told = None if is_reminder else intent.notify
    work |= {"notify": told} if told else {}
    return _planned(_call(request, plan.tool, {**work, **plan.arguments}), language)


def _planned(reply: ToolReply, language: Language) -> Outcome:
    if reply.ok:
        return Outcome("done")
    error = say("plan_refused", language, reason=reply.text)
    return Outcome("failed", error=error, failure_reason="refused")


# ---- parts


def _call(request: EngineRequest, name: str, arguments: dict[str, Any]) -> ToolReply:
    reply = request.call_tool(name, arguments)
    request.on_event("tool", name, {"arguments": arguments, "ok": reply.ok, "reply": reply.text})
    return reply


def _title(command: str) -> str:
    return one_line(command.strip().partition("\n")[0], _TITLE)


def _hits(hits: Sequence[Hit]) -> str:
    return "\n".join(f"- {one_line(hit.text, _HIT)} — {code(hit.source)}" for hit in hits)
