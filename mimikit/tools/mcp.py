"""Serves the tools of a turn over MCP: `POST /mcp` on loopback, with a bearer token per turn.

Stateless JSON answers, no streams. A token stands for a list of tools and a function that carries
them out. Whatever comes in, the answer is a 4xx or a JSON-RPC answer, never a 5xx.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Generator, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

from mimikit import __version__
from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.errors import BadRecord, MimikitError
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.watch import CriticalThread

PROTOCOLS = ("2025-11-25", "2025-06-18")
"""Versions of MCP that are spoken, newest first."""
PATH = "/mcp"
MAX_BODY_BYTES = 2**20
_CLIENT_TIMEOUT_S = 30
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32601, -32602

_Object: TypeAlias = "dict[str, Json]"
Call: TypeAlias = Callable[[str, _Object], ToolReply]
OnRefused: TypeAlias = Callable[[dict[str, str]], None]


class _Turn:
    """What a token stands for. Its calls are made one at a time."""

    def __init__(self, specs: Sequence[ToolSpec], call: Call) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._call = call
        self._lock = threading.Lock()

    def call(self, name: str, arguments: _Object) -> ToolReply:
        with self._lock:
            try:
                return self._call(name, arguments)
            except Exception as error:  # noqa: BLE001 - reported to the model
                return ToolReply(ok=False, text=f"{name} failed: {type(error).__name__}")


class ToolServer(ThreadingHTTPServer):
    """`start` it once; `register` the tools of a turn, `unregister` them after it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, on_refused: OnRefused = lambda _facts: None) -> None:
        """Bind to `port` of loopback (0: any); `on_refused` is called for each refused request.

        Raises:
            OSError: the port is taken.
        """
        self._turns: dict[str, _Turn] = {}
        """By the digest of a token: how long a look-up takes tells nothing of it."""
        self.on_refused = on_refused
        self._thread = CriticalThread("tool-server")
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def start(self) -> None:
        self._thread.begin(lambda: self.serve_forever(0.5))

    def stop(self) -> None:
        """The port is free afterwards."""
        if self._thread.thread is not None:
            self.shutdown()
            self._thread.join()
            self._thread.thread = None
        self.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def register(self, specs: Sequence[ToolSpec], call: Call) -> str:
        """Offer tools to the holder of the returned token; `call` runs on other threads."""
        token = secrets.token_urlsafe(32)
        self._turns[_digest(token)] = _Turn(specs, call)
        return token

    def unregister(self, token: str) -> None:
        """A call that has begun still ends."""
        self._turns.pop(_digest(token), None)

    @contextlib.contextmanager
    def offered(self, specs: Sequence[ToolSpec], call: Call) -> Generator[tuple[str, str]]:
        """Offer tools while this lasts: gives the address and the token."""
        token = self.register(specs, call)
        try:
            yield self.url, token
        finally:
            self.unregister(token)

    def turn_of(self, token: str) -> _Turn | None:
        return self._turns.get(_digest(token))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class _Refusal(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # malformed requests get a full answer too
    server_version = "mimikit"
    sys_version = ""
    timeout = _CLIENT_TIMEOUT_S
    server: ToolServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Nothing: the audit log has what matters."""

    def do_POST(self) -> None:
        try:
            turn = self._authorize()
            answer = respond(turn, self._body())
        except _Refusal as refusal:
            self._refuse(refusal.status, str(refusal))
            return
        status = HTTPStatus.ACCEPTED if answer is None else HTTPStatus.OK
        if answer and answer.get("id") is None:
            status = HTTPStatus.BAD_REQUEST
        self._send(status, None if answer is None else json.dumps(answer).encode())

    def do_GET(self) -> None:
        """Clients of MCP look for a stream: there is none, and their connection stays open."""
        try:
            self._authorize(has_body=False)
        except _Refusal:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST")
        else:
            self.close_connection = self.headers.get("content-length", "0") != "0"
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, None)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what the base class cannot read, and every method but POST; never a 5xx."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST")
        else:
            self._refuse(code if code < 500 else 400, message or "expected HTTP/1.1")

    def _authorize(self, *, has_body: bool = True) -> _Turn:
        """The turn of the request's token; only programs on this machine, no page of a browser."""
        headers, port = self.headers, self.server.port
        if self.path != PATH:
            raise _Refusal(404, f"expected {PATH}")
        hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        given = headers.get_all("host", [])
        if len(given) != 1 or given[0].lower() not in hosts:
            raise _Refusal(403, "expected this server's own host name")
        origins = {origin.lower() for origin in headers.get_all("origin", [])}
        if origins - {f"http://{host}" for host in hosts}:
            raise _Refusal(403, "expected no other origin")
        if headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin"):
            raise _Refusal(403, "expected no other site")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise _Refusal(415, "expected application/json")
        credentials = headers.get_all("authorization", [])
        scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
        turn = self.server.turn_of(token.strip())
        if scheme.lower() != "bearer" or turn is None:
            raise _Refusal(401, "expected the token of a running turn")
        return turn

    def _body(self) -> bytes:
        sizes = self.headers.get_all("content-length", [])
        if len(sizes) != 1 or "transfer-encoding" in self.headers:
            raise _Refusal(411, "expected one content-length")
        if not (sizes[0].isascii() and sizes[0].isdigit()):
            raise _Refusal(400, "expected a content-length in digits")
        if len(sizes[0]) > 9 or int(sizes[0]) > MAX_BODY_BYTES:
            raise _Refusal(413, f"expected at most {MAX_BODY_BYTES} bytes")
        body = self.rfile.read(int(sizes[0]))
        if len(body) != int(sizes[0]):
            raise _Refusal(400, "expected the whole body")
        if self.headers.get("mcp-protocol-version", PROTOCOLS[0]) not in PROTOCOLS:
            raise _Refusal(400, f"expected MCP {' or '.join(PROTOCOLS)}")
        return body

    def _refuse(self, status: int, reason: str) -> None:
        """Answer with the reason, and end the connection, as its rest may not have been read."""
        self.close_connection = True
        facts = {"reason": reason, "status": str(int(status))}
        facts |= {"method": str(self.command)[:20], "path": str(getattr(self, "path", ""))[:200]}
        if (headers := getattr(self, "headers", None)) is not None:
            facts |= {"host": str(headers.get("host"))[:200]}
            facts |= {"origin": str(headers.get("origin"))[:200]}
        with contextlib.suppress(MimikitError):  # a full disk must not admit anyone
            self.server.on_refused(facts)
        self._send(status, json.dumps({"error": reason}).encode())

    def _send(self, status: int, data: bytes | None) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("allow", "POST")
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("www-authenticate", "Bearer")
        if data is not None:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data or b"")))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if data and self.command != "HEAD":
            self.wfile.write(data)


