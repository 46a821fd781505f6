"""The requests of one run, in both APIs."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import UNSEEN_PICTURES, ToolReply, ToolSpec
from mimikit.engines.openai.answer import AnswerReader, Api, Body, ModelAnswer, parsed_arguments
from mimikit.engines.openai.endpoint import EndpointClient
from mimikit.engines.openai.failure import EndpointError
from mimikit.language.plain_text import plain

PATHS: dict[Api, str] = {"responses": "/responses", "chat": "/chat/completions"}
DROPPED = "(left out to save room; run it again if you need it)"
_CHARACTERS_PER_TOKEN = 3.0
_SHOWN_CHARACTERS = 4000
PICTURES = "image_url"
"""The pictures beside the prompt, among the fields that an endpoint may refuse."""
_OPTIONAL: dict[str, str] = {
    PICTURES: r"\bimages?\b|vision|visual|multi-?modal|图片|图像",
    "stream_options": r"include_usage",
    "prompt_cache_key": r"cache_key",
    "store": r"\bstore\b",
    "reasoning": r"reasoning|thinking|effort",
    "reasoning_effort": r"reasoning|thinking|effort",
    "temperature": r"temperature",
    "max_tokens": r"max_?tokens",
    "max_completion_tokens": r"max_?completion",
    "max_output_tokens": r"max_?output",
    "tools": r"\btools?\b|function[ _-]?call",
    "stream": r"\bstream(ing)?\b",
}
"""Fields that an endpoint may refuse, and other words for them in its message."""
_REFUSAL = re.compile(
    r"support|require|unknown|unrecogni[sz]ed|unexpected|permitted|allowed|extra|invalid|"
    r"unavailable|disabled|missing|not available|不支持",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Entry:
    """An answer, a tool output (with the id of its call), or a note to the model."""

    answer: ModelAnswer | None = None
    call_id: str = ""
    output: str = ""


class ModelDialogue:
    """The messages of one run, kept within the context window."""

    def __init__(
        self,
        instructions: str,
        prompt: str,
        tools: Sequence[ToolSpec],
        *,
        window: int | None = None,
        omitted: Collection[str] = (),
        cache_key: str | None = None,
        pictures: Sequence[str] = (),
    ) -> None:
        """`window`: in tokens; None: unknown. `pictures`: data URLs."""
        self._instructions, self._prompt, self._tools = instructions, prompt, tools
        self._window, self._cache_key, self._pictures = window, cache_key, pictures
        self.omitted = frozenset(omitted)
        """Optional fields that the endpoint refuses."""
        self._entries: list[_Entry] = []

    def ask(
        self,
        client: EndpointClient,
        api: Api,
        settings: EndpointSettings,
        reader: Callable[[], AnswerReader],
    ) -> ModelAnswer:
        """The answer; asked again without the fields that are refused. Raises EndpointError."""
        first: EndpointError | None = None
        while True:
            body = self.body(api, settings)
            try:
                with contextlib.closing(client.stream(PATHS[api], body)) as events:
                    return reader().read(api, events, client.stream_error)
            except EndpointError as error:
                if self._fills_window(error):
                    error.trouble = "too_long"
                pictures = dict.fromkeys([PICTURES] if self._shows_pictures else [])
                refused = refused_fields(error, body | pictures)
                if not refused:
                    raise (first if first and error.trouble == "error" else error) from None
                first, self.omitted = first or error, self.omitted | refused

    def _fills_window(self, error: EndpointError) -> bool:
        """Whether a rejected request is likely too long, whatever the endpoint says."""
        is_rejection = error.trouble == "error" and error.status in (400, 422)
        return is_rejection and self._window is not None and self.tokens() > 0.9 * self._window

    @property
    def _shows_pictures(self) -> bool:
        return bool(self._pictures) and PICTURES not in self.omitted

    @property
    def lacks_tools(self) -> bool:
        return bool(self._tools) and "tools" in self.omitted

    def add(self, answer: ModelAnswer) -> None:
        self._entries.append(_Entry(answer=answer))

    def add_output(self, call_id: str, output: str) -> None:
        """`call_id`: empty for a note to the model."""
        self._entries.append(_Entry(call_id=call_id, output=output))

    def characters(self) -> int:
        texts = [self._instructions, self._prompt]
        texts += [f"{tool.description}{tool.schema}" for tool in self._tools]
        for entry in self._entries:
            texts.append(entry.output)
            if entry.answer is not None:
                texts += [entry.answer.text, *(call.arguments for call in entry.answer.calls)]
        return sum(map(len, texts))

    def tokens(self) -> int:
        return int(self.characters() / _CHARACTERS_PER_TOKEN)

    def make_room(self, *, force: bool = False) -> bool:
        """Drop old tool outputs from a full window: half of it, as that breaks the prompt cache."""
        size = self.tokens()
        if not force and (self._window is None or size < 0.8 * self._window):
            return False
        limit = size // 2 if force or self._window is None else self._window // 2
        outputs = [it for it in self._entries if it.answer is None and len(it.output) > 200]
        for entry in outputs[: max(int(force), len(outputs) - 1)]:
            if size <= limit:
                break
            size -= int(len(entry.output) / _CHARACTERS_PER_TOKEN)
            entry.output = DROPPED
        return bool(outputs)

    def body(self, api: Api, settings: EndpointSettings) -> Body:
        """The next request; stable parts first, for the prompt cache."""
        of_chat, omitted, effort = api == "chat", self.omitted, settings.effort
        tools = [_tool(tool, of_chat=of_chat) for tool in self._tools]
        body: Body = {"model": settings.model}
        if not of_chat:
            body["instructions"] = self._instructions
        if tools and "tools" not in omitted:
            body["tools"] = tools
        if of_chat:
            limit = "max_completion_tokens" if "max_tokens" in omitted else "max_tokens"
            body["messages"] = [
                {"role": "system", "content": self._instructions},
                {"role": "user", "content": self._content(of_chat=True)},
                *self._messages(),
            ]
            more: Body = {
                "stream_options": None if "stream" in omitted else {"include_usage": True},
                "reasoning_effort": effort,
            }
        else:
            limit = "max_output_tokens"
            first: Body = {"role": "user", "content": self._content(of_chat=False)}
            body["input"] = [first, *self._items()]
            more = {
                "store": False,
                "prompt_cache_key": self._cache_key,
                "reasoning": {"effort": effort} if effort else None,
            }
        more |= {"temperature": settings.temperature, limit: settings.max_tokens, "stream": True}
        return body | {
            key: value for key, value in more.items() if value is not None and key not in omitted
        }

    def _content(self, *, of_chat: bool) -> str | list[Body]:
        """The prompt, with the pictures or a note that they are not shown."""
        if not self._shows_pictures:
            return f"{self._prompt}\n\n{UNSEEN_PICTURES}" if self._pictures else self._prompt
        kind = "text" if of_chat else "input_text"
        shown: list[Body] = [{"type": kind, "text": self._prompt}]
        for url in self._pictures:
            chat: Body = {"type": "image_url", "image_url": {"url": url}}
            shown.append(chat if of_chat else {"type": "input_image", "image_url": url})
        return shown

    def _items(self) -> Iterable[Body]:
        for entry in self._entries:
            if (answer := entry.answer) is None:
                if not entry.call_id:
                    yield {"role": "user", "content": entry.output}
                    continue
                yield {
                    "type": "function_call_output",
                    "call_id": entry.call_id,
                    "output": entry.output,
                }
                continue
            if answer.text:
                yield {"role": "assistant", "content": answer.text}
            for call in answer.calls:
                yield {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                }

    def _messages(self) -> Iterable[Body]:
        for entry in self._entries:
            if (answer := entry.answer) is None:
                if entry.call_id:
                    yield {"role": "tool", "tool_call_id": entry.call_id, "content": entry.output}
                else:
                    yield {"role": "user", "content": entry.output}
                continue
            message: Body = {"role": "assistant", "content": answer.text or None, **answer.extra}
            if answer.calls:
                message["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                        **call.extra,
                    }
                    for call in answer.calls
                ]
                if answer.thoughts:  # some models require their thoughts back
                    message["reasoning_content"] = answer.thoughts
            yield message


def tool_facts(id_: str, name: str, reply: ToolReply) -> Body:
    facts: Body = {"tool": name[:100], "id": id_}
    if reply.ok:
        return facts | {"status": "completed"}
    return facts | {"status": "failed", "error": plain(reply.text)[:_SHOWN_CHARACTERS]}


def _tool(tool: ToolSpec, *, of_chat: bool) -> Body:
    facts: Body = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return (
        {"type": "function", "function": facts}
        if of_chat
        else {"type": "function", **facts, "strict": False}
    )


def refused_fields(error: EndpointError, body: Body) -> set[str]:
    """The optional fields of a refused request to leave out next. Pure.

    Those the error names; else all but the tools, and then the tools.
    """
    optional = [name for name in _OPTIONAL if name in body]
    words = error.words
    named = {name for name in optional if re.search(rf"\b{name}\b", words, re.IGNORECASE)}
    named = named or {name for name in optional if re.search(_OPTIONAL[name], words, re.IGNORECASE)}
    if error.status in (400, 422) and error.trouble == "error":
        rest = {name for name in optional if name not in ("tools", "stream")}
        return named or rest or ({"tools"} & set(optional))
    is_possible = error.trouble in ("error", "broken", "absent", "unknown_model")
    return named if is_possible and _REFUSAL.search(words) else set()


def shortened(answer: ModelAnswer, limit: int) -> ModelAnswer:
    """The answer to send back: invalid arguments are cut to `limit` characters."""
    calls = [
        call
        if parsed_arguments(call.arguments) is not None
        else replace(call, arguments=json.dumps({"invalid": call.arguments[:limit]}))
        for call in answer.calls
    ]
    return replace(answer, calls=calls)
