"""Splits a reply in progress into complete blocks of markdown, which the page renders once.

Link definitions are the exception: other blocks know them only in the whole message.
"""

from __future__ import annotations

import re

from mimikit.language.plain_text import utf16_length

_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")
_LIST_OR_INDENTED = re.compile(r"\s|(?:[-+*]|\d{1,9}[.)])(?:\s|$)")


class DraftSplitter:
    """Cuts after a blank line or a code block; after a list only where other text follows."""

    def __init__(self) -> None:
        self._start = 0
        self._block: list[str] = []
        """The whole lines of the block in progress."""
        self._line = ""
        self._after_blank = False
        self._in_list = False
        self._fence_end: re.Pattern[str] | None = None

    def feed(self, text: str) -> tuple[int, str] | None:
        """The blocks that a part of the reply completes, with their offset in UTF-16 code units."""
        first, *others = text.replace("\r", " ").split("\n")
        self._line += first
        complete = ""
        for line in others:
            complete += self._add(self._line)
            self._line = line
        if not complete:
            return None
        start = self._start
        self._start += utf16_length(complete)
        return start, complete

    def _add(self, line: str) -> str:
        """Add a whole line; returns the blocks that end before or with it, if any."""
        is_blank, goes_on = not line.strip(" \t"), _LIST_OR_INDENTED.match(line) is not None
        after_blank, self._after_blank = self._after_blank, is_blank
        if self._fence_end is not None:
            self._block.append(line)
            if self._fence_end.fullmatch(line) is None:
                return ""
            self._fence_end = None
            return "" if self._in_list else self._cut()
        if is_blank:
            self._block.append(line)
            return "" if self._in_list else self._cut()
        complete = self._cut() if after_blank and not goes_on else ""
        self._block.append(line)
        self._in_list |= goes_on
        if fence := _FENCE.fullmatch(line):
            mark = fence[1] or fence[2]
            self._fence_end = re.compile(rf" {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*")
        return complete

    def _cut(self) -> str:
        if not any(map(str.strip, self._block)):
            return ""
        lines, self._block, self._in_list = [*self._block, ""], [], False
        return "\n".join(lines)
