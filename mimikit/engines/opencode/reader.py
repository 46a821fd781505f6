"""What a session of opencode tells of itself: its events, what it used, and why it failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from mimikit.engines.base import Failed, OnEvent, Outcome, ToolReply
from mimikit.engines.limits import retry_at
from mimikit.engines.openai.dialogue import Body, table_of
from mimikit.engines.opencode.cli import AGENT
from mimikit.language.plain_text import plain
from mimikit.protocol.models import EngineWant, Usage

MOST_RETRIES = 3
"""It asks again after 2, 4, 8 … seconds: so often it has failed when it is given up."""
_LONG_WAIT = timedelta(seconds=20)
"""A wait that long is one the endpoint asked for."""
_SHOWN_CHARACTERS = 4000
_LIMITED = re.compile(
    r"\b429\b|too many requests|rate.?limit|usage limit|limit reached|quota|insufficient|exhausted"
    r"|credit balance|usage exceeded",
    re.IGNORECASE,
)
_LOGGED_OUT = re.compile(
    r"\b40[13]\b|unauthorized|unauthenticated|forbidden|api.?key|log ?in|not authenticated"
    r"|refresh token|invalid.{0,20}token",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"unable to connect|connection ?refused|econnrefused|getaddrinfo|enotfound|eai_again"
    r"|network is unreachable|failed to fetch|fetch failed",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context_length_exceeded|context window|maximum context length|prompt is too long",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(r"model.?not.?found|no such model|unknown model", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SessionTrouble:
    """Why a session does not go on, in opencode's words."""

    said: str
    name: str = ""
    status: int | None = None
    """Of the endpoint's answer, where that is told."""
    again_at: datetime | None = None
    """When the endpoint said to come again."""
    is_passing: bool = False
    """It was not asked again yet."""


@dataclass(frozen=True, slots=True)
class SessionCall:
    """A call of a tool that the model wants made."""

    id: str
    name: str
    given: Body
    question: str = ""
    """The id of the question whether it may be made."""


