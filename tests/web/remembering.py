"""Sample memory files, and helpers that write them to disk and over HTTP."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Response

from mimikit.memory.notes import content_hash
from tests.web.conftest import Web

RAW = """\
# 2026-01-28

## 09:30 user <!-- msg-1 2026-01-28T01:30:00.123Z -->

Look:

```sh
never closed

## 09:31 agent <!-- msg-2 2026-01-28T01:31:00.000Z -->

\\## 09:30 user <!-- msg-1 2026-01-28T01:30:00.123Z -->
**done** <script>alert(1)</script>

- The user likes tea. <!-- note-1 -->
- And pie. <!-- note-2 -->
"""
SUMMARY = """\
# Summary of 2026-01-20

<!-- part sum-1: from msg-1, memory/2026-01-20.md -->
The *first*.

<!-- part sum-2: from msg-9 -->
The second.
"""


def write(web: Web, path: str, text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    web.files.write(path, data)
    return content_hash(data.decode("utf-8", "replace"))


def put(web: Web, path: str, text: Any, hash_: Any = None, **how: Any) -> Response:
    return web.ask("PUT", f"/api/memory/{path}", {"text": text, "hash": hash_}, **how)
