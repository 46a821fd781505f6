"""One turn of a Teller or Planner in the app-server: a new thread, unsubscribed afterwards.

Tools are called in the thread of the run, one after the other.
"""

from __future__ import annotations

import queue
import re
import time
from dataclasses import dataclass, field

from pydantic.alias_generators import to_camel

from mimikit.engines.base import Done, Failed, Outcome, RunSpec, ToolReply, ends_turn, stop_outcome
from mimikit.engines.codex.app_server import AppServer, Message, ServerTrouble, ToolRequest
from mimikit.engines.codex.exec_events import text_of, value_of
from mimikit.engines.process import timeout_outcome
from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json
from mimikit.protocol.models import Usage

_MAX_WAIT_S = 1.0
_SHOWN_CHARACTERS = 4000
_TEXTS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`(?:\\.|[^`\\$])*`', re.DOTALL)
_CALLS = re.compile(r"\btools\s*[.\[]")
_AGAIN = re.compile(r"=>|\b(?:for|while|do|function|if|eval|setTimeout)\b")


@dataclass
class _Answer:
    """The tool calls of one answer of the model, and their replies so far."""

    calls: int | None = 0
    """Number of tool calls; None: unknown."""
    replies: list[ToolReply] = field(default_factory=list[ToolReply])
    is_whole: bool = False
    """The answer is complete."""

    def counts(self, item: Json) -> None:
        kind = text_of(item, "type")
        if kind == "function_call" and self.calls is not None:
            self.calls += 1
        elif kind == "custom_tool_call":
            self.calls = 1 if self.calls == 0 and calls_once(text_of(item, "input")) else None

    @property
    def may_be_over(self) -> bool:
        """Every call so far was made and succeeded, and the last one is final."""
        return self.calls == len(self.replies) and ends_turn(self.replies)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    outcome: Outcome | None = None
    """None: see `failed`."""
    failed: Json = None
    """The `error` of the turn, as reported by the app-server."""
    acted: bool = False
    """Whether a tool was called in it."""
    hung: bool = False
    """It did not end after an interrupt."""


class ServerTurn:
    def __init__(self, server: AppServer, request: RunSpec, *, kill_after_s: float) -> None:
        self._server, self._request, self._kill_after_s = server, request, kill_after_s
        self._thread = self._turn = ""
        self._stop: str | None = None
        self._answer, self._is_done = _Answer(), False
        self._unanswered: tuple[ToolRequest, str] | None = None
        """A final call whose answer is held back: the turn may end without another request."""
        self._message = ""
        self.usage = Usage()
        self.acted = False

    def run(self, folder: str, effort: str | None) -> TurnEnd:
        """Open a thread in `folder` and follow its turn to the end.

        Raises:
            ServerTrouble: the server failed; `acted` says whether tools were called.
        """
        request, server = self._request, self._server
        opened = server.request("thread/start", self._opening(folder))
        self._thread = text_of(opened.get("thread"), "id")
        messages = server.subscribe(self._thread)
        try:
            asked: Message = {
                "threadId": self._thread,
                "input": [{"type": "text", "text": _clean(request.prompt)}],
            }
            if effort:
                asked["effort"] = effort
            if request.cancel.reason is not None:
                return TurnEnd(stop_outcome(request.cancel.reason))
            request.cancel.has_begun = True
            started = server.request("turn/start", asked)
            self._turn = text_of(started.get("turn"), "id")
            request.cancel.on_cancel(lambda reason: messages.put({"method": "stop", "params": {}}))
            return self._follow(messages)
        finally:
            server.unsubscribe(self._thread)

    def _opening(self, folder: str) -> Message:
        request = self._request
        tools: list[Json] = [
            {
                "type": "function",
                "name": spec.name,
                "description": spec.description,
                "inputSchema": spec.schema,
            }
            for spec in request.tools.specs
        ]
        return {
            "model": request.model,
            "cwd": folder,
            "approvalPolicy": "never",
            "sandbox": "read-only",
            "ephemeral": True,
            "environments": [],
            "baseInstructions": _clean(request.instructions.strip()) or "Do what the prompt asks.",
            "dynamicTools": tools,
            "experimentalRawEvents": True,  # reports when an answer is complete, and its calls
        }

    def _follow(self, messages: queue.SimpleQueue[Message | None]) -> TurnEnd:
        request = self._request
        heard = time.monotonic()
        until = heard + request.timeout_s
        leave_at: float | None = None
        while True:
            limit = leave_at or min(until, heard + request.idle_timeout_s)
            begun = time.monotonic()
            wait_s = max(0.0, min(_MAX_WAIT_S, limit - begun))
            try:
                message = messages.get(timeout=wait_s)
            except queue.Empty:
                message = {}
            late_s = time.monotonic() - begun - wait_s
            if late_s > _MAX_WAIT_S:  # this process was stopped: no limit ran meanwhile
                until, heard = until + late_s, heard + late_s
                leave_at = leave_at and leave_at + late_s
            if message is None:
                raise ServerTrouble(self._server.ended or "it ended")
            if message:
                if (end := self._take(message)) is not None:
                    return end
                heard = time.monotonic()  # after a tool call, which may take its time
            now = time.monotonic()
            if self._stop is None and not self._is_done:
                self._stop = request.cancel.reason
                if now >= until:
                    self._stop = self._stop or "timeout"
                elif now >= heard + request.idle_timeout_s:
                    self._stop = self._stop or "idle"
            if leave_at is None and (self._stop is not None or self._is_done):
                leave_at = now + self._kill_after_s
                self._interrupt()
            if leave_at is not None and now >= leave_at:
                return self._ended("interrupted", None, hung=True)

    def _interrupt(self) -> None:
        place: Message = {"threadId": self._thread}
        self._server.notify("turn/interrupt", {**place, "turnId": self._turn})
        self._server.notify("thread/backgroundTerminals/clean", place)

    def _take(self, message: Message) -> TurnEnd | None:
        """Handle one message; returns the end of the turn, if this was it."""
        params = message.get("params")
        on_event = self._request.callbacks.on_event
        match message.get("method"):
            case "item/agentMessage/delta" if delta := text_of(params, "delta"):
                on_event("delta", delta, {})
            case "item/tool/call":
                self._call(message)
            case "item/completed":
                self._complete(value_of(params, "item"))
            case "rawResponseItem/completed":
                item = value_of(params, "item")
                is_output = text_of(item, "type").endswith("_output")  # may come in between
                if self._answer.is_whole and not is_output:
                    self._answer = _Answer()
                self._answer.counts(item)
            case "rawResponse/completed":
                self.usage = self.usage + _usage(value_of(params, "usage"))
                self._answer.is_whole = True
                on_event("usage", "", self.usage.to_dict())
            case "thread/tokenUsage/updated":
                total = value_of(value_of(params, "tokenUsage"), "total")
                self.usage = _usage(total)
                on_event("usage", "", self.usage.to_dict())
            case "error" if value_of(params, "willRetry") is True:
                said = text_of(value_of(params, "error"), "message")
                on_event("note", plain(said)[:_SHOWN_CHARACTERS], {})
            case "turn/completed":
                turn = value_of(params, "turn")
                return self._ended(text_of(turn, "status"), value_of(turn, "error"))
            case _:
                pass
        self._end_if_final()
        return None

    def _complete(self, item: Json) -> None:
        kind = text_of(item, "type")
        if kind == "agentMessage":
            self._message = plain(text_of(item, "text"))
            self._request.callbacks.on_event("message", self._message, {})
        elif kind == "reasoning":
            summary = value_of(item, "summary")
            texts = (
                [part for part in summary if isinstance(part, str)]
                if isinstance(summary, list)
                else []
            )
            if said := plain("\n".join(texts)).strip():
                facts = {"reasoning": True}
                self._request.callbacks.on_event("note", said[:_SHOWN_CHARACTERS], facts)

    def _call(self, message: Message) -> None:
        """Make one call, unless the turn is to end."""
        params = message.get("params")
        call = ToolRequest(
            message.get("id"), text_of(params, "tool"), value_of(params, "arguments")
        )
        if self._stop is not None or self._request.cancel.reason is not None or self._is_done:
            return
        facts: dict[str, object] = {"id": text_of(params, "callId"), "tool": call.tool}
        self._request.callbacks.on_event("tool", call.tool, {**facts, "status": "in_progress"})
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        reply = self._request.tools.call(call.tool, dict(arguments))
        self.acted = True
        facts["status"] = "completed" if reply.ok else "failed"
        if not reply.ok:
            facts["error"] = plain(reply.text)[:_SHOWN_CHARACTERS]
        self._request.callbacks.on_event("tool", call.tool, facts)
        self._answer.replies.append(reply)
        if self._answer.may_be_over:
            self._unanswered = call, reply.text
        else:
            self._server.answer_tool(call, reply.text, ok=reply.ok)

    def _end_if_final(self) -> None:
        """End the turn after a final call, once the answer is complete and has no other call."""
        if self._unanswered is None:
            return
        if not self._answer.may_be_over:
            call, text = self._unanswered
            self._unanswered = None
            self._server.answer_tool(call, text, ok=True)
        elif self._answer.is_whole:
            self._is_done = True

    def _ended(self, status: str, error: Json, *, hung: bool = False) -> TurnEnd:
        request, text = self._request, self._message
        if self._is_done:
            outcome: Outcome | None = Done(text, exit_code=0)
        elif self._stop in ("canceled", "killed"):
            outcome = stop_outcome(self._stop, text)
        elif status == "completed":
            outcome = Done(text, exit_code=0)
            if not text and not self.acted:
                said = "codex ended the turn without an answer; try again"
                outcome = Failed("error", said, exit_code=0)
        elif self._stop is not None:
            silent = self._stop == "idle"
            limit_s = request.idle_timeout_s if silent else request.timeout_s
            outcome = timeout_outcome(limit_s, text, silent=silent)
        else:
            outcome = None
            error = error or {"message": f"the turn ended as {status or 'nothing'}"}
        return TurnEnd(outcome, error, self.acted, hung)

    @property
    def text(self) -> str:
        return self._message


def calls_once(script: str) -> bool:
    """Whether a script of the model certainly calls one tool, once."""
    code = _TEXTS.sub('""', script)
    return len(_CALLS.findall(code)) == 1 and _AGAIN.search(code) is None


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()


def _usage(counts: Json) -> Usage:
    told = {name: value_of(counts, to_camel(name)) for name in Usage.model_fields}
    return Usage(**{name: n for name, n in told.items() if type(n) is int and n >= 0})
