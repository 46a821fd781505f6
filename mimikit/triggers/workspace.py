"""Looks at the user's files for conditions, and tells which triggers a change may concern.

Names, times and sizes are looked at, never contents. Links are looked at themselves, not what they
point to: the kernel tells of changes of that only. The state folder is nobody's to watch. What the
kernel reports is a hint only: whoever is told looks for itself. Folders whose files can be meant
are watched one by one, so that hidden folders and the state folder cost nothing.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import Protocol

from mimikit.protocol.watch import FolderWatch
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
    """The folder `root` but for `closed`, the state folder. What can not be read is not there."""

    def __init__(self, root: Path, closed: Path) -> None:
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
        if pattern.is_plain:
            base = self.base_of(pattern)
            # Not of pathlib, which raises at a name that can not be.
            return not self.is_closed(base) and os.path.exists(base)  # noqa: PTH110
        try:
            return next(self._entries(pattern), None) is not None
        except TooManyFiles:
            return None

    def is_inside(self, pattern: Pattern) -> bool:
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
                        if pattern.enters(name) and not self.is_closed(entry.path):
                            folders.append((entry.path, f"{name}/"))
                    elif _is_meant(pattern, name, entry):
                        yield _shown(name), entry.stat(follow_symlinks=False)
                except OSError:
                    continue

    def folders_in(self, folder: Path) -> list[Path]:
        """The folders in a folder; links are none."""
        return [Path(e.path) for e in _listed(str(folder)) if e.is_dir(follow_symlinks=False)]

    def is_closed(self, path: str | Path) -> bool:
        """Whether it is the state folder, or in it, by whatever links."""
        really = os.path.realpath(path)
        return _is_in(str(path), self._closed) or _is_in(really, self._really_closed)


def _is_in(path: str, folder: str) -> bool:
    # No `is_relative_to`, which takes four times as long: each folder of each look is asked.
    return path == folder or path.startswith(folder + os.sep)


def is_folder(path: str | Path) -> bool:
    """Whether a folder is there, or a link to one; a name that can not be is none."""
    return os.path.isdir(path)  # noqa: PTH112


def _shown(name: str) -> str:
    """A name as it can stand in a record, also where it is no UTF-8."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _is_meant(pattern: Pattern, name: str, entry: os.DirEntry[str]) -> bool:
    """Whether a file or a link is meant; of a plain folder all are but hidden ones."""
    is_named = not entry.name.startswith(".") if pattern.is_plain else pattern.matches(name)
    return is_named and (entry.is_symlink() or entry.is_file(follow_symlinks=False))


