"""What `codex exec --json` says, line by line, and what its failures mean. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Any, cast

from mimikit.engines.base import EventKind, OnEvent
from mimikit.errors import BadRecord
from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import FailureReason, Usage

_SHOWN_CHARACTERS = 4000
_WORKING = frozenset({"command_execution", "mcp_tool_call", "web_search"})
_ACTS = frozenset({"command_execution", "mcp_tool_call", "file_change"})


@dataclass
class TurnReader:
    """Follows one turn, and tells what happens as it does."""

    on_event: OnEvent
    session_id: str | None = None
    message: str | None = None
    """The last thing it said: its answer."""
    completed: bool = False
    failed: str | None = None
    """Why it failed, in codex's words."""
    trouble: str = ""
    """What it complained of last, final or not."""
    acted: bool = False
    """Whether a tool, a command or a change of a file came to its end."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """What was done to which file."""
    usage: Usage = field(default_factory=Usage)
    """Of the whole thread so far, turns before this one included."""
    _open: set[str] = field(default_factory=set[str])

    @property
    def busy(self) -> bool:
        """Whether a command or a tool runs now."""
        return bool(self._open)

    def take(self, line: bytes) -> None:
        """Take one line; what is no event is passed over."""
        try:
            event = parse_object(line)
        except BadRecord:
            return
        kind, item = event.get("type"), event.get("item")
        if isinstance(item, dict):
            self._take_item(item, done=kind == "item.completed")
        elif kind == "thread.started":
            self.session_id = _text(event, "thread_id") or None
        elif kind == "turn.completed":
            self.completed = True
            self.usage = _usage(event.get("usage")) or self.usage
        elif kind == "turn.failed":
            self.failed = _text(event.get("error"), "message") or "the turn failed"
            self._tell("error", self.failed)
        elif kind == "error":  # not the end: it tries again, or turn.failed follows and repeats it
            self.trouble = _text(event, "message")
            if self.trouble.startswith("Reconnecting"):
                self._tell("note", self.trouble)

    def _take_item(self, item: dict[str, Json], *, done: bool) -> None:
        kind, number = _text(item, "type"), _text(item, "id")
        if kind in _WORKING:
            (self._open.discard if done else self._open.add)(number)
        self.acted |= done and kind in _ACTS
        if kind == "command_execution":
            self._tell_command(item, done=done)
        elif kind == "mcp_tool_call":
            self._tell_tool(item, done=done)
        elif done:
            self._take_done(kind, item)

    def _take_done(self, kind: str, item: dict[str, Json]) -> None:
        if kind == "agent_message":
            self.message = plain(_text(item, "text"))
            self.on_event("message", self.message, {})
        elif kind == "file_change":
            self._tell_files(item)
        elif kind == "reasoning":
            self._tell("note", _text(item, "text"), {"reasoning": True})
        elif kind == "web_search":
            self._tell("tool", _text(item, "query"), {"tool": "web_search"})
        elif kind == "error":  # a warning, says experience
            self._tell("note", _text(item, "message"))

    def _tell_command(self, item: dict[str, Json], *, done: bool) -> None:
        facts: dict[str, Any] = {"status": _text(item, "status"), "id": _text(item, "id")}
        if done:
            facts["exitCode"] = item.get("exit_code")
            facts["output"] = plain(_text(item, "aggregated_output"))[-_SHOWN_CHARACTERS:]
        self._tell("command", _text(item, "command"), facts)

    def _tell_tool(self, item: dict[str, Json], *, done: bool) -> None:
        facts: dict[str, Any] = {"status": _text(item, "status"), "id": _text(item, "id")}
        facts["tool"] = _text(item, "tool")
        if done and (said := _text(item.get("error"), "message")):
            facts["error"] = plain(said)[:_SHOWN_CHARACTERS]
        self._tell("tool", facts["tool"], facts)

    def _tell_files(self, item: dict[str, Json]) -> None:
        changes = item.get("changes")
        for change in changes if isinstance(changes, list) else []:
            if path := _text(change, "path"):
                self.files[path] = _text(change, "kind")
                self._tell("file", path, {"kind": self.files[path]})

    def _tell(self, kind: EventKind, text: str, facts: dict[str, Any] | None = None) -> None:
        if text:
            self.on_event(kind, plain(text)[:_SHOWN_CHARACTERS], facts or {})


def minus(usage: Usage, earlier: Usage) -> Usage:
    return Usage(
        input_tokens=max(0, usage.input_tokens - earlier.input_tokens),
        cached_input_tokens=max(0, usage.cached_input_tokens - earlier.cached_input_tokens),
        output_tokens=max(0, usage.output_tokens - earlier.output_tokens),
    )


def usage_in_rollout(lines: list[bytes]) -> Usage:
    """What a thread had used when the last of its recorded lines was written."""
    for line in reversed(lines):
        if b"total_token_usage" not in line:
            continue
        try:
            payload = parse_object(line).get("payload")
        except BadRecord:
            continue
        info = cast("dict[str, Json]", payload).get("info") if isinstance(payload, dict) else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if used := _usage(total):
            return used
    return Usage()


def _usage(counts: Json) -> Usage | None:
    """The tokens that codex counts; None where it counts none."""
    if not isinstance(counts, dict):
        return None
    return Usage(
        input_tokens=_number(counts, "input_tokens"),
        cached_input_tokens=_number(counts, "cached_input_tokens"),
        output_tokens=_number(counts, "output_tokens"),
    )


# ---- what a failure means: codex gives no code, only prose ------------------------------------

_LIMITED = re.compile(
    r"\b429\b|too many requests|rate limit|usage limit|quota exceeded|insufficient_quota"
    r"|at capacity|\b503\b|overloaded",
    re.IGNORECASE,
)
_UNAVAILABLE = re.compile(
    r"\b40[13]\b|unauthorized|forbidden|not logged in|log ?in again|sign in again|refresh token"
    r"|missing environment variable|error sending request|connection refused|dns error"
    r"|connection failed|network is unreachable",
    re.IGNORECASE,
)
_MONTHS: tuple[str, ...] = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_AGAIN_AT = re.compile(
    r"try again at (?:(?P<month>[a-z]{3}) (?P<day>\d{1,2})[a-z]{0,2}, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) ?(?P<half>[ap]m)",
    re.IGNORECASE,
)
_PIECE = (
    r"(\d+(?:\.\d+)?) ?"
    r"(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_AGAIN_IN = re.compile(rf"try again in ((?:{_PIECE}[ ,]*(?:and )?)+)", re.IGNORECASE)
_UNIT_S = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def failure_reason(said: str) -> FailureReason:
    """What kind of failure codex speaks of."""
    if _LIMITED.search(said):
        return "rate_limited"
    return "engine_unavailable" if _UNAVAILABLE.search(said) else "error"


def retry_at(said: str, now: datetime, zone: tzinfo) -> datetime | None:
    """When codex says to try again; `zone` is the one its clock times are in."""
    if found := _AGAIN_IN.search(said):
        pieces = re.findall(_PIECE, found.group(1), re.IGNORECASE)
        seconds = 0.0
        for number, unit in ((number, unit.lower()) for number, unit in pieces):
            unit_s = _UNIT_S.get(unit[:3]) or _UNIT_S.get(unit) or _UNIT_S[unit[0]]
            seconds += float(number) * unit_s
        return now + timedelta(seconds=min(seconds, 366 * 86400))
    found = _AGAIN_AT.search(said)
    return _clock_time(found, now, zone) if found else None


def _clock_time(found: re.Match[str], now: datetime, zone: tzinfo) -> datetime | None:
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    local = now.astimezone(zone).replace(second=0, microsecond=0)
    try:
        if found["year"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            local = local.replace(year=int(found["year"]), month=month, day=int(found["day"]))
        at = local.replace(hour=hour, minute=int(found["minute"]))
    except ValueError:
        return None
    if not found["year"] and at < now - timedelta(minutes=1):
        at += timedelta(days=1)
    return at.astimezone(now.tzinfo)


def _text(holder: Json, key: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def _number(holder: dict[str, Json], key: str) -> int:
    value = holder.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
