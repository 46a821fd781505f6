"""One run at an endpoint: the tool loop, retries, and what ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field

from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import (
    CancelToken,
    Done,
    Failed,
    Outcome,
    RunSpec,
    ToolReply,
    ToolSpec,
    ends_turn,
    stop_outcome,
)
from mimikit.engines.openai.answer import (
    SPENT_ON_THOUGHTS,
    AnswerReader,
    Api,
    ModelAnswer,
    ModelCall,
    calls_in_text,
    looks_like_call,
    parsed_arguments,
)
from mimikit.engines.openai.dialogue import PICTURES, ModelDialogue, shortened, tool_facts
from mimikit.engines.openai.endpoint import EndpointClient
from mimikit.engines.openai.failure import EndpointError
from mimikit.engines.openai.profile import EndpointProfile
from mimikit.errors import EngineError
from mimikit.language import phrases
from mimikit.language.plain_text import plain
from mimikit.protocol.models import Role, Usage

_MAX_ROUNDS: dict[Role, int] = {"teller": 12, "planner": 40, "worker": 250}
_MAX_EQUAL_FAILURES, _MAX_FAILURES = 3, 8
"""Rounds in a row without a tool call that succeeds."""
_TRIES = 4
BACKOFF_S = (0.5, 1.0, 2.0)
_SHOWN_CHARACTERS = 4000
_ARGUMENT_CHARACTERS = 2000
_MIN_CUT_TOKENS, _MAX_CHARACTERS_PER_TOKEN = 2000, 6.0
_CUT_CALL = (
    "arguments: they were cut off at the output limit; make them shorter, or make several calls"
)
_NO_CALLS_AS_TEXT = (
    "Your message was a tool call written as text, which is not carried out. Use the tool calls of "
    "this API with the arguments they require, or answer in plain words."
)

Call = Callable[[str, dict[str, object]], ToolReply]


@dataclass
class EndpointRun:
    request: RunSpec
    name: str
    settings: EndpointSettings
    """With the model and effort of this run."""
    deadline_s: float
    """Of the monotonic clock."""
    on_omitted: Callable[[frozenset[str]], None]
    """Called with the optional fields that the model refuses."""
    has_warned: bool
    """That the endpoint cuts prompts: once is enough."""
    stop: CancelToken = field(default_factory=CancelToken)
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    requests: int = 0
    acted: bool = False
    advice: list[str] = field(default_factory=list[str])
    """Phrases for the user."""
    _tries: int = 0
    """Retries of the current request."""

    @property
    def model(self) -> str:
        return self.settings.model

    def left_s(self) -> float:
        return max(0.0, self.deadline_s - time.monotonic())

    def stopped(self) -> Outcome | None:
        return stop_outcome(self.stop.reason, self.text) if self.stop.reason else None

    def execute(
        self,
        client: EndpointClient,
        profile: EndpointProfile,
        specs: tuple[ToolSpec, ...],
        call_tool: Call,
    ) -> Outcome:
        """The tool loop: ask, call tools, repeat. Raises EndpointError."""
        request, vision = self.request, self.settings.vision
        omitted = set(profile.omitted)
        if vision is not None:
            omitted = omitted - {PICTURES} if vision else omitted | {PICTURES}
        dialogue = ModelDialogue(
            request.instructions,
            request.prompt,
            specs,
            window=profile.window,
            omitted=omitted,
            cache_key=f"mimikit-{request.role}",
            pictures=[file.picture for file in request.input.pictures],
        )
        self._check_tools(dialogue)
        known_ids: set[str] = set()
        failures: list[str] = []
        for _ in range(_MAX_ROUNDS[request.role]):
            dialogue.make_room()
            answer = self._ask(client, profile.api, dialogue, known_ids)
            self._check_tools(dialogue)
            if (stopped := self.stopped()) is not None:
                return stopped
            if not answer.calls and (calls := calls_in_text(answer.text, specs)):
                answer.calls, answer.text = calls, ""
            if not answer.calls and not looks_like_call(answer.text):
                return self._ended(answer)
            dialogue.add(shortened(answer, _ARGUMENT_CHARACTERS))
            if not answer.calls:
                dialogue.add_output("", _NO_CALLS_AS_TEXT)
                failures.append("its tool calls are text that cannot be carried out")
            else:
                replies = [(call, self._call(call, call_tool, answer)) for call in answer.calls]
                if (stopped := self.stopped()) is not None:
                    return stopped
                for call, reply in replies:
                    text = reply.text if reply.ok else f"error: {reply.text}"
                    dialogue.add_output(call.id, text)
                if ends_turn([reply for _, reply in replies]):
                    return self._done(answer.text)
                is_progress = any(reply.ok for _, reply in replies)
                failures = [] if is_progress else [*failures, replies[0][1].text]
            if _is_stuck(failures):
                return self._stuck(failures)
        message = f"ended: not done after {_MAX_ROUNDS[request.role]} requests to the model"
        if request.role == "teller" and self.text:
            return Done(self.text)
        return Failed("error", message, self.text)

    def _check_tools(self, dialogue: ModelDialogue) -> None:
        """Only the Teller can do without tools. Raises EngineError."""
        if dialogue.lacks_tools and self.request.role != "teller":
            raise EngineError(
                f"the model {self.model} of {self.name} takes no tools, so it can only talk; "
                "choose another for work: `mimikit engine order NAME --for standard`"
            )

    def _ended(self, answer: ModelAnswer) -> Outcome:
        text = answer.text or self.text
        if answer.finish == "content_filter" and not answer.text:
            raise EndpointError("refused", f"the content filter of {self.name} withheld the answer")
        if answer.is_spent_on_thoughts:
            return Failed("error", f"the thinking of {self.model} {SPENT_ON_THOUGHTS}")
        if answer.finish != "stop":
            key = "cut_short" if answer.is_truncated else "cut_by_filter"
            text = f"{text}\n\n{self._say(key)}".strip()
        if text or (self.acted and self.request.role != "worker"):
            return self._done(text)
        what = "with thoughts only" if answer.thoughts else "without an answer"
        return Failed("error", f"the model ended the turn {what}; try again")

    def _done(self, text: str) -> Outcome:
        return Done(text, notices=tuple(map(self._say, self.advice)))

    def _say(self, key: str) -> str:
        facts = {"engine": self.name, "model": self.model}
        return phrases.say(key, self._language(), **facts)

    def _stuck(self, failures: list[str]) -> Outcome:
        """Ended without progress; a Teller says so itself, as a second attempt would not help."""
        error = failures[-1]
        message = f"{self.model} made no progress in {len(failures)} rounds: {error}"
        if self.request.role == "teller":
            said = phrases.say("model_stuck", self._language(), model=self.model, error=error)
            return Done("\n\n".join(filter(None, [self.text, said])))
        return Failed("error", message, self.text)

    def _language(self) -> phrases.Language:
        given = self.request.input
        return phrases.language("\n".join(item.text for item in given.inputs), given.locale)

    # ---- asking

    def _ask(
        self, client: EndpointClient, api: Api, dialogue: ModelDialogue, known_ids: set[str]
    ) -> ModelAnswer:
        """The next answer; transient errors are retried. Raises EndpointError."""
        on_event = self.request.callbacks.on_event

        def reader() -> AnswerReader:
            self.requests += 1
            return AnswerReader(
                lambda text: on_event("delta", text, {}),
                known_ids,
                lambda: on_event("reset", "", {}),
            )

        known = dialogue.omitted
        while True:
            try:
                answer = dialogue.ask(client, api, self.settings, reader)
                break
            except EndpointError as error:
                if self.stop.reason or not self._wait_to_retry(error, dialogue):
                    raise
                is_teller = self.request.role == "teller"
                note = phrases.say("note_again", self._language())
                on_event("note", note if is_teller else f"retrying: {error}", {})
        self._learn(dialogue, answer, dialogue.omitted - known)
        self._record_answer(answer)
        return answer

    def _learn(self, dialogue: ModelDialogue, answer: ModelAnswer, refused: Set[str]) -> None:
        """Remember refused fields; notice a prompt of which far fewer tokens were counted."""
        if refused:
            self.on_omitted(dialogue.omitted)
        if "tools" in refused:
            self.advice.append("model_without_tools")
        read = answer.usage.input_tokens + answer.usage.cached_input_tokens
        sent = dialogue.characters() / _MAX_CHARACTERS_PER_TOKEN
        if 0 < 2 * read < sent and sent > _MIN_CUT_TOKENS and not self.has_warned:
            self.has_warned = True
            self.advice.append("prompt_is_cut")

    def _wait_to_retry(self, error: EndpointError, dialogue: ModelDialogue) -> bool:
        """Back off, or drop tool outputs; whether a retry may help."""
        if self._tries == _TRIES - 1:
            return False
        wait_s = BACKOFF_S[min(self._tries, len(BACKOFF_S) - 1)]
        self._tries += 1
        if error.trouble == "too_long":
            return self.acted and dialogue.make_room(force=True)
        if not error.is_transient or error.until is not None:
            return False
        return not self.stop.wait(min(wait_s, self.left_s()))

    def _record_answer(self, answer: ModelAnswer) -> None:
        self._tries = 0
        self.usage = self.usage + answer.usage
        if self.usage.tokens:
            self.request.callbacks.on_event("usage", "", self.usage.to_dict())
        if answer.thoughts.strip():
            shown = plain(answer.thoughts.strip())[:_SHOWN_CHARACTERS]
            self.request.callbacks.on_event("note", shown, {"reasoning": True})
        if answer.text and not looks_like_call(answer.text):
            self.text = answer.text
            self.request.callbacks.on_event("message", plain(answer.text), {})

    def _call(self, call: ModelCall, call_tool: Call, answer: ModelAnswer) -> ToolReply:
        if self.stop.reason:
            return ToolReply(False, "the run is over")
        given = parsed_arguments(call.arguments)
        if given is None:
            wrong = "arguments: expected one JSON object, got something else"
            reply = ToolReply(False, _CUT_CALL if answer.is_truncated else wrong)
        else:
            self.acted = True
            self.request.cancel.has_begun = True
            reply = call_tool(call.name, given)
        facts = tool_facts(call.id, call.name, reply)
        if self.request.role != "worker":  # a Worker's tools report their own events
            self.request.callbacks.on_event("tool", call.name[:100], facts)
        return reply


def _is_stuck(failures: list[str]) -> bool:
    last = failures[-_MAX_EQUAL_FAILURES:]
    is_equal = len(last) == _MAX_EQUAL_FAILURES and len(set(last)) == 1
    return is_equal or len(failures) >= _MAX_FAILURES