@dataclass
class SessionReader:
    """Follows one session, and tells what happens as it does."""

    session: str
    on_event: OnEvent
    now: Callable[[], datetime]
    shows_tools: bool = True
    text: str = ""
    """The last thing it said: its answer."""
    usage: Usage = field(default_factory=Usage)
    acted: bool = False
    """Whether a tool was called."""
    is_idle: bool = False
    trouble: SessionTrouble | None = None
    """What ended it, or is not worth to be waited for."""
    working: set[str] = field(default_factory=set[str])
    """The tools that run now."""
    replies: list[ToolReply] = field(default_factory=list[ToolReply])
    """What the calls of the answer that is under way were replied to, in order."""
    told: set[str] = field(default_factory=set[str])
    """The calls that were told of already, by their ids."""
    _has_called: bool = False
    _asked: dict[str, str] = field(default_factory=dict[str, str])
    """The questions whether a call may be made, by its id."""
    _given: dict[str, SessionCall] = field(default_factory=dict[str, "SessionCall"])
    _answers: set[str] = field(default_factory=set[str])
    _texts: set[str] = field(default_factory=set[str])
    _whole: set[str] = field(default_factory=set[str])

    def take(self, event: Body) -> bool:
        """Take one event; whether it was one of this session."""
        facts = table_of(event.get("properties"))
        if facts.get("sessionID") != self.session:
            return False
        match event.get("type"):
            case "message.updated":
                info = table_of(facts.get("info"))
                if info.get("role") == "assistant":
                    self._answers.add(_text(info, "id"))
            case "message.part.delta":
                if facts.get("field") == "text" and _text(facts, "partID") in self._texts:
                    self.on_event("delta", _text(facts, "delta"), {})
            case "message.part.updated":
                part = table_of(facts.get("part"))
                if _text(part, "messageID") in self._answers:
                    self._take_part(part)
            case "session.status":
                self._take_status(table_of(facts.get("status")))
            case "permission.asked":
                call = table_of(facts.get("tool"))
                self._asked[_text(call, "callID")] = _text(facts, "id")
            case "session.error":
                self._take_error(table_of(facts.get("error")))
            case "session.idle":
                self.is_idle = True
            case _:
                pass
        return True

    def due(self) -> list[SessionCall]:
        """The calls that wait for leave to be made, each once, in order."""
        known = [call for call in self._given if call in self._asked]
        return [replace(self._given.pop(call), question=self._asked.pop(call)) for call in known]

    def _take_part(self, part: Body) -> None:
        number, text = _text(part, "id"), plain(_text(part, "text"))
        is_whole = "end" in table_of(part.get("time")) and number not in self._whole
        match part.get("type"):
            case "text":
                self._texts.add(number)
                if is_whole and text.strip():
                    self._whole.add(number)
                    self.text = text
                    self.on_event("message", text, {})
            case "reasoning":
                if is_whole and text.strip():
                    self._whole.add(number)
                    self.on_event("note", text.strip()[:_SHOWN_CHARACTERS], {"reasoning": True})
            case "tool":
                self._take_tool(number, part)
            case "step-finish":
                self._take_step(part)
            case _:
                pass

    def _take_tool(self, number: str, part: Body) -> None:
        state, name = table_of(part.get("state")), _text(part, "tool").removeprefix(f"{AGENT}_")
        status, call = _text(state, "status"), _text(part, "callID")
        if status in ("pending", "running"):
            self.working.add(number)
            if status == "running":
                self._given[call] = SessionCall(call, name, table_of(state.get("input")))
            return
        self.working.discard(number)
        self.acted = self._has_called = True
        if call in self.told:
            return
        facts: Body = {"tool": name[:100], "id": call}
        if status == "error":
            said = plain(_text(state, "error"))[:_SHOWN_CHARACTERS]
            facts |= {"status": "failed", "error": said}
            if not self.replies or self.replies[-1].ok:  # one that never came to us
                self.replies.append(ToolReply(False, said))
        else:
            facts |= {"status": "completed"}
        if self.shows_tools or status == "error":
            self.on_event("tool", name[:100], facts)

    def _take_step(self, part: Body) -> None:
        """One answer of the model has ended. After one that broke off it would ask for ever."""
        is_cut = part.get("reason") in ("unknown", "other", "error") and not self._has_called
        if is_cut and self.trouble is None:
            self.trouble = SessionTrouble("the model's answer broke off", is_passing=True)
        self._has_called = False
        self.replies.clear()
        tokens = table_of(part.get("tokens"))
        cache = table_of(tokens.get("cache"))
        read, written = _count(cache, "read"), _count(cache, "write")
        self.usage = Usage(
            input_tokens=self.usage.input_tokens + _count(tokens, "input") + read + written,
            cached_input_tokens=self.usage.cached_input_tokens + read,
            output_tokens=self.usage.output_tokens
            + _count(tokens, "output")
            + _count(tokens, "reasoning"),
        )

    def _take_status(self, status: Body) -> None:
        """A request that failed is made again by itself, for minutes, or hours if told so."""
        if status.get("type") != "retry":
            return
        said, attempt = plain(_text(status, "message")), _count(status, "attempt")
        wait = timedelta(milliseconds=max(0, _count(status, "next") - _ms(self.now())))
        self.on_event("note", f"opencode asks again: {said}"[:_SHOWN_CHARACTERS], {})
        is_long = wait > _LONG_WAIT and attempt < MOST_RETRIES
        is_final = _LIMITED.search(said) or _LOGGED_OUT.search(said) or _UNREACHABLE.search(said)
        if is_long or is_final or attempt >= MOST_RETRIES:
            self.trouble = SessionTrouble(said, again_at=self.now() + wait if is_long else None)

    def _take_error(self, error: Body) -> None:
        name, data = _text(error, "name"), table_of(error.get("data"))
        if name == "MessageAbortedError" or self.trouble is not None:
            return
        status = data.get("statusCode")
        said = plain(_text(data, "message")) or name or "opencode gave no reason"
        again = _again(table_of(data.get("responseHeaders")), self.now())
        code = status if isinstance(status, int) else None
        self.trouble = SessionTrouble(said, name, code, again)


def failed(reader: SessionReader, trouble: SessionTrouble) -> Outcome:
    """The outcome of a session that did not go on, by what opencode says of it."""
    said, status, text = trouble.said, trouble.status, reader.text
    if trouble.name == "ContextOverflowError" or _TOO_LONG.search(said):
        return Failed("error", said, text, too_long=not reader.acted)
    want: EngineWant | None = None
    if trouble.again_at or status in (402, 429) or _LIMITED.search(said):
        want = "limited"
    elif (
        trouble.name == "ProviderAuthError" or status in (401, 403) or _LOGGED_OUT.search(said)
    ) and (status is None or status < 500):
        want = "logged_out"
    elif _UNREACHABLE.search(said):
        want = "unreachable"
    elif _UNKNOWN_MODEL.search(f"{trouble.name} {said}") or status == 404:
        want = "unready"
    elif not trouble.name or (status or 0) >= 500:  # it was asked again and again
        want = "broken"
    if want is None:
        return Failed("error", said, text)
    again = trouble.again_at or (retry_at(said, reader.now()) if want == "limited" else None)
    may_pass = trouble.is_passing and not reader.acted
    return Failed.unavailable(want, said, text=text, retry_at=again, retry_now=may_pass)


def _again(headers: Body, now: datetime) -> datetime | None:
    """When the headers of an answer say to come again."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = _text(headers, name)
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return now + timedelta(seconds=min(float(value) * unit_s, 366 * 86400))
    return None


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _text(table: Body, key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) else ""


def _count(table: Body, key: str) -> int:
    value = table.get(key)
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
