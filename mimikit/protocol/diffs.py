"""What a run changed in the workspace, as it lies on disk beside the task's result."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mimikit.protocol.models import Id, Record

FileAction = Literal["added", "modified", "deleted", "renamed"]
Count = Annotated[int, Field(ge=0)]


class DiffHunk(Record):
    """Lines that changed, with some around them. Numbers are 1-based; 0 where a side has none."""

    old_start: Count
    old_lines: Count
    new_start: Count
    new_lines: Count
    lines: list[str]
    """Each begins with a space, `-` or `+`; one with a backslash tells that the line before it has
    no end. Bytes that are no UTF-8 stand there as `\\xe9`."""


class FileDiff(Record):
    """What became of one file. Sizes are bytes; None where there was, or is, no such file."""

    path: str
    """In the workspace, with `/` between its parts."""
    action: FileAction
    from_path: str | None = None
    """Of one that was renamed: its path before."""
    added: Count = 0
    removed: Count = 0
    """Lines; also of those that are not shown."""
    old_size: int | None = None
    new_size: int | None = None
    old_mode: str | None = None
    new_mode: str | None = None
    """Permissions where these changed: `644`, `755`."""
    unshown: Literal["binary", "big", "unknown"] | None = None
    """Why there is nothing of its content; unknown: what it was before was not looked at."""
    cut_lines: Count = 0
    """So many lines of its hunks are left out: there were too many."""
    shared: bool = False
    """Other work ran meanwhile, and may have done some of it."""
    attempt: Annotated[int, Field(ge=1)] = 1
    hunks: list[DiffHunk] = Field(default_factory=list[DiffHunk])

    @property
    def summary(self) -> str:
        """In a few characters: `+3 −1`, or why there are no lines."""
        if self.unshown is not None:
            return self.unshown
        return f"+{self.added} −{self.removed}"


class TaskDiff(Record):
    """`side/diffs/{task}.json`: what the attempts of a task changed, oldest first."""

    schema_version: int = 1
    id: Id
    files: list[FileDiff] = Field(default_factory=list[FileDiff])
    more_files: Count = 0
    """So many more changed, and are not listed."""
    unseen: list[str] = Field(default_factory=list[str])
    """Folders in which nobody looked: too much, closed, or of a kind that programs make anew."""
    interrupted: Count = 0
    """So many attempts were cut off, as mimikit ended: what they changed may be missing."""

    def then(self, later: TaskDiff) -> TaskDiff:
        """This, and what a later attempt changed."""
        more_files = self.more_files + later.more_files
        return later.but(files=[*self.files, *later.files], more_files=more_files)
