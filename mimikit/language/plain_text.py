"""Text from programs, files and models, made harmless to show, put together, and cut."""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterable
from typing import Protocol

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

# Markdown's signs, as they stand in a line that is not rendered.
_SIGN = re.compile(r"[|#`*>]|\]\(|<!--|^…?[ \t]*[-_]{3}|~~~", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TABLE_RULE = re.compile(r"…?(?=[^|]*\|)(?=.*(?:--|:-|-:|\|-\|))[\s|:-]+…?")
_RULE = re.compile(r"…?\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})…?")
_FENCE = re.compile(r"\s*(?:```+|~~~+)[\w+#.-]*\s*")
_HEADING = re.compile(r"^(…?)\s*(?:#{1,6}|>(?:\s*>)*)\s+")
_BAR = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"(?<![A-Za-z0-9_)\]])!?\[([^\]\[]+)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_BOLD = re.compile(r"\*\*(?=\S)([^\n*]*[^\s*])\*\*")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?=\S)([^\n`]*[^\s`])\1")
_BREAK = re.compile(r"<br\s*/?>")


class NamedFile(Protocol):
    @property
    def name(self) -> str: ...


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


def plain_words(markdown: str) -> str:
    """The words of a stretch of markdown, also of one cut out of its middle, line by line.

    Signs around words, addresses of links, lines and bars of tables, fences and comments are left
    out: where nothing is rendered they only disturb. What may be text of its own stays.
    """
    if not _SIGN.search(markdown):
        return markdown
    lines = _COMMENT.sub("", markdown).split("\n")
    in_table = any(map(_TABLE_RULE.fullmatch, lines))
    signs = (_TABLE_RULE, _RULE, _FENCE)
    kept = [line for line in lines if not any(sign.fullmatch(line) for sign in signs)]
    rows = [_is_row(line, in_table) for line in kept]
    words: list[str] = []
    for line, is_row, goes_on in zip(kept, rows, [*rows, False][1:], strict=True):
        # Where lines run together, rows stay apart.
        words.append(_words_of_line(line, is_row) + ";" * (is_row and goes_on))
    return "\n".join(words)


def _is_row(line: str, in_table: bool) -> bool:
    """`in_table`: one stands near, and a line with bars is one of its rows."""
    begins, ends = line.lstrip()[:1], line.rstrip()[-1:]
    is_framed = begins in ("|", "…") and ends in ("|", "…") and "|" in (begins, ends)
    return is_framed or (in_table and "|" in line)


def _words_of_line(line: str, is_row: bool) -> str:
    if is_row:
        cells = (cell.replace("\\|", "|").strip() for cell in _BAR.split(line))
        line = " · ".join(cell for cell in cells if cell)
    line = _LINK.sub(r"\1", _HEADING.sub(r"\1", line))
    return _BREAK.sub(" ", _CODE.sub(r"\2", _BOLD.sub(r"\1", line)))


def first_line(text: str, most: int = 80) -> str:
    """The first line that says something, cut to a title's length."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 1] + "…"


def ending(text: str, most: int) -> tuple[str, int]:
    """The last `most` characters, and how many bytes of text stand before them."""
    kept = text[-most:]
    return kept, len(text[: len(text) - len(kept)].encode(errors="replace"))


def with_names(text: str, files: Iterable[NamedFile]) -> str:
    """What was said, and what the files are called that went with it: also where that was all."""
    names = ", ".join(file.name for file in files)
    return "\n".join(filter(None, [text, f"(with {names})" if names else ""]))


def size_words(size: int) -> str:
    """A size in bytes as it is read: `800 bytes`, `12 kB`, `3.2 MB`."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:,.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


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
