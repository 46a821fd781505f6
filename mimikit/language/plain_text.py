"""Text from programs, files and models, made harmless to show, put together, and cut."""

from __future__ import annotations

import codecs
import json
import re
from collections import deque

# ESC with what belongs to it: strings for the system or device, cursor and colour codes, the rest.
_ESCAPE = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
# Control characters but tab and newline; and what is not seen: signs of direction, spaces without
# width, tags (a hidden ASCII), and all else that Unicode calls format and gives no shape (Cf).
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f]"
)
# Joiners where no script joins by them, and of joiners or selectors in a row all but the first.
_NEEDLESS = re.compile(
    r"(?<=[\x00-\u05ff\u200c\u200d])[\u200c\u200d]"
    r"|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# From the start of a line only: tried at each character, a long line would take for ever.
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)


def plain(text: str) -> str:
    """`text` without what is not seen or moves what is; of a line written over, what was last seen.

    The joiners of Persian, of the scripts of India and of emoji stay, and so does a selector of a
    character's variant. What takes tags to be drawn becomes simpler: the flag of Scotland is black.
    """
    text = _ESCAPE.sub("", text).replace("\r\n", "\n")
    return _NEEDLESS.sub("", _CONTROL.sub("", _OVERWRITTEN.sub("", text)))


def visible(line: str) -> str:
    """A line of a file as it is, with what is not seen shown: `‹U+202E›`, and `␍` at its end."""
    return _CONTROL.sub(lambda match: f"‹U+{ord(match.group()):04X}›", line.replace("\r", "␍"))


def first_line(text: str, most: int = 80) -> str:
    """The first line that says something, cut to a title's length."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 1] + "…"


def as_json(value: object, *, indent: int | None = None) -> str:
    """JSON for programs that may be read in a terminal: what is not seen is written as numbers."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _CONTROL.sub(lambda match: json.dumps(match.group())[1:-1], text)


def indented(text: str) -> str:
    """A text whose further lines are set in, whatever ends them; else as it is.

    What begins at the margin of a list is so the list's own: no text forges an entry of it.
    """
    return "  ".join([*text.splitlines(keepends=True)[:-1], *text.splitlines()[-1:]])


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
