"""Requests for engines under test, and the desk that answers their tool calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mimikit.engines.base import Callbacks, CancelToken, RunSpec, ToolReply, Tools, TurnInput
from mimikit.protocol.models import InboxItem, Role, Task

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


class Desk:
    """Answers every call with yes, unless told otherwise, and keeps calls and events."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], ToolReply] | None = None) -> None:
        self.answer = answer or (lambda _name, _arguments: ToolReply(True, "ok"))
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.events: list[tuple[str, str, dict[str, Any]]] = []

    def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        self.calls.append((name, arguments))
        return self.answer(name, arguments)

    def event(self, kind: str, text: str, data: dict[str, Any]) -> None:
        self.events.append((kind, text, data))


def inputs(*texts: str, **fields: Any) -> tuple[InboxItem, ...]:
    return tuple(
        InboxItem(id=f"msg-{number}", text=text, created_at=NOW, **fields)
        for number, text in enumerate(texts)
    )


def task(prompt: str, **fields: Any) -> Task:
    return Task(id="task-one", prompt=prompt, created_at=NOW, trace_id="trace-1", **fields)


def make_request(
    role: Role,
    turn_input: TurnInput,
    desk: Desk | None = None,
    *,
    prompt: str = "",
    cancel: CancelToken | None = None,
    timeout_s: float = 60,
    run_id: str = "run-1",
) -> RunSpec:
    desk = desk or Desk()
    return RunSpec(
        run_id=run_id,
        attempt=1,
        role=role,
        instructions="",
        prompt=prompt,
        input=turn_input,
        tools=Tools(desk.call),
        callbacks=Callbacks(desk.event),
        cancel=cancel or CancelToken(),
        workspace=Path("workspace"),
        scratch=Path("scratch"),
        timeout_s=timeout_s,
        idle_timeout_s=timeout_s,
    )
