"""A provider of tools that answers from a table and keeps what it was called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.errors import Refused
from mimikit.tools.provider import ToolRun

ONE_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


class Library:
    """Offers `look_up` to each run, refuses what is closed, and fails where told to."""

    name = "library"
    works_in_tree = False

    def __init__(self, *names: str) -> None:
        self.names = names or ("look_up",)
        self.calls: list[tuple[str, Mapping[str, object], ToolRun]] = []
        self.asked: list[ToolRun] = []
        self.before: Callable[[ToolRun], None] = lambda _run: None

    def specs(self, run: ToolRun) -> Sequence[ToolSpec]:
        self.asked.append(run)
        return [ToolSpec(name, "Look a word up.", ONE_TEXT) for name in self.names]

    def call(self, name: str, given: Mapping[str, object], run: ToolRun) -> ToolReply:
        self.calls.append((name, given, run))
        self.before(run)
        if given.get("text") == "closed":
            raise Refused("this shelf is closed; take another")
        if given.get("text") == "broken":
            raise ValueError("canary of the inside")
        return ToolReply(True, f"{given.get('text')} is a word", final=True)
