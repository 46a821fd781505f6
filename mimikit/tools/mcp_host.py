"""Speaks with servers of tools, by the SDK of MCP: a program of its own, without mimikit's modules.

A line of its input is an order, a line of its output what came of the one with its `id`:

    {"id": 1, "method": "list", "server": {…}}
        → {"id": 1, "tools": […], "left": 0}
    {"id": 2, "method": "call", "server": {…}, "tool": "…", "arguments": {…}}
        → {"id": 2, "text": "…", "cut": 0, "left": {"image": 1}, "isError": false}
    {"id": 2, "method": "cancel"}
        gives up what is done for that order

or `{"id": …, "error": "…"}`. A server is `{name, command, env, cwd}` or `{name, url, headers}`,
with `startS` and `timeoutS`. The first order that names it has it started or greeted; it stays.
Whoever started this holds its input open: when that is closed, it ends, and all it started. Its
argument is how many bytes of memory it may take: a server may send an answer without end.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from anyio.abc import Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client import Client
    from mcp.shared.message import SessionMessage
    from mcp.types import CallToolResult

PACKAGE = "mcp"
_MOST_PAGES, _MOST_TOOLS = 20, 128
_MOST_LISTED = 1000
"""Tools of one page that are looked at: each takes kilobytes."""
_MOST_SCHEMA, _MOST_DESCRIPTION = 20_000, 4000
_MOST_TEXT = 200_000
_LINE_BYTES = 16 * 2**20
_MOST_UNASKED = 20_000
"""Lines that a server may send before it is asked something again."""
_A_REQUEST = 20
"""So many lines a request of its own counts for: each is answered, and held until then."""
_LOOK_S, _GO_S, _END_S = 0.5, 2.0, 6.0
_COMPLAINTS_BYTES = 2000
_ERROR = 1000
_HTTP_S = 3600.0
"""An answer may be waited for as long as any call may take; a call has a time of its own."""
_GONE = frozenset({-32000, -32600})
"""The connection was closed; the server knows nothing of the session any more."""


class _Complaints:
    """The end of what a server writes to its standard error, and what is to be said of it here."""

    def __init__(self) -> None:
        reader, writer = os.pipe()
        self.file = os.fdopen(writer, "w", encoding="utf-8")
        self._end = b""
        self.note = ""
        """What was odd since it was last asked something."""
        self._thread = threading.Thread(target=self._read, args=(reader,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read what is still to come, unless something that is left holds it open."""
        self.file.close()
        self._thread.join(_LOOK_S)

    def text(self) -> str:
        lines = self._end.decode(errors="replace").strip().splitlines()
        return " / ".join([*lines[-3:], *filter(None, [self.note])])

    def _read(self, reader: int) -> None:
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while data := pipe.read(65536):
                self._end = (self._end + data)[-_COMPLAINTS_BYTES:]


class _Session:
    """One server that is spoken with, on a task of its own."""

    def __init__(self, server: dict[str, Any]) -> None:
        self.server = server
        self.client: Client | None = None
        self.complaints = _Complaints()
        self.fault: str | None = None
        self.is_settled, self.is_over = asyncio.Event(), asyncio.Event()
        self._stop = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    def told(self, fault: str) -> str:
        """A fault, with what the server said of it."""
        said = self.complaints.text()
        return f"{fault}; it said: {said}" if said else fault

    @property
    def serves(self) -> bool:
        return self.fault is None and not self._stop.is_set()

    async def live(self) -> None:
        """Start the server or greet it, and keep it until it is to stop."""
        import anyio

        start_s = float(self.server["startS"])
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + start_s) as scope:
                async with _client(self.server, self.complaints) as client:
                    scope.deadline = math.inf
                    self.client = client
                    self.is_settled.set()
                    await self._stop.wait()
            if scope.cancelled_caught:
                self.fault = f"it was not ready within {start_s:g} s"
        except Exception as error:  # noqa: BLE001 - told to who asks, whatever it is
            self.fault = _words(error)
        finally:
            await asyncio.to_thread(self.complaints.close)
            self.fault = self.told(self.fault or "it was ended")
            self.is_settled.set()
            self.is_over.set()