def respond(turn: _Turn, body: bytes) -> _Object | None:
    """The JSON-RPC answer to one message, without an id if it is no request; None: none is due."""
    try:
        message = parse_object(body)
    except BadRecord as error:
        return _error(None, _PARSE_ERROR, str(error))
    match message:
        case {"jsonrpc": "2.0", "method": str()} if "id" not in message:
            return None
        case {"jsonrpc": "2.0", "result": _} | {"jsonrpc": "2.0", "error": _}:
            return None
        case {
            "jsonrpc": "2.0",
            "method": str(method),
            "id": (str() | int()) as number,
        } if not isinstance(number, bool):
            params = message.get("params", {})
            if isinstance(params, dict):
                return _answer(turn, method, number, params)
            return _error(number, _INVALID_PARAMS, "params: expected an object")
        case _:
            return _error(None, _INVALID_REQUEST, "expected a request of JSON-RPC 2.0")


def _answer(turn: _Turn, method: str, number: str | int, params: _Object) -> _Object:
    result: _Object = {}
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            result = {
                "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "mimikit", "version": __version__},
                "instructions": "The tools of this turn: " + ", ".join(turn.specs),
            }
        case "ping":
            pass
        case "tools/list":
            result["tools"] = [
                {"name": spec.name, "description": spec.description, "inputSchema": spec.schema}
                for spec in turn.specs.values()
            ]
        case "tools/call":
            name, arguments = params.get("name"), params.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, dict | None):
                message = "params: expected a name and an object of arguments"
                return _error(number, _INVALID_PARAMS, message)
            if name in turn.specs:
                reply = turn.call(name, arguments or {})
            else:
                known = ", ".join(turn.specs) or "none"
                reply = ToolReply(ok=False, text=f"expected one of {known}; got {name[:100]!r}")
            content: list[Json] = [{"type": "text", "text": reply.text}]
            result = {"content": content, "isError": not reply.ok}
        case _:
            return _error(number, _NO_METHOD, f"method {method[:100]!r} is not known here")
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: str | int | None, code: int, message: str) -> _Object:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
