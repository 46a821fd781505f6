"""The events of `codex exec --json`, and the usage in codex's own record of a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mimikit.engines.base import EventKind, OnEvent, OnSession
from mimikit.engines.process import Stream
from mimikit.errors import BadRecord
from mimikit.language.plain_text import LineReader, PlainStream, TextTail, plain
from mimikit.protocol.json import Json, count_of, parse_object, text_of
from mimikit.protocol.models import Usage

_SHOWN_CHARACTERS = 4000
_LINE_BYTES = 16 * 2**20
_STDERR_CHARACTERS = 8000
_WORKING = frozenset({"command_execution", "mcp_tool_call", "web_search"})
_ACTS = frozenset({"command_execution", "mcp_tool_call", "file_change"})


@dataclass
class TurnReader:
    """Reads the output of one turn, and reports its events to `on_event`."""

    on_event: OnEvent
    on_session: OnSession = lambda _session: None
    session_id: str | None = None
    message: str | None = None
    completed: bool = False
    failed: str | None = None
    trouble: str = ""
    """The last error event, final or not."""
    acted: bool = False
    usage: Usage = field(default_factory=Usage)
    """Usage of the whole thread, with earlier turns."""
    working: set[str] = field(default_factory=set[str])
    _lines: LineReader = field(default_factory=lambda: LineReader(_LINE_BYTES))
    _stderr: PlainStream = field(default_factory=PlainStream)
    _tail: TextTail = field(default_factory=lambda: TextTail(_STDERR_CHARACTERS))

    def take(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr":
            self._tail.add(self._stderr.feed(data))
            return
        for line in self._lines.feed(data):
            self.take_line(line)

    def errors(self) -> str:
        lines = self._tail.text().strip().splitlines()
        return "\n".join([line for line in lines if not line.startswith("WARNING")][-5:])

    def take_line(self, line: bytes) -> None:
        """Handle one line; other output is skipped."""
        try:
            event = parse_object(line)
        except BadRecord:
            return
        kind, item = event.get("type"), event.get("item")
        if isinstance(item, dict):
            self._take_item(item, done=kind == "item.completed")
        elif kind == "thread.started":
            if session := text_of(event, "thread_id"):
                self.session_id = session
                self.on_session(session)
        elif kind == "turn.completed":
            self.completed = True
            self.usage = usage_of(event.get("usage"))
        elif kind == "turn.failed":
            self.failed = text_of(event.get("error"), "message") or "the turn failed"
            self._report("error", self.failed)
        elif kind == "error":  # not final: it retries, or turn.failed follows
            self.trouble = text_of(event, "message")
            if self.trouble.startswith("Reconnecting"):
                self._report("note", self.trouble)

    def _take_item(self, item: dict[str, Json], *, done: bool) -> None:
        kind, number = text_of(item, "type"), text_of(item, "id")
        if kind in _WORKING:
            (self.working.discard if done else self.working.add)(number)
        self.acted |= done and kind in _ACTS
        facts: dict[str, Any] = {"status": text_of(item, "status"), "id": number}
        if kind == "command_execution":
            if done:
                facts["exitCode"] = item.get("exit_code")
                facts["output"] = plain(text_of(item, "aggregated_output"))[-_SHOWN_CHARACTERS:]
            self._report("command", text_of(item, "command"), facts)
        elif kind == "mcp_tool_call":
            facts["tool"] = text_of(item, "tool")
            if done and (message := text_of(item.get("error"), "message")):
                facts["error"] = plain(message)[:_SHOWN_CHARACTERS]
            self._report("tool", facts["tool"], facts)
        elif done:
            self._take_done(kind, item)

    def _take_done(self, kind: str, item: dict[str, Json]) -> None:
        if kind == "agent_message":
            self.message = plain(text_of(item, "text"))
            self.on_event("message", self.message, {})
        elif kind == "file_change":
            changes = item.get("changes")
            for change in changes if isinstance(changes, list) else []:
                if path := text_of(change, "path"):
                    self._report("file", path, {"kind": text_of(change, "kind")})
        elif kind == "reasoning":
            self._report("note", text_of(item, "text"), {"reasoning": True})
        elif kind == "web_search":
            self._report("tool", text_of(item, "query"), {"tool": "web_search"})
        elif kind == "error":  # in practice a warning
            self._report("note", text_of(item, "message"))

    def _report(self, kind: EventKind, text: str, facts: dict[str, Any] | None = None) -> None:
        if text:
            self.on_event(kind, plain(text)[:_SHOWN_CHARACTERS], facts or {})


def minus(usage: Usage, earlier: Usage) -> Usage:
    names = Usage.model_fields
    return Usage(**{name: max(0, getattr(usage, name) - getattr(earlier, name)) for name in names})


def usage_in_rollout(lines: list[bytes]) -> Usage:
    """The usage of a thread, from codex's record of it."""
    for line in reversed(lines):
        if b"total_token_usage" not in line:
            continue
        try:
            payload = parse_object(line).get("payload")
        except BadRecord:
            continue
        used = usage_of(value_of(value_of(payload, "info"), "total_token_usage"))
        if used.tokens:
            return used
    return Usage()


def usage_of(counts: Json, name_of: Callable[[str], str] = str) -> Usage:
    """`name_of`: the name there of a field of `Usage`."""
    return Usage(**{name: count_of(counts, name_of(name)) for name in Usage.model_fields})


def value_of(holder: Json, key: str) -> Json:
    return holder.get(key) if isinstance(holder, dict) else None
