"""One turn of the Teller or Planner in the app-server, in its own thread there.

Tools are called in the run's thread, one after the other.
"""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic.alias_generators import to_camel

from mimikit.engines.base import Done, Failed, Outcome, RunSpec, ToolReply, ends_turn, stop_outcome
from mimikit.engines.codex.app_server import AppServer, AppServerError, Message, ToolRequest
from mimikit.engines.codex.exec_events import usage_of, value_of
from mimikit.engines.codex.failures import exhausted_until, failure_of
from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json, text_of
from mimikit.protocol.models import Usage

_MAX_WAIT_S = 1.0
_SHOWN_CHARACTERS = 4000
_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`(?:\\.|[^`\\$])*`', re.DOTALL)
_CALLS = re.compile(r"\btools\s*[.\[]")
_CONTROL_FLOW = re.compile(r"=>|\b(?:for|while|do|function|if|eval|setTimeout)\b")


@dataclass
class _Answer:
    """The tool calls of one answer of the model, and their replies so far."""

    calls: int | None = 0
    replies: list[ToolReply] = field(default_factory=list[ToolReply])
    is_complete: bool = False

    def counts(self, item: Json) -> None:
        kind = text_of(item, "type")
        if kind == "function_call" and self.calls is not None:
            self.calls += 1
        elif kind == "custom_tool_call":
            self.calls = 1 if self.calls == 0 and calls_once(text_of(item, "input")) else None

    @property
    def may_be_final(self) -> bool:
        """Whether every call so far succeeded, and the last one ends the turn."""
        return self.calls == len(self.replies) and ends_turn(self.replies)


class ServerTurn:
    def __init__(
        self,
        server: AppServer,
        request: RunSpec,
        now: Callable[[], datetime],
        *,
        kill_after_s: float,
    ) -> None:
        self._server, self._request, self._now = server, request, now
        self._kill_after_s = kill_after_s
        self._thread = self._turn = ""
        self._stop: str | None = None
        self._answer, self._is_done = _Answer(), False
        self._unanswered: tuple[ToolRequest, str] | None = None
        """A turn-ending call that is not answered yet: the turn may end without another request."""
        self._message = ""
        self.usage = Usage()
        self.acted = False
        self.hung = False
        """The turn did not end after an interrupt."""

    def run(self, folder: str, effort: str | None) -> Outcome:
        """Open a thread in `folder` and follow its turn to the end. Raises AppServerError."""
        request, server = self._request, self._server
        opened = server.request("thread/start", self._opening(folder))
        self._thread = text_of(opened.get("thread"), "id")
        messages = server.subscribe(self._thread)
        try:
            text: Json = {"type": "text", "text": _clean(request.prompt)}
            pictures: list[Json] = [
                {"type": "image", "url": file.picture} for file in request.input.pictures
            ]
            params: Message = {"threadId": self._thread, "input": [text, *pictures]}
            if effort:
                params["effort"] = effort
            if request.cancel.reason is not None:
                return stop_outcome(request.cancel.reason)
            request.cancel.has_begun = True
            started = server.request("turn/start", params)
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

    def _follow(self, messages: queue.SimpleQueue[Message | None]) -> Outcome:
        request = self._request
        active_at = time.monotonic()
        until = active_at + request.timeout_s
        give_up_at: float | None = None
        while True:
            limit = give_up_at or min(until, active_at + request.idle_timeout_s)
            begun = time.monotonic()
            wait_s = max(0.0, min(_MAX_WAIT_S, limit - begun))
            try:
                message = messages.get(timeout=wait_s)
            except queue.Empty:
                message = {}
            suspended_s = time.monotonic() - begun - wait_s
            if suspended_s > _MAX_WAIT_S:  # this process was stopped: no limit ran meanwhile
                until, active_at = until + suspended_s, active_at + suspended_s
                give_up_at = give_up_at and give_up_at + suspended_s
            if message is None:
                raise AppServerError(self._server.ended or "the process ended")
            if message:
                if (outcome := self._take(message)) is not None:
                    return outcome
                active_at = time.monotonic()  # after a tool call, which may take its time
            now = time.monotonic()
            if self._stop is None and not self._is_done:
                self._stop = request.cancel.reason
                if now >= until:
                    self._stop = self._stop or "timeout"
                elif now >= active_at + request.idle_timeout_s:
                    self._stop = self._stop or "idle"
            if give_up_at is None and (self._stop is not None or self._is_done):
                give_up_at = now + self._kill_after_s
                self._interrupt()
            if give_up_at is not None and now >= give_up_at:
                self.hung = True
                return self._ended("interrupted")

    def _interrupt(self) -> None:
        place: Message = {"threadId": self._thread}
        self._server.notify("turn/interrupt", {**place, "turnId": self._turn})
        self._server.notify("thread/backgroundTerminals/clean", place)

    def _take(self, message: Message) -> Outcome | None:
        """Handle one message; returns the outcome if the turn has ended."""
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
                if self._answer.is_complete and not is_output:
                    self._answer = _Answer()
                self._answer.counts(item)
            case "rawResponse/completed":
                self.usage = self.usage + usage_of(value_of(params, "usage"), to_camel)
                self._answer.is_complete = True
                on_event("usage", "", self.usage.to_dict())
            case "thread/tokenUsage/updated":
                total = value_of(value_of(params, "tokenUsage"), "total")
                self.usage = usage_of(total, to_camel)
                on_event("usage", "", self.usage.to_dict())
            case "error" if value_of(params, "willRetry") is True:
                trouble = text_of(value_of(params, "error"), "message")
                on_event("note", plain(trouble)[:_SHOWN_CHARACTERS], {})
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
            parts = summary if isinstance(summary, list) else []
            if message := plain("\n".join(part for part in parts if isinstance(part, str))).strip():
                facts = {"reasoning": True}
                self._request.callbacks.on_event("note", message[:_SHOWN_CHARACTERS], facts)

    def _call(self, message: Message) -> None:
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
        if self._answer.may_be_final:
            self._unanswered = call, reply.text
        else:
            self._server.answer_tool(call, reply.text, ok=reply.ok)

    def _end_if_final(self) -> None:
        """End the turn after a final call, once the answer is complete without other calls."""
        if self._unanswered is None:
            return
        if not self._answer.may_be_final:
            call, text = self._unanswered
            self._unanswered = None
            self._server.answer_tool(call, text, ok=True)
        elif self._answer.is_complete:
            self._is_done = True

    def _ended(self, status: str, error: Json = None) -> Outcome:
        request, text = self._request, self._message
        if self._is_done or (status == "completed" and (text or self.acted)):
            return Done(text, exit_code=0)
        if self._stop in ("canceled", "killed"):
            return stop_outcome(self._stop, text)
        if status == "completed":
            message = "codex ended the turn without an answer; try again"
            return Failed("error", message, exit_code=0)
        if self._stop is not None:
            is_silent = self._stop == "idle"
            limit_s = request.idle_timeout_s if is_silent else request.timeout_s
            return stop_outcome(self._stop, text, limit_s)
        message = text_of(error, "message") or f"the turn ended as {status or 'nothing'}"
        request.callbacks.on_event("error", message, {})
        info, resets = value_of(error, "codexErrorInfo"), exhausted_until(self._server.limits)
        failed = failure_of(message, self._now(), info, resets)
        return replace(failed, text=text, acted=self.acted, exit_code=1)

    @property
    def text(self) -> str:
        return self._message


def calls_once(script: str) -> bool:
    """Whether a script of the model certainly calls exactly one tool, once."""
    code = _STRINGS.sub('""', script)
    return len(_CALLS.findall(code)) == 1 and _CONTROL_FLOW.search(code) is None


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()
