"""Why a reply says what it says: what its turn, or a task's run, was told, given and called."""

from __future__ import annotations

import re
import threading
from typing import Annotated, TypedDict

from pydantic import AfterValidator, Field, ValidationError

from mimikit.config import Settings
from mimikit.conversation.turn_prompts import TurnPrompt
from mimikit.engines.registry import CODE_ENGINES
from mimikit.errors import BadRecord, StorageError
from mimikit.language.plain_text import plain_words
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import EndStatus, Instant, Role, TurnRecord, Usage
from mimikit.views.base import View
from mimikit.views.tasks import find_view
from mimikit.views.usage import cost_of

_MOST_COUNTS = 4_000
_BLOCK = re.compile(r"^## ([^\n]+)\n(`{3,})[a-z]*\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)
"""A labelled, fenced block of a prompt, as `roles.prompts` makes them."""


class TurnHit(View):
    """A passage that a turn was given; of an earlier format its source alone is known."""

    source: str
    text: Annotated[str | None, AfterValidator(lambda text: text and plain_words(text))] = None
    """Plain words; what was given stands in the prompt."""
    line: int | None = None
    day: str | None = None
    kind: str | None = None


class TurnHitList(View):
    hits: list[TurnHit]


class ToolUseView(View):
    """One call of a tool; what it was given and replied is cut."""

    name: str
    ok: bool
    arguments: str
    reply: str


class PromptSection(View):
    """A part of a prompt."""

    label: str
    """Of a block, as the prompt has it: `Conversation`; empty: what stands between blocks."""
    text: str
    tokens: int
    """Counted or estimated here; the engine may count otherwise."""


class TurnPromptView(View):
    """What a run was told, whole, and what it called; or as much of that as is known still."""

    id: str
    role: Role
    engine: str
    model: str | None = None
    attempt: int
    status: EndStatus
    by_code: bool
    """No model was asked."""
    is_kept: bool
    """Whether what it was told, and called, is kept still; of what code answers it never is."""
    started_at: Instant | None = None
    at: Instant
    """When it ended."""
    instructions: str = ""
    instructions_tokens: int = 0
    prompt: str = ""
    sections: list[PromptSection] = Field(default_factory=list[PromptSection])
    """The prompt in its parts, in order."""
    tools: list[str] = Field(default_factory=list[str])
    """Those it was offered."""
    calls: list[ToolUseView] = Field(default_factory=list[ToolUseView])
    hits: list[TurnHit]
    requests: int | None = None
    """How often a model was asked, where the engine counts it."""
    usage: Usage
    cost: dict[str, float]
    """By currency, where the engine has a price."""


def turn_prompt(files: ReadOnlyFiles, settings: Settings, run_id: str) -> TurnPromptView | None:
    """What is known of a turn, or a task's run; None when that is nothing."""
    if not is_id(run_id):
        return None
    told = files.peek(paths.turn_prompt(run_id), TurnPrompt)
    if told is not None:
        sections = _sections(told.prompt)
        return TurnPromptView.model_validate(
            told.to_dict()
            | {
                "isKept": True,
                "byCode": False,
                "sections": sections,
                "instructionsTokens": tokens.count(told.instructions),
                "cost": cost_of(settings, told.engine, told.usage),
            }
        )
    done = paths.turn_done(run_id)
    found = (files.peek(path, TurnRecord) for path in (done, paths.turn_new(run_id), done))
    record = next((one for one in found if one is not None), None)
    if record is None:
        return _of_task(files, settings, run_id)
    given = (one if isinstance(one, str) else one.to_dict() for one in record.injected)
    return TurnPromptView(
        id=record.id,
        role="teller",
        attempt=record.attempt,
        status="done",
        is_kept=False,
        started_at=record.started_at,
        at=record.completed_at,
        hits=[hit for one in given if (hit := _turn_hit(one))],
        usage=record.usage,
        **_asked(settings, "" if record.author == "code" else record.engine, record.usage),
    )


def _of_task(files: ReadOnlyFiles, settings: Settings, task_id: str) -> TurnPromptView | None:
    """What the end of a task's run tells of it."""
    known = find_view(files, task_id)
    if known is None or known.outcome is None:
        return None
    end = known.outcome
    return TurnPromptView(
        id=task_id,
        role=known.seat,
        attempt=end.attempts,
        status="done" if end.status == "needs_input" else end.status,
        is_kept=False,
        started_at=end.started_at,
        at=end.completed_at,
        hits=[],
        usage=end.usage,
        **_asked(settings, end.engine, end.usage),
    )


class _Asked(TypedDict):
    engine: str
    by_code: bool
    cost: dict[str, float]


def _asked(settings: Settings, engine: str, usage: Usage) -> _Asked:
    """Who was asked; empty: nobody, as code did it."""
    if not engine or engine in CODE_ENGINES:
        return _Asked(engine="", by_code=True, cost={})
    return _Asked(engine=engine, by_code=False, cost=cost_of(settings, engine, usage))


def _sections(prompt: str) -> list[PromptSection]:
    sections: list[PromptSection] = []

    def add(label: str, text: str) -> None:
        if text.strip():
            text = text.strip("\n")
            sections.append(PromptSection(label=label, text=text, tokens=tokens.count(text)))

    end = 0
    for block in _BLOCK.finditer(prompt):
        add("", prompt[end : block.start()])
        add(block[1], block[3])
        end = block.end()
    add("", prompt[end:])
    return sections


# ---- what a turn was given of memory


def turn_hits(files: ReadOnlyFiles, turn_id: str) -> list[TurnHit] | None:
    """What a turn was given of memory; None when nothing is known of that turn."""
    # As JSON, not as a record: its messages and tasks need not be read for this.
    for path in (paths.turn_done(turn_id), paths.turn_new(turn_id), paths.turn_done(turn_id)):
        try:
            data = files.read(path)
            record = parse_object(data) if data is not None else None
        except (BadRecord, StorageError):
            return None
        if record is not None:
            injected = record.get("injected")
            given = injected if isinstance(injected, list) else []
            return [hit for one in given if (hit := _turn_hit(one))]
    return None


def _turn_hit(given: Json) -> TurnHit | None:
    if isinstance(given, str):  # an earlier format kept the sources alone
        return TurnHit(source=given)
    source = given.get("source") if isinstance(given, dict) else None
    if not isinstance(source, str):
        return None
    try:
        return TurnHit.model_validate(given)
    except ValidationError:
        return TurnHit(source=source)


class TurnHits:
    """How many memory hits turns were given; a record is read once, as it never changes."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._known: dict[str, int] = {}

    def count(self, turn_id: str | None) -> int:
        """The number of hits of a turn; 0 when it is not known."""
        if turn_id is None or not is_id(turn_id):
            return 0
        with self._lock:
            if turn_id in self._known:
                return self._known[turn_id]
        hits = turn_hits(self._files, turn_id)
        if hits is None:
            return 0
        with self._lock:
            if len(self._known) >= _MOST_COUNTS:
                del self._known[next(iter(self._known))]
            self._known[turn_id] = len(hits)
        return len(hits)
