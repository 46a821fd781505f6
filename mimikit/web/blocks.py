"""Cuts markdown that grows where nothing that follows changes what came before.

Looked at is only where a block may have ended: after a blank line, at what the next line begins
with, and at the end of a fence. What is looked at is what no block holds yet, and of much of that
not each time, so that a text of any length costs about what its parsing at once does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mimikit.views.drafts import WholeBlock
from mimikit.web.markdown import block_tokens

if TYPE_CHECKING:
    from markdown_it.token import Token

_BLANK = re.compile(r"\n[ \t]*\n")
_BLANKS = re.compile(r"(?:[ \t]*\n)*")
_ENDED_BY_BLANK = frozenset(
    {"paragraph_open", "heading_open", "hr", "table_open", "blockquote_open"}
)
_MAY_GO_ON = " \t-+*0123456789"
"""With these a line may belong to the list or code before the blank line."""
_LARGE = 1000
_GROWN = 1.25


class MarkdownSplitter:
    """See `BlockSplitter`: a text that begins at a block, and what has come of it since."""

    def __init__(self) -> None:
        self.rest = ""
        self._looked = 0
        """Up to here `rest` was looked at."""
        self._after_blank = False
        self._fence: re.Pattern[str] | None = None
        """While a fence is open: how it ends."""
        self._parsed = 0
        """So much of `rest` was parsed last."""

    def feed(self, text: str) -> Iterator[WholeBlock]:
        """Those that this text makes whole, in order."""
        self.rest += text
        while (end := self._next_end()) is not None:
            upto, known = end
            if (cut := self._cut(upto, whole_line=known == upto)) > 0:
                block = WholeBlock(self.rest[:cut], self.rest[cut:known])
                self.rest = self.rest[cut:]
                self._looked = max(0, self._looked - cut)
                self._parsed = 0
                yield block

    def _next_end(self) -> tuple[int, int] | None:
        """Where a block may end, and up to where the text had to come to see it; None: nowhere."""
        if self._fence is not None:
            return self._end_of_fence(self._fence)
        if self._after_blank:
            return self._begin_of_line()
        found = _BLANK.search(self.rest, max(0, self._looked - 1))
        if found is None:
            self._looked = max(self._looked, self.rest.rfind("\n"), 0)
            return None
        self._looked, self._after_blank = found.end(), True
        return found.end(), found.end()

    def _begin_of_line(self) -> tuple[int, int] | None:
        blanks = _BLANKS.match(self.rest, self._looked)
        begin = blanks.end() if blanks else self._looked
        first = self.rest[begin : begin + 1]
        if not first or (first in " \t" and not self.rest[begin:].strip(" \t")):
            self._looked = begin
            return None
        self._looked, self._after_blank = begin, False
        return self._next_end() if first in _MAY_GO_ON else (begin, begin + 1)

    def _end_of_fence(self, fence: re.Pattern[str]) -> tuple[int, int] | None:
        found = fence.search(self.rest, self._looked)
        if found is None:
            self._looked = self.rest.rfind("\n") + 1
            return None
        self._fence, self._looked, self._after_blank = None, found.end() - 1, False
        return found.end(), found.end()

    def _cut(self, upto: int, *, whole_line: bool) -> int:
        """Up to where the first `upto` characters are whole blocks; 0: nowhere yet."""
        if whole_line and _LARGE < upto < self._parsed * _GROWN:
            return 0
        self._parsed = upto
        text = self.rest[:upto]
        tokens = [token for token in block_tokens(text) if token.level == 0 and token.map]
        if not tokens:
            return 0
        last = tokens[-1]
        begin, end = last.map or [0, 0]
        lines = text.split("\n")
        start = sum(map(len, lines[:begin])) + begin
        if last.type == "fence" and not _is_closed(last, lines[begin:end]):
            self._fence = _closing(last)
            self._looked = start + len(lines[begin]) + 1
        elif last.type == "fence" or not whole_line or last.type in _ENDED_BY_BLANK:
            return upto
        return start


def _closing(fence: Token) -> re.Pattern[str]:
    sign, least = re.escape(fence.markup[0]), len(fence.markup)
    return re.compile(rf"^ {{0,3}}{sign}{{{least},}}[ \t]*\n", re.MULTILINE)


def _is_closed(fence: Token, lines: list[str]) -> bool:
    return len(lines) > 1 and _closing(fence).fullmatch(f"{lines[-1]}\n") is not None
