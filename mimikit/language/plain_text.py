"""Text from programs, files and models, made harmless to show, put together, and cut."""

from __future__ import annotations

import codecs
import re
from collections import deque

# ESC with what belongs to it: strings for the system or device, cursor and colour codes, the rest.
_ESCAPE = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
# Control characters but tab and newline, and those that turn the direction of reading around.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# From the start of a line only: tried at each character, a long line would take for ever.
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)


def plain(text: str) -> str:
    """`text` without escapes and control characters; of a line written over, what was last seen."""
    text = _ESCAPE.sub("", text).replace("\r\n", "\n")
    return _CONTROL.sub("", _OVERWRITTEN.sub("", text))


def indented(text: str) -> str:
    """A text whose further lines are set in, whatever ends them.

    What begins at the margin of a list is so the list's own: no text forges an entry of it.
    """
    return "\n  ".join(text.splitlines())


# An escape, or a line end, of which only the beginning has come.
_UNFINISHED = re.compile(
    r"(?:\x1b[\]PX^_][^\x07\x1b]{0,200}\x1b?"
    r"|(?:\x1b\[|\x9b)[0-?]{0,50}[ -/]{0,10}"
    r"|\x1b[ -/]{0,10}"
    r"|\r)\Z"
)


class PlainStream:
    """Turns bytes as they come into plain text; what is cut in two is put together again."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """The text of these bytes, as far as it can be told already."""
        text = self._held + self._decode(data, last)
        cut = None if last else _UNFINISHED.search(text, max(0, len(text) - 256))
        self._held = cut.group() if cut else ""
        return plain(text[: cut.start()] if cut else text)


class TextTail:
    """The last `limit` characters of a text that is too long to keep."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: deque[str] = deque()
        self._kept = 0
        self.total = 0
        """Characters seen."""

    def add(self, text: str) -> None:
        self.total += len(text)
        self._parts.append(text[-self._limit :])
        self._kept += len(self._parts[-1])
        while self._kept - len(self._parts[0]) >= self._limit:
            self._kept -= len(self._parts.popleft())
        if len(self._parts) > 4096:
            self._parts = deque(["".join(self._parts)])

    def text(self) -> str:
        joined = "".join(self._parts)
        return joined[len(joined) - self._limit :] if len(joined) > self._limit else joined


class LineReader:
    """Cuts bytes into lines; one longer than `limit` bytes is left out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes end, without their newline."""
        lines: list[bytes] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._take(end)
            if self._size <= self._limit:
                lines.append(b"".join(self._parts))
            self._parts, self._size = [], 0
        self._take(rest)
        return lines

    def _take(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)
