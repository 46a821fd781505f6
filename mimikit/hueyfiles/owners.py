"""Claims of messages by processes, and the requeue of orphaned claims.

A claim is a rename from `queue/` to `running/`, so only one claimer wins. The message is read from
`running/`, as an editor may have replaced the file just before.

Each process that claims is an owner with its own token and lock file, which the kernel releases
when the process dies. A claim's name begins with its owner's token. So there is no timeout: claims
of a living owner are never touched.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time

from mimikit.errors import BadRecord, StorageError
from mimikit.hueyfiles.folder import QueueFolder, WaitingFile
from mimikit.hueyfiles.serializer import unwrap
from mimikit.protocol.files import Files
from mimikit.protocol.records import MAX_RECORD_BYTES

_logger = logging.getLogger(__name__)

_MARK = "~"
_GUARD = "guard"
_REQUEUE_EVERY_S = 5.0
_PRUNE_LIMIT = 50_000
_PRUNE_AT_ONCE = 5_000


def claim_name(owner: str, name: str) -> str:
    return f"{owner}{_MARK}{name}"


class Owner:
    """This process as an owner of claims, until `close`.

    Lock files are created and checked under one guard lock, so that a new owner is never mistaken
    for a dead one before it holds its lock.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._routes: dict[str, str] = {}
        self.token = secrets.token_hex(8)
        path = self._path(self.token)
        with files.locked(self._path(_GUARD)):
            lock = files.lock(path)
        if lock is None:
            raise StorageError(f"{path}: expected a free lock, got one that is held")
        self._lock = lock

    def close(self) -> None:
        self._lock.release()

    def add_route(self, claimed: str, source: str) -> None:
        """Orphans in the folder `claimed` are moved back to `source`."""
        self._routes[claimed] = source

    def requeue_orphans(self) -> int:
        """Move orphaned claims back to their queues; returns how many.

        Crash: the next call moves the rest.
        """
        moved = 0
        with self._files.locked(self._path(_GUARD)):
            claims = [
                (folder, name)
                for folder in self._routes
                for name in self._files.names(folder)
                if _MARK in name
            ]
            owners = {name.partition(_MARK)[0] for _, name in claims}
            for name in self._files.names(self._folder, suffix=".lock"):
                owners.add(name.removesuffix(".lock"))
            for owner in owners - {self.token, _GUARD}:
                lock = self._files.lock(self._path(owner))
                if lock is None:
                    continue
                try:
                    for folder, name in claims:
                        if name.startswith(owner + _MARK):
                            back = f"{self._routes[folder]}/{_original_name(name)}"
                            moved += self._files.move(f"{folder}/{name}", back)
                    self._files.remove(self._path(owner))
                finally:
                    lock.release()
        return moved

    def _path(self, owner: str) -> str:
        return f"{self._folder}/{owner}.lock"


class Claims:
    """Interface: how a queue's files are claimed."""

    def claim(self, waiting: WaitingFile) -> bytes | None:
        """Claim a file and return its content; None when it is gone or not due.

        Raises:
            StorageError: it stays unclaimed.
        """
        raise NotImplementedError

    def acknowledge_current(self) -> None: ...

    def idle(self) -> None:
        """Called when nothing is ready, for housekeeping."""

    def close(self) -> None: ...


class _Hold:
    """A thread's claim, acknowledged when the thread ends.

    For a task that ends its own thread (`sys.exit`) see `ClaimHuey.execute`.
    """

    def __init__(self, claims: OwnedClaims) -> None:
        self.name: str | None = None
        self._claims = claims
        self._thread = threading.get_ident()

    def __del__(self) -> None:
        # Only in its own thread: at exit the interpreter also drops those of threads still at work.
        if self.name is not None and threading.get_ident() == self._thread:
            with contextlib.suppress(BaseException):
                self._claims.acknowledge(self.name)


