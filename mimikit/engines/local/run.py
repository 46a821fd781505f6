"""Runs the small model: it chooses an action, code carries it out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pydantic import ValidationError

from mimikit import permission
from mimikit.engines.base import CancelToken, Done, Outcome, RunSpec
from mimikit.engines.builtin import grammar, intents, planner, references
from mimikit.engines.builtin.planner import call_tool, title_of
from mimikit.engines.builtin.shell_lines import IsProgram
from mimikit.engines.local import dialogue
from mimikit.engines.local.dialogue import Body, PlannerAction, TellerAction
from mimikit.engines.openai.failure import EndpointError
from mimikit.language import phrases
from mimikit.language.phrases import Language, paragraphs, say
from mimikit.protocol.models import InboxItem, Usage

Action = TypeVar("Action", TellerAction, PlannerAction)
Ask = Callable[[Body, RunSpec, CancelToken, Callable[[str], None]], tuple[str, Usage]]


class LocalRun:
    def __init__(self, request: RunSpec, is_program: IsProgram, ask: Ask) -> None:
        self._request, self._is_program, self._ask = request, is_program, ask
        self._until_s = time.monotonic() + request.timeout_s
        self.stop = CancelToken()
        self.usage = Usage()
        self.acted = False

    # ---- Teller

    def tell(self) -> Outcome:
        request, parts = self._request, list[str]()
        locale = request.input.locale
        for item in request.input.inputs:
            language = phrases.language(item.text, item.locale or locale)
            unread = [ref for ref in item.files if ref.kind != "text"]
            parts += [self._answer(item, language), references.unread(unread, language)]
            self.acted = True
        if results := request.input.results:
            parts.append(phrases.results(results, phrases.language("", locale)))
        return Done(paragraphs(*parts))

    def _answer(self, item: InboxItem, language: Language) -> str:
        """Carry out the model's action for one message; returns the reply."""
        request, text = self._request, item.text
        question = request.input.question
        if question is not None and item.question_id == question.question_id:
            text = f"{question.question}\n{text}"
        own = [file for file in request.input.attachments if file.text and file.ref in item.files]
        text = "\n\n".join([text, *(f"{file.ref.name}:\n{file.text}" for file in own)])
        show = dialogue.ReplyStream(lambda piece: request.callbacks.on_event("delta", piece, {}))
        body = dialogue.teller_body(request.input, text, language)
        action = self._ask_model(TellerAction, body, show.add)
        match action.action:
            case "delegate":
                arguments = {"prompt": item.text, "title": title_of(item.text)}
                reply = call_tool(request, "delegate", arguments)
                key = "local_delegated"
            case "remember":
                # The user's own words: a small model may change what they mean.
                reply = call_tool(request, "remember", {"content": item.text, "longTerm": True})
                key = "local_remembered"
            case "ask":
                reply = call_tool(request, "ask_user", {"question": action.text})
                return "" if reply.ok else action.text
            case "reply":
                return action.text
        return say(key, language) if reply.ok else action.text

    # ---- Planner

    def plan(self) -> Outcome:
        """Plan a request that code understands; else propose a command, or decline."""
        request, task = self._request, self._request.input.task
        if task is None or _is_declined(task.prompt):
            language = phrases.language(task.prompt if task else "", request.input.locale)
            return Done(say("local_declined", language))
        intent = grammar.parse(task.prompt, self._is_program)
        if isinstance(intent, intents.Commanding):
            return self._propose(task.prompt.strip(), intent)
        if not isinstance(intent, intents.PlainSentence):
            return planner.plan(request, self._is_program)
        language = phrases.language(task.prompt, request.input.locale)
        action = self._ask_model(
            PlannerAction, dialogue.planner_body(task.prompt), lambda _text: None
        )
        order = dialogue.order_of(action, language)
        intent = grammar.parse(order, self._is_program) if order else None
        if not isinstance(intent, intents.Commanding):
            return Done(say("local_cannot", language))
        return self._propose(order, intent)

    def _propose(self, order: str, intent: intents.Commanding) -> Outcome:
        """Ask the user whether to run a command; `order` is a sentence that code understands."""
        request = self._request
        language = planner.sentence_language(order, intent, request.input.locale)
        arguments = {
            "question": say(
                "local_proposes", language, command=phrases.fence(intent.command, "sh")
            ),
            "options": [order, say("local_no", language)],
        }
        reply = call_tool(request, "needs_input", arguments)
        return Done("" if reply.ok else say("local_cannot", language))

    # ---- the model

    def _ask_model(self, kind: type[Action], body: Body, show: Callable[[str], None]) -> Action:
        """The model's action; EndpointError or EngineError when it fails."""
        request = replace(self._request, timeout_s=max(0.0, self._until_s - time.monotonic()))
        text, usage = self._ask(body, request, self.stop, show)
        self.usage = self.usage + usage
        try:
            return kind.model_validate_json(text)
        except ValidationError:  # cut off at the limit of tokens
            if (words := dialogue.text_so_far(text)) and kind is TellerAction:
                return kind.model_validate({"action": "reply", "text": words})
            reason = "the small model gave no valid answer; ask in other words"
            raise EndpointError("error", reason) from None


def _is_declined(prompt: str) -> bool:
    answer = prompt.rpartition("\nThe user answered: ")[2].strip().casefold()
    return answer in permission.NO | {say("local_no", it).casefold() for it in ("en", "zh")}