@contextlib.asynccontextmanager
async def _client(server: dict[str, Any], complaints: _Complaints) -> AsyncGenerator[Client]:
    """A client that has greeted the server, which is offered nothing of ours: no file, no model."""
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with contextlib.AsyncExitStack() as stack:
        if "url" in server:

            async def hear(response: httpx2.Response) -> None:
                if response.is_error:  # what is told of it otherwise does not say which
                    complaints.note = f"HTTP {response.status_code}"

            http = httpx2.AsyncClient(
                headers=server["headers"], timeout=_HTTP_S, event_hooks={"response": [hear]}
            )
            await stack.enter_async_context(http)
            transport = streamable_http_client(server["url"], http_client=http)
        else:
            transport = _started(server, complaints)
        client = await stack.enter_async_context(Client(transport, cache=None))
        # It would hold what comes against patterns of the server's own, which may take for ever.
        client.session.validate_tool_result = _unchecked
        yield client


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Only the text of a result is told, as it is."""
    del name, result


@contextlib.asynccontextmanager
async def _started(
    server: dict[str, Any], complaints: _Complaints
) -> AsyncGenerator[
    tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]
]:
    """Start a server, whose output and input are streams of messages; ends it afterwards.

    The SDK's own way to do so takes a line of any length, and copies it with each piece that comes.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await anyio.open_process(
        server["command"],
        env=get_default_environment() | server["env"],
        cwd=server["cwd"],
        stderr=complaints.file,
        start_new_session=True,
    )
    pipes = _Pipes(process, complaints)
    async with anyio.create_task_group() as group:
        group.start_soon(pipes.hear)
        group.start_soon(pipes.say)
        try:
            yield pipes.read, pipes.write
        finally:
            with anyio.CancelScope(shield=True):
                await pipes.end()
            group.cancel_scope.cancel()


class _Pipes:
    """What is said to a server that was started, and what it says."""

    def __init__(self, process: Process, complaints: _Complaints) -> None:
        import anyio

        self._process, self._complaints = process, complaints
        self._heard, self.read = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        self.write, self._to_say = anyio.create_memory_object_stream["SessionMessage"](0)
        self._unasked = 0

    async def hear(self) -> None:
        """Pass on each line; one without end, or lines without end, end the session."""
        import anyio

        async with self._heard:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._hear()

    async def _hear(self) -> None:
        line = bytearray()
        async for data in cast("Any", self._process.stdout):
            *ends, rest = data.split(b"\n")
            for end in ends:
                await self._pass_on(bytes(line + end))
                line.clear()
            line += rest
            self._unasked += len(ends)
            if len(line) > _LINE_BYTES or self._unasked > _MOST_UNASKED:
                what = f"{_MOST_UNASKED:,} messages that nobody asked for"
                what = f"{_LINE_BYTES:,} bytes in one line" if len(line) > _LINE_BYTES else what
                self._complaints.note = f"(more than {what})"
                return

    async def say(self) -> None:
        import anyio

        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for one in self._to_say:
                if hasattr(one.message, "method"):  # an answer of ours asks for nothing
                    self._unasked = 0
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await cast("Any", self._process.stdin).send(text.encode(errors="replace") + b"\n")
            return
        self._heard.close()  # whoever waits for an answer hears that none comes

    async def end(self) -> None:
        """Close its input; what has not ended in its time is ended with all it started."""
        import anyio

        for stream in (self.read, self.write):
            stream.close()
        with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await cast("Any", self._process.stdin).aclose()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with anyio.move_on_after(_GO_S):
                await self._process.wait()
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
        with anyio.move_on_after(_GO_S):
            await self._process.aclose()

    async def _pass_on(self, line: bytes) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp.types import JSONRPCNotification as Notification
        from mcp.types import JSONRPCRequest as Request
        from mcp.types import JSONRPCResponse as Response
        from mcp.types import jsonrpc_message_adapter

        if not line.lstrip().startswith(b"{"):  # what a program prints besides
            return
        text = line.decode(errors="replace")
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError as error:
            why = " ".join(str(error).split())[:200]
            self._complaints.note = f"(a message that can not be read: {why})"
            return
        if isinstance(message, Notification):  # none is of use here
            return
        self._unasked += _A_REQUEST * isinstance(message, Request)
        if isinstance(message, Response) and isinstance(message.result.get("tools"), list):
            del message.result["tools"][_MOST_LISTED:]
        # Where nobody listens any more the rest is taken in, so that it can end.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._heard.send(SessionMessage(message))


