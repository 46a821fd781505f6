"""One `codex app-server`: a process that stays, and whom each message of it is for.

It speaks JSON-RPC line by line, without the member `jsonrpc`. The process is followed by one
thread; each turn takes what is said of its own thread from a queue.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import dataclass

from mimikit.engines.program import Program
from mimikit.engines.staying_program import LineProgram, Message, ProgramTrouble
from mimikit.protocol.json import Json

START_S, _ANSWER_S = 60.0, 30.0
"""What starts it, and what opens a thread or a turn, asks nobody: it takes milliseconds. On a
machine that was hardly to be used `codex --version` alone took 4 s."""
_LINE_BYTES = 64 * 2**20
_OF_NOBODY = -1
"""The id of requests whose answer nobody waits for."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool that the model makes, to be answered by its id."""

    id: Json
    tool: str
    arguments: Json


class AppServer(LineProgram):
    """Safe between threads."""

    def __init__(self, program: Program, client: str) -> None:
        """Nothing is started yet. `client`: whom it is told that it works for, with the version."""
        super().__init__(program, "codex-server", line_bytes=_LINE_BYTES)
        self._client = client
        self._threads: dict[str, queue.SimpleQueue[Message | None]] = {}
        self._is_leaving = False
        self.limits: Json = None
        """What was told last of the account's limits."""

    def start(self) -> None:
        """Start it, and wait until it speaks.

        Raises:
            ProgramTrouble: it does not.
        """
        super().start()
        name, _, version = self._client.partition(" ")
        about: Message = {
            "clientInfo": {"name": name, "version": version},
            "capabilities": {"experimentalApi": True},
        }
        self.request("initialize", about, START_S)
        self.tell("initialized")

    @property
    def serves(self) -> bool:
        """Whether a new turn may come to it."""
        return not self._is_leaving and super().serves

    def retire(self) -> None:
        """Let it end as soon as no turn is left."""
        with self._lock:
            self._is_leaving = True
            is_idle = not self._threads
        if is_idle:
            self.end()

    def request(self, method: str, params: Message, timeout_s: float = _ANSWER_S) -> Message:
        """Ask for something, and wait for what comes of it.

        Raises:
            ProgramTrouble: no answer came, or it refuses.
        """
        answer = self.ask({"method": method, "params": params}, timeout_s)
        result = answer.get("result")
        if not isinstance(result, dict):
            raise ProgramTrouble(f"expected {method} to be done, got {answer.get('error')}")
        return result

    def tell(self, method: str, params: Message | None = None) -> None:
        """Ask for something whose answer nobody waits for."""
        if params is None:
            self.send({"method": method})
        else:
            self.send({"id": _OF_NOBODY, "method": method, "params": params})

    def answer_tool(self, call: ToolRequest, text: str, *, ok: bool) -> None:
        content: Json = [{"type": "inputText", "text": text}]
        self.send({"id": call.id, "result": {"contentItems": content, "success": ok}})

    def follow(self, thread_id: str) -> queue.SimpleQueue[Message | None]:
        """What is said of one thread from now on; None as soon as the process has ended."""
        messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            self._threads[thread_id] = messages
            if self.ended:
                messages.put(None)
        return messages

    def forget(self, thread_id: str) -> None:
        """Let go of a thread, here and there."""
        self.tell("thread/unsubscribe", {"threadId": thread_id})
        with self._lock:
            self._threads.pop(thread_id, None)
            is_last = self._is_leaving and not self._threads
        if is_last:
            self.end()

    # ---- in the thread that follows it

    def _hear(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "account/rateLimits/updated":
            self.limits = _merged(self.limits, params.get("rateLimits"))
            return
        with self._lock:
            messages = self._threads.get(str(params.get("threadId")))
        if number is not None and (messages is None or method != "item/tool/call"):
            # An approval or a question: there is nobody to ask.
            refusal: Json = {"code": -32601, "message": "not supported"}
            self.send({"id": number, "error": refusal})
        elif messages is not None:
            messages.put(message)

    def _over(self) -> None:
        super()._over()
        with self._lock:
            following = [*self._threads.values()]
        for one in following:
            one.put(None)


def _merged(known: Json, more: Json) -> Json:
    """Limits as they stand after an update, in which what is not told is null."""
    if not isinstance(more, Mapping):
        return known
    told = {name: value for name, value in more.items() if value is not None}
    return {**(known if isinstance(known, dict) else {}), **told}