class OwnedClaims(Claims):
    """Claims that are acknowledged by the thread that made them.

    Huey has no acknowledgement, so a message is acknowledged by `acknowledge_current` after it was
    executed, when its thread asks for the next one, or when the thread ends. Nothing is fsynced:
    after a power cut every owner is dead, so a lost claim is requeued anyway, and a lost
    acknowledgement repeats a message but loses none.

    An acknowledged file is moved to `done/` and removed while idle: a rename takes microseconds,
    the removal of a file on the disk may take a millisecond.
    """

    def __init__(
        self, files: Files, folder: QueueFolder, running: str, done: str, owner: Owner
    ) -> None:
        self._files = files
        self._folder = folder
        self._running = running
        self._done = done
        self._owner = owner
        owner.add_route(running, folder.path)
        self._requeued_at = time.monotonic()
        self._local = threading.local()
        self._unpruned = 1  # a previous process may have left some

    def claim(self, waiting: WaitingFile) -> bytes | None:
        """Rename, then read.

        Crash: before the rename it stays queued; after it the claim is an orphan and is requeued.
        """
        name = waiting.name
        claimed = claim_name(self._owner.token, name)
        source, target = f"{self._folder.path}/{name}", f"{self._running}/{claimed}"
        try:
            self._files.fs.rename(source, target)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{source}: {error.strerror}") from error
        try:
            data = self._files.read(target, max_bytes=MAX_RECORD_BYTES)
            if data is None:
                return None
            message = unwrap(data)
        except (BadRecord, StorageError):
            with contextlib.suppress(OSError):
                self._files.fs.rename(target, source)
            raise
        self._hold().name = claimed
        return message

    def acknowledge_current(self) -> None:
        if claimed := self.detach_current():
            self.acknowledge(claimed)

    def acknowledge(self, claimed: str) -> None:
        """Acknowledge a claim. Crash: before this the message is repeated."""
        try:
            self._files.fs.rename(f"{self._running}/{claimed}", f"{self._done}/{claimed}")
        except FileNotFoundError:
            return  # the queue was flushed meanwhile
        except OSError as error:
            _logger.warning("%s: could not be acknowledged, it may run again: %s", claimed, error)
            return
        self._unpruned += 1
        if self._unpruned > _PRUNE_LIMIT:
            self.prune()

    def current(self) -> str | None:
        """The file name of the calling thread's claim, without its owner."""
        claimed = self._hold().name
        return claimed and _original_name(claimed)

    def detach_current(self) -> str | None:
        """Detach the calling thread's claim: it stays in `running/` until a restart."""
        hold = self._hold()
        claimed, hold.name = hold.name, None
        return claimed

    def requeue_current(self) -> None:
        if claimed := self.detach_current():
            name = _original_name(claimed)
            self._files.move(f"{self._running}/{claimed}", f"{self._folder.path}/{name}")
            self._folder.refresh([name])

    def quarantine_current(self, reason: str) -> None:
        if claimed := self.detach_current():
            self._files.quarantine(f"{self._running}/{claimed}", reason)

    def idle(self) -> None:
        """Remove acknowledged files, and requeue orphans every few seconds."""
        if self._unpruned:
            self.prune()
        if time.monotonic() - self._requeued_at > _REQUEUE_EVERY_S:
            self._requeued_at = time.monotonic()
            with contextlib.suppress(StorageError):  # tried again next time
                self._owner.requeue_orphans()

    def prune(self) -> None:
        """Remove acknowledged files until work is ready; beyond a limit, some even then."""
        try:
            names = self._files.names(self._done)
        except StorageError as error:
            _logger.warning("acknowledged messages could not be removed: %s", error)
            return
        surplus = len(names) - _PRUNE_LIMIT + _PRUNE_AT_ONCE if len(names) > _PRUNE_LIMIT else 0
        for number, name in enumerate(names):
            if self._folder.closed.is_set() or (number >= surplus and self._folder.has_ready()):
                self._unpruned = len(names) - number
                return  # work goes first
            with contextlib.suppress(OSError):
                self._files.fs.unlink(f"{self._done}/{name}")
        self._unpruned = 0

    def close(self) -> None:
        self.acknowledge_current()
        self._owner.close()

    def _hold(self) -> _Hold:
        try:
            return self._local.hold
        except AttributeError:
            self._local.hold = _Hold(self)
            return self._local.hold


def _original_name(claimed: str) -> str:
    return claimed.partition(_MARK)[2]
