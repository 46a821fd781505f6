"""Keeps what a run was told and which tools it called, for the inspector."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime

from mimikit.conversation import turn_prompts
from mimikit.conversation.turn_prompts import (
    MOST_CALL_CHARACTERS,
    MOST_CALLS,
    MOST_CHARACTERS,
    ToolUse,
    TurnPrompt,
)
from mimikit.engines.base import Outcome, RunSpec, ToolReply
from mimikit.engines.registry import CODE_ENGINES
from mimikit.language.plain_text import as_json
from mimikit.memory.tokens import cut
from mimikit.protocol.files import Files
from mimikit.tasks.retry import WAITING


class RunTrail:
    """Passes tool calls on and records the first of them."""

    def __init__(self, engine: str, call: Callable[[str, Mapping[str, object]], ToolReply]) -> None:
        self._engine, self._call = engine, call
        self._calls: list[ToolUse] = []

    def call(self, name: str, given: Mapping[str, object]) -> ToolReply:
        reply = self._call(name, given)
        if len(self._calls) < MOST_CALLS:
            said = ""
            with contextlib.suppress(ValueError, RecursionError):  # not expressible as JSON
                said = as_json(dict(given))
            self._calls.append(
                ToolUse(
                    name=_kept(name, 100),
                    ok=reply.ok,
                    arguments=_kept(said, MOST_CALL_CHARACTERS),
                    reply=_kept(reply.text, MOST_CALL_CHARACTERS),
                )
            )
        return reply

    def keep(self, files: Files, request: RunSpec | None, outcome: Outcome, now: datetime) -> None:
        """Write it down, unless the run was turned away or never started."""
        was_told = outcome.reason not in WAITING
        if request is None or self._engine in CODE_ENGINES or not was_told:
            return
        made = TurnPrompt(
            id=request.run_id,
            role=request.role,
            engine=self._engine,
            model=request.model,
            attempt=request.attempt,
            status=outcome.status,
            at=now,
            instructions=_kept(request.instructions, MOST_CHARACTERS),
            prompt=_kept(request.prompt, MOST_CHARACTERS),
            tools=[spec.name for spec in request.tools.specs],
            calls=self._calls,
            hits=list(request.input.memory),
            requests=outcome.requests,
            usage=outcome.usage,
        )
        turn_prompts.keep(files, made)


def _kept(text: str, most: int) -> str:
    """Cut, in characters that a file can hold."""
    return cut(text, most).encode(errors="replace").decode()
