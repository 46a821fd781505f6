"""Reads the events of a session of opencode: messages, tool calls, usage, failures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from mimikit.engines.base import Failed, OnEvent, ToolReply
from mimikit.engines.limits import retry_at, retry_header
from mimikit.engines.openai.answer import Body
from mimikit.engines.opencode.cli import AGENT
from mimikit.language.plain_text import plain
from mimikit.protocol.json import count_of, table_of, text_of
from mimikit.protocol.models import EngineProblem, Usage

MAX_RETRIES = 3
"""opencode retries after 2, 4, 8 … seconds; after so many failures the session is ended."""
_LONG_WAIT = timedelta(seconds=20)
"""A wait so long was requested by the endpoint."""
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
class SessionCall:
    """A tool call of the model."""

    id: str
    name: str
    arguments: Body
    question: str = ""


@dataclass
class SessionReader:
    """Reads the events of one session, and reports them to `on_event`."""

    session: str
    on_event: OnEvent
    now: Callable[[], datetime]
    shows_tools: bool = True
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    acted: bool = False
    is_idle: bool = False
    failure: Failed | None = None
    """Why it failed, or must be ended."""
    working: set[str] = field(default_factory=set[str])
    replies: list[ToolReply] = field(default_factory=list[ToolReply])
    """The replies to the calls of the current answer, in order."""
    reported: set[str] = field(default_factory=set[str])
    _has_called: bool = False
    _asked: dict[str, str] = field(default_factory=dict[str, str])
    """Permission requests by call id."""
    _pending: dict[str, SessionCall] = field(default_factory=dict[str, "SessionCall"])
    _answers: set[str] = field(default_factory=set[str])
    _texts: set[str] = field(default_factory=set[str])
    _complete: set[str] = field(default_factory=set[str])

    def take(self, event: Body) -> bool:
        """Handle one event; returns whether it belongs to this session."""
        facts = table_of(event.get("properties"))
        if facts.get("sessionID") != self.session:
            return False
        match event.get("type"):
            case "message.updated":
                info = table_of(facts.get("info"))
                if info.get("role") == "assistant":
                    self._answers.add(text_of(info, "id"))
            case "message.part.delta":
                if facts.get("field") == "text" and text_of(facts, "partID") in self._texts:
                    self.on_event("delta", text_of(facts, "delta"), {})
            case "message.part.updated":
                part = table_of(facts.get("part"))
                if text_of(part, "messageID") in self._answers:
                    self._take_part(part)
            case "session.status":
                self._take_status(table_of(facts.get("status")))
            case "permission.asked":
                call = table_of(facts.get("tool"))
                self._asked[text_of(call, "callID")] = text_of(facts, "id")
            case "session.error":
                self._take_error(table_of(facts.get("error")))
            case "session.idle":
                self.is_idle = True
            case _:
                pass
        return True

    def due(self) -> list[SessionCall]:
        """The calls that wait for permission, each once, in order."""
        known = [call for call in self._pending if call in self._asked]
        return [replace(self._pending.pop(call), question=self._asked.pop(call)) for call in known]

    def _take_part(self, part: Body) -> None:
        number, text = text_of(part, "id"), plain(text_of(part, "text"))
        is_complete = "end" in table_of(part.get("time")) and number not in self._complete
        match part.get("type"):
            case "text":
                self._texts.add(number)
                if is_complete and text.strip():
                    self._complete.add(number)
                    self.text = text
                    self.on_event("message", text, {})
            case "reasoning":
                if is_complete and text.strip():
                    self._complete.add(number)
                    self.on_event("note", text.strip()[:_SHOWN_CHARACTERS], {"reasoning": True})
            case "tool":
                self._take_tool(number, part)
            case "step-finish":
                self._take_step(part)
            case _:
                pass

    def _take_tool(self, number: str, part: Body) -> None:
        state, name = table_of(part.get("state")), text_of(part, "tool").removeprefix(f"{AGENT}_")
        status, call = text_of(state, "status"), text_of(part, "callID")
        if status in ("pending", "running"):
            self.working.add(number)
            if status == "running":
                self._pending[call] = SessionCall(call, name, table_of(state.get("input")))
            return
        self.working.discard(number)
        self.acted = self._has_called = True
        if call in self.reported:
            return
        facts: Body = {"tool": name[:100], "id": call}
        if status == "error":
            message = plain(text_of(state, "error"))[:_SHOWN_CHARACTERS]
            facts |= {"status": "failed", "error": message}
            if not self.replies or self.replies[-1].ok:  # a call that never reached us
                self.replies.append(ToolReply(False, message))
        else:
            facts |= {"status": "completed"}
        if self.shows_tools or status == "error":
            self.on_event("tool", name[:100], facts)

    def _take_step(self, part: Body) -> None:
        """An answer of the model has ended. After a broken one opencode would retry forever."""
        is_cut = part.get("reason") in ("unknown", "other", "error") and not self._has_called
        if is_cut and self.failure is None:
            message = "the model's answer broke off"
            self.failure = Failed.unavailable("broken", message, retry_now=not self.acted)
        self._has_called = False
        self.replies.clear()
        tokens = table_of(part.get("tokens"))
        cache = table_of(tokens.get("cache"))
        read, written = count_of(cache, "read"), count_of(cache, "write")
        self.usage = Usage(
            input_tokens=self.usage.input_tokens + count_of(tokens, "input") + read + written,
            cached_input_tokens=self.usage.cached_input_tokens + read,
            output_tokens=self.usage.output_tokens
            + count_of(tokens, "output")
            + count_of(tokens, "reasoning"),
        )

    def _take_status(self, status: Body) -> None:
        """End the session when opencode's own retries are hopeless or would take long."""
        if status.get("type") != "retry":
            return
        message, attempt = plain(text_of(status, "message")), count_of(status, "attempt")
        wait = timedelta(milliseconds=max(0, count_of(status, "next") - _ms(self.now())))
        self.on_event("note", f"opencode retries: {message}"[:_SHOWN_CHARACTERS], {})
        is_long = wait > _LONG_WAIT and attempt < MAX_RETRIES
        is_final = (
            _LIMITED.search(message) or _LOGGED_OUT.search(message) or _UNREACHABLE.search(message)
        )
        if is_long or is_final or attempt >= MAX_RETRIES:
            again_at = self.now() + wait if is_long else None
            self.failure = failure_of(message, self.now(), again_at=again_at)

    def _take_error(self, error: Body) -> None:
        name, data = text_of(error, "name"), table_of(error.get("data"))
        if name == "MessageAbortedError" or self.failure is not None:
            return
        status = data.get("statusCode")
        message = plain(text_of(data, "message")) or name or "opencode gave no reason"
        code = status if isinstance(status, int) else None
        again_at = retry_header(table_of(data.get("responseHeaders")), self.now())
        self.failure = failure_of(message, self.now(), name, code, again_at)


def failure_of(
    message: str,
    now: datetime,
    name: str = "",
    status: int | None = None,
    again_at: datetime | None = None,
) -> Failed:
    """The failure that opencode reported; without a `name` its own retries did not help."""
    if name == "ContextOverflowError" or _TOO_LONG.search(message):
        return Failed("error", message, too_long=True)
    want: EngineProblem
    if again_at or status in (402, 429) or _LIMITED.search(message):
        want = "limited"
    elif (name == "ProviderAuthError" or status in (401, 403) or _LOGGED_OUT.search(message)) and (
        status is None or status < 500
    ):
        want = "logged_out"
    elif _UNREACHABLE.search(message):
        want = "unreachable"
    elif _UNKNOWN_MODEL.search(f"{name} {message}") or status == 404:
        want = "unready"
    elif not name or (status or 0) >= 500:
        want = "broken"
    else:
        return Failed("error", message)
    again_at = again_at or (retry_at(message, now) if want == "limited" else None)
    return Failed.unavailable(want, message, retry_at=again_at)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
