"""Claims and their owners: who works on which file, and putting back the claims of the dead.

A claim is a rename from `queue/` to `running/`; who loses the race finds nothing to rename. What is
handed out is what lies in `running/`: an editor may have replaced the file in the moment before.

Every process that claims is an owner: a fresh name per start, and a lock file that the kernel frees
when the process dies, however it dies. A claim's name begins with its owner's. No time-out is ever
needed, and a living owner's claims are never touched, however long it takes.
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
from mimikit.protocol.watch import LastingThread
from mimikit.protocol.writer_lock import held

_logger = logging.getLogger(__name__)

_MARK = "~"
_GUARD = "guard"
_GUARD_PATIENCE_S = 10.0
"""Who has it may have very many claims to put back."""
_PUT_BACK_EVERY_S = 5.0
_PRUNE_AFTER_S = 0.2
_PRUNE_LIMIT = 50_000
_PRUNE_AT_ONCE = 5_000


def claim_name(owner: str, name: str) -> str:
    return f"{owner}{_MARK}{name}"


class Owner:
    """This process as an owner of claims, until `close`.

    folder: where the lock files of all owners lie. They are made and judged under one guard, so
    that a new owner is never taken for a dead one in the moment before it holds its lock.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._routes: dict[str, str] = {}
        self.token = secrets.token_hex(8)
        path = self._path(self.token)
        with held(files, self._path(_GUARD), patience_s=_GUARD_PATIENCE_S):
            lock = files.lock(path)
        if lock is None:
            raise StorageError(f"{path}: expected a new lock, got one that is held")
        self._lock = lock

    def close(self) -> None:
        """Own nothing any more; what is still claimed is an orphan from now on."""
        self._lock.release()

    def add_route(self, claimed: str, source: str) -> None:
        """Say that claims in the folder `claimed` came from `source`."""
        self._routes[claimed] = source

    def put_back(self) -> int:
        """Move the claims of dead owners back to where they came from; gives how many.

        Crash: some are back, the rest are the next one's to move; their owner stays dead.
        """
        moved = 0
        with held(self._files, self._path(_GUARD), patience_s=_GUARD_PATIENCE_S):
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
    """How a queue's files are claimed; what becomes of the claims is here the caller's matter."""

    def claim(self, waiting: WaitingFile) -> bytes | None:
        """Claim a file and give its bytes; None when it is gone, or can not be used now.

        Raises:
            StorageError: the disk could not; the file is where it was.
        """
        raise NotImplementedError

    def finish_held(self) -> None:
        """The calling thread is done with the claim it holds, if it holds one."""

    def idle(self) -> None:
        """Nothing is ready: time for chores."""

    def close(self) -> None:
        """Claim no more."""


class _Hold:
    """The claim one thread works on; a thread that ends is done with it.

    A task that ends its own thread (`sys.exit`) looks the same from here: see `ClaimHuey`.
    """

    def __init__(self, claims: OwnedClaims) -> None:
        self.name: str | None = None
        self._claims = claims
        self._thread = threading.get_ident()

    def __del__(self) -> None:
        # Only in its own thread: when the interpreter goes down, it drops those of threads that
        # are still at work as well.
        if self.name is not None and threading.get_ident() == self._thread:
            with contextlib.suppress(BaseException):
                self._claims.finish(self.name)


