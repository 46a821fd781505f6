"""Lists the files of conditions, and notifies the triggers concerned by a change.

Reads names, times and sizes, never contents. A path that exists is taken as it is, also where it
looks like a glob; a link among the matches of a glob is not followed. The state folder is excluded.
An event is only a hint: the trigger lists its files again. Folders are watched one by one, so that
hidden folders and the state folder cost nothing.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import NamedTuple, Protocol

from mimikit.language.plain_text import path_text
from mimikit.protocol.watch import FolderWatch
from mimikit.triggers.patterns import Pattern, Seen

MAX_FILES = 10_000
MAX_ENTRIES = 100_000
MAX_BYTES = 1_000_000
"""Of the listing in the trigger's state, which is written at each change."""
_ENTRY_BYTES = 40


class TooManyFiles(Exception): ...


class Workspace(Protocol):
    def list_files(self, pattern: Pattern) -> Seen | None:
        """The matching files; None: too many."""
        ...

    def exists(self, pattern: Pattern) -> bool | None:
        """Whether any file matches; None: too many to list."""
        ...

    def is_inside(self, pattern: Pattern) -> bool:
        """Whether matches are inside the workspace, links resolved."""
        ...


class FolderWorkspace:
    """The folder `root` without the state folder. Unreadable files are ignored."""

    def __init__(self, root: Path, state_folder: Path) -> None:
        self.root = root
        self._state_folder = str(state_folder)
        self._real_state_folder = os.path.realpath(state_folder)

    def base_of(self, pattern: Pattern) -> Path:
        return self.root / pattern.base

    def list_files(self, pattern: Pattern) -> Seen | None:
        """A plain path that is a folder matches all files below it."""
        files: Seen = {}
        left = MAX_BYTES
        try:
            for name, entry in self._entries(pattern):
                files[name] = [entry.st_mtime_ns, entry.st_size]
                left -= len(name.encode()) + _ENTRY_BYTES
                if len(files) > MAX_FILES or left < 0:
                    return None
        except TooManyFiles:
            return None
        return files

    def exists(self, pattern: Pattern) -> bool | None:
        pattern = self._as_it_is(pattern)
        if pattern.is_plain:
            base = self.base_of(pattern)
            # pathlib raises at an invalid name.
            return not self.is_in_state_folder(base) and os.path.exists(base)  # noqa: PTH110
        try:
            return next(self._entries(pattern), None) is not None
        except TooManyFiles:
            return None

    def is_inside(self, pattern: Pattern) -> bool:
        real, root = os.path.realpath(self.base_of(pattern)), os.path.realpath(self.root)
        return Path(real).is_relative_to(root)

    def _entries(self, pattern: Pattern) -> Iterator[tuple[str, os.stat_result]]:
        pattern = self._as_it_is(pattern)
        base = self.base_of(pattern)
        if self.is_in_state_folder(base):
            return
        try:
            # A link is followed, unless it leads nowhere.
            is_there = not pattern.is_plain or os.path.exists(base)  # noqa: PTH110
            stat = base.stat(follow_symlinks=is_there)
        except OSError:
            return
        if S_ISDIR(stat.st_mode):
            yield from self._below(pattern, str(base))
        elif pattern.is_plain:
            yield path_text(pattern.base), stat

    def _as_it_is(self, pattern: Pattern) -> Pattern:
        """The path itself, if a file is called as the glob is written."""
        is_file = not pattern.is_plain and os.path.lexists(self.root / pattern.text)
        return Pattern(pattern.text, pattern.text, ()) if is_file else pattern

    def _below(self, pattern: Pattern, base: str) -> Iterator[tuple[str, os.stat_result]]:
        folders, left = [(base, "")], MAX_ENTRIES
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
                        if pattern.enters(name) and not self.is_in_state_folder(entry.path):
                            folders.append((entry.path, f"{name}/"))
                    elif _matches(pattern, name, entry):
                        yield path_text(name), entry.stat(follow_symlinks=False)
                except OSError:
                    continue

    def folders_in(self, folder: Path) -> list[Path]:
        return [Path(e.path) for e in _listed(str(folder)) if e.is_dir(follow_symlinks=False)]

    def is_in_state_folder(self, path: str | Path) -> bool:
        """Whether it is the state folder or in it, links resolved."""
        really = os.path.realpath(path)
        return _is_in(str(path), self._state_folder) or _is_in(really, self._real_state_folder)


