"""Saves a run's prompt and tool calls for the inspector."""

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

    def call(self, name: str, args: Mapping[str, object]) -> ToolReply:
        reply = self._call(name, args)
        if len(self._calls) < MOST_CALLS:
            text = ""
            with contextlib.suppress(ValueError, RecursionError):  # not expressible as JSON
                text = as_json(dict(args))
            self._calls.append(
                ToolUse(
                    name=_truncated(name, 100),
                    ok=reply.ok,
                    arguments=_truncated(text, MOST_CALL_CHARACTERS),
                    reply=_truncated(reply.text, MOST_CALL_CHARACTERS),
                )
            )
        return reply

    def save(self, files: Files, request: RunSpec | None, outcome: Outcome, now: datetime) -> None:
        if request is None or self._engine in CODE_ENGINES or outcome.reason in WAITING:
            return
        trail = TurnPrompt(
            id=request.run_id,
            role=request.role,
            engine=self._engine,
            model=request.model,
            attempt=request.attempt,
            status=outcome.status,
            at=now,
            instructions=_truncated(request.instructions, MOST_CHARACTERS),
            prompt=_truncated(request.prompt, MOST_CHARACTERS),
            tools=[spec.name for spec in request.tools.specs],
            calls=self._calls,
            hits=list(request.input.memory),
            requests=outcome.requests,
            usage=outcome.usage,
        )
        turn_prompts.keep(files, trail)


def _truncated(text: str, most: int) -> str:
    """Also without characters that UTF-8 cannot encode."""
    return cut(text, most).encode(errors="replace").decode()
