"""Renders lines as a terminal does: carriage return, backspace, cursor moves, erasing. Pure.

So a progress bar shows its last state. Columns are characters, and lines do not wrap.
"""

from __future__ import annotations

import re

MAX_LINE = 4096
"""Characters of a line that may still change; what is longer becomes final."""
_WIDTH = 240
"""A cursor moves at most so far beyond the end of a line."""
_MOVE = r"(?:\x1b\[|\x9b)([0-9]{0,4})(?:;[0-9]{0,4})?([A-HJKf])"
MOVE = re.compile(_MOVE)
"""A sequence that moves the cursor or erases."""
_STEP = re.compile(rf"[\n\r\b]|{_MOVE}")
_REWRITES = re.compile(rf"\r(?!\n)|\x08|{_MOVE}")


def rendered(text: str) -> str:
    """A whole text as a terminal leaves it; other control characters stay."""
    screen = ScreenText()
    return screen.feed(text) + screen.rest()


def highest_move(text: str) -> int:
    """How many lines the cursor goes up at once, at most."""
    moves = MOVE.finditer(text)
    return min(max((int(m[1] or 1) for m in moves if m[2] in "AF"), default=0), 200)


class ScreenText:
    """A growing text whose last lines can be rewritten."""

    def __init__(self, lines: int = 200) -> None:
        """`lines`: how many, from the last one, the cursor can reach."""
        self._limit = lines
        self._rows = [""]
        self._row = self._column = 0
        self._final: list[str] = []

    def feed(self, text: str) -> str:
        """Take text; returns what became final by it."""
        if self._is_at_end() and not _REWRITES.search(text):
            self._append(text.replace("\r\n", "\n"))
        else:
            at = 0
            for step in _STEP.finditer(text):
                self._write(text[at : step.start()])
                self._move(step)
                at = step.end()
            self._write(text[at:])
        final, self._final = "".join(self._final), []
        return final

    def rest(self) -> str:
        return "\n".join(self._rows)

    def reach(self, lines: int) -> None:
        self._limit = max(self._limit, lines)

    def _is_at_end(self) -> bool:
        return self._row == len(self._rows) - 1 and self._column == len(self._rows[-1])

    def _append(self, text: str) -> None:
        first, *more = text.split("\n")
        self._rows[-1] += first
        self._rows += more
        self._row, self._column = len(self._rows) - 1, len(self._rows[-1])
        self._finish()

    def _write(self, text: str) -> None:
        if not text:
            return
        line, start = self._rows[self._row], self._column
        end = start + len(text)
        row = f"{line[:start]:<{start}}{text}{line[end:]}"
        # What is overwritten with blanks is erased.
        self._rows[self._row] = row.rstrip(" ") if start < len(line) <= end else row
        self._column = end
        self._finish()

    def _finish(self) -> None:
        """Make final what is out of reach: the first lines, or all if the last one is too long."""
        count = len(self._rows) - self._limit
        if count > 0:
            self._final.append("\n".join(self._rows[:count]) + "\n")
            del self._rows[:count]
            self._row = max(self._row - count, 0)
        if self._is_at_end() and self._column > MAX_LINE:
            self._final.append(self.rest())
            self._clear()

    def _clear(self) -> None:
        self._rows, self._row, self._column = [""], 0, 0

    def _move(self, step: re.Match[str]) -> None:
        code, number = step[2] or step[0], int(step[1] or 0)
        last, line = len(self._rows) - 1, self._rows[self._row]
        match code:
            case "\n":
                if self._row == last:
                    self._rows.append("")
                self._row, self._column = self._row + 1, 0
                self._finish()
            case "A" | "F":
                self._row = max(self._row - max(number, 1), 0)
            case "B" | "E":
                self._row = min(self._row + max(number, 1), last)
            case "\b" | "D":
                self._column = max(self._column - max(number, 1), 0)
            case "C":
                self._column = min(self._column + max(number, 1), max(len(line), _WIDTH))
            case "\r" | "G":
                self._column = min(max(number - 1, 0), max(len(line), _WIDTH))
            case _:
                self._erase(code, number)
        if code in "EF":
            self._column = 0

    def _erase(self, code: str, number: int) -> None:
        """In the line (K), below (J), or the whole screen (2J; the cursor goes home by H)."""
        line = self._rows[self._row]
        if code in "Hf":
            self._row = self._column = 0
        elif code == "J" and number:
            self._clear()
        elif number == 1:
            self._rows[self._row] = f"{'':{self._column}}{line[self._column :]}"
        else:
            self._rows[self._row] = "" if number == 2 else line[: self._column]
            if code == "J":
                del self._rows[self._row + 1 :]
