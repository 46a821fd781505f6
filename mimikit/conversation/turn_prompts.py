"""The full prompts and tool calls of the last runs, for inspection; storage errors are ignored."""

from __future__ import annotations

import contextlib

from pydantic import Field

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import EndStatus, Hit, Id, Instant, Record, Role, Usage

MOST_KEPT = 200
MOST_CALLS = 200
"""Of one run."""
MOST_CHARACTERS = 500_000
"""Of instructions, and of a prompt."""
MOST_CALL_CHARACTERS = 2000
"""Of a tool's arguments, and of its reply."""


class ToolUse(Record):
    name: str
    ok: bool
    arguments: str = ""
    """As JSON, cut."""
    reply: str = ""


class TurnPrompt(Record):
    """`side/prompts/{turn or task}.json`: the last attempt of a run."""

    id: Id
    role: Role
    engine: str
    model: str | None = None
    attempt: int = 1
    status: EndStatus
    at: Instant
    instructions: str
    prompt: str
    tools: list[str] = Field(default_factory=list[str])
    calls: list[ToolUse] = Field(default_factory=list[ToolUse])
    hits: list[Hit] = Field(default_factory=list[Hit])
    """Passages of memory in the prompt."""
    requests: int | None = None
    """Requests to a model, if the engine counts them."""
    usage: Usage = Usage()


def keep(files: Files, made: TurnPrompt) -> None:
    """Save one, and remove the oldest beyond MOST_KEPT."""
    with contextlib.suppress(StorageError):
        files.write(paths.turn_prompt(made.id), made.to_json(), sync=False)
        if len(files.names(paths.TURN_PROMPTS)) > MOST_KEPT:
            for name in newest(files)[MOST_KEPT:]:
                files.remove(paths.turn_prompt(name))


def newest(files: Files) -> list[str]:
    stats = files.stats(paths.TURN_PROMPTS, suffix=".json")
    names = sorted(stats, key=lambda name: (stats[name].mtime_ns, name), reverse=True)
    return [name.removesuffix(".json") for name in names]