class _Host:
    """Carries out orders, each on a task of its own."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._sessions: dict[str, _Session] = {}
        self._orders: dict[int, asyncio.Task[None]] = {}
        self._lives: set[asyncio.Task[None]] = set()

    async def serve(self, lines: asyncio.Queue[bytes | None]) -> None:
        self._tell({"id": 0})  # no order's: it has begun
        while (line := await lines.get()) is not None:
            order = json.loads(line)
            number = order["id"]
            if order["method"] == "cancel":
                if (known := self._orders.get(number)) is not None:
                    known.cancel()
                continue
            task = asyncio.create_task(self._carry_out(order))
            self._orders[number] = task
            task.add_done_callback(lambda _, number=number: self._orders.pop(number, None))
        for task in [*self._orders.values()]:
            task.cancel()
        for session in self._sessions.values():
            session.stop()
        if self._lives:
            await asyncio.wait(self._lives, timeout=_END_S)

    async def _carry_out(self, order: dict[str, Any]) -> None:
        session = self._session(order["server"])
        answer: dict[str, Any] = {}
        timeout_s = float(order["server"]["timeoutS"])
        session.complaints.note = ""
        try:
            await session.is_settled.wait()
            if session.client is None or session.fault is not None:
                answer = {"error": session.fault}
            else:
                do = _listed if order["method"] == "list" else _called
                async with asyncio.timeout(timeout_s):
                    answer = await do(session.client, order)
        except TimeoutError:
            answer = {"error": session.told(f"no answer within {timeout_s:g} s")}
        except Exception as error:  # noqa: BLE001 - told to who asks, whatever it is
            answer = {"error": _words(error)}
            if _is_gone(error):
                session.stop()
                with contextlib.suppress(TimeoutError):  # of one that died all is read it said
                    await asyncio.wait_for(session.is_over.wait(), _GO_S)
                answer["error"] = f"{session.told(answer['error'])}; the next call starts it anew"
        finally:  # also of what was given up: who asked has gone, and the answer is dropped
            self._tell({"id": order["id"], **answer})

    def _session(self, server: dict[str, Any]) -> _Session:
        """The session with a server; another than before where that has ended, or was changed."""
        known = self._sessions.get(server["name"])
        if known is not None and known.serves and known.server == server:
            return known
        if known is not None:
            known.stop()
        session = self._sessions[server["name"]] = _Session(server)
        life = asyncio.create_task(session.live())
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)
        return session

    def _tell(self, answer: dict[str, Any]) -> None:
        text = json.dumps(answer, ensure_ascii=False)
        data = memoryview(text.encode(errors="replace") + b"\n")
        while data:
            data = data[os.write(self._out, data) :]


async def _listed(client: Client, _order: dict[str, Any]) -> dict[str, Any]:
    """All tools of a server; of too many, and of those too long to be told, how many are left."""
    tools: list[dict[str, Any]] = []
    left, cursor = 0, None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            schema = json.dumps(tool.input_schema)  # a text: one that is odd spoils no other
            if len(tools) >= _MOST_TOOLS or len(schema) > _MOST_SCHEMA:
                left += 1
                continue
            said = (tool.description or "")[:_MOST_DESCRIPTION]
            tools.append({"name": tool.name, "description": said, "schema": schema})
        if not (cursor := page.next_cursor):
            break
    return {"tools": tools, "left": left}


async def _called(client: Client, order: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(order["tool"], order["arguments"])
    left = Counter[str]()
    text = "\n".join(_texts(result, left))
    return {
        "text": text[:_MOST_TEXT],
        "cut": max(0, len(text) - _MOST_TEXT),
        "left": left,
        "isError": result.is_error,
    }


def _texts(result: CallToolResult, left: Counter[str]) -> Iterator[str]:
    """What a result says in words; `left` counts the rest by kind."""
    told = 0
    for block in result.content:
        if block.type == "text":
            told += 1
            yield block.text
        elif block.type == "resource_link":
            told += 1
            yield f"{block.name}: {block.uri}"
        elif block.type == "resource":
            text = getattr(block.resource, "text", None)
            if isinstance(text, str):
                told += 1
                yield text
            else:
                left["file"] += 1
        else:
            left[block.type] += 1
    if not told and result.structured_content is not None:
        yield json.dumps(result.structured_content, ensure_ascii=False)


def _words(error: BaseException) -> str:
    """What went wrong: of several things at once the first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"expected a program, got none: {error.filename}"
    return (str(error) or type(error).__name__)[:_ERROR]


def _is_gone(error: Exception) -> bool:
    """Whether the session is of no use any more; a tool that fails, or answers oddly, still is."""
    from mcp.shared.exceptions import MCPError

    if isinstance(error, MCPError):
        return error.code in _GONE
    return not isinstance(error, RuntimeError | ValueError)


def _read_orders(lines: asyncio.Queue[bytes | None], loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, None)
    time.sleep(2 * _END_S)  # a loop that a server keeps busy hears of no end
    os._exit(1)


def _watch_memory(most_bytes: int) -> None:
    """End at once where too much is held; what was asked is told as lost."""
    statm, page = Path("/proc/self/statm"), os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError):
        while int(statm.read_text("ascii").split()[1]) * page < most_bytes:
            time.sleep(_LOOK_S)
        os.write(2, b"a server sent more than can be held\n")
        os._exit(1)


async def _run(out: int) -> None:
    lines = asyncio.Queue[bytes | None]()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read_orders, args=(lines, loop), daemon=True).start()
    await _Host(out).serve(lines)


def main() -> int:
    logging.disable(logging.CRITICAL)  # a server may have it complain without end
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    threading.Thread(target=_watch_memory, args=(int(sys.argv[1]),), daemon=True).start()
    importlib.import_module(f"{PACKAGE}.client")  # takes seconds, of no server's time
    asyncio.run(_run(out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
