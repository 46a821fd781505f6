"""A model server that says what a test tells it to: Responses and Chat Completions, both streamed.

    with FakeLLM([{"mcp": ["mimikit", "reply", {"text": "hi"}]}, {"text": "done"}]) as llm:
        ...  # point an engine at llm.url

Each model request uses up one step; the last one repeats. A step is a dict, or a function of the
request that gives one:

    {"text": "..."}                    an assistant's message
    {"reasoning": "...", "text": ...}  a summary of thoughts, then a message
    {"call": {"name", "arguments"}}    a function call (a list: several at once)
    {"custom": {"name", "input"}}      a free-form call
    {"mcp": [server, tool, {...}]}     a call of an MCP tool, in the form the request offers it
    {"tools": [[tool, {...}], ...]}    calls of our tools, likewise; arguments that are a text are
                                       sent as they are, JSON or not
    {"shell": "command"}               a call of the shell tool the request offers
    {"status": 429, "body", "headers"} an HTTP error
    {"failed": {"code", "message"}}    HTTP 200, then a failure in the stream
    {"hang": seconds}                  headers, then nothing
    {"drop": True}                     the stream ends too early

    {"raw": "bytes of a stream"}       HTTP 200, then just that
    {"endless": "an event"}            HTTP 200, then that again and again

A request without a body looks whether the API is there, and uses no step. `apis` names those that
are: else 404. `models` is what it lists.

Any step may add "delay" (seconds before the answer), "chunk_delay" and "usage".
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

Body = dict[str, Any]
Step = Body | Callable[[Body], Body]

SHELL_TOOLS: dict[str, Callable[[str], Body]] = {
    "exec_command": lambda line: {"cmd": line},
    "shell_command": lambda line: {"command": line},
    "shell": lambda line: {"command": ["bash", "-lc", line]},
    "bash": lambda line: {"command": line, "description": "run it"},
    "mimikit_shell": lambda line: {"command": line},
}
USAGE = {
    "input_tokens": 100,
    "output_tokens": 10,
    "total_tokens": 110,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens_details": {"reasoning_tokens": 4},
}


def tool_specs(body: Body) -> list[Body]:
    """Every tool of a request, also those handed in by an input item."""
    items = [item for item in body.get("input") or [] if isinstance(item, dict)]
    later = [item["tools"] for item in items if item.get("type") == "additional_tools"]
    return [*(body.get("tools") or []), *itertools.chain.from_iterable(later)]


def tool_names(body: Body) -> list[str]:
    """Every tool a request offers; `namespace/name` for those in a namespace."""
    names: list[str] = []
    for tool in tool_specs(body):
        if tool.get("type") == "namespace":
            names += [f"{tool['name']}/{inner['name']}" for inner in tool.get("tools", [])]
        elif "function" in tool:
            names.append(tool["function"]["name"])
        else:
            names.append(tool.get("name") or tool["type"])
    return names


def tool_outputs(body: Body) -> list[str]:
    """What tools have answered, as a request tells it to the model, oldest first."""
    told = [m["content"] for m in body.get("messages") or [] if m["role"] == "tool"]
    for item in body.get("input") or []:
        if isinstance(item, dict) and str(item.get("type")).endswith("_call_output"):
            output = item["output"]
            parts = output if isinstance(output, list) else [{"text": output}]
            told.append("".join(str(part.get("text", "")) for part in parts))
    return told


class FakeLLM:
    """The server; `requests` and `headers` hold what it was asked."""

    probe: ClassVar[Body | None] = {"error": {"message": "model is required"}}
    """The answer to a request without a body; None: as to any other."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        apis: Sequence[str] = ("/responses", "/chat/completions"),
        models: Sequence[Body] = ({"id": "fake-model"},),
        key: str | None = None,
        port: int = 0,
    ) -> None:
        self.steps = list(steps)
        self.apis, self.models, self.key = tuple(apis), list(models), key
        self.looks: list[str] = []
        """Where it was looked whether an API is there."""
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        """Set once a request has arrived."""
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._count = itertools.count()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.fake = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def play(self, *steps: Step) -> None:
        """Begin anew with other steps; what was asked until now is forgotten."""
        with self._lock:
            self.steps, self.requests, self.headers = list(steps), [], []
        self.asked.clear()

    def next_step(self, body: Body, headers: dict[str, str]) -> Body:
        with self._lock:
            step = self.steps[min(len(self.requests), len(self.steps) - 1)]
            self.requests.append(body)
            self.headers.append(headers)
        self.asked.set()
        return step(body) if callable(step) else step

    def responses(self, body: Body, step: Body) -> Iterator[Body]:
        """The events of the Responses API for one step."""
        number = next(self._count)
        head = {"id": f"resp_{number}", "status": "in_progress"}
        yield {"type": "response.created", "response": head}
        if "failed" in step:
            failed = {**head, "status": "failed", "error": step["failed"]}
            yield {"type": "response.failed", "response": failed}
            return
        items = list(_items(body, step, number))
        for index, item in enumerate(items):
            yield from _item_events(index, item, drop=bool(step.get("drop")))
        if not step.get("drop"):
            done = {"status": "completed", "output": items, "usage": step.get("usage") or USAGE}
            yield {"type": "response.completed", "response": {**head, **done}}

    def chat(self, body: Body, step: Body) -> Iterator[Body]:
        """The chunks of Chat Completions for one step."""
        number = next(self._count)
        if "failed" in step:
            yield {"error": step["failed"]}
            return

        def chunk(delta: Body, finish: str | None = None) -> Body:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return {
                "id": f"chatcmpl-{number}",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": body.get("model", "fake-model"),
                "choices": [choice],
            }

        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(step.get("text", "")):
            yield chunk({"content": piece})
            if step.get("drop"):
                return
        called = _calls(body, step)
        for index, call in enumerate(called):
            function = {"name": call["name"], "arguments": _arguments(call)}
            one = {"index": index, "id": f"call_{number}_{index}", "type": "function"}
            yield chunk({"tool_calls": [{**one, "function": function}]})
        yield chunk({}, "tool_calls" if called else "stop")
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        yield {**chunk({}), "choices": [], "usage": usage}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    fake: FakeLLM

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        pass

    def do_GET(self) -> None:
        if self._is_let_in():
            self._json(200, {"object": "list", "data": self.server.fake.models, "models": []}, {})

    def do_POST(self) -> None:
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if not self.path.partition("?")[0].endswith(fake.apis):
            fake.looks.append(self.path)
            self._json(404, {"detail": "Not Found"}, {})
            return
        if not self._is_let_in():
            return
        if not body and fake.probe is not None:
            fake.looks.append(self.path)
            self._json(400, fake.probe, {})
            return
        step = fake.next_step(body, dict(self.headers))
        fake.closing.wait(step.get("delay", 0))
        try:
            self._answer(body, step)
        except ConnectionError:
            self.close_connection = True

    def _is_let_in(self) -> bool:
        key = self.server.fake.key
        if key is None or self.headers["authorization"] == f"Bearer {key}":
            return True
        error = {"message": "Incorrect API key provided", "code": "invalid_api_key"}
        self._json(401, {"error": error}, {})
        return False

    def _answer(self, body: Body, step: Body) -> None:
        fake = self.server.fake
        if "status" in step:
            error = {"message": "scripted error", "type": "server_error", "code": None}
            answer = step.get("body", {"error": error})
            self._json(step["status"], answer, step.get("headers", {}))
        elif "/chat/completions" in self.path:
            self._stream(fake.chat(body, step), step, end=b"data: [DONE]\n\n")
        else:
            self._stream(fake.responses(body, step), step, end=b"")

    def _json(self, status: int, answer: Any, headers: dict[str, str]) -> None:
        page = isinstance(answer, str)
        data = answer.encode() if page else json.dumps(answer).encode()
        self.send_response(status)
        kind = "text/html" if page else "application/json"
        sizes = {"content-type": kind, "content-length": str(len(data))}
        for name, value in {**sizes, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Body], step: Body, *, end: bytes) -> None:
        closing = self.server.fake.closing
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        if "hang" in step:
            closing.wait(step["hang"])
            return
        if "raw" in step:
            self.wfile.write(step["raw"].encode())
            return
        while "endless" in step and not closing.is_set():
            self.wfile.write(step["endless"].encode())
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
            closing.wait(step.get("chunk_delay", 0))
        if not step.get("drop"):
            self.wfile.write(end)


