"""Offers the tools of a run over MCP: stateless JSON-RPC by `POST /mcp` on loopback.

Each run has a bearer token of its own, which is valid until the run ends.
"""

from __future__ import annotations

import contextlib
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
"""Supported versions of MCP, newest first."""
PATH = "/mcp"
MAX_BODY_BYTES = 2**20
_CLIENT_TIMEOUT_S = 30
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32601, -32602

_Object: TypeAlias = "dict[str, Json]"
Call: TypeAlias = Callable[[str, _Object], ToolReply]
OnRefused: TypeAlias = Callable[[dict[str, str]], None]


class _Offer:
    """The tools behind one token. Its calls run one at a time."""

    def __init__(self, specs: Sequence[ToolSpec], call: Call) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._call = call
        self._lock = threading.Lock()

    def call(self, name: str, arguments: _Object) -> ToolReply:
        if name not in self.specs:
            known = ", ".join(self.specs) or "none"
            return ToolReply(ok=False, text=f"expected one of {known}; got {name[:100]!r}")
        with self._lock:
            try:
                return self._call(name, arguments)
            except Exception as error:  # noqa: BLE001 - reported to the model
                return ToolReply(ok=False, text=f"{name} failed: {type(error).__name__}")


class ToolServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, on_refused: OnRefused = lambda _facts: None) -> None:
        """Binds to `port` of loopback (0: any free one). Raises OSError if it is in use."""
        self.offers: dict[str, _Offer] = {}
        """By token."""
        self.on_refused = on_refused
        self._thread = CriticalThread("tool-server")
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = int(self.server_address[1])

    def start(self) -> None:
        self._thread.begin(lambda: self.serve_forever(0.5))

    def stop(self) -> None:
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

    @contextlib.contextmanager
    def offered(self, specs: Sequence[ToolSpec], call: Call) -> Generator[tuple[str, str]]:
        """Offer tools while the context lasts; yields the address and the token.

        `call` runs on other threads; a call that has begun still ends.
        """
        token = secrets.token_urlsafe(32)
        self.offers[token] = _Offer(specs, call)
        try:
            yield f"http://127.0.0.1:{self.port}{PATH}", token
        finally:
            del self.offers[token]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that hung up."""


class _Refusal(Exception):
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "mimikit"
    sys_version = ""
    timeout = _CLIENT_TIMEOUT_S
    server: ToolServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Nothing: refusals are in the audit log."""

    def do_POST(self) -> None:
        try:
            offer = self._authorize()
            answer = respond(offer, self._body())
        except _Refusal as refusal:
            self._refuse(refusal)
            return
        status = HTTPStatus.ACCEPTED if answer is None else HTTPStatus.OK
        if answer and answer.get("id") is None:
            status = HTTPStatus.BAD_REQUEST
        self._send(status, b"" if answer is None else json.dumps(answer).encode())

    def do_GET(self) -> None:
        """MCP clients probe for an event stream; there is none."""
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"")

    def _authorize(self) -> _Offer:
        """The tools of the request's token. Pages in a browser are refused by their headers."""
        headers, port = self.headers, self.server.port
        if self.path != PATH:
            raise _Refusal(HTTPStatus.NOT_FOUND, f"expected {PATH}")
        hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if headers.get("host", "").lower() not in hosts:
            raise _Refusal(HTTPStatus.FORBIDDEN, "expected this server's own host name")
        if "origin" in headers and headers["origin"].lower() not in {f"http://{h}" for h in hosts}:
            raise _Refusal(HTTPStatus.FORBIDDEN, "expected no other origin")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        offer = self.server.offers.get(token.strip())
        if scheme.lower() != "bearer" or offer is None:
            raise _Refusal(HTTPStatus.UNAUTHORIZED, "expected the token of a running turn")
        return offer

    def _body(self) -> bytes:
        size = self.headers.get("content-length", "")
        if not size.isdecimal():
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "expected a content-length")
        if int(size) > MAX_BODY_BYTES:
            message = f"expected at most {MAX_BODY_BYTES} bytes"
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        return self.rfile.read(int(size))

    def _refuse(self, refusal: _Refusal) -> None:
        """Answer with the reason, and end the connection, as its rest may not have been read."""
        self.close_connection = True
        facts = {"reason": str(refusal), "status": str(int(refusal.status))}
        facts |= {"method": self.command[:20], "path": self.path[:200]}
        facts |= {name: str(self.headers.get(name))[:200] for name in ("host", "origin")}
        with contextlib.suppress(MimikitError):  # a full disk must not admit anyone
            self.server.on_refused(facts)
        self._send(refusal.status, json.dumps({"error": str(refusal)}).encode())

    def _send(self, status: HTTPStatus, data: bytes) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("allow", "POST")
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("www-authenticate", "Bearer")
        if data:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)


def respond(offer: _Offer, body: bytes) -> _Object | None:
    """The JSON-RPC answer to one message; None if none is due, without an id if it is invalid."""
    try:
        message = parse_object(body)
    except BadRecord as error:
        return _error(None, _PARSE_ERROR, str(error))
    match message:
        case {"jsonrpc": "2.0", "method": str()} if "id" not in message:
            return None
        case {"jsonrpc": "2.0", "result": _} | {"jsonrpc": "2.0", "error": _}:
            return None
        case {"jsonrpc": "2.0", "method": str(method), "id": (str() | int()) as number} if (
            not isinstance(number, bool)
        ):
            params = message.get("params", {})
            if isinstance(params, dict):
                return _answer(offer, method, number, params)
            return _error(number, _INVALID_PARAMS, "params: expected an object")
        case _:
            return _error(None, _INVALID_REQUEST, "expected a request of JSON-RPC 2.0")


def _answer(offer: _Offer, method: str, number: str | int, params: _Object) -> _Object:
    result: _Object = {}
    match method:
        case "initialize":
            version = params.get("protocolVersion")
            result = {
                "protocolVersion": version if version in PROTOCOLS else PROTOCOLS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "mimikit", "version": __version__},
                "instructions": "The tools of this turn: " + ", ".join(offer.specs),
            }
        case "ping":
            pass
        case "tools/list":
            result["tools"] = [
                {"name": spec.name, "description": spec.description, "inputSchema": spec.schema}
                for spec in offer.specs.values()
            ]
        case "tools/call":
            name, arguments = params.get("name"), params.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, dict | None):
                message = "params: expected a name and an object of arguments"
                return _error(number, _INVALID_PARAMS, message)
            reply = offer.call(name, arguments or {})
            content: list[Json] = [{"type": "text", "text": reply.text}]
            result = {"content": content, "isError": not reply.ok}
        case _:
            return _error(number, _NO_METHOD, f"method {method[:100]!r} is not known here")
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: str | int | None, code: int, message: str) -> _Object:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
