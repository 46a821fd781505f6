"""A service that takes notifications: HTTP on loopback, as Apprise's `json://` calls it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast


class Receiver:
    """Keeps what arrives; what goes to `/refuse…` is refused."""

    def __init__(self) -> None:
        self.arrived: list[dict[str, Any]] = []
        self.answers = threading.Event()
        """Cleared: what arrives is kept and answered once it is set again."""
        self.answers.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        cast("Any", self._server).receiver = self
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str = "/in") -> str:
        return f"json://127.0.0.1:{self._server.server_port}{path}"

    @property
    def text(self) -> str:
        """All that arrived."""
        return "\n".join(f"{it['title']}\n{it['message']}" for it in self.arrived)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        cast("Any", self.server).receiver.answers.wait(300)
        is_refused = self.path.startswith("/refuse")
        if not is_refused:
            cast("Any", self.server).receiver.arrived.append(json.loads(body))
        self.send_response(401 if is_refused else 200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nothing: its address is a secret in these tests."""
