"""Whether the state folder is still the one this consumer opened and locked.

Somebody may remove, move or replace folders while we run: to restore a backup, to begin anew. What
is read from its files each time is made again, and work goes on. Where this process holds in memory
what a folder said, or judged it at its start, it ends with a clear line and is started again: the
start reads everything. From that line on nothing is answered or written any more: what stands there
then is what the start finds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from datetime import datetime

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.disk import Lock
from mimikit.state import misplaced
from mimikit.supervisor.store import Store

LOOK_EVERY_S = 1.0
READ_EACH_TIME = frozenset(
    {
        *(paths.INBOX, paths.COMMANDS, paths.COMMANDS_DONE, paths.MEMORY_FOLDER, paths.SUMMARIES),
        *(paths.RUNS, paths.SECRETS, paths.SIDE, paths.CORRUPT, paths.PAGES, paths.PROMPTS),
    }
)
"""Another folder of that name is as good."""
HELD_IN_MEMORY = frozenset(
    {paths.TRANSCRIPT, paths.LEDGER, paths.TRIGGERS, paths.TRIGGER_STATE, paths.HUEY, paths.CACHE}
)
"""Even an empty one says something else than what is remembered of it."""

Inodes = Mapping[str, "int | None"]
"""By folder; None: it is not there."""


def why_to_end(before: Inodes, now: Inodes, filled: Set[str]) -> str | None:
    """Why this process may not go on with these folders; None when it may. Pure.

    `filled`: where there are files. An empty folder in the place of another was made again, by
    whoever needed it first, after that was removed.
    """
    for folder, inode in now.items():
        if inode is None and folder in HELD_IN_MEMORY:
            return f"{folder}/ was removed"
        is_another = inode not in (None, before[folder])
        if is_another and (folder in HELD_IN_MEMORY or folder in filled - READ_EACH_TIME):
            return f"{folder}/ was replaced"
    return None


class StateGuard:
    """Looks at the lock and at what is held in memory in every pass, at all folders each second."""

    def __init__(
        self,
        store: Store,
        lock: Lock,
        end: Callable[[str], None],
        folders: Collection[str] = paths.FOLDERS,
    ) -> None:
        """`lock`: that of `consumer.lock`. `end(reason)` has this process end, and returns."""
        self._store, self._lock, self._end = store, lock, end
        self._inodes = dict.fromkeys(folders, None) | self._look(folders)
        self._look_at = 0.0
        self.is_ending = False
        """Nothing may be done any more with what is remembered."""

    def step(self, _now: datetime) -> bool:
        """Make again what is missing, or end.

        Crash: folders are made one by one, parents first; the start makes what is left.
        """
        reason = self._why_to_end()
        if reason is not None:
            self.is_ending = True
            self._end(reason)
        return False

    def _why_to_end(self) -> str | None:
        files, steady = self._store.files, self._store.clock.monotonic()
        if not files.fs.is_in_place():
            return "the folder was moved, removed or replaced"
        found = files.stat(paths.CONSUMER_LOCK)
        if found is None or found.inode != self._lock.inode:
            return f"{paths.CONSUMER_LOCK} was removed or replaced"
        held = self._look(HELD_IN_MEMORY & self._inodes.keys())
        if steady < self._look_at and held.items() <= self._inodes.items():
            return None
        self._look_at = steady + LOOK_EVERY_S
        return self._see_to_folders()

    def _see_to_folders(self) -> str | None:
        if (reason := misplaced(self._store.files)) is not None:
            raise StorageError(reason)  # told until it is put right; nothing is judged meanwhile
        before, now = self._inodes, self._look(self._inodes)
        if now == before:
            return None
        gone = [folder for folder, inode in now.items() if inode is None]
        changed = [f for f, inode in now.items() if inode not in (None, before[f])]
        filled = {folder for folder in changed if self._store.files.names(folder, suffix="")}
        self._store.log.write("error", "folders_changed", missing=gone, replaced=changed)
        if (reason := why_to_end(before, now, filled)) is not None:
            return reason
        self._store.files.make_folders(gone)
        self._inodes = now | self._look(gone)
        return None

    def _look(self, folders: Collection[str]) -> dict[str, int | None]:
        stats = ((folder, self._store.files.stat(folder)) for folder in folders)
        return {folder: found.inode if found else None for folder, found in stats}
