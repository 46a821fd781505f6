"""What roles keep: notes in memory, items of the backlog. Both once, however often applied."""

from __future__ import annotations

from datetime import datetime

from mimikit.memory import backlog, daybook, shared
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import BacklogChange, Remembered


def remember(files: Files, note: Remembered, at: datetime) -> None:
    """Write a note where it belongs; a note already there (by its id) is not written again.

    at: when it was said, in the workspace's zone, whose day names the file.
    Crash: the file is replaced whole; a replay finds the note's id in it.
    """
    path = paths.MEMORY if note.long_term else paths.memory_file(f"{at:%Y-%m-%d}.md")
    shared.amend(files, path, lambda text: daybook.with_note(text, note.id, note.content))


def change_backlog(files: Files, change: BacklogChange) -> None:
    """Apply one change to the checkbox list; applying it twice changes nothing more."""
    shared.amend(
        files, paths.BACKLOG, lambda text: backlog.changed(text, change.action, change.item)
    )
