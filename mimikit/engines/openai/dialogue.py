"""Requests and answers of both APIs. Invalid events of an answer are skipped."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, cast

from mimikit.engines.base import ToolSpec
from mimikit.engines.openai.endpoint import EndpointError
from mimikit.protocol.models import Usage

Api: TypeAlias = Literal["responses", "chat"]
Body: TypeAlias = dict[str, object]

PATHS: dict[Api, str] = {"responses": "/responses", "chat": "/chat/completions"}
DROPPED = "(left out to save room; run it again if you need it)"
_MAX_CALLS = 64
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_DELTA_INTERVAL_S = 0.05
_THINK_START, _THINK_END = "<think>", "</think>"
_CHARACTERS_PER_TOKEN = 3.0


@dataclass(frozen=True, slots=True)
class ModelCall:
    id: str
    name: str
    arguments: str
    """As the model wrote them; may be invalid JSON."""


@dataclass(slots=True)
class ModelAnswer:
    text: str = ""
    thoughts: str = ""
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    usage: Usage = field(default_factory=Usage)
    is_truncated: bool = False
    """It reached the output limit."""
    is_complete: bool = False


@dataclass(slots=True)
class _Entry:
    """An answer, or a tool output."""

    answer: ModelAnswer | None = None
    call_id: str = ""
    output: str = ""


class ModelDialogue:
    """The messages of one run, kept within the context window."""

    def __init__(
        self, instructions: str, prompt: str, tools: Sequence[ToolSpec], window: int | None
    ) -> None:
        """`window`: in tokens; None: unknown."""
        self._instructions, self._prompt, self._tools = instructions, prompt, tools
        self._window = window
        self._entries: list[_Entry] = []

    def add(self, answer: ModelAnswer) -> None:
        self._entries.append(_Entry(answer=answer))

    def add_output(self, call: ModelCall, output: str) -> None:
        self._entries.append(_Entry(call_id=call.id, output=output))

    def tokens(self) -> int:
        """A high estimate."""
        texts = [self._instructions, self._prompt]
        texts += [f"{tool.description}{tool.schema}" for tool in self._tools]
        for entry in self._entries:
            texts.append(entry.output)
            if entry.answer is not None:
                texts += [entry.answer.text, *(call.arguments for call in entry.answer.calls)]
        return int(sum(map(len, texts)) / _CHARACTERS_PER_TOKEN)

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

    def body(self, api: Api, model: str, effort: str | None, cache_key: str) -> Body:
        """The next request, stable parts first, for the prompt cache."""
        if api == "responses":
            body: Body = {
                "model": model,
                "instructions": self._instructions,
                "tools": [
                    {
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.schema,
                        "strict": False,
                    }
                    for tool in self._tools
                ],
                "input": [{"role": "user", "content": self._prompt}, *self._items()],
                "store": False,
                "prompt_cache_key": cache_key,
                **({"reasoning": {"effort": effort}} if effort else {}),
            }
        else:
            body = {
                "model": model,
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": tool.name,
                            "description": tool.description,
                            "parameters": tool.schema,
                        },
                    }
                    for tool in self._tools
                ],
                "messages": [
                    {"role": "system", "content": self._instructions},
                    {"role": "user", "content": self._prompt},
                    *self._messages(),
                ],
                "stream_options": {"include_usage": True},
                **({"reasoning_effort": effort} if effort else {}),
            }
        if not self._tools:
            del body["tools"]
        return body | {"stream": True}

    def _items(self) -> Iterable[Body]:
        for entry in self._entries:
            if (answer := entry.answer) is None:
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
                yield {"role": "tool", "tool_call_id": entry.call_id, "content": entry.output}
                continue
            message: Body = {"role": "assistant", "content": answer.text or None}
            if answer.calls:
                message["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                    }
                    for call in answer.calls
                ]
                if answer.thoughts:  # some models require their thoughts back
                    message["reasoning_content"] = answer.thoughts
            yield message


# ---- reading an answer


class AnswerReader:
    """Assembles one answer from its events; streams its text to `on_delta`."""

    def __init__(self, on_delta: Callable[[str], None], known_ids: set[str]) -> None:
        self._show = _DeltaStream(on_delta)
        self._ids = known_ids
        self._answer = ModelAnswer()
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._parts: dict[int, list[str]] = {}
        """Tool calls of Chat Completions by index: id, name, pieces of the arguments."""

    def read(
        self,
        api: Api,
        events: Iterable[Body],
        failed: Callable[[object], EndpointError],
    ) -> ModelAnswer:
        """The complete answer; `failed` maps an error event. Raises EndpointError."""
        for event in events:
            if api == "chat":
                self._take_chunk(event)
            else:
                self._take_event(event, failed)
        self._show.close()
        answer = self._answer
        if not answer.is_complete:
            message = "the endpoint closed the connection before its answer was complete"
            raise EndpointError("broken", message, is_transient=True)
        for _, (call_id, name, *arguments) in sorted(self._parts.items()):
            self._call(call_id, name, "".join(arguments))
        thoughts, text = _split_thoughts("".join(self._text))
        answer.text = text.strip()
        answer.thoughts = "".join(self._thoughts) or thoughts
        return answer

    def _call(self, call_id: str, name: str, arguments: str) -> None:
        """Add a call under a unique id: models repeat ids, or omit them."""
        if len(self._answer.calls) >= _MAX_CALLS:
            return
        if not _ID.fullmatch(call_id) or call_id in self._ids:
            call_id = f"call_{len(self._ids)}"
        self._ids.add(call_id)
        self._answer.calls.append(ModelCall(call_id, name, arguments))

    def _say(self, text: str) -> None:
        self._text.append(text)
        self._show.add(text)

    def _take_chunk(self, chunk: Body) -> None:
        self._take_usage(chunk.get("usage"), "prompt", "completion")
        for choice in _tables(chunk.get("choices"))[:1]:
            delta = table_of(choice.get("delta"))
            self._thoughts.append(_text(delta, "reasoning_content") or _text(delta, "reasoning"))
            if text := _text(delta, "content"):
                self._say(text)
            for place, call in enumerate(_tables(delta.get("tool_calls"))):
                self._take_part(place, call)
            if reason := choice.get("finish_reason"):
                self._answer.is_complete = True
                self._answer.is_truncated = reason == "length"

    def _take_part(self, place: int, call: Body) -> None:
        index, function = call.get("index"), table_of(call.get("function"))
        number = index if isinstance(index, int) else place
        if number not in self._parts and len(self._parts) >= _MAX_CALLS:
            return
        known = self._parts.setdefault(number, ["", ""])
        known[0] = known[0] or _text(call, "id")
        known[1] = known[1] or _text(function, "name")
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some endpoints send an object
            arguments = json.dumps(arguments)
        if isinstance(arguments, str):
            known.append(arguments)

    def _take_event(self, event: Body, failed: Callable[[object], EndpointError]) -> None:
        kind, response = event.get("type"), table_of(event.get("response"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._say(_text(event, "delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._thoughts.append(_text(event, "delta"))
            case "response.output_item.done":
                item = table_of(event.get("item"))
                if item.get("type") == "function_call":
                    self._call(*(_text(item, key) for key in ("call_id", "name", "arguments")))
            case "response.completed" | "response.incomplete":
                self._take_usage(response.get("usage"), "input", "output")
                details = table_of(response.get("incomplete_details"))
                self._answer.is_complete = True
                self._answer.is_truncated = details.get("reason") == "max_output_tokens"
            case "response.failed" | "error":
                raise failed(response.get("error") or event)
            case _:
                pass

    def _take_usage(self, value: object, input_key: str, output_key: str) -> None:
        counts = table_of(value)
        details = table_of(counts.get(f"{input_key}_tokens_details"))
        more = table_of(counts.get(f"{output_key}_tokens_details"))
        if counts:
            self._answer.usage = Usage(
                input_tokens=_count(counts.get(f"{input_key}_tokens")),
                cached_input_tokens=_count(details.get("cached_tokens")),
                output_tokens=_count(counts.get(f"{output_key}_tokens")),
                reasoning_output_tokens=_count(more.get("reasoning_tokens")),
            )


class _DeltaStream:
    """Streams text in small batches, without leading `<think>` blocks."""

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self._on_delta = on_delta
        self._pending, self._is_thinking = "", True
        self._sent_at = 0.0

    def add(self, text: str) -> None:
        self._pending += text
        if self._is_thinking:
            start = self._pending.lstrip()
            if _THINK_START.startswith(start) or (
                start.startswith(_THINK_START) and _THINK_END not in start
            ):
                self._pending = start[:100_000]
                return
            self._pending, self._is_thinking = _split_thoughts(self._pending)[1].lstrip(), False
        if time.monotonic() - self._sent_at >= _DELTA_INTERVAL_S:
            self._flush()

    def close(self) -> None:
        if not self._is_thinking:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._on_delta(self._pending)
            self._pending, self._sent_at = "", time.monotonic()


def _split_thoughts(text: str) -> tuple[str, str]:
    """The leading `<think>` block, and the text after it."""
    start = text.lstrip()
    if not start.startswith(_THINK_START):
        return "", text
    thoughts, _, rest = start.removeprefix(_THINK_START).partition(_THINK_END)
    return thoughts.strip(), rest


def parsed_arguments(text: str) -> Body | None:
    """None if it is no JSON object. Accepts empty text and JSON within JSON."""
    value: object = text
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return None
    return cast("Body", value) if isinstance(value, dict) else None


def shortened(answer: ModelAnswer, limit: int) -> ModelAnswer:
    """The answer to send back: invalid arguments are cut to `limit` characters."""
    calls = [
        call
        if parsed_arguments(call.arguments) is not None
        else replace(call, arguments=json.dumps({"invalid": call.arguments[:limit]}))
        for call in answer.calls
    ]
    return replace(answer, calls=calls)


def table_of(value: object) -> Body:
    """The value if it is a JSON object, else an empty one."""
    return cast("Body", value) if isinstance(value, dict) else {}


def _tables(value: object) -> list[Body]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Body", item) for item in items if isinstance(item, dict)]


def _text(holder: Body, key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 2**53 else 0
