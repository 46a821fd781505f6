"""The prompts of the small model, and its answers: JSON objects of a few forms. Pure.

A small model learns more from examples than from rules, so the rules are few. The constant part of
a prompt comes first, as the server caches it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import from_json

from mimikit.engines.base import TurnInput
from mimikit.language.phrases import Language, say
from mimikit.language.plain_text import plain
from mimikit.protocol.json import table_of, text_of
from mimikit.protocol.models import Message

Body: TypeAlias = dict[str, object]

MAX_TOKENS = 300
_INPUT_BYTES, _TALK_BYTES, _KNOWN_BYTES = 3000, 1500, 1200
"""A token has about three bytes, in English and in Chinese; all must fit into 4096 tokens."""
_MESSAGES = 6
_COMMAND = 180

_LOOP = re.compile(r"(.{2,60}?)\1{3,}", re.DOTALL)
"""The endless repetitions of a small model; they are removed."""


Text = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    AfterValidator(lambda text: _LOOP.sub(r"\1", text)),
    Field(json_schema_extra={"maxLength": 800}),
]


class _ModelAction(BaseModel):
    """Its schema is the grammar of the model's answer."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"additionalProperties": False},
        json_schema_serialization_defaults_required=True,
    )


class TellerAction(_ModelAction):
    """The model's action for a message of the user."""

    action: Literal["reply", "delegate", "remember", "ask"]
    text: Text


class PlannerAction(_ModelAction):
    """The model's command for a request; `when`: its time in the user's words, or empty."""

    action: Literal["command", "cannot"]
    command: Annotated[str, Field(json_schema_extra={"maxLength": _COMMAND})] = ""
    when: Annotated[str, Field(json_schema_extra={"maxLength": 60})] = ""


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_TELLER, _PLANNER = _FILE["teller"], _FILE["planner"]
_RISKY = re.compile(
    r"\brm\s+(-\S+\s+)*-\S*[rf]|--hard|--force|\bmkfs|\bdd\s|\bsudo\b|\bshutdown\b|\breboot\b|\bkill|"
    r"(chmod|chown)\s+-R|\|\s*(sudo\s+)?(ba|z)?sh\b|>\s*/|git\s+(push|clean|reset)|-delete\b|-exec\b"
)
"""Commands that cannot be undone are not proposed."""


def teller_body(turn: TurnInput, text: str, language: Language) -> Body:
    shown = [("user", f"[{language}] {text}") for language, text, _, _ in _TELLER["examples"]]
    answers = [_json(action=action, text=text) for _, _, action, text in _TELLER["examples"]]
    prompt = f"{_known(turn)}[{language}] {_cut(text, _INPUT_BYTES)}"
    return _body(
        _TELLER["instructions"], shown, answers, _talk(turn.conversation), prompt, TellerAction
    )


def planner_body(prompt: str) -> Body:
    shown = [("user", text) for text, _, _, _ in _PLANNER["examples"]]
    answers = [_json(action=a, command=c, when=w) for _, a, c, w in _PLANNER["examples"]]
    return _body(
        _PLANNER["instructions"], shown, answers, [], _cut(prompt, _INPUT_BYTES), PlannerAction
    )


def _body(
    instructions: str,
    shown: Sequence[tuple[str, str]],
    answers: Sequence[str],
    talk: Sequence[tuple[str, str]],
    text: str,
    action: type[_ModelAction],
) -> Body:
    schema = action.model_json_schema(mode="serialization")
    messages = [("system", instructions)]
    for example, answer in zip(shown, answers, strict=True):
        messages += [example, ("assistant", answer)]
    messages += [*talk, ("user", text)]
    return {
        "messages": [{"role": role, "content": text} for role, text in messages],
        "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "seed": 1,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _json(**facts: str) -> str:
    return json.dumps(facts, ensure_ascii=False)


def _talk(conversation: Sequence[Message]) -> list[tuple[str, str]]:
    """The last messages, formatted as the examples."""
    found: list[tuple[str, str]] = []
    left = _TALK_BYTES
    for message in reversed(conversation[-_MESSAGES:]):
        text = _cut(message.text, 400)
        left -= len(text.encode(errors="replace"))
        if left < 0:
            break
        is_user = message.role == "user"
        found.append(("user", text) if is_user else ("assistant", _json(action="reply", text=text)))
    return found[::-1]


def _known(turn: TurnInput) -> str:
    lines = [line for line in turn.user.splitlines() if line.strip()]
    lines += [" ".join(hit.text.split())[:300] for hit in turn.memory]
    known = _cut("\n".join(lines), _KNOWN_BYTES)
    return f"Known:\n{known}\n\n" if known else ""


def _cut(text: str, most: int) -> str:
    return plain(text).encode(errors="replace")[:most].decode(errors="ignore").strip()


# ---- answers


def order_of(action: PlannerAction, language: Language) -> str:
    """The sentence that runs a proposed command at its time; empty when there is none."""
    command, when = " ".join(action.command.split()), " ".join(action.when.split())
    if action.action != "command" or not command or _RISKY.search(command):
        return ""
    if not command.isprintable():  # the user could not see all of it
        return ""
    order = say("local_order", language, command=command)
    order = f"{when}{', ' if language == 'en' else ''}{order}" if when else order
    return order if len(order) <= _COMMAND else ""


def text_so_far(answer: str) -> str:
    """The text of an incomplete reply; empty when there is none, or it is no reply."""
    try:
        found = table_of(from_json(answer, allow_partial="trailing-strings"))
    except ValueError:
        return ""
    return text_of(found, "text") if found.get("action") == "reply" else ""


class ReplyStream:
    """Shows the text of a reply while its JSON is streamed."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._answer, self._shown = show, "", 0

    def add(self, piece: str) -> None:
        self._answer += piece
        text = text_so_far(self._answer)
        if len(text) > self._shown:
            self._show(text[self._shown :])
            self._shown = len(text)
