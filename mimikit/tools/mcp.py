"""Serves the tools of a turn over MCP: `POST /mcp` on loopback, a bearer token for each turn.

Stateless JSON answers only, no streams. What a tool does and who may call it is not known here:
each token stands for a list of tools and a function that carries them out. Whatever comes in, the
answer is a 4xx or a JSON-RPC answer, never a 5xx.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

from mimikit import __version__
from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.errors import BadRecord, MimikitError
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.watch import LastingThread

PROTOCOLS = ("2025-11-25", "2025-06-18")
"""Versions of MCP that are spoken, newest first."""
PATH = "/mcp"
MAX_BODY_BYTES = 2**20
_CLIENT_TIMEOUT_S = 30
_LINGER_S = 1
_MAX_LINGER_BYTES = 8 * 2**20
_REMEMBERED_CALLS = 256
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32601, -32602

_Object: TypeAlias = "dict[str, Json]"
Call: TypeAlias = Callable[[str, _Object], ToolReply]
OnRefused: TypeAlias = Callable[[dict[str, str]], None]


class _Turn:
    """What a token stands for. Its calls are made one at a time."""

    def __init__(self, specs: Sequence[ToolSpec], call: Call) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._call = call
        self._calling = threading.Lock()
        self._replies: dict[str, Future[ToolReply]] = {}
        self._remembering = threading.Lock()

    def call(self, name: str, arguments: _Object, key: str | None) -> ToolReply:
        """Make a call; one that carries the key of an earlier one gets the earlier's answer."""
        with self._remembering:
            known = self._replies.get(key) if key else None
            reply = known or Future[ToolReply]()
            if key and not known:
                self._replies[key] = reply
                if len(self._replies) > _REMEMBERED_CALLS:
                    del self._replies[next(iter(self._replies))]
        if known:
            return known.result()
        result = ToolReply(ok=False, text="the call failed")
        try:
            with self._calling:
                result = self._call(name, arguments)
        except Exception as error:  # noqa: BLE001 - a tool's fault is told to the model
            result = ToolReply(ok=False, text=f"{name} failed: {type(error).__name__}")
        finally:
            reply.set_result(result)
        return result