def _pieces(text: str) -> list[str]:
    """The text in the pieces it is streamed in; joined they are the text again."""
    return re.findall(r"\S*\s*", text)[:-1]


def _script(tool: str, arguments: Body) -> Body:
    """A call by a model that reaches every tool through one that runs JavaScript."""
    call = f"await tools.{tool}({json.dumps(arguments)})"
    source = f"try {{ text({call}); }} catch (error) {{ text('ERROR ' + error); }}"
    return {"namespace": "functions", "name": "exec", "input": source}


def _calls(body: Body, step: Body) -> list[Body]:
    """The calls a step asks for, each in the form this request offers."""
    calls = step.get("call", [])
    calls = list(calls) if isinstance(calls, list) else [calls]
    if "custom" in step:
        calls.append(step["custom"])
    names = tool_names(body)
    if "shell" in step:
        calls.append(_shell_call(names, step["shell"]))
    if "mcp" in step:
        calls.append(_mcp_call(names, *step["mcp"]))
    calls += [_mcp_call(names, "mimikit", *one) for one in step.get("tools", [])]
    return calls


def _arguments(call: Body) -> str:
    given = call.get("arguments", {})
    return given if isinstance(given, str) else json.dumps(given)


def _shell_call(names: list[str], line: str) -> Body:
    name = next((name for name in names if name in SHELL_TOOLS), "exec_command")
    arguments = SHELL_TOOLS[name](line)
    by_script = "functions/exec" in names
    return _script(name, arguments) if by_script else {"name": name, "arguments": arguments}


