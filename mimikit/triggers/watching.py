"""Tells which triggers a change in the workspace may concern, as the kernel reports it.

A hint only: whoever is told looks for itself. Folders whose files can be meant are watched one by
one, so that hidden folders and the state folder cost nothing.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from mimikit.protocol.watch import FolderWatch
from mimikit.triggers.patterns import Pattern
from mimikit.triggers.workspace import FolderWorkspace, is_folder

Meant = tuple[str, Pattern]
"""A trigger with one of the patterns of its condition."""


MOST_FOLDERS = 10_000
"""So many folders are watched; the kernel has only so many watches for each user."""
RESCAN_S = 60.0
"""How often folders' times are compared although the kernel tells."""


class Watch(Protocol):
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
        """From now on this trigger looks at these files, and at no others."""
        with self._guard:
            if self._of.get(trigger_id, ()) == patterns:
                return
            if trigger_id in self._of:
                self._leave(trigger_id)
            if patterns:
                self._of[trigger_id] = patterns
            for pattern in patterns:
                self._begin((trigger_id, pattern))

    def is_blind(self, trigger_id: str) -> bool:
        """Whether files of this trigger may change without anybody being told."""
        with self._guard:
            return trigger_id in self._cut_off or any(
                trigger_id == meant[0] for name in self._blind for meant in self._folders[name]
            )

    def close(self) -> None:
        """Tell nothing any more."""
        if self._watch is not None:
            self._watch.close()

    def _leave(self, trigger_id: str) -> None:
        del self._of[trigger_id]
        self._cut_off.discard(trigger_id)
        for folder, meant in list(self._folders.items()):
            self._folders[folder] = [entry for entry in meant if entry[0] != trigger_id]
            if not self._folders[folder]:
                self._drop(folder)

    def _drop(self, folder: str) -> None:
        del self._folders[folder]
        self._blind.discard(folder)
        listener = self._listeners.pop(folder)
        if self._watch is not None:
            self._watch.unwatch(folder, listener)

    def _forget_gone(self, folder: str) -> bool:
        """Drop a folder that is no more, and all below it; whoever holds it tells of a new one."""
        if folder not in self._folders or is_folder(folder):
            return False
        if str(Path(folder).parent) not in self._folders:
            return False
        for name in [n for n in self._folders if n == folder or n.startswith(f"{folder}/")]:
            self._drop(name)
        return True

    def _way_to(self, base: Path) -> list[Path]:
        """The folders that tell of the base's coming and going, from the workspace down to it.

        Outside of the workspace: from the nearest folder there is.
        """
        root, above = self._workspace.root, list(base.parents)
        if base == root or root in above:
            top = root
        else:
            top = next((folder for folder in above if is_folder(folder)), base)
        return [
            folder for folder in [*reversed(above), base] if folder == top or top in folder.parents
        ]

    def _begin(self, meant: Meant) -> None:
        """Watch the way to a pattern's base, as far as there is one, and all that it enters."""
        base = self._workspace.base_of(meant[1])
        for folder in self._way_to(base):  # each is watched before the next is looked for
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
            for trigger_id, pattern in meant:
                if names is None:
                    self._look_anew((trigger_id, pattern), Path(folder))
                    concerned.add(trigger_id)
                for path in paths:  # each is looked at: new folders are entered on the way
                    if self._concerns((trigger_id, pattern), path, was_folder=path in gone):
                        concerned.add(trigger_id)
        if concerned:
            self._changed(concerned)

    def _look_anew(self, meant: Meant, folder: Path) -> None:
        """See that a folder is watched as it is now."""
        base = self._workspace.base_of(meant[1])
        if base not in folder.parents:
            self._begin(meant)
        elif is_folder(folder):
            self._enter(meant, folder)

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