def _listed(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


# ---- changes

Meant = tuple[str, Pattern]
"""A trigger with one of the patterns of its condition."""
MOST_FOLDERS = 10_000
"""So many folders are watched; the kernel has only so many watches for each user."""
RESCAN_S = 60.0
"""How often folders' times are compared although the kernel tells."""


class TriggerWatch(Protocol):
    """Who is told of changed files."""

    def set(self, trigger_id: str, patterns: tuple[Pattern, ...]) -> None:
        """From now on this trigger looks at these files, and at no others."""
        ...

    def is_blind(self, trigger_id: str) -> bool:
        """Whether files of this trigger may change without anybody being told."""
        ...


class FileWatch:
    """The kernel's word on the workspace. Its listener runs on a thread of its own."""

    def __init__(self, workspace: FolderWorkspace, changed: Callable[[set[str]], None]) -> None:
        """`changed(trigger ids)` is called after something happened to files they may mean."""
        self._workspace, self._changed = workspace, changed
        self._guard = threading.RLock()
        self._folders: dict[str, list[Meant]] = {}
        self._listeners: dict[str, Callable[[list[str] | None], None]] = {}
        self._of: dict[str, tuple[Pattern, ...]] = {}
        self._blind: set[str] = set()
        """Folders of which the kernel does not tell."""
        self._cut_off: set[str] = set()
        """Triggers with more folders than are watched: these are looked at now and then."""
        self._watch: FolderWatch | None = None

    def set(self, trigger_id: str, patterns: tuple[Pattern, ...]) -> None:
        with self._guard:
            if self._of.get(trigger_id, ()) == patterns:
                return
            if self._of.pop(trigger_id, None) is not None:
                self._cut_off.discard(trigger_id)
                for folder, meant in list(self._folders.items()):
                    self._folders[folder] = [entry for entry in meant if entry[0] != trigger_id]
                    if not self._folders[folder]:
                        self._drop(folder)
            if patterns:
                self._of[trigger_id] = patterns
            for pattern in patterns:
                self._begin((trigger_id, pattern))

    def is_blind(self, trigger_id: str) -> bool:
        with self._guard:
            return trigger_id in self._cut_off or any(
                trigger_id == meant[0] for name in self._blind for meant in self._folders[name]
            )

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _drop(self, folder: str) -> None:
        del self._folders[folder]
        self._blind.discard(folder)
        listener = self._listeners.pop(folder)
        if self._watch is not None:
            self._watch.unwatch(folder, listener)

    def _forget_gone(self, folder: str) -> bool:
        """Drop a folder that is no more, and all below it; whoever holds it tells of a new one."""
        parent = str(Path(folder).parent)
        if folder not in self._folders or parent not in self._folders or is_folder(folder):
            return False
        for name in [n for n in self._folders if n == folder or n.startswith(f"{folder}/")]:
            self._drop(name)
        return True

    def _begin(self, meant: Meant) -> None:
        """Watch the way to a pattern's base, as far as there is one, and all that it enters.

        The way leads from the workspace down to the base, or from the nearest folder there is.
        """
        base, root = self._workspace.base_of(meant[1]), self._workspace.root
        top = root if base.is_relative_to(root) else next(filter(is_folder, base.parents), base)
        for folder in [*reversed(base.parents), base]:
            # Each is watched before the next is looked for.
            if not folder.is_relative_to(top):
                continue
            if not is_folder(folder) or self._workspace.is_closed(folder):
                return
            if meant[1].is_plain and folder == base and folder.is_symlink():
                return  # it is the link that is meant, and its folder tells of that
            self._watch_folder(str(folder), meant)
        self._enter(meant, base)

    def _enter(self, meant: Meant, first: Path) -> None:
        """Watch a folder at or below the base, and all below it that this pattern enters."""
        pattern, base = meant[1], self._workspace.base_of(meant[1])
        waiting = [first]
        while waiting:
            folder = waiting.pop()
            if self._workspace.is_closed(folder):
                continue
            self._watch_folder(str(folder), meant)
            if len(self._folders) >= MOST_FOLDERS and waiting:
                self._cut_off.add(meant[0])
                return
            waiting += [  # looked for after it is watched, so that none is missed
                path
                for path in self._workspace.folders_in(folder)
                if pattern.enters(str(path.relative_to(base)))
            ]

    def _watch_folder(self, folder: str, meant: Meant) -> None:
        known = self._folders.setdefault(folder, [])
        if meant not in known:
            known.append(meant)
        if self._watch is None:
            self._watch = FolderWatch(self._workspace.root, everything=True, rescan_s=RESCAN_S)
        if folder in self._listeners:
            told = self._watch.attach(folder)
        else:
            self._listeners[folder] = functools.partial(self._told, folder)
            told = self._watch.watch(folder, self._listeners[folder])
        if told or not is_folder(folder):
            self._blind.discard(folder)
        else:
            self._blind.add(folder)

    def _told(self, folder: str, names: list[str] | None) -> None:
        """The kernel's word on one folder: these names, or (None) look for yourself."""
        concerned: set[str] = set()
        with self._guard:
            meant = list(self._folders.get(folder, ()))
            paths = [Path(folder, name) for name in names or ()]
            self._forget_gone(folder)
            gone = {path for path in paths if self._forget_gone(str(path))}
            for each in meant:
                if names is None:
                    concerned.add(each[0])
                    if self._workspace.base_of(each[1]) not in Path(folder).parents:
                        self._begin(each)
                    elif is_folder(folder):
                        self._enter(each, Path(folder))
                for path in paths:  # each is looked at: new folders are entered on the way
                    if self._concerns(each, path, was_folder=path in gone):
                        concerned.add(each[0])
        if concerned:
            self._changed(concerned)

    def _concerns(self, meant: Meant, path: Path, *, was_folder: bool) -> bool:
        """Whether a change may matter to a pattern; new folders are entered on the way."""
        pattern, base = meant[1], self._workspace.base_of(meant[1])
        if path == base or path in base.parents:
            self._begin(meant)
            return True
        if base not in path.parents:
            return False
        below = str(path.relative_to(base))
        if is_folder(path) and not path.is_symlink():
            if not pattern.enters(below):
                return False
            self._enter(meant, path)
            return True
        if pattern.is_plain or was_folder:
            return pattern.enters(below)
        return pattern.matches(below)