def _is_in(path: str, folder: str) -> bool:
    # `is_relative_to` takes four times as long.
    return path == folder or path.startswith(folder + os.sep)


def is_folder(path: str | Path) -> bool:
    """Follows links; False for an invalid name, where pathlib raises."""
    return os.path.isdir(path)  # noqa: PTH112


def _matches(pattern: Pattern, name: str, entry: os.DirEntry[str]) -> bool:
    """Whether a file or link matches; a plain folder matches all but hidden ones."""
    is_named = not entry.name.startswith(".") if pattern.is_plain else pattern.matches(name)
    return is_named and (entry.is_symlink() or entry.is_file(follow_symlinks=False))


def _listed(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


# ---- changes


class Watcher(NamedTuple):
    """One pattern of a trigger's condition."""

    trigger_id: str
    pattern: Pattern


MAX_FOLDERS = 10_000
"""Maximum of watched folders; the kernel limits watches per user."""
RESCAN_S = 60.0
"""How often folders are rescanned although there are events."""


class TriggerWatch(Protocol):
    def set(self, trigger_id: str, patterns: tuple[Pattern, ...]) -> None: ...

    def needs_polling(self, trigger_id: str) -> bool:
        """Whether files of this trigger may change without an event, so that it must poll."""
        ...


class FileWatch:
    """Watches the folders that patterns of triggers may match in."""

    def __init__(self, workspace: FolderWorkspace, changed: Callable[[set[str]], None]) -> None:
        """`changed(trigger ids)`: files that may match changed; called from a thread."""
        self._workspace, self._changed = workspace, changed
        self._guard = threading.RLock()
        self._folders: dict[str, list[Watcher]] = {}
        self._listeners: dict[str, Callable[[list[str] | None], None]] = {}
        self._patterns: dict[str, tuple[Pattern, ...]] = {}
        self._unwatched: set[str] = set()
        """Folders without kernel events."""
        self._polled: set[str] = set()
        """Triggers with more than MAX_FOLDERS folders, or a link; they poll."""
        self._watch: FolderWatch | None = None

    def set(self, trigger_id: str, patterns: tuple[Pattern, ...]) -> None:
        with self._guard:
            if self._patterns.get(trigger_id, ()) == patterns:
                return
            if self._patterns.pop(trigger_id, None) is not None:
                self._polled.discard(trigger_id)
                for folder, watchers in list(self._folders.items()):
                    self._folders[folder] = [
                        entry for entry in watchers if entry.trigger_id != trigger_id
                    ]
                    if not self._folders[folder]:
                        self._drop(folder)
            if patterns:
                self._patterns[trigger_id] = patterns
            for pattern in patterns:
                self._watch_pattern(Watcher(trigger_id, pattern))

    def needs_polling(self, trigger_id: str) -> bool:
        with self._guard:
            return trigger_id in self._polled or any(
                trigger_id == watcher.trigger_id
                for name in self._unwatched
                for watcher in self._folders[name]
            )

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _drop(self, folder: str) -> None:
        del self._folders[folder]
        self._unwatched.discard(folder)
        listener = self._listeners.pop(folder)
        if self._watch is not None:
            self._watch.unwatch(folder, listener)

    def _drop_deleted(self, folder: str) -> bool:
        """Stop watching a deleted folder and its subfolders; its parent reports a new one."""
        parent = str(Path(folder).parent)
        if folder not in self._folders or parent not in self._folders or is_folder(folder):
            return False
        for name in [n for n in self._folders if n == folder or n.startswith(f"{folder}/")]:
            self._drop(name)
        return True

    def _watch_pattern(self, watcher: Watcher) -> None:
        """Watch the existing folders down to a pattern's base, and those below it.

        Starts at the workspace, or at the nearest existing folder.
        """
        base, root = self._workspace.base_of(watcher.pattern), self._workspace.root
        top = root if base.is_relative_to(root) else next(filter(is_folder, base.parents), base)
        for folder in [*reversed(base.parents), base]:
            # Each is watched before the next is checked for.
            if not folder.is_relative_to(top):
                continue
            if watcher.pattern.is_plain and folder == base and folder.is_symlink():
                self._polled.add(watcher.trigger_id)  # its target is in any folder
                return
            if not is_folder(folder) or self._workspace.is_in_state_folder(folder):
                return
            self._watch_folder(str(folder), watcher)
        self._watch_subfolders(watcher, base)

    def _watch_subfolders(self, watcher: Watcher, first: Path) -> None:
        """Watch a folder at or below the base, and its subfolders that may contain matches."""
        pattern, base = watcher.pattern, self._workspace.base_of(watcher.pattern)
        waiting = [first]
        while waiting:
            folder = waiting.pop()
            if self._workspace.is_in_state_folder(folder):
                continue
            self._watch_folder(str(folder), watcher)
            if len(self._folders) >= MAX_FOLDERS and waiting:
                self._polled.add(watcher.trigger_id)
                return
            waiting += [  # listed after it is watched, so that none is missed
                path
                for path in self._workspace.folders_in(folder)
                if pattern.enters(str(path.relative_to(base)))
            ]

    def _watch_folder(self, folder: str, watcher: Watcher) -> None:
        known = self._folders.setdefault(folder, [])
        if watcher not in known:
            known.append(watcher)
        if self._watch is None:
            self._watch = FolderWatch(self._workspace.root, everything=True, rescan_s=RESCAN_S)
        if folder in self._listeners:
            is_watched = self._watch.attach(folder)
        else:
            self._listeners[folder] = functools.partial(self._on_change, folder)
            is_watched = self._watch.watch(folder, self._listeners[folder])
        if is_watched or not is_folder(folder):
            self._unwatched.discard(folder)
        else:
            self._unwatched.add(folder)

    def _on_change(self, folder: str, names: list[str] | None) -> None:
        """`names`: the changed entries of the folder; None: unknown, rescan."""
        concerned: set[str] = set()
        with self._guard:
            watchers = list(self._folders.get(folder, ()))
            paths = [Path(folder, name) for name in names or ()]
            self._drop_deleted(folder)
            deleted = {path for path in paths if self._drop_deleted(str(path))}
            for each in watchers:
                if names is None:
                    concerned.add(each.trigger_id)
                    if self._workspace.base_of(each.pattern) not in Path(folder).parents:
                        self._watch_pattern(each)
                    elif is_folder(folder):
                        self._watch_subfolders(each, Path(folder))
                for path in paths:  # no early exit: each new folder must be watched
                    if self._concerns(each, path, was_folder=path in deleted):
                        concerned.add(each.trigger_id)
        if concerned:
            self._changed(concerned)

    def _concerns(self, watcher: Watcher, path: Path, *, was_folder: bool) -> bool:
        """Whether a changed path may match the pattern; also watches new folders."""
        pattern, base = watcher.pattern, self._workspace.base_of(watcher.pattern)
        if path == base or path in base.parents:
            self._watch_pattern(watcher)
            return True
        if base not in path.parents:
            return False
        below = str(path.relative_to(base))
        if is_folder(path) and not path.is_symlink():
            if not pattern.enters(below):
                return False
            self._watch_subfolders(watcher, path)
            return True
        if pattern.is_plain or was_folder:
            return pattern.enters(below)
        return pattern.matches(below)
