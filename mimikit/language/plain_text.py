"""Sanitizes text from programs, files and models for display; decodes and cuts streams."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable
from io import StringIO

from mimikit.language.screen import MOVE, rendered

# Escape sequences: OSC, DCS and other strings; CSI; the rest.
_ESCAPE = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
# Control characters but tab and newline, and invisible ones: text direction, zero-width spaces,
# tags (hidden ASCII), and the other format characters of Unicode (Cf).
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f]"
)
# Joiners after scripts without joining, and repeated joiners or variation selectors.
_NEEDLESS = re.compile(
    r"(?<=[\x00-\u05ff\u200c\u200d])[\u200c\u200d]"
    r"|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def plain(text: str) -> str:
    """Remove escape sequences, control and invisible characters; overwrite as a terminal does.

    Joiners of Persian, Indic scripts and emoji stay, and variation selectors; emoji made of tags
    (the flag of Scotland) become simpler.
    """
    return _without_joiners(_CONTROL.sub("", rendered(_without_escapes(text))))


def for_screen(text: str) -> str:
    """Like `plain`, but with what moves the cursor: for a `ScreenText`."""
    kept = _CONTROL.sub(lambda match: match[0] * (match[0] in _MOVERS), _without_escapes(text))
    return _without_joiners(kept)


def _without_joiners(text: str) -> str:
    return text if text.isascii() else _NEEDLESS.sub("", whole_characters(text))


def whole_characters(text: str) -> str:
    """Join halves of UTF-16 characters, as JSON may hold them; replace those without the other."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_MOVERS = "\r\b\x1b\x9b"


def _without_escapes(text: str) -> str:
    """Without escape sequences, but for those that move the cursor."""
    return _ESCAPE.sub(lambda match: match[0] if MOVE.fullmatch(match[0]) else "", text)


def visible(line: str) -> str:
    """Show invisible characters of a line: `‹U+202E›`, `␍`."""
    return _CONTROL.sub(lambda match: f"‹U+{ord(match.group()):04X}›", line.replace("\r", "␍"))


def first_line(text: str, most: int = 80) -> str:
    """The first line that is not blank, cut to `most` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 1] + "…"


def without_printed(error: str, printed: str) -> str:
    """An error; without its further lines if the printed text shows them already."""
    first, _, rest = error.partition("\n")
    return first if rest.strip() and rest.strip() in printed else error


def as_json(value: object, *, indent: int | None = None) -> str:
    """JSON that is safe to print in a terminal: invisible characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _CONTROL.sub(lambda match: json.dumps(match.group())[1:-1], text)


def indented(text: str) -> str:
    """Indent all lines but the first, so that the text cannot forge a list entry."""
    return "  ".join([*text.splitlines(keepends=True)[:-1], *text.splitlines()[-1:]])


# An incomplete escape sequence or line end.
_UNFINISHED = re.compile(
    r"(?:\x1b[\]PX^_][^\x07\x1b]{0,200}\x1b?"
    r"|(?:\x1b\[|\x9b)[0-?]{0,50}[ -/]{0,10}"
    r"|\x1b[ -/]{0,10}"
    r"|\r)\Z"
)


class PlainStream:
    """Decodes chunks of bytes to plain text; escape sequences may span chunks."""

    def __init__(self, convert: Callable[[str], str] = plain) -> None:
        self._convert = convert
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._buffer = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Decode a chunk; an incomplete escape sequence is buffered."""
        text = self._buffer + self._decode(data, last)
        cut = None if last else _UNFINISHED.search(text, max(0, len(text) - 256))
        self._buffer = cut.group() if cut else ""
        return self._convert(text[: cut.start()] if cut else text)


class TextTail:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = StringIO()
        self.total = 0

    def add(self, text: str) -> None:
        self.total += len(text)
        self._kept.write(text[-self._limit :])
        if self._kept.tell() > 2 * self._limit:
            tail, self._kept = self.text(), StringIO()
            self._kept.write(tail)

    def text(self) -> str:
        kept = self._kept.getvalue()
        return kept[max(0, len(kept) - self._limit) :]


class LineReader:
    """Splits chunks of bytes into lines; skips lines longer than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
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


def path_text(path: str) -> str:
    """A path as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def utf16_length(text: str) -> int:
    """The number of code units, as JavaScript counts them."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
