"""The engine `builtin` as Teller: executes the commands that `grammar` recognizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from mimikit import permission
from mimikit.engines.base import Done, Outcome, RunSpec, TaskLine, ToolReply, stop_outcome
from mimikit.engines.builtin import grammar, intents, references
from mimikit.engines.builtin.intents import BadSentence, Commanding, Intent, PlainSentence, Shown
from mimikit.engines.builtin.planner import (
    bad_sentence,
    call_tool,
    notify_text,
    plan_of,
    sentence_language,
    title_of,
)
from mimikit.engines.builtin.references import label, one_line, resolve, task_list, words_of
from mimikit.engines.builtin.reminders import NoticedIntent, RemindIntent, SnoozeIntent
from mimikit.engines.builtin.shell_lines import IsProgram
from mimikit.language import phrases
from mimikit.language.phrases import Language, code, fence, paragraphs, say
from mimikit.protocol import notify
from mimikit.protocol.models import REMINDER, Hit, InboxItem, Message

_HIT_CHARACTERS = 320
_TABLE_LINE = re.compile(r"^\s*\|.*$", re.MULTILINE)


class Turn:
    """Answers each message in order, then reports results."""

    def __init__(self, request: RunSpec, is_program: IsProgram) -> None:
        self._request = request
        self._input = request.input
        self._is_program = is_program
        self._question = request.input.question
        self._declined: set[str] = set()
        self._sentence = ""
        # The language of the newest message; `_answer` switches to that of each input.
        texts = [m.text for m in self._input.conversation if m.role == "user"]
        texts += [item.text for item in self._input.inputs]
        newest = texts[-1] if texts else ""
        intent = grammar.parse(newest, is_program)
        self._language: Language = sentence_language(newest, intent, self._input.locale)

    def run(self) -> Outcome:
        inputs, results, language = self._input.inputs, self._input.results, self._language
        parts: list[str] = []
        if inputs:
            self._request.callbacks.on_event("note", say("note_reading", language), {})
        for item in inputs:
            if self._request.cancel.reason is not None:
                return stop_outcome(self._request.cancel.reason)
            parts += [self._answer(item), references.unread(item.files, self._language)]
        if results:
            self._request.callbacks.on_event("note", say("note_telling", language), {})
            parts.append(phrases.results(results, language))
        return Done(paragraphs(*parts) or self._show("status"))

    def _answer(self, item: InboxItem) -> str:
        """Execute one message; returns the reply."""
        self._sentence = text = item.text.strip()
        intent = self._intent(text, item)
        self._language = sentence_language(text, intent, item.locale or self._input.locale)
        question = self._question
        chosen = references.chosen_option(text, question.options) if question and text else None
        cancels = question is not None and references.asks_to_cancel(question)
        if question and (chosen or (text and not cancels and isinstance(intent, PlainSentence))):
            self._question = None
            arguments = {"questionId": question.question_id, "text": chosen or text}
            reply = call_tool(self._request, "answer_question", arguments)
            if not (chosen and cancels and reply.ok):
                return self._reply_text(reply, "answered")
            if chosen == question.options[-1]:
                return say("local_declined", self._language)
            return self._cancel(references.task_name(chosen), is_confirmed=True)
        if isinstance(intent, RemindIntent):
            return self._remind(item, intent)
        if isinstance(intent, intents.RunIntent):
            title, words, notice = title_of(intent.command), {}, ""
            if intent.notify is not None:
                notice = notify.words(intent.notify, "once")[self._language]
        elif isinstance(intent, Commanding):
            # Delegated unchanged, if it can be planned.
            plan = plan_of(intent, self._input, self._input.now, self._language)
            if isinstance(plan, str):
                return plan
            title, words = title_of(f"{plan.when}: {intent.command}"), {"when": plan.words}
            notice = notify_text(intent.notify, plan)[self._language]
        else:
            return self._handle(intent)
        reply = call_tool(self._request, "delegate", {"prompt": item.text, "title": title})
        key = "scheduled" if words else "started_now" if notice else "started"
        text = self._reply_text(reply, key, command=fence(intent.command, "sh"), **words)
        return paragraphs(text, notice) if reply.ok else text

    def _intent(self, text: str, item: InboxItem) -> Intent:
        """Right after a reminder the message may be an answer to it."""
        reminder = answered_reminder(self._input.conversation, item.quote)
        intent = grammar.parse_answer(text) if reminder else None
        intent = intent or grammar.parse(text, self._is_program)
        if not isinstance(intent, SnoozeIntent):
            return intent
        if reminder is None:
            return BadSentence("reminding_none", text)
        language = phrases.language(text, item.locale or self._input.locale)
        return RemindIntent(intent.when or say("in_a_while", language), reminder)

    def _remind(self, item: InboxItem, intent: RemindIntent) -> str:
        """Delegate a reminder; of a snoozed one the prompt is built here."""
        plan = plan_of(intent, self._input, self._input.now, self._language)
        if isinstance(plan, str):
            return plan
        is_whole = isinstance(grammar.parse(item.text), RemindIntent)
        prompt = item.text if is_whole else say("remind_me", self._language, when=intent.when)
        prompt += "" if is_whole else intent.text
        arguments = {"prompt": prompt, "title": title_of(intent.text)}
        key = "reminding_at" if plan.arguments["type"] == "scheduled" else "reminding"
        facts = {"when": plan.words, "said": intent.when, "text": intent.text}
        return self._reply_text(call_tool(self._request, "delegate", arguments), key, **facts)

    def _handle(self, intent: Intent) -> str:
        language, memory = self._language, self._input.memory
        match intent:
            case intents.RememberIntent() | intents.ForgetIntent():
                return self._memorize(intent)
            case intents.RecallIntent(about):
                key = "recall_has" if memory else "recall_none"
                head = say(key, language, about=one_line(about, 100))
                return paragraphs(head, _hits(memory), say("recall_by_search", language))
            case intents.ChangeBacklogIntent(action, item):
                reply = call_tool(self._request, "update_backlog", {"action": action, "item": item})
                # The reply ends with the item that matched.
                matched = reply.text.partition(": ")[2] or item
                return self._reply_text(reply, f"backlog_{action}", item=one_line(matched, 200))
            case intents.CancelIntent(reference):
                return self._cancel(reference)
            case intents.SwitchIntent(action, reference):
                return self._switch(action, reference)
            case intents.ShowIntent(what):
                return self._show(what)
            case NoticedIntent():
                return say("reminder_noticed", language)
            case BadSentence() as sentence:
                return bad_sentence(sentence, language)
            case intents.FailedIntent(day):
                return references.failed(self._input, day, language)
            case intents.AskIntent(asks, reference) if found := references.find_subjects(
                self._input, asks, reference
            ):
                return references.describe(asks, found, language)
            case _ if language in self._declined:
                return ""  # mention the missing model only once
            case _:
                self._declined.add(language)
                return self._not_understood()

    def _not_understood(self) -> str:
        """What is missing, the nearest sentence if one is near, and notes about it if there are."""
        language, about = self._language, references.notes_about(self._sentence, self._input.memory)
        near = references.nearest_sentence(self._sentence, language)
        space = "" if language == "zh" else " "
        lines = [
            say("no_model", language),
            f"{say('connect', language)}{space}{say('hint', language)}",
            *([say("nearest", language, sentence=near)] if near else []),
        ]
        notes = [say("memory_has", language), _hits(about)] if about else []
        return paragraphs("\n".join(lines), *notes)

    def _memorize(self, intent: intents.RememberIntent | intents.ForgetIntent) -> str:
        if isinstance(intent, intents.RememberIntent):
            arguments = {"content": intent.content, "longTerm": True}
            reply = call_tool(self._request, "remember", arguments)
            return self._reply_text(reply, "remembered", content=one_line(intent.content, 200))
        what, scope = intent.what, "all" if intent.everything else "notes"
        reply = call_tool(self._request, "forget", {"what": what, "scope": scope})
        head, _, more = reply.text.partition("\n")
        about = one_line(head.partition(": ")[2] if reply.ok else what, 200)
        key = "forgotten" if reply.ok else "forget_which" if more else "forget_none"
        text = say(key, self._language, about=about)
        if not (reply.ok and more):
            return paragraphs(text, more)
        return paragraphs(
            text, say("forgotten_besides", self._language, places=more.partition(": ")[2])
        )

    def _show(self, what: Shown) -> str:
        language = self._language
        match what:
            case "help":
                return say("help", language, connect=say("connect", language))
            case "status":
                own = "zh" if language == "zh" else "en"
                facts = [f"- {words[own]}" for words in self._input.facts]
                live = [task for task in self._input.tasks if task.state not in references.ENDED]
                listed = task_list(live, language)
                if not facts + live:
                    return say("status_none", language)
                return paragraphs(say("status", language), "\n".join(facts), listed)
            case "tasks" | "reminders":
                reply = call_tool(self._request, "list_tasks", {"scope": "all"})
                is_all, tasks = what == "tasks", self._input.tasks
                shown = [t for t in tasks if is_all or t.state.startswith(REMINDER)]
                if reply.ok and shown:
                    return paragraphs(say(what, language), task_list(shown, language))
                return self._reply_text(reply, f"{what}_none")
            case "backlog":
                reply = call_tool(self._request, "update_backlog", {"action": "list"})
                if reply.ok and reply.text.startswith("- "):
                    return paragraphs(say("backlog", language), reply.text)
                return self._reply_text(reply, "backlog_none")

    def _cancel(self, reference: str, *, is_confirmed: bool = False) -> str:
        language, tasks = self._language, self._input.tasks
        active = [task for task in tasks if task.state not in references.ENDED]
        found, is_all = resolve(reference, tasks), not words_of(reference)
        ids = [task.id for task in found] or [reference] * bool(references.TASK_ID.match(reference))
        if is_all and is_confirmed:
            found, ids = active, [task.id for task in active]
        if len(ids) == 1 or (ids and is_all and is_confirmed):
            replies = [call_tool(self._request, "cancel_task", {"id": id_}) for id_ in ids]
            names = ", ".join(code(label(it, tasks, language)) for it in found) or code(reference)
            refused = [reply for reply in replies if not reply.ok]
            return self._reply_text([*refused, *replies][0], "canceling", task=names)
        if not active:
            return say("cancel_empty", language)
        if found or is_all:
            return self._ask_which(found or active, with_all=not found)
        none = say("cancel_none", language, reference=one_line(reference, 100))
        return paragraphs(none, self._ask_which(active, with_all=False))

    def _ask_which(self, tasks: Sequence[TaskLine], *, with_all: bool) -> str:
        """Ask which task to cancel; each option is what the user could say as well."""
        language, which = self._language, say("cancel_which", self._language)
        known = self._input.tasks
        names = [label(it, known, language) for it in tasks[: references.MAX_CHOICES]]
        options = [say("cancel_one", language, task=name) for name in names]
        options += [say("cancel_all", language)] if with_all and len(tasks) > 1 else []
        options.append(say("local_no", language))
        if (more := len(tasks) - references.MAX_CHOICES) > 0:
            which = f"{which} {say('cancel_more', language, count=more)}"
        if self._question is not None and references.asks_to_cancel(self._question):
            closing = {"questionId": self._question.question_id, "text": options[-1]}
            call_tool(self._request, "answer_question", closing)
        asked = {"question": which, "options": options, "default": options[-1], "timeout": 600}
        if call_tool(self._request, "ask_user", asked).ok:
            return which
        how = say("cancel_by_name", language)
        return paragraphs(f"{which} {how}", task_list(tasks, language, self._input.tasks))

    def _switch(self, action: Literal["pause", "resume"], reference: str) -> str:
        found = references.triggers(reference, self._input.tasks)
        if len(found) == 1:
            name = label(found[0], self._input.tasks, self._language)
            order = {"prompt": f"{action} {found[0].id}", "title": f"{action} {name}"}
            reply = call_tool(self._request, "delegate", order)
            return self._reply_text(reply, f"{action}_doing", trigger=code(name))
        if not found:
            return say("switch_none", self._language, reference=one_line(reference, 100))
        which = say("switch_which", self._language)
        return paragraphs(which, task_list(found, self._language))

    def _reply_text(self, reply: ToolReply, key: str, **values: object) -> str:
        """The reply after a tool call, which may be refused."""
        if reply.ok:
            return say(key, self._language, **values)
        what = code(one_line(self._sentence, references.MAX_TITLE))
        return say("refused", self._language, what=what, reason=reply.text)


def is_command(text: str, tasks: Callable[[], Sequence[TaskLine]], is_program: IsProgram) -> bool:
    """Whether it is `tasks`, `status`, `run:`, or `cancel` of something that exists."""
    match grammar.parse(text.strip(), is_program):
        case intents.ShowIntent(what):
            return what in ("help", "status", "tasks")
        case intents.RunIntent():
            return True
        case intents.CancelIntent(reference):
            return not words_of(reference) or bool(
                references.TASK_ID.match(reference) or resolve(reference, tasks())
            )
        case _:
            return False


def is_answered(
    text: str,
    tasks: Callable[[], Sequence[TaskLine]],
    options: Sequence[str],
    is_program: IsProgram,
) -> bool:
    """Whether the message can be answered without a model, or chooses one of the options."""
    if references.chosen_option(text, options):
        return True
    if options and text.strip().casefold() in permission.YES | permission.NO:
        return True
    match grammar.parse(text.strip(), is_program):
        case PlainSentence() | BadSentence("time_unknown" | "remind_or_run"):
            return False  # a model may understand it
        case intents.AskIntent(_, reference):
            return bool(reference and resolve(reference, tasks()))
        case intents.CancelIntent():
            return is_command(text, tasks, is_program)
        case _:
            return True


def answered_reminder(conversation: Sequence[Message], quote: str | None) -> str | None:
    """The text of the reminder that a message answers: the quoted one, or the latest."""
    for message in reversed(conversation):
        if message.reminder is not None and (not quote or quote in message.text):
            return message.reminder
        if message.role != "system" and not quote:
            return None
    return None


def _hits(hits: Sequence[Hit]) -> str:
    """Excerpts with their sources, without lines of tables."""
    texts = [one_line(_TABLE_LINE.sub("", hit.text), _HIT_CHARACTERS) or "…" for hit in hits]
    found = zip(texts, hits, strict=True)
    return "\n".join(f"- {text} — {code(hit.source)}" for text, hit in found)
