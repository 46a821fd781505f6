"""What a task changed in the workspace; invisible characters are made visible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mimikit.language.plain_text import visible
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.results import FileAction, FileDiff, TaskDiff
from mimikit.views.base import View


class HunkView(View):
    """Lines that changed, with some around them. Numbers are 1-based; 0 where a side has none."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]
    """Each begins with a space, `-` or `+`; a backslash means that the line before it has no line
    end. Invisible characters are written as `‹U+202E›`."""


class FileDiffView(View):
    """The change of one file. Units: bytes; null where there was, or is, no such file."""

    path: str
    action: FileAction
    from_path: str | None
    """Of one that was renamed."""
    added: int
    removed: int
    """Lines, also those that are not shown."""
    old_size: int | None
    new_size: int | None
    old_mode: str | None
    new_mode: str | None
    """Permissions, where they changed."""
    unshown: Literal["binary", "big", "unknown"] | None
    """Why its content is not shown."""
    cut_lines: int
    """Lines that are left out."""
    shared: bool
    """Other work ran at the same time and may have done some of it."""
    attempt: int
    hunks: list[HunkView]


class DiffView(View):
    """What a task changed in the workspace, attempt after attempt."""

    files: list[FileDiffView]
    more_files: int
    """Changed files that are not listed."""
    unseen: list[str]
    """Folders that were not compared."""
    interrupted: int
    """Attempts that were cut off: their changes may be missing."""


def of_task(files: ReadOnlyFiles, task_id: str) -> DiffView | None:
    """None where it changed nothing, or the diff is no longer kept."""
    diff = files.peek(paths.diff(task_id), TaskDiff)
    if diff is None:
        return None
    unseen = [visible(folder) for folder in diff.unseen]
    return DiffView.of(diff, files=[_shown(file) for file in diff.files], unseen=unseen)


def _shown(file: FileDiff) -> FileDiffView:
    return FileDiffView.of(
        file,
        path=visible(file.path),
        from_path=visible(file.from_path) if file.from_path else None,
        hunks=[HunkView.of(hunk, lines=[*map(visible, hunk.lines)]) for hunk in file.hunks],
    )


def unified(diff: DiffView) -> Iterator[str]:
    """Lines as `diff -u` and git write them; what is missing is said in comments."""
    attempts = len({file.attempt for file in diff.files})
    for file in diff.files:
        before = "/dev/null" if file.action == "added" else f"a/{file.from_path or file.path}"
        after = "/dev/null" if file.action == "deleted" else f"b/{file.path}"
        yield f"--- {before}"
        yield f"+++ {after}"
        yield from (f"# {note}" for note in _notes(file, attempts))
        for hunk in file.hunks:
            old, new = f"{hunk.old_start},{hunk.old_lines}", f"{hunk.new_start},{hunk.new_lines}"
            yield f"@@ -{old} +{new} @@"
            yield from hunk.lines
    if diff.more_files:
        yield f"# {diff.more_files} more files changed, and are not listed"
    if diff.interrupted:
        what = f"{diff.interrupted} attempts were" if diff.interrupted > 1 else "an attempt was"
        yield f"# {what} cut off: what was changed then may be missing"
    if diff.unseen:
        yield f"# nobody looked in: {', '.join(diff.unseen)}"


def _notes(file: FileDiffView, attempts: int) -> Iterator[str]:
    if attempts > 1:
        yield f"attempt {file.attempt}"
    if file.new_mode:
        yield f"permissions {file.old_mode} → {file.new_mode}"
    sizes = [f"{size:,} bytes" if size is not None else "none" for size in _sizes(file)]
    match file.unshown:
        case "binary":
            yield f"binary: {' → '.join(sizes)}"
        case "big":
            yield f"too much to be shown: {' → '.join(sizes)}"
        case "unknown":
            yield "what it was before is not known"
        case None:
            pass
    if file.cut_lines:
        yield f"{file.cut_lines:,} more lines changed or stand around changes, and are not shown"
    if file.shared:
        yield "other work ran meanwhile, and may have done some of this"


def _sizes(file: FileDiffView) -> tuple[int | None, int | None]:
    return file.old_size, file.new_size
