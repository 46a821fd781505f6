"""A small server of tools, written with the SDK: `stdio`, or `http KEY`, which prints its port.

Over HTTP it takes only requests with the header `x-key: KEY`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("small")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@server.tool()
def around(path: str) -> str:
    """What the server sees: a folder, and its variables."""
    return json.dumps({"folder": sorted(os.listdir(path)), "env": dict(os.environ)})


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A picture with a word to it."""
    return ["a dot", Image(data=b"\x89PNG\r\n\x1a\n", format="png")]


@server.tool()
def long(size: int) -> str:
    """So many letters."""
    return "x" * size


@server.tool()
def write(path: str) -> str:
    """Write a file."""
    try:
        Path(path).write_text("written", encoding="utf-8")
    except OSError as error:
        return f"not written: {error.strerror}"
    return "written"


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run()
        return
    inner, key = server.streamable_http_app(), sys.argv[2].encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"x-key") != key:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await inner(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)  # noqa: T201 - who started it reads that
    config = uvicorn.Config(guarded, log_level="error", lifespan="on")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
