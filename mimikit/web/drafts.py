"""The complete blocks of a reply in progress: each is rendered once, when nothing can change it.

Link definitions are the exception: other blocks know them only in the whole message.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from mimikit.log import streamed_reply, utf16_length
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.views.snapshot import DraftBlock
from mimikit.web.markdown import MAX_CHARACTERS, block_tokens, render

if TYPE_CHECKING:
    from markdown_it.token import Token

_NOWHERE = re.compile(r"(?!)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
# Lists and indented code go on after a blank line, unless the next line starts like this.
_AFTER_LIST = re.compile(r"(?<=\n)\n(?=[^\s\-+*0-9])")
_LISTS = frozenset({"bullet_list_open", "ordered_list_open", "code_block"})
_SHORT = 500


class DraftSplitter:
    """Cuts markdown that grows into complete blocks and a rest."""

    def __init__(self) -> None:
        self.rest = ""
        self._end = _NOWHERE
        """Matches where the last block of `rest` certainly ends."""
        self._parse_from = 0

    def feed(self, text: str) -> list[str]:
        """The blocks that `text` completes."""
        last_line = max(self.rest.rfind("\n"), 0)
        begins_line = "\n" in self.rest[-1:] + text
        self.rest += text
        # A long rest is parsed only at an end or when it has grown, so that the cost stays linear.
        has_grown = len(self.rest) >= self._parse_from
        if begins_line and (has_grown or self._end.search(self.rest, last_line)):
            return self._cut()
        return []

    def _cut(self) -> list[str]:
        lines = self.rest.split("\n")
        blocks = block_tokens("\n".join(lines[:-1]))
        self._end = _NOWHERE
        if blocks:
            after_first_line = len("\n".join(lines[: _lines_of(blocks[-1])[0] + 1]))
            end = _end_of(blocks[-1])
            if not end.search(self.rest, after_first_line):
                self._end = end
                blocks.pop()
        found, start = list[str](), 0
        for block in blocks:
            end_line = _lines_of(block)[1]
            while not lines[end_line - 1].strip():
                end_line -= 1
            found.append("\n".join([*lines[start:end_line], ""]))
            start = end_line
        self.rest = "\n".join(lines[start:])
        self._parse_from = len(self.rest) * 3 // 2 if len(self.rest) > _SHORT else 0
        return found


def _lines_of(block: Token) -> list[int]:
    return block.map or [0, 0]


def _end_of(block: Token) -> re.Pattern[str]:
    if block.type == "fence":
        return re.compile(rf"\n {{0,3}}{block.markup[0]}{{{len(block.markup)},}}[ \t]*\n")
    return _AFTER_LIST if block.type in _LISTS else _BLANK_LINE


class DraftBlocks:
    """The blocks of the reply in progress, for all pages. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._begin("")

    def _begin(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self._units = b""
        """What has come, in UTF-16, as the offsets count."""
        self._splitter = DraftSplitter()
        self._found: list[tuple[int, DraftBlock]] = []
        """Each with the offset up to which the text had come when it was complete."""

    def completed_by(self, turn_id: str, text: str, offset: int) -> list[DraftBlock]:
        """The blocks that a part of the reply completes."""
        with self._lock:
            if turn_id != self._turn_id or not self._take(text, offset):
                self._begin(turn_id)
                # One whose beginning is no longer there has no blocks.
                streamed, end = streamed_reply(self._files, turn_id)
                self._take(streamed, end - utf16_length(streamed))
                if not self._take(text, offset):
                    return []
            end = offset + utf16_length(text)
            return [block for at, block in self._found if offset < at <= end]

    def _take(self, text: str, offset: int) -> bool:
        """Add what is new of a part; False if what is known is another text there."""
        units = text.encode("utf-16-le", "surrogatepass")
        known = self._units[2 * offset : 2 * offset + len(units)]
        new = units[len(known) :]
        if not units.startswith(known):
            return False
        if new and 2 * offset <= len(self._units) <= 2 * MAX_CHARACTERS:
            self._units += new
            at = self._found[-1][1].end if self._found else 0
            added = new.decode("utf-16-le", "surrogatepass").replace("\r", " ")
            for text_ in self._splitter.feed(added):
                block = DraftBlock(start=at, end=at + utf16_length(text_), html=render(text_))
                self._found.append((len(self._units) // 2, block))
                at = block.end
        return True
