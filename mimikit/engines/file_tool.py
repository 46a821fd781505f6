"""Reads, writes and edits files for a Worker: runs in its sandbox, JSON on stdin and stdout."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

MAX_BYTES = 10 * 2**20
MAX_SHOWN_CHARACTERS = 16_000
_LINES = 1000


class _FileError(Exception):
    """Reported to the model."""


def execute(call: dict[str, Any]) -> dict[str, str]:
    path = Path(call["path"])
    try:
        if call["tool"] == "read_file":
            text = _read(path, call.get("offset") or 1, call.get("limit") or _LINES)
        elif call["tool"] == "write_file":
            text = _write(path, call["content"])
        else:
            text = _edit(path, call["old"], call["new"], every=bool(call.get("replace_all")))
    except _FileError as error:
        return {"error": str(error)}
    except UnicodeError:
        return {"error": f"{path}: expected UTF-8 text, got something else; use the shell"}
    except OSError as error:
        return {"error": f"{path}: {error.strerror or error}"}
    return {"text": text}


def _content(path: Path) -> str:
    # O_NONBLOCK: opening a pipe would block.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise _FileError(f"{path}: expected a file, got something else; use the shell")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _FileError(f"{path}: expected at most {MAX_BYTES:,} bytes; use the shell")
    return data.decode()


def _read(path: Path, offset: int, limit: int) -> str:
    lines = _content(path).splitlines(keepends=True)
    text, last = "", offset - 1
    for line in lines[offset - 1 : offset - 1 + limit]:
        if len(text) + len(line) > MAX_SHOWN_CHARACTERS:
            break
        text, last = text + line, last + 1
    if last < offset and offset <= len(lines):  # a single line beyond the limit
        text, last = lines[offset - 1][:MAX_SHOWN_CHARACTERS], offset
    if offset == 1 and last == len(lines):
        return text or "(empty file)"
    return f"{text}\n(lines {offset} to {last} of {len(lines)}; give offset and limit for others)"


def _write(path: Path, content: str) -> str:
    is_new = not path.exists()
    if not is_new and not path.is_file():
        raise _FileError(f"{path}: expected a file, got something else")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(content)
    return f"{'created' if is_new else 'replaced'} {path}: {len(content.splitlines())} lines"


def _edit(path: Path, old: str, new: str, *, every: bool) -> str:
    text = _content(path)
    if not old or (count := text.count(old)) == 0:
        raise _FileError(f"{path}: expected `old` to be in the file, found it nowhere; read it")
    if count > 1 and not every:
        raise _FileError(
            f"{path}: expected `old` to occur once, found it {count} times; give more of the "
            "text around it, or replace_all"
        )
    _write(path, text.replace(old, new))
    return f"changed {path}: {count} {'place' if count == 1 else 'places'}"


if __name__ == "__main__":
    json.dump(execute(json.load(sys.stdin)), sys.stdout)