def _mcp_call(names: list[str], server: str, tool: str, arguments: Body) -> Body:
    if "functions/exec" in names:
        return _script(f"mcp__{server}__{tool}", arguments)
    if f"mcp__{server}/{tool}" in names:
        return {"namespace": f"mcp__{server}", "name": tool, "arguments": arguments}
    flat = (f"mcp__{server}__{tool}", f"{server}_{tool}")
    return {"name": next((n for n in flat if n in names), tool), "arguments": arguments}


def _items(body: Body, step: Body, number: int) -> Iterator[Body]:
    if "reasoning" in step:
        summary = [{"type": "summary_text", "text": step["reasoning"]}]
        yield {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
    if "text" in step:
        content = [{"type": "output_text", "text": step["text"], "annotations": []}]
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        yield {**message, "status": "completed", "content": content}
    for index, call in enumerate(_calls(body, step)):
        free = "input" in call
        said = (
            {"type": "custom_tool_call", "input": call["input"]}
            if free
            else {"type": "function_call", "arguments": _arguments(call)}
        )
        ids = {"id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}"}
        space = {"namespace": call["namespace"]} if call.get("namespace") else {}
        yield {**said, **ids, "status": "completed", "name": call["name"], **space}


def _item_events(index: int, item: Body, *, drop: bool) -> Iterator[Body]:
    place = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "message":
        empty = {**item, "status": "in_progress", "content": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for piece in _pieces(item["content"][0]["text"]):
            delta = {"content_index": 0, "delta": piece}
            yield {"type": "response.output_text.delta", **place, **delta}
            if drop:
                return
    elif item["type"] == "reasoning":
        empty = {**item, "summary": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        delta = {"summary_index": 0, "delta": item["summary"][0]["text"]}
        yield {"type": "response.reasoning_summary_text.delta", **place, **delta}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}
