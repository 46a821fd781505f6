"""The lines that differ between contents: by `git diff` where git is installed, else by difflib."""

from __future__ import annotations

import difflib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mimikit.protocol.diffs import DiffHunk

MOST_LINES = 2000
"""Of the hunks of one file."""
MOST_CHARACTERS = 131_072
"""The same, in characters."""
MOST_OF_LINE = 2000
MOST_PAIRS = 1_000_000
"""Lines of one side times those of the other that difflib compares; equal ends do not count."""
_AROUND = 3
_NO_END = b"\\ No newline at end of file"
_SAFE = ("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=")
_OPTIONS = ("--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", "-M")

Pair: TypeAlias = tuple[bytes | None, bytes | None]
"""What a file held before and now; None where there is no such file."""


@dataclass(slots=True)
class Difference:
    """How one file differs; of a renamed one `old` and `new` are places of two pairs."""

    old: int
    new: int
    hunks: list[DiffHunk] = field(default_factory=list[DiffHunk])
    unshown: str | None = None
    """`binary`, or `big` where it is too long for difflib."""


def compare(pairs: Sequence[Pair], git: str | None) -> list[Difference]:
    """Every pair that differs. `git`: the program; it never looks at the workspace.

    Raises:
        OSError: no room for the contents, or git failed.
    """
    return _by_git(pairs, git) if git else _by_difflib(pairs)


def _by_git(pairs: Sequence[Pair], git: str) -> list[Difference]:
    with tempfile.TemporaryDirectory() as folder:
        for side, name in enumerate("ab"):
            Path(folder, name).mkdir()
            for number, pair in enumerate(pairs):
                if (content := pair[side]) is not None:
                    Path(folder, name, str(number)).write_bytes(content)
        env = {
            "HOME": folder,
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
        }
        command = [git, *_SAFE, "diff", *_OPTIONS, "a", "b"]
        ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
    if ran.returncode not in (0, 1):
        raise OSError(f"git diff ended with {ran.returncode}: {ran.stderr[:200]!r}")
    found: list[Difference] = []
    for part in re.split(rb"^diff --git ", ran.stdout, flags=re.MULTILINE)[1:]:
        names, *lines = part.removesuffix(b"\n").split(b"\n")
        old, new = (int(name[2:]) for name in names.split())
        is_binary = any(line.startswith(b"Binary files ") for line in lines)
        hunks = [] if is_binary else hunks_of(lines)
        found.append(Difference(old, new, hunks, "binary" if is_binary else None))
    return found


def _by_difflib(pairs: Sequence[Pair]) -> list[Difference]:
    came = {new: number for number, (old, new) in enumerate(pairs) if old is None and new}
    renamed = {
        number: came.pop(old)
        for number, (old, new) in enumerate(pairs)
        if new is None and old in came
    }
    found = [Difference(*both) for both in renamed.items()]
    for number, (old, new) in enumerate(pairs):
        if old == new or number in renamed or number in renamed.values():
            continue
        made = Difference(number, number)
        if any(b"\0" in (side or b"")[:8000] for side in (old, new)):  # git goes by the same sign
            made.unshown = "binary"
        elif (lines := _unified(old or b"", new or b"")) is None:
            made.unshown = "big"
        else:
            made.hunks = lines
        found.append(made)
    return found


def _unified(old: bytes, new: bytes) -> list[DiffHunk] | None:
    """None where comparing takes too long."""
    a, b = _lines(old), _lines(new)
    start = end = 0
    least = min(len(a), len(b))
    while start < least and a[start] == b[start]:
        start += 1
    while end < least - start and a[-1 - end] == b[-1 - end]:
        end += 1
    if (len(a) - start - end) * (len(b) - start - end) > MOST_PAIRS:
        return None
    start, end = max(0, start - _AROUND), max(0, end - _AROUND)
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    lines = difflib.diff_bytes(difflib.unified_diff, a, b, n=_AROUND)
    return [
        hunk.but(old_start=hunk.old_start + start, new_start=hunk.new_start + start)
        for hunk in hunks_of(_with_ends(lines))
    ]


def _lines(content: bytes) -> list[bytes]:
    *whole, last = content.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _with_ends(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line.removesuffix(b"\n")
        if not line.endswith(b"\n"):
            yield _NO_END


def hunks_of(lines: Iterable[bytes]) -> list[DiffHunk]:
    """The hunks of one file's unified diff, whatever stands before them; uncut."""
    found: list[DiffHunk] = []
    for line in lines:
        at = re.match(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
        if at:
            old_start, old, new_start, new = (int(part or 1) for part in at.groups())
            found.append(
                DiffHunk(
                    old_start=old_start, old_lines=old, new_start=new_start, new_lines=new, lines=[]
                )
            )
        elif found:
            text = line.decode(errors="backslashreplace")
            if more := max(0, len(text) - 1 - MOST_OF_LINE):
                text = f"{text[: MOST_OF_LINE + 1]} … ({more} more characters)"
            found[-1].lines.append(text)
    return found


def cut(hunks: Iterable[DiffHunk]) -> tuple[list[DiffHunk], int]:
    """As many lines as are shown of one file, and how many are left out."""
    kept: list[DiffHunk] = []
    lines_left, left, cut_lines = MOST_LINES, MOST_CHARACTERS, 0
    for hunk in hunks:
        fit = 0
        for line in hunk.lines[:lines_left]:
            left -= len(line)
            if left < 0:
                break
            fit += 1
        lines_left = lines_left - fit if fit == len(hunk.lines) else 0
        cut_lines += len(hunk.lines) - fit
        if fit:
            kept.append(hunk.but(lines=hunk.lines[:fit]))
    return kept, cut_lines
