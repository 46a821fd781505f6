"""How the terminal shows what a task changed."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mimikit.cli import terminal
from mimikit.views import diffs
from mimikit.views.diffs import DiffView

_MOST_CHANGED = 50
_MOST_DIFF_LINES = 100


def coloured(line: str) -> str:
    line, colour = terminal.safe(line), {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return terminal.dim(line) if line[:1] == "#" else click.style(line, fg=colour)


def changes(diff: DiffView, task_id: str) -> Iterator[str]:
    """The files that changed, and as many lines of what as are read at a glance."""
    yield ""
    yield terminal.bold("Changes")
    rows = [
        (f"  {file.action}", file.path, file.unshown or f"+{file.added} −{file.removed}")
        for file in diff.files[:_MOST_CHANGED]
    ]
    yield from terminal.aligned(rows)
    if (more := len(diff.files) + diff.more_files - len(rows)) > 0:
        yield f"  … {more} more"
    yield ""
    lines = [*diffs.unified(diff)]
    yield from (f"  {coloured(line)}" for line in lines[:_MOST_DIFF_LINES])
    if len(lines) > _MOST_DIFF_LINES:
        yield f"  … all {len(lines)} lines: `mimikit tasks show {task_id} --diff`"
