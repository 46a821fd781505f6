"""Looks at the user's files for conditions: names, times and sizes, never contents.

Links are looked at themselves, not what they point to: whoever tells of changes tells of that
only. The state folder is nobody's to watch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import Protocol

from mimikit.triggers.patterns import Pattern, Seen

MOST_FILES = 10_000
"""More files than this are too many for one condition."""
MOST_ENTRIES = 100_000
"""So many names are looked at for one condition: a whole disk is too much to look at."""
MOST_BYTES = 1_000_000
"""So much may the names of one condition take up in its record, which is written at each change."""
_ENTRY_BYTES = 40
"""What stands beside a name: its time and its size."""


class TooManyFiles(Exception):
    """There are more than can be looked at."""


class Workspace(Protocol):
    """Where conditions look for files."""

    def look(self, pattern: Pattern) -> Seen | None:
        """The files that are meant; None when they are too many to watch."""
        ...

    def exists(self, pattern: Pattern) -> bool | None:
        """Whether anything that is meant exists; None when that is too much to look through."""
        ...

    def is_inside(self, pattern: Pattern) -> bool:
        """Whether what is meant lies in the workspace, also when links are followed."""
        ...


class FolderWorkspace:
    """The real workspace. What can not be read is not there."""

    def __init__(self, root: Path, closed: Path) -> None:
        """Look below `root`, but not into `closed`, the state folder."""
        self.root = root
        self._closed, self._really_closed = str(closed), os.path.realpath(closed)

    def base_of(self, pattern: Pattern) -> Path:
        """Where the matches of a pattern lie."""
        return self.root / pattern.base

    def look(self, pattern: Pattern) -> Seen | None:
        """The files that are meant; a plain path that is a folder means all files below it."""
        found: Seen = {}
        left = MOST_BYTES
        try:
            for name, entry in self._entries(pattern):
                found[name] = [entry.st_mtime_ns, entry.st_size]
                left -= len(name.encode()) + _ENTRY_BYTES
                if len(found) > MOST_FILES or left < 0:
                    return None
        except TooManyFiles:
            return None
        return found

    def exists(self, pattern: Pattern) -> bool | None:
        """Whether anything that is meant exists; None when that is too much to look through."""
        if pattern.is_plain:
            base = self.base_of(pattern)
            return not self.is_closed(base) and exists(base)
        try:
            return next(self._entries(pattern), None) is not None
        except TooManyFiles:
            return None

    def is_inside(self, pattern: Pattern) -> bool:
        """Whether what is meant lies in the workspace, also when links are followed."""
        real, root = os.path.realpath(self.base_of(pattern)), os.path.realpath(self.root)
        return Path(real).is_relative_to(root)

    def _entries(self, pattern: Pattern) -> Iterator[tuple[str, os.stat_result]]:
        base = self.base_of(pattern)
        if self.is_closed(base):
            return
        try:
            # A glob's base is followed where it is a link: it is named as the folder to look in.
            stat = base.stat(follow_symlinks=not pattern.is_plain)
        except OSError:
            return
        if S_ISDIR(stat.st_mode):
            yield from self._below(pattern, str(base))
        elif pattern.is_plain:
            yield _shown(pattern.base), stat

    def _below(self, pattern: Pattern, base: str) -> Iterator[tuple[str, os.stat_result]]:
        folders, left = [(base, "")], MOST_ENTRIES
        while folders:
            folder, below = folders.pop()
            entries = _listed(folder)
            left -= len(entries)
            if left < 0:
                raise TooManyFiles
            for entry in entries:
                name = f"{below}{entry.name}"
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if pattern.enters(name) and not self.is_closed(Path(entry.path)):
                            folders.append((entry.path, f"{name}/"))
                    elif self._is_meant(pattern, name) and _is_file_or_link(entry):
                        yield _shown(name), entry.stat(follow_symlinks=False)
                except OSError:
                    continue

    def _is_meant(self, pattern: Pattern, name: str) -> bool:
        if pattern.is_plain:  # a folder: all of its files but hidden ones
            return not name.rpartition("/")[2].startswith(".")
        return pattern.matches(name)

    def folders_in(self, folder: Path) -> list[Path]:
        """The folders in a folder; links are none."""
        return [Path(e.path) for e in _listed(str(folder)) if e.is_dir(follow_symlinks=False)]

    def is_closed(self, path: Path) -> bool:
        """Whether it is the state folder, or in it, by whatever links."""
        real = os.path.realpath(path)
        return any(
            name == closed or name.startswith(closed + os.sep)
            for name, closed in ((str(path), self._closed), (real, self._really_closed))
        )


def exists(path: str | Path) -> bool:
    """Whether something is there; a name that can not be is not, where pathlib would raise."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: str | Path) -> bool:
    """Whether a folder is there, or a link to one; a name that can not be is none."""
    return os.path.isdir(path)  # noqa: PTH112


def _shown(name: str) -> str:
    """A name as it can stand in a record, also where it is no UTF-8."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _is_file_or_link(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or entry.is_file(follow_symlinks=False)


def _listed(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
