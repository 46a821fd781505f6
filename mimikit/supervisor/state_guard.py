"""Ends the consumer when its state folder, its lock or one of its folders is another than before.

Somebody may remove, move or replace them while it runs, as to restore a backup: the start reads
everything anew.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mimikit.protocol import paths
from mimikit.protocol.disk import Lock
from mimikit.supervisor.store import Store

LOOK_EVERY_S = 1.0


class StateGuard:
    """Looks at the folder and the lock in every pass, at the folders in it each second."""

    def __init__(self, store: Store, lock: Lock, end: Callable[[str], object]) -> None:
        """`lock`: that of `consumer.lock`. `end(reason)` ends this process."""
        self._store, self._lock, self._end = store, lock, end
        self._inodes = self._look()
        self._look_at = 0.0

    def step(self, _now: datetime) -> bool:
        if (reason := self._why_to_end()) is not None:
            self._end(f"{self._store.files.fs.root}: {reason}")
        return False

    def _why_to_end(self) -> str | None:
        if not self._store.files.fs.is_in_place():
            return "the folder was moved, removed or replaced"
        if self._inode(paths.CONSUMER_LOCK) != self._lock.inode:
            return f"{paths.CONSUMER_LOCK} was removed or replaced"
        steady = self._store.clock.monotonic()
        if steady < self._look_at:
            return None
        self._look_at = steady + LOOK_EVERY_S
        now = self._look()
        changed = [f"{folder}/" for folder in now if now[folder] != self._inodes[folder]]
        return f"{', '.join(changed)} was removed or replaced" if changed else None

    def _look(self) -> dict[str, int | None]:
        return {folder: self._inode(folder) for folder in paths.FOLDERS}

    def _inode(self, path: str) -> int | None:
        found = self._store.files.stat(path)
        return found.inode if found else None
