"""A model's process without a model: it speaks the protocol of `local/model_server.py`.

What it answers stands in the "model" itself: `GGUF`, then JSON, pairs of a pattern and an answer;
the first pattern found in what the user said last counts. The answer `die` ends the process in the
midst of it, `hang` gives nothing more.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def model_file(folder: Path, *rules: tuple[str, object]) -> Path:
    """A "model" that answers so."""
    path = folder / "model.gguf"
    told = [(pattern, it if isinstance(it, str) else json.dumps(it)) for pattern, it in rules]
    path.write_bytes(b"GGUF" + json.dumps(told).encode())
    return path


def main() -> None:
    order = json.loads(sys.stdin.readline())
    try:
        rules = json.loads(Path(order["modelPath"]).read_bytes().removeprefix(b"GGUF"))
    except ValueError as error:
        print(json.dumps({"error": f"no model: {error}"}), flush=True)  # noqa: T201
        return
    threading.Thread(target=_end_with_owner, daemon=True).start()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.headers["authorization"] != f"Bearer {order['key']}":
                self._send(401, b'{"error": "wrong key"}')
                return
            said = body["messages"][-1]["content"]
            answer = next((text for pattern, text in rules if re.search(pattern, said)), "{}")
            if answer == "hang":
                threading.Event().wait()
            pieces = [answer[:12], answer[12:20], answer[20:]]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for piece in pieces:
                self._chunk({"choices": [{"delta": {"content": piece}}]})
                if answer.startswith("die"):
                    os._exit(3)
            usage = {"prompt_tokens": len(str(body)), "completion_tokens": 7}
            self._chunk({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _chunk(self, chunk: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(json.dumps({"port": server.server_port}), flush=True)  # noqa: T201
    server.serve_forever()


def _end_with_owner() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
