"""One `codex app-server`: a process that stays, and whom each message of it is for.

It speaks JSON-RPC line by line, without the member `jsonrpc`. The process is followed by one
thread; each turn takes what is said of its own thread from a queue.
"""

from __future__ import annotations

import functools
import itertools
import math
import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mimikit.engines import process
from mimikit.engines.base import CancelToken
from mimikit.engines.program import Program, ProgramFeed, Stream
from mimikit.errors import BadRecord, EngineError, ProgramLost
from mimikit.language.plain_text import LineReader, PlainStream, TextTail
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.watch import BoundedThread

Message: TypeAlias = dict[str, Json]
START_S, _ANSWER_S = 60.0, 30.0
"""What starts it, and what opens a thread or a turn, asks nobody: it takes milliseconds. On a
machine that was hardly to be used `codex --version` alone took 4 s."""
_LINE_BYTES = 64 * 2**20
_STDERR_CHARACTERS = 4000
_OF_NOBODY = -1
"""The id of requests whose answer nobody waits for."""


class ServerTrouble(Exception):
    """The app-server ended, could not be started, or does not speak as it should."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool that the model makes, to be answered by its id."""

    id: Json
    tool: str
    arguments: Json


class AppServer:
    """Safe between threads."""

    def __init__(self, program: Program, client: str) -> None:
        """Nothing is started yet. `client`: whom it is told that it works for, with the version."""
        self._feed, self._cancel = ProgramFeed(), CancelToken()
        self._program, self._client = _staying(program, self._feed), client
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Message | None]] = {}
        self._threads: dict[str, queue.SimpleQueue[Message | None]] = {}
        self._lines, self._complaints = LineReader(_LINE_BYTES), TextTail(_STDERR_CHARACTERS)
        self._stderr = PlainStream()
        self._thread = BoundedThread(self._serve, "codex-server")
        self._ended: str | None = None
        self._is_leaving = False
        self.limits: Json = None
        """What was told last of the account's limits."""

    def start(self) -> None:
        """Start it, and wait until it speaks.

        Raises:
            ServerTrouble: it does not.
        """
        name, _, version = self._client.partition(" ")
        try:
            self._thread.start()
        except (RuntimeError, MemoryError) as error:
            raise ServerTrouble(f"it can not be followed: {error}") from error
        about: Message = {
            "clientInfo": {"name": name, "version": version},
            "capabilities": {"experimentalApi": True},
        }
        self.request("initialize", about, START_S)
        self.tell("initialized")

    @property
    def serves(self) -> bool:
        """Whether a new turn may come to it."""
        with self._lock:
            return self._ended is None and not self._is_leaving

    def retire(self) -> None:
        """Let it end as soon as no turn is left."""
        with self._lock:
            self._is_leaving = True
            is_idle = not self._threads
        if is_idle:
            self.close()

    def close(self) -> None:
        """End it now; turns in it are lost."""
        self._cancel.cancel("killed")

    def wait(self, timeout_s: float) -> None:
        """Wait until it has ended, with all it had started."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def request(self, method: str, params: Message, timeout_s: float = _ANSWER_S) -> Message:
        """Ask for something, and wait for the answer.

        Raises:
            ServerTrouble: none came, or it refuses.
        """
        answer: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            number = next(self._ids)
            self._answers[number] = answer
            ended = self._ended
        try:
            if ended is not None:
                raise ServerTrouble(ended)
            self._send({"id": number, "method": method, "params": params})
            found = answer.get(timeout=timeout_s)
        except queue.Empty:
            raise ServerTrouble(
                f"expected an answer to {method}, got none for {timeout_s:g} s"
            ) from None
        finally:
            with self._lock:
                self._answers.pop(number, None)
        if found is None:
            raise ServerTrouble(self._ended or "it ended")
        result = found.get("result")
        if not isinstance(result, dict):
            raise ServerTrouble(f"expected {method} to be done, got {found.get('error')}")
        return result

    def tell(self, method: str, params: Message | None = None) -> None:
        """Ask for something whose answer nobody waits for."""
        if params is None:
            self._send({"method": method})
        else:
            self._send({"id": _OF_NOBODY, "method": method, "params": params})

    def answer_tool(self, call: ToolRequest, text: str, *, ok: bool) -> None:
        content: Json = [{"type": "inputText", "text": text}]
        self._send({"id": call.id, "result": {"contentItems": content, "success": ok}})

    def follow(self, thread_id: str) -> queue.SimpleQueue[Message | None]:
        """What is said of one thread from now on; None as soon as the process has ended."""
        messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            self._threads[thread_id] = messages
            if self._ended is not None:
                messages.put(None)
        return messages

    def forget(self, thread_id: str) -> None:
        """Let go of a thread, here and there."""
        self.tell("thread/unsubscribe", {"threadId": thread_id})
        with self._lock:
            self._threads.pop(thread_id, None)
            is_last = self._is_leaving and not self._threads
        if is_last:
            self.close()

    @property
    def end(self) -> str:
        """How it ended, in words."""
        return self._ended or "it lives"

    def _send(self, message: Message) -> None:
        self._feed.write(dump_line(message))

    # ---- in the thread that follows the process

    def _serve(self) -> None:
        said = "it was ended"
        try:
            ended = process.run(self._program, self._take, self._cancel)
            if ended.stopped is None:
                code = ended.exit_code or 0
                how = f"by {process.signal_name(code)}" if code < 0 else f"with exit code {code}"
                told = self._complaints.text().strip()[-400:]
                said = f"it ended {how}{': ' if told else ''}{told}"
        except (EngineError, ProgramLost, OSError, MemoryError, RuntimeError) as error:
            said = str(error) or repr(error)
        finally:
            with self._lock:
                self._ended = said
                waiting = [*self._answers.values(), *self._threads.values()]
            for one in waiting:
                one.put(None)

    def _take(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr":
            self._complaints.add(self._stderr.feed(data))
            return
        for line in self._lines.feed(data):
            try:
                message = parse_object(line)
            except BadRecord:
                continue
            self._sort(message)

    def _sort(self, message: Message) -> None:
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
            self.limits = _merged(self.limits, params.get("rateLimits"))
            return
        with self._lock:
            messages = self._threads.get(str(params.get("threadId")))
        if number is not None and (messages is None or method != "item/tool/call"):
            # An approval or a question: there is nobody to ask.
            refusal: Json = {"code": -32601, "message": "not supported"}
            self._send({"id": number, "error": refusal})
        elif messages is not None:
            messages.put(message)


def _staying(program: Program, feed: ProgramFeed) -> Program:
    make = functools.partial(
        Program, program.argv, program.cwd, program.env, program.mark, math.inf
    )
    return make(
        kill_after_s=program.kill_after_s, output_bytes=sys.maxsize, feed=feed, boxed=program.boxed
    )


def _merged(known: Json, more: Json) -> Json:
    """Limits as they stand after an update, in which what is not told is null."""
    if not isinstance(more, Mapping):
        return known
    told = {name: value for name, value in more.items() if value is not None}
    return {**(known if isinstance(known, dict) else {}), **told}
