"""Reads answers of Chat Completions and Responses, in the shapes that endpoints send them."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from mimikit.engines.base import ToolSpec
from mimikit.engines.openai.failure import EndpointError
from mimikit.language.plain_text import whole_characters
from mimikit.protocol.json import count_of, table_of, tables_of, text_of
from mimikit.protocol.models import Usage

Api: TypeAlias = Literal["responses", "chat"]
Body: TypeAlias = dict[str, object]

Finish: TypeAlias = Literal["", "stop", "length", "content_filter"]
_FINISHES: dict[str, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("content_filter", "SAFETY", "sensitive"), "content_filter"),
}
SPENT_ON_THOUGHTS = (
    "used up the output limit before an answer: set `max_tokens` higher, or `effort` lower"
)
_MAX_CALLS = 64
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_DELTA_INTERVAL_S = 0.05


@dataclass(slots=True)
class ModelCall:
    id: str = ""
    name: str = ""
    arguments: str = ""
    """As the model wrote them; may be invalid JSON."""
    extra: Body = field(default_factory=dict[str, object])
    """Unknown fields of the call, which some endpoints require back."""


@dataclass(slots=True)
class ModelAnswer:
    text: str = ""
    thoughts: str = ""
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    usage: Usage = field(default_factory=Usage)
    finish: Finish = ""
    """Why it ended; empty: it was cut off."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    """Unknown fields of the message that must be sent back."""

    @property
    def is_truncated(self) -> bool:
        return self.finish == "length"

    @property
    def is_spent_on_thoughts(self) -> bool:
        return self.is_truncated and not self.text and not self.calls


class AnswerReader:
    """Assembles one answer from its events; streams its text to `on_delta`."""

    def __init__(
        self,
        on_delta: Callable[[str], None],
        known_ids: set[str],
        on_reset: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_reset`: the deltas so far are withdrawn."""
        self._show = _DeltaStream(on_delta, on_reset)
        self._ids = known_ids
        self._answer = ModelAnswer()
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ModelCall] = []
        self._by_index: dict[int, ModelCall] = {}
        self._extra: Body = {}

    def read(
        self, api: Api, events: Iterable[Body | None], failed: Callable[[object], EndpointError]
    ) -> ModelAnswer:
        """The whole answer; None among the events is `[DONE]`. `failed` maps an error event.

        Raises EndpointError, after which the deltas are withdrawn.
        """
        try:
            for event in events:
                if event is None:
                    self._end("stop")
                    continue
                if _is_error(event):
                    raise failed(event)
                if api == "chat":
                    self._take_chunk(event)
                else:
                    self._take_event(event, failed)
        except EndpointError:
            self._show.reset()
            raise
        if not self._answer.finish:
            self._show.reset()
            message = "the endpoint closed the connection before its answer was complete"
            raise EndpointError("broken", message, is_transient=True)
        return self._whole()

    def _whole(self) -> ModelAnswer:
        answer = self._answer
        for call in self._calls:
            self._add_call(call)
        thoughts, text = split_thoughts(_END_TOKENS.sub("", whole_characters("".join(self._text))))
        answer.text, answer.extra = text.strip(), self._extra
        answer.thoughts = "".join(self._thoughts) or thoughts
        self._show.close(answer.text)
        return answer

    def _end(self, reason: object) -> None:
        """The first reason counts: `[DONE]` follows it."""
        if not self._answer.finish:
            self._answer.finish = _FINISHES.get(str(reason), "stop")

    def _add_call(self, call: ModelCall) -> None:
        """Add a call under a unique id: models repeat ids, or omit them."""
        if len(self._answer.calls) >= _MAX_CALLS:
            return
        if not _ID.fullmatch(call.id) or call.id in self._ids:
            call.id = f"call_{len(self._ids)}"
        self._ids.add(call.id)
        name = re.split(r"<\||[\s(]|:\d+\Z", call.name.strip(), maxsplit=1)[0]
        call.name = re.split(r"[.:/]", name)[-1]
        call.arguments = call.arguments.strip() or "{}"
        if re.search(r"[\0-\x1f]", call.arguments):  # a raw line break within a text
            with contextlib.suppress(ValueError, RecursionError):
                call.arguments = json.dumps(json.loads(call.arguments, strict=False))
        self._answer.calls.append(call)

    def _say(self, text: str) -> None:
        self._text.append(text)
        self._show.add(text)

    # ---- Chat Completions

    def _take_chunk(self, chunk: Body) -> None:
        self._take_usage(chunk.get("usage"), "prompt", "completion")
        for choice in tables_of(chunk.get("choices"))[:1]:
            self._take_usage(choice.get("usage"), "prompt", "completion")
            is_repeated = bool(self._text or self._calls)  # the whole answer after its deltas
            whole = {} if is_repeated else table_of(choice.get("message"))
            message = table_of(choice.get("delta")) or whole
            for name in ("reasoning_content", "reasoning", "reasoning_text", "thinking"):
                if thoughts := _parts(message.get(name))[0]:
                    self._thoughts.append(thoughts)
                    break
            if details := message.get("reasoning_details"):
                known = cast("list[object]", self._extra.setdefault("reasoning_details", []))
                known += cast("list[object]", details) if isinstance(details, list) else [details]
            text, thoughts = _parts(message.get("content") or choice.get("text"))
            self._thoughts.append(thoughts)
            if text := text + text_of(message, "refusal"):
                self._say(text)
            calls = tables_of(message.get("tool_calls"))
            if old := table_of(message.get("function_call")):
                calls.append({"index": 0, "function": old})
            for place, call in enumerate(calls):
                self._take_call(place, call)
            if reason := choice.get("finish_reason"):
                self._end(reason)

    def _take_call(self, place: int, piece: Body) -> None:
        function, index = table_of(piece.get("function")), piece.get("index")
        id_, name = text_of(piece, "id"), text_of(function, "name")
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):  # some endpoints send an object
            arguments = json.dumps(arguments)
        number = index if isinstance(index, int) else place
        call = self._by_index.get(number)
        if not isinstance(index, int) and id_:
            call = next((one for one in self._calls if one.id == id_), call)
        if call is None or _begins_another(call, id_, name):
            if len(self._calls) >= _MAX_CALLS:
                return
            call = ModelCall()
            self._calls.append(call)
        self._by_index[number] = call
        call.id, call.name = call.id or id_, call.name or name
        call.arguments += arguments if isinstance(arguments, str) else ""
        call.extra |= {k: v for k, v in piece.items() if k not in _CALL_FIELDS}

    # ---- Responses

    def _take_event(self, event: Body, failed: Callable[[object], EndpointError]) -> None:
        kind, response = event.get("type"), table_of(event.get("response"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._say(text_of(event, "delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._thoughts.append(text_of(event, "delta"))
            case "response.output_item.done":
                self._take_item(table_of(event.get("item")), has_deltas=bool(self._text))
            case "response.completed" | "response.incomplete":
                self._take_response(response)
            case "response.failed" | "error":
                raise failed(response.get("error") or event)
            case _ if "output" in event:  # not streamed
                self._take_response(event)
            case _:
                pass

    def _take_response(self, response: Body) -> None:
        if not self._text and not self._calls:
            for item in tables_of(response.get("output")):
                self._take_item(item, has_deltas=False)
        self._take_usage(response.get("usage"), "input", "output")
        self._end(table_of(response.get("incomplete_details")).get("reason"))

    def _take_item(self, item: Body, *, has_deltas: bool) -> None:
        if item.get("type") == "message" and not has_deltas:
            self._say(_parts(item.get("content"))[0])
        if item.get("type") == "function_call":
            arguments = item.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            self._calls.append(ModelCall(text_of(item, "call_id"), text_of(item, "name"), text))

    def _take_usage(self, value: object, input_key: str, output_key: str) -> None:
        """The largest sum: some endpoints count thoughts in the total only."""
        counts = table_of(value)
        details = counts.get(f"{input_key}_tokens_details")
        more = table_of(counts.get(f"{output_key}_tokens_details"))
        if not counts:
            return
        read = count_of(counts, f"{input_key}_tokens")
        thought = count_of(more if "reasoning_tokens" in more else counts, "reasoning_tokens")
        written = count_of(counts, f"{output_key}_tokens")
        written = max(written, count_of(counts, "total_tokens") - read)
        cached = count_of(details, "cached_tokens") or count_of(counts, "prompt_cache_hit_tokens")
        usage = Usage(
            input_tokens=read,
            cached_input_tokens=min(read, cached),
            output_tokens=written if written >= thought else written + thought,
            reasoning_output_tokens=thought,
        )
        if usage.tokens >= self._answer.usage.tokens:
            self._answer.usage = usage


_CALL_FIELDS = frozenset({"index", "id", "type", "function"})


def _begins_another(call: ModelCall, id_: str, name: str) -> bool:
    """Whether a piece begins another call: some endpoints give all calls one index."""
    if id_ and call.id and id_ != call.id:
        return bool(name) or is_json(call.arguments)
    return bool(name and call.name and not id_) and (name != call.name or is_json(call.arguments))


def _is_error(event: Body) -> bool:
    if choices := tables_of(event.get("choices")):
        return any(choice.get("finish_reason") == "error" for choice in choices)
    status = table_of(event.get("base_resp")).get("status_code")
    return bool(event.get("error")) or status not in (None, 0)


def _parts(value: object) -> tuple[str, str]:
    """Text and thoughts of a content: a text, a part, or a list of parts."""
    if isinstance(value, str):
        return value, ""
    if isinstance(value, dict):
        part = cast("Body", value)
        if thoughts := part.get("thinking"):
            return "", _parts(thoughts)[0]
        is_thought = part.get("type") in ("thinking", "reasoning")
        inner = _parts(next((part[k] for k in ("text", "content", "refusal") if part.get(k)), ""))
        return ("", inner[0]) if is_thought else inner
    if isinstance(value, list):
        found = [_parts(one) for one in cast("list[object]", value)]
        return "".join(text for text, _ in found), "".join(thoughts for _, thoughts in found)
    return "", ""


# ---- thoughts within the text

_MARK = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|seed:think|reflection)"
_BLOCK = re.compile(rf"(?:^|(?<=\n))\s*<({_MARK})>(.*?)(?:</\1>\s*|\Z)", re.DOTALL | re.IGNORECASE)
_ADJACENT = re.compile(rf"\A\s*<({_MARK})>(.*?)(?:</\1>\s*|\Z)", re.DOTALL | re.IGNORECASE)
_ORPHAN = re.compile(rf"\A(.*?)(?<!`)</{_MARK}>(?!`)\s*", re.DOTALL | re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>(.*?)(?=<\|(?:end|return|start|channel|call)\|>|\Z)",
    re.DOTALL,
)
_END_TOKENS = re.compile(r"(?:\s|<\|(?:im_end|endoftext|eot_id)\|>|</s>|<end_of_turn>)+\Z")
_HARMONY = "<|channel|>"
_FENCE = "```"


def split_thoughts(text: str) -> tuple[str, str]:
    """The thoughts in a text, and the text without them."""
    if _HARMONY in text:
        channels = _CHANNEL.findall(text)
        final = "".join(words for channel, words in channels if channel == "final")
        rest = "".join(words for channel, words in channels if channel != "final")
        if channels:
            return rest.strip(), final
    thoughts: list[str] = []
    while found := _ADJACENT.match(text):
        thoughts.append(found[2].strip())
        text = text[found.end() :]
    fence = text.find(_FENCE)
    head, tail = (text, "") if fence < 0 else (text[:fence], text[fence:])
    if "<" in head:
        thoughts += [block[1].strip() for block in _BLOCK.findall(head)]
        head = _BLOCK.sub("", head)
        if found := _ORPHAN.match(head):
            thoughts.append(found[1].strip())
            head = head[found.end() :]
    return "\n\n".join(filter(None, thoughts)), head + tail


_MAYBE_CALL = re.compile(r"(?:\{|\[\s*(?:\{|T|\Z)|<(?:[tf|/]|\Z)|`{1,3}\w*\s*(?:[{\[<]|\Z))")
_PARTIAL_MARK = re.compile(r"(?:\A|\n)\s*<[^\n>]*\Z")


class _DeltaStream:
    """Streams text in small batches, without thoughts and what may become a tool call."""

    def __init__(self, on_delta: Callable[[str], None], on_reset: Callable[[], None]) -> None:
        self._on_delta, self._on_reset = on_delta, on_reset
        self._pieces: list[str] = []
        self._shown, self._shown_at = "", 0.0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        if time.monotonic() - self._shown_at < _DELTA_INTERVAL_S:
            return
        text = split_thoughts(whole_characters("".join(self._pieces)))[1].lstrip()
        if not _MAYBE_CALL.match(text):
            self._show(_PARTIAL_MARK.sub("", text).rstrip())

    def close(self, text: str) -> None:
        self._show("" if looks_like_call(text) else text)

    def reset(self) -> None:
        if self._shown:
            self._on_reset()
        self._shown = ""

    def _show(self, text: str) -> None:
        if not text.startswith(self._shown):
            self.reset()
        if rest := text[len(self._shown) :]:
            self._on_delta(rest)
        self._shown, self._shown_at = text, time.monotonic()


# ---- tool calls that a model writes as text

_WRAPPERS = (
    re.compile(r"<tool_calls?>\s*(.*?)\s*(?:</tool_calls?>|\Z)", re.DOTALL),
    re.compile(r"\[TOOL_CALLS\]\s*(.*)", re.DOTALL),
    re.compile(r"<\|python_tag\|>\s*(.*)", re.DOTALL),
    re.compile(r"```(?:json|tool_call|tool_code)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL),
)
_XML = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_XML_ARGUMENT = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_NAMED = re.compile(
    r"<\|tool_call_begin\|>\s*(?:functions\.)?([\w-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
    r"\s*(.*?)\s*<\|tool_call_end\|>",
    re.DOTALL,
)
_CALL_START = re.compile(
    r"\s*(?:```\w*\s*)?(?:<tool_calls?>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|<\|tool_call"
    r'|\[?\s*\{\s*"(?:name|type|function|tool)"\s*:)'
)


def looks_like_call(text: str) -> bool:
    if not _CALL_START.match(text):
        return False
    return bool(_written_calls(text)) or not text.lstrip().startswith(("{", "[{", "```"))


def calls_in_text(text: str, specs: Sequence[ToolSpec]) -> list[ModelCall]:
    """The calls of known tools with the required arguments; empty unless they are all of it."""
    if not _CALL_START.match(text):
        return []
    known = {spec.name: spec.schema for spec in specs}
    calls: list[ModelCall] = []
    for number, (written, given) in enumerate(_written_calls(text)):
        name = written.rpartition(".")[2]
        needed = cast("list[str]", known.get(name, {}).get("required", []))
        if name not in known or any(key not in given for key in needed):
            return []
        calls.append(ModelCall(f"text_{number}", name, json.dumps(given)))
    return calls


def _written_calls(text: str) -> list[tuple[str, Body]]:
    """Name and arguments of each; empty if any of the text is something else."""
    if xml := _XML.findall(text):
        return [(name, dict(_XML_ARGUMENT.findall(inner))) for name, inner in xml]
    if named := _NAMED.findall(text):
        pairs = [(name, parsed_arguments(given)) for name, given in named]
        return [(name, given) for name, given in pairs if given is not None]
    inner = [text]
    for wrapper in _WRAPPERS:
        if wrapper.match(text.strip()):
            inner = wrapper.findall(text.strip())
            break
    found: list[tuple[str, Body]] = []
    for piece in inner:
        try:
            value: object = json.loads(piece)
        except (ValueError, RecursionError):
            return []
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            table = table_of(one)
            table = table_of(table.get("function")) or table
            name = table.get("name") or table.get("tool")
            given = table.get("arguments", table.get("parameters"))
            given = parsed_arguments(given) if isinstance(given, str) else given
            if not isinstance(name, str) or not isinstance(given, dict):
                return []
            found.append((name, cast("Body", given)))
    return found


# ---- JSON


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


def is_json(text: str) -> bool:
    return bool(text.strip()) and parsed_arguments(text) is not None