class OwnedClaims(Claims):
    """Claims with their owner in the name, acknowledged by the thread that made them.

    Huey knows no acknowledgement, so a message is done when its thread asks for the next one, when
    `finish_held` is called after it was executed, or when the thread ends. Neither claim nor
    acknowledgement is flushed to the disk, even where writes are: after a power cut every owner is
    dead, so a forgotten claim is put back anyway, and a forgotten acknowledgement repeats a message
    and loses none.

    A finished file is moved to `done/` and removed when nothing else is to be done: to remove a
    file that had reached the disk may take a millisecond, to rename it takes microseconds.
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
        self._put_back_at = time.monotonic()
        self._local = threading.local()
        self._unpruned = 1  # the last process may have left some
        self._prune = threading.Event()
        self._pruner = LastingThread("pruner")

    def claim(self, waiting: WaitingFile) -> bytes | None:
        """Rename, then read: a name is used once, so the order needs no look into the file.

        Crash: before the rename it waits; after it the claim has a dead owner and is put back.
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
            data = self._files.read(target, most=MAX_RECORD_BYTES)
            if data is None:
                return None
            message = unwrap(data)
        except (BadRecord, StorageError):
            with contextlib.suppress(OSError):
                self._files.fs.rename(target, source)
            raise
        self._hold().name = claimed
        return message

    def finish_held(self) -> None:
        """Acknowledge the claim of the calling thread."""
        if claimed := self.keep_held():
            self.finish(claimed)

    def finish(self, claimed: str) -> None:
        """Acknowledge a claim.

        Crash: before this the message is repeated; after it, it is done.
        """
        try:
            self._files.fs.rename(f"{self._running}/{claimed}", f"{self._done}/{claimed}")
        except FileNotFoundError:
            return  # flushed meanwhile
        except OSError as error:
            _logger.warning("%s: could not be acknowledged, it may run again: %s", claimed, error)
            return
        self._unpruned += 1
        if self._unpruned > _PRUNE_LIMIT:
            self._start_pruning()

    def held(self) -> str | None:
        """The queue name of the claim that the calling thread holds."""
        claimed = self._hold().name
        return claimed and _original_name(claimed)

    def keep_held(self) -> str | None:
        """Let go of the calling thread's claim: neither done nor waiting, until a restart."""
        hold = self._hold()
        claimed, hold.name = hold.name, None
        return claimed

    def return_held(self) -> None:
        """Put the calling thread's claim back into the queue: it was not done."""
        if claimed := self.keep_held():
            name = _original_name(claimed)
            self._files.move(f"{self._running}/{claimed}", f"{self._folder.path}/{name}")
            self._folder.look([name])

    def reject_held(self, reason: str) -> None:
        """The calling thread can not use the message it claimed: into quarantine with it."""
        if claimed := self.keep_held():
            self._files.quarantine(f"{self._running}/{claimed}", reason)

    def idle(self) -> None:
        """Let the finished files be removed; put back now and then what others left behind."""
        if self._unpruned:
            self._start_pruning()
        if time.monotonic() - self._put_back_at > _PUT_BACK_EVERY_S:
            self._put_back_at = time.monotonic()
            with contextlib.suppress(StorageError):  # the next round tries again
                self._owner.put_back()

    def prune(self) -> None:
        """Remove finished files: all of them while idle, some when there are far too many."""
        names = self._files.names(self._done)
        must = len(names) - _PRUNE_LIMIT + _PRUNE_AT_ONCE if len(names) > _PRUNE_LIMIT else 0
        for number, name in enumerate(names):
            if self._folder.closed.is_set() or (number >= must and self._folder.has_ready()):
                self._unpruned = len(names) - number
                return  # work has come: it goes first
            with contextlib.suppress(OSError):
                self._files.fs.unlink(f"{self._done}/{name}")
        self._unpruned = 0

    def close(self) -> None:
        """Acknowledge what the calling thread holds; the claims of others are orphans now."""
        self.finish_held()
        self._prune.set()
        self._owner.close()

    def _hold(self) -> _Hold:
        try:
            return self._local.hold
        except AttributeError:
            self._local.hold = _Hold(self)
            return self._local.hold

    def _start_pruning(self) -> None:
        self._pruner.begin(self._pruning)
        self._prune.set()

    def _pruning(self) -> None:
        while not self._folder.closed.is_set():
            self._prune.wait()
            if self._folder.closed.wait(_PRUNE_AFTER_S):
                return
            self._prune.clear()
            try:
                self.prune()
            except StorageError as error:
                _logger.warning("finished messages could not be removed: %s", error)


def _original_name(claimed: str) -> str:
    return claimed.partition(_MARK)[2]
