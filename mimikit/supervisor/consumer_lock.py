"""The lock of the one consumer of a state folder, and the guard of that folder.

The lock is valid only while its file is at its path: a consumer that finds another inode ends.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from mimikit.errors import AlreadyRunning, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.files import Files
from mimikit.protocol.runtime import LockHolder
from mimikit.state import State

if TYPE_CHECKING:
    from mimikit.supervisor.store import Store

LOOK_S = 0.1
MAX_LOOKS = 30
"""Tries to take a lock that no living consumer holds, LOOK_S seconds apart."""
CHECK_FOLDERS_S = 1.0


def take_consumer_lock(state: State) -> Lock:
    """Become the one consumer of this folder.

    Raises:
        AlreadyRunning: another holds the lock; the message names its process.
    """
    lock = free_lock(state)
    holder = LockHolder.own(state.clock.now(), host=socket.gethostname())
    state.files.save(paths.CONSUMER_HOLDER, holder)
    return lock


def free_lock(state: State) -> Lock:
    """The lock; waits briefly, as `doctor` may hold it, but not for a living consumer."""
    lock, looks = _lock(state.files), 0
    while lock is None and looks < (1 if _living_holder(state) else MAX_LOOKS):
        time.sleep(LOOK_S)
        lock, looks = _lock(state.files), looks + 1
    if lock is not None:
        return lock
    if (holder := _living_holder(state)) is None:
        path = state.path / paths.CONSUMER_LOCK
        raise AlreadyRunning(f"{path} is locked by a program that is not mimikit; end it first")
    who, since = f"process {holder.pid} on {holder.host}", f"{holder.started_at:%Y-%m-%d %H:%M}"
    raise AlreadyRunning(
        f"{state.path} is in use by mimikit: {who}, since {since} UTC; end it first"
    )


def _lock(files: Files) -> Lock | None:
    try:
        return files.lock(paths.CONSUMER_LOCK)
    except UnsafeFile as error:
        files.quarantine(paths.CONSUMER_LOCK, str(error))
        return files.lock(paths.CONSUMER_LOCK)


def _living_holder(state: State) -> LockHolder | None:
    """The recorded consumer, unless its process has certainly ended."""
    holder = state.files.peek(paths.CONSUMER_HOLDER, LockHolder)
    if holder is None or holder.host != socket.gethostname():
        return holder
    return holder if holder.is_alive else None


class StateGuard:
    """Ends the consumer when its lock, the state folder or a folder in it was replaced.

    As when a backup is restored while it runs: the next start rereads everything.
    """

    def __init__(self, store: Store, lock: Lock, end: Callable[[str], object]) -> None:
        self._store, self._lock, self._end = store, lock, end
        self._folders = self._folder_inodes()
        self._check_at = 0.0

    def step(self, _now: datetime) -> bool:
        if (reason := self._why_to_end()) is not None:
            self._end(f"{self._store.files.fs.root}: {reason}")
        return False

    def _why_to_end(self) -> str | None:
        if not self._store.files.fs.is_in_place():
            return "the folder was moved, removed or replaced"
        if self._inode(paths.CONSUMER_LOCK) != self._lock.inode:
            return f"{paths.CONSUMER_LOCK} was removed or replaced"
        monotonic = self._store.clock.monotonic()
        if monotonic < self._check_at:
            return None
        self._check_at = monotonic + CHECK_FOLDERS_S
        now = self._folder_inodes()
        changed = [f"{folder}/" for folder in now if now[folder] != self._folders[folder]]
        return f"{', '.join(changed)} was removed or replaced" if changed else None

    def _folder_inodes(self) -> dict[str, int | None]:
        return {folder: self._inode(folder) for folder in paths.FOLDERS}

    def _inode(self, path: str) -> int | None:
        found = self._store.files.stat(path)
        return found.inode if found else None
