"""The changes of a task in the workspace, with invisible characters made visible."""

from __future__ import annotations

from collections.abc import Iterator

from mimikit.language.plain_text import visible
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.results import FileDiff, TaskDiff
from mimikit.views.base import View


class DiffView(View):
    """The changes of a task in the workspace, by attempt.

    Invisible characters are written as `‹U+202E›`.
    """

    files: list[FileDiff]
    more_files: int
    """Changed files that are not listed."""
    unseen: list[str]
    """Folders that were not compared."""
    interrupted: int
    """Number of interrupted attempts, whose changes may be missing."""


def of_task(files: ReadOnlyFiles, task_id: str) -> DiffView | None:
    """None without changes, and for a deleted diff."""
    diff = files.peek(paths.diff(task_id), TaskDiff)
    return of_record(diff) if diff is not None else None


def of_record(diff: TaskDiff) -> DiffView:
    unseen = [visible(folder) for folder in diff.unseen]
    return DiffView.of(diff, files=[_visible(file) for file in diff.files], unseen=unseen)


def _visible(file: FileDiff) -> FileDiff:
    return file.but(
        path=visible(file.path),
        from_path=visible(file.from_path) if file.from_path else None,
        hunks=[hunk.but(lines=[*map(visible, hunk.lines)]) for hunk in file.hunks],
    )


def unified(diff: DiffView) -> Iterator[str]:
    """The diff in the format of `diff -u`, with comments about what is missing."""
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
        yield f"# {what} interrupted: its changes may be missing"
    if diff.unseen:
        yield f"# not compared: {', '.join(diff.unseen)}"


def _notes(file: FileDiff, attempts: int) -> Iterator[str]:
    if attempts > 1:
        yield f"attempt {file.attempt}"
    if file.new_mode:
        yield f"permissions {file.old_mode} → {file.new_mode}"
    sizes = " → ".join(
        "none" if size is None else f"{size:,} bytes" for size in (file.old_size, file.new_size)
    )
    match file.unshown:
        case "binary":
            yield f"binary: {sizes}"
        case "big":
            yield f"too large to be shown: {sizes}"
        case "unknown":
            yield "the content before is not known"
        case None:
            pass
    if file.cut_lines:
        yield f"{file.cut_lines:,} more lines are not shown"
    if file.shared:
        yield "other work ran meanwhile, and may have made some of these changes"
