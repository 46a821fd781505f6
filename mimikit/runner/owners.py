"""Whose claim a file in `running/` is, and putting back the claims of the dead.

Every process that claims is an owner: a fresh name per start, and a lock file that the kernel frees
when the process dies, however it dies. A claim's name begins with its owner's. No time-out is ever
needed, and a living owner's claims are never touched, however long it takes.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Generator

from mimikit.errors import StorageError
from mimikit.protocol.disk import Lock
from mimikit.protocol.files import Files

MARK = "~"
_GUARD = "guard.lock"
_GUARD_WAIT_S = 10.0


def claim_name(owner: str, name: str) -> str:
    """The name of a claimed file."""
    return f"{owner}{MARK}{name}"


def original_name(claimed: str) -> str:
    """The name it had, and gets back."""
    return claimed.partition(MARK)[2]


class Owner:
    """This process as an owner of claims, until `close`.

    folder: where the lock files of all owners lie. They are made and judged under one guard, so
    that a new owner is never taken for a dead one in the moment before it holds its lock.
    """

    def __init__(self, files: Files, folder: str) -> None:
        """Make a fresh owner and hold its lock."""
        self._files = files
        self._folder = folder
        self.token = secrets.token_hex(8)
        with self._guard():
            lock = files.lock(self._path(self.token))
        if lock is None:
            raise StorageError(
                f"{self._path(self.token)}: expected a new lock, got one that is held"
            )
        self._lock: Lock | None = lock

    def close(self) -> None:
        """Own nothing any more; what is still claimed is an orphan from now on."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def put_back(self, routes: dict[str, str]) -> int:
        """Move the claims of dead owners back, each folder's to its source; gives how many.

        Crash: some are back, the rest are the next one's to move; their owner stays dead.
        """
        moved = 0
        with self._guard():
            claims = [(folder, name) for folder in routes for name in self._claims(folder)]
            known = {name.partition(MARK)[0] for _, name in claims} | set(self._owners())
            for owner in known - {self.token}:
                lock = self._files.lock(self._path(owner))
                if lock is None:
                    continue
                try:
                    for folder, name in claims:
                        if name.startswith(owner + MARK):
                            back = f"{routes[folder]}/{original_name(name)}"
                            moved += self._files.move(f"{folder}/{name}", back)
                    self._files.remove(self._path(owner))
                finally:
                    lock.release()
        return moved

    def _owners(self) -> list[str]:
        names = self._files.names(self._folder, suffix=".lock")
        return [name.removesuffix(".lock") for name in names if name != _GUARD]

    def _claims(self, folder: str) -> list[str]:
        return [name for name in self._files.names(folder) if MARK in name]

    def _path(self, owner: str) -> str:
        return f"{self._folder}/{owner}.lock"

    @contextlib.contextmanager
    def _guard(self) -> Generator[None]:
        lock = wait_for_lock(self._files, f"{self._folder}/{_GUARD}", _GUARD_WAIT_S)
        try:
            yield
        finally:
            lock.release()


def wait_for_lock(files: Files, path: str, timeout_s: float) -> Lock:
    """Take a lock that others hold for moments only.

    Raises:
        StorageError: it was not free in time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        lock = files.lock(path)
        if lock is not None:
            return lock
        if time.monotonic() > deadline:
            raise StorageError(f"{path}: expected it free within {timeout_s:.0f} s; who holds it?")
        time.sleep(0.001)