class ToolServer(ThreadingHTTPServer):
    """The server. `start` it once; `register` the tools of a turn, `unregister` them after it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, on_refused: OnRefused | None = None) -> None:
        """Bind to `port` of loopback (0: any); `on_refused` is told of each request refused.

        Raises:
            OSError: the port is taken.
        """
        self._turns: dict[str, _Turn] = {}
        """By the digest of a token: how long a look takes tells nothing of it."""
        self.on_refused = on_refused
        self._thread = LastingThread("tool-server")
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def start(self) -> None:
        """Serve from now on, on threads of its own."""
        self._thread.begin(lambda: self.serve_forever(0.5))

    def stop(self) -> None:
        """Serve no more; the port is free afterwards."""
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
        """Offer tools to the holder of the token given back.

        `call(name, arguments)` is made from other threads, one call of a token at a time.
        """
        token = secrets.token_urlsafe(32)
        self._turns[_digest(token)] = _Turn(specs, call)
        return token

    def unregister(self, token: str) -> None:
        """Make a token worthless; a call that has begun still ends."""
        self._turns.pop(_digest(token), None)

    @contextlib.contextmanager
    def offered(self, specs: Sequence[ToolSpec], call: Call) -> Generator[tuple[str, str]]:
        """Offer tools while this lasts: gives where, and the token."""
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
    """A request is answered with this status and reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # what can not be read is answered in full too
    server_version = "mimikit"
    sys_version = ""
    timeout = _CLIENT_TIMEOUT_S
    server: ToolServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Nothing: the audit has what matters."""

    def do_POST(self) -> None:
        try:
            turn = self._admit()
            body = self._body()
        except _Refusal as refusal:
            self._refuse(refusal.status, str(refusal))
            return
        status, answer = respond(turn, body)
        self._send(status, None if answer is None else json.dumps(answer).encode())

    def do_GET(self) -> None:
        """Clients of MCP look for a stream: there is none, and their connection stays."""
        size = self.headers.get("content-length", "0")
        if size == "0" and "transfer-encoding" not in self.headers:
            with contextlib.suppress(_Refusal):
                self._admit(sends=False)
                self._send(HTTPStatus.METHOD_NOT_ALLOWED, None, {"allow": "POST"})
                return
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what the base class can not read, and every method but POST; never a 5xx."""
        del explain
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST")
        elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._refuse(HTTPStatus.BAD_REQUEST, message or "expected HTTP/1.1")
        else:
            self._refuse(status, message or status.phrase)

    def _admit(self, *, sends: bool = True) -> _Turn:
        """The turn a request belongs to, if it comes from where and whom it should.

        Only programs on this machine: no page in a browser, however it is called by name.
        """
        if self.path != PATH:
            raise _Refusal(HTTPStatus.NOT_FOUND, f"expected {PATH}")
        port = self.server.port
        ours = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        hosts = self.headers.get_all("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in ours:
            raise _Refusal(HTTPStatus.FORBIDDEN, "expected this server's own host name")
        origins = self.headers.get_all("origin", [])
        if any(origin.lower() not in {f"http://{host}" for host in ours} for origin in origins):
            raise _Refusal(HTTPStatus.FORBIDDEN, "expected no other origin")
        if self.headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin"):
            raise _Refusal(HTTPStatus.FORBIDDEN, "expected no other site")
        kind = self.headers.get_content_type() if "content-type" in self.headers else ""
        if sends and kind != "application/json":
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        given = self.headers.get_all("authorization", [])
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        turn = self.server.turn_of(token.strip())
        if scheme.lower() != "bearer" or turn is None:
            raise _Refusal(HTTPStatus.UNAUTHORIZED, "expected the token of a running turn")
        return turn

    def _body(self) -> bytes:
        sizes = self.headers.get_all("content-length", [])
        if len(sizes) != 1 or "transfer-encoding" in self.headers:
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "expected one content-length")
        if not (sizes[0].isascii() and sizes[0].isdigit()):
            raise _Refusal(HTTPStatus.BAD_REQUEST, "expected a content-length in digits")
        size = int(sizes[0]) if len(sizes[0]) < 10 else MAX_BODY_BYTES + 1
        if size > MAX_BODY_BYTES:
            said = f"expected at most {MAX_BODY_BYTES} bytes"
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)
        body = self.rfile.read(size)
        if len(body) != size:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "expected the whole body")
        if self.headers.get("mcp-protocol-version", PROTOCOLS[0]) not in PROTOCOLS:
            said = f"expected MCP {' or '.join(PROTOCOLS)}"
            raise _Refusal(HTTPStatus.BAD_REQUEST, said)
        return body

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answer with the reason, and tell; the connection ends, as its rest may not be read."""
        self.close_connection = True
        facts = {
            "reason": reason,
            "status": str(int(status)),
            "method": str(getattr(self, "command", None))[:20],
            "path": str(getattr(self, "path", None))[:200],
        }
        headers = getattr(self, "headers", None)
        if headers is not None:
            facts["host"] = str(headers.get("host"))[:200]
            facts["origin"] = str(headers.get("origin"))[:200]
        if self.server.on_refused:
            with contextlib.suppress(MimikitError):  # a full disk does not open the door
                self.server.on_refused(facts)
        more = {"allow": "POST"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        if status == HTTPStatus.UNAUTHORIZED:
            more = {"www-authenticate": "Bearer"}
        self._send(status, json.dumps({"error": reason}).encode(), more)
        # A client that is cut off while it sends never reads its answer: take in the rest.
        size = str(headers.get("content-length")) if headers else ""
        left = int(size) if size.isascii() and size.isdigit() and len(size) < 10 else 0
        self.connection.settimeout(_LINGER_S)
        with contextlib.suppress(OSError):
            while 0 < left <= _MAX_LINGER_BYTES and (data := self.rfile.read1(65536)):
                left -= len(data)

    def _send(
        self, status: HTTPStatus, data: bytes | None, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (more or {}).items():
            self.send_header(name, value)
        if data is not None:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data or b"")))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if data and getattr(self, "command", None) != "HEAD":
            self.wfile.write(data)


def respond(turn: _Turn, body: bytes) -> tuple[HTTPStatus, _Object | None]:
    """The status and JSON-RPC answer to one message."""
    try:
        message = parse_object(body)
    except BadRecord as error:
        return HTTPStatus.BAD_REQUEST, _error(None, _PARSE_ERROR, str(error))
    method, number = message.get("method"), message.get("id")
    if message.get("jsonrpc") != "2.0":
        return HTTPStatus.BAD_REQUEST, _error(None, _INVALID_REQUEST, 'expected jsonrpc "2.0"')
    if method is None and ("result" in message or "error" in message):
        return HTTPStatus.ACCEPTED, None
    if not isinstance(method, str):
        return HTTPStatus.BAD_REQUEST, _error(None, _INVALID_REQUEST, "expected a method")
    if "id" not in message:
        return HTTPStatus.ACCEPTED, None
    if isinstance(number, bool) or not isinstance(number, (str, int)):
        said = "expected an id that is a text or a whole number"
        return HTTPStatus.BAD_REQUEST, _error(None, _INVALID_REQUEST, said)
    params = message.get("params", {})
    if not isinstance(params, dict):
        return HTTPStatus.OK, _error(number, _INVALID_PARAMS, "params: expected an object")
    meta = params.get("_meta")
    # A model's own call: when it is repeated, the same body comes again.
    is_own = isinstance(meta, dict) and "callId" in meta
    key = hashlib.sha256(body).hexdigest() if is_own else None
    return HTTPStatus.OK, _answer(turn, method, number, params, key)


def _answer(
    turn: _Turn, method: str, number: str | int, params: _Object, key: str | None
) -> _Object:
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
            if not isinstance(name, str):
                return _error(number, _INVALID_PARAMS, "params.name: expected a text")
            if not isinstance(arguments, dict | None):
                return _error(number, _INVALID_PARAMS, "params.arguments: expected an object")
            if name in turn.specs:
                reply = turn.call(name, arguments or {}, key)
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
