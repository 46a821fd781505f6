"""How two texts differ, line by line. Pure; no text of any kind makes it take long."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

from mimikit.protocol.diffs import DiffHunk

AROUND = 3
"""Lines shown before and after a change."""
MOST_LINES = 2000
"""Of the hunks of one file."""
MOST_CHARACTERS = 131_072
"""The same, in characters."""
MOST_OF_LINE = 2000
_MOST_PAIRS = 1_000_000
"""Lines of one side times those of the other which are compared each with each."""

Lines: TypeAlias = Sequence[bytes]
Change: TypeAlias = tuple[int, int, int, int]
"""First and end of the lines that went, first and end of those that came."""


def is_binary(data: bytes) -> bool:
    """By the sign that git and grep go by."""
    return b"\0" in data[:8000]


def lines_of(data: bytes) -> list[bytes]:
    """Its lines, each with its end as far as it has one."""
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def changes_of(old: Lines, new: Lines) -> list[Change]:
    """What went and what came, in order; between two changes the lines are equal."""
    found: list[Change] = []
    for change in _changes(old, new, (0, len(old), 0, len(new))):
        last = found[-1] if found else None
        if last is not None and last[1] == change[0] and last[3] == change[2]:
            found[-1] = (last[0], change[1], last[2], change[3])
        else:
            found.append(change)
    return found


def _changes(old: Lines, new: Lines, span: Change) -> Iterator[Change]:
    """Equal ends are passed over, lines found once on each side divide what is long."""
    spans = [span]
    while spans:
        a, a_end, b, b_end = spans.pop()
        while a < a_end and b < b_end and old[a] == new[b]:
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        if a == a_end and b == b_end:
            continue
        if a == a_end or b == b_end:
            yield a, a_end, b, b_end
        elif (a_end - a) * (b_end - b) <= _MOST_PAIRS:
            yield from _compared(old, new, (a, a_end, b, b_end))
        elif anchors := _anchors(old, new, (a, a_end, b, b_end)):
            parts: list[Change] = []
            for x, y in [*anchors, (a_end, b_end)]:
                parts.append((a, x, b, y))
                a, b = min(x + 1, a_end), min(y + 1, b_end)
            spans += reversed(parts)
        else:
            yield a, a_end, b, b_end


def _compared(old: Lines, new: Lines, span: Change) -> Iterator[Change]:
    a, a_end, b, b_end = span
    matcher = SequenceMatcher(None, old[a:a_end], new[b:b_end])
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            yield a + i, a + i_end, b + j, b + j_end


def _anchors(old: Lines, new: Lines, span: Change) -> list[tuple[int, int]]:
    """Lines that stand once on each side, as many as are in the same order: patience diff."""
    a, a_end, b, b_end = span
    here, there = Counter(old[a:a_end]), Counter(new[b:b_end])
    places = {line: j for j, line in enumerate(new[b:b_end], b) if there[line] == 1}
    pairs = [
        (i, places[line])
        for i, line in enumerate(old[a:a_end], a)
        if here[line] == 1 and line in places
    ]
    tails: list[int] = []  # the end of the best row of each length, by its place in `pairs`
    values: list[int] = []
    before = list[int]()
    for number, (_, j) in enumerate(pairs):
        at = bisect_left(values, j)
        before.append(tails[at - 1] if at else -1)
        values[at : at + 1], tails[at : at + 1] = [j], [number]
    row: list[tuple[int, int]] = []
    number = tails[-1] if tails else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def hunks_of(old: Lines, new: Lines, changes: Sequence[Change]) -> tuple[list[DiffHunk], int]:
    """The changes with lines around them, within bounds; and how many lines are left out."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * AROUND:
            groups[-1].append(change)
        else:
            groups.append([change])
    found: list[DiffHunk] = []
    lines_left, left, cut = MOST_LINES, MOST_CHARACTERS, 0
    for group in groups:
        lines, old_span, new_span = _lines_of(old, new, group)
        fit = 0
        for line in lines:
            if fit >= lines_left or left < len(line):
                break
            fit, left = fit + 1, left - len(line)
        lines_left, cut = lines_left - fit, cut + len(lines) - fit
        if fit:
            found.append(
                DiffHunk(
                    old_start=old_span[0] + (old_span[1] > old_span[0]),
                    old_lines=old_span[1] - old_span[0],
                    new_start=new_span[0] + (new_span[1] > new_span[0]),
                    new_lines=new_span[1] - new_span[0],
                    lines=lines[:fit],
                )
            )
        if fit < len(lines):
            lines_left = 0
    return found, cut


def _lines_of(
    old: Lines, new: Lines, group: Sequence[Change]
) -> tuple[list[str], tuple[int, int], tuple[int, int]]:
    """The lines of one hunk as they are shown, and where it lies on each side."""
    a, b = max(0, group[0][0] - AROUND), group[0][2] - (group[0][0] - max(0, group[0][0] - AROUND))
    a_end = min(len(old), group[-1][1] + AROUND)
    b_end = group[-1][3] + a_end - group[-1][1]
    shown, at = list[str](), a
    for i, i_end, j, j_end in group:
        shown += _signed(" ", old[at:i]) + _signed("-", old[i:i_end]) + _signed("+", new[j:j_end])
        at = i_end
    return shown + _signed(" ", old[at:a_end]), (a, a_end), (b, b_end)


def _signed(sign: str, lines: Lines) -> list[str]:
    shown: list[str] = []
    for line in lines:
        text = line.removesuffix(b"\n").decode(errors="backslashreplace")
        if more := max(0, len(text) - MOST_OF_LINE):
            text = f"{text[:MOST_OF_LINE]} … ({more} more characters)"
        shown.append(sign + text)
        if not line.endswith(b"\n"):
            shown.append("\\ No newline at end of file")
    return shown
