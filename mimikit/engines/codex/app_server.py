"""A client of `codex app-server`: JSON-RPC by lines, without the member `jsonrpc`.

Each turn has its own thread there, and reads the messages of that thread from a queue.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import mimikit
from mimikit.engines.kept_server import KeptProcess
from mimikit.engines.process import Program, ProgramFeed, Stream
from mimikit.errors import BadRecord, EngineError
from mimikit.language.plain_text import LineReader
from mimikit.protocol.json import Json, dump_line, parse_object

Message: TypeAlias = dict[str, Json]
START_S, _ANSWER_S = 60.0, 30.0
"""Timeouts of its start and of an answer: long, for a busy machine."""
_LINE_BYTES = 64 * 2**20
_NO_ANSWER = -1
"""The id of requests whose answer is ignored."""


class AppServerError(EngineError):
    """The app-server ended, could not be started, or broke its protocol."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    id: Json
    tool: str
    arguments: Json


class AppServer(KeptProcess):
    """The process and the connection to it. Thread-safe."""

    def __init__(self, program: Program, *, kill_after_s: float) -> None:
        self._feed = ProgramFeed()
        program = replace(program, feed=self._feed)
        super().__init__("codex app-server", program, ready_s=START_S, kill_after_s=kill_after_s)
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Message | None]] = {}
        self._threads: dict[str, queue.SimpleQueue[Message | None]] = {}
        self._lines = LineReader(_LINE_BYTES)
        self.limits: Json = None

    def start(self) -> None:
        super().start()
        params: Message = {
            "clientInfo": {"name": "mimikit", "version": mimikit.__version__},
            "capabilities": {"experimentalApi": True},
        }
        self.request("initialize", params, START_S)
        self.notify("initialized")
        self.is_ready.set()

    def request(self, method: str, params: Message, timeout_s: float = _ANSWER_S) -> Message:
        """Send a request and wait for its result. Raises AppServerError."""
        answer: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            number = next(self._ids)
            self._answers[number] = answer
            ended = self.ended
        try:
            if ended is not None:
                raise AppServerError(ended)
            self._send({"id": number, "method": method, "params": params})
            reply = answer.get(timeout=timeout_s)
        except queue.Empty:
            raise AppServerError(
                f"expected an answer to {method}, got none for {timeout_s:g} s"
            ) from None
        finally:
            with self._lock:
                self._answers.pop(number, None)
        if reply is None:
            raise AppServerError(self.ended or "the process ended")
        result = reply.get("result")
        if not isinstance(result, dict):
            raise AppServerError(f"expected {method} to be done, got {reply.get('error')}")
        return result

    def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification or, with `params`, a request whose answer is ignored."""
        if params is None:
            self._send({"method": method})
        else:
            self._send({"id": _NO_ANSWER, "method": method, "params": params})

    def answer_tool(self, call: ToolRequest, text: str, *, ok: bool) -> None:
        content: Json = [{"type": "inputText", "text": text}]
        self._send({"id": call.id, "result": {"contentItems": content, "success": ok}})

    def subscribe(self, thread_id: str) -> queue.SimpleQueue[Message | None]:
        """The messages about one thread from now on; None once the process has ended."""
        messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            self._threads[thread_id] = messages
            if self.ended is not None:
                messages.put(None)
        return messages

    def unsubscribe(self, thread_id: str) -> None:
        self.notify("thread/unsubscribe", {"threadId": thread_id})
        with self._lock:
            self._threads.pop(thread_id, None)

    def _send(self, message: Message) -> None:
        self._feed.write(dump_line(message))

    # ---- in the thread of the process

    def take(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr":
            super().take(stream, data)
            return
        for line in self._lines.feed(data):
            try:
                message = parse_object(line)
            except BadRecord:
                continue
            self._dispatch(message)

    def on_end(self) -> None:
        with self._lock:
            waiting = [*self._answers.values(), *self._threads.values()]
        for messages in waiting:
            messages.put(None)

    def _dispatch(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            with self._lock:
                answer = self._answers.get(number) if isinstance(number, int) else None
            if answer is not None:
                answer.put(message)
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "account/rateLimits/updated":
            self.limits = _merge_limits(self.limits, params.get("rateLimits"))
            return
        with self._lock:
            messages = self._threads.get(str(params.get("threadId")))
        if number is not None and (messages is None or method != "item/tool/call"):
            # Approvals and questions are not supported.
            self._send({"id": number, "error": {"code": -32601, "message": "not supported"}})
        elif messages is not None:
            messages.put(message)


def _merge_limits(known: Json, more: Json) -> Json:
    """Merge an update of the rate limits, in which null means unchanged."""
    if not isinstance(more, Mapping):
        return known
    changed = {name: value for name, value in more.items() if value is not None}
    return {**(known if isinstance(known, dict) else {}), **changed}
