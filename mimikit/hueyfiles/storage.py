"""Huey's storage on plain files: a message is a file, a claim is a rename, nothing is pickled.

Layout, below the storage's own folder:

    queue/      {priority}-{time}-{maker}.json: sorted by name they are sorted by order
    running/    {owner}~{name}: claimed by a living process
    done/       acknowledged; removed when nothing else is to be done
    schedule/   {time}-…json; due/ {owner}~{name}: read, not yet enqueued
    values/  counters/      by hash of their keys
    owners/     one lock file a process
    corrupt/    what could not be read, with the reason beside it
"""

# Huey carries no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import threading
import time
import weakref
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from huey.api import Huey
from huey.api import Task as HueyTask
from huey.signals import SIGNAL_INTERRUPTED

from mimikit.clock import Clock, SystemClock
from mimikit.errors import BadRecord, StorageError
from mimikit.hueyfiles.folder import QueueEntry, QueueFolder
from mimikit.hueyfiles.owners import Claims, OwnedClaims, Owner
from mimikit.hueyfiles.serializer import JsonSerializer, unwrap, wrap
from mimikit.hueyfiles.stores import FolderStorage, falling
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.watch import FolderWatch

_LOOK_EVERY_S = 0.05
"""How often an idle storage looks at its folder where nobody watches it."""
_LOOK_AGAIN_S = 1.0
"""And a busy one, for what others put in with a higher priority; at most one in so many parts of
its time."""
_LOOK_SHARE = 50


@dataclass(eq=False)
class _Session:
    """What a storage holds while it claims: an owner, the index, the watch. One a process."""

    owner: Owner
    folder: QueueFolder
    claims: Claims
    watch: FolderWatch | None
    owns_watch: bool
    pid: int = field(default_factory=os.getpid)
    look_again_at: float = 0.0

    def look(self) -> None:
        began = time.monotonic()
        self.folder.look(None)
        spent = time.monotonic() - began
        self.look_again_at = began + max(_LOOK_AGAIN_S, spent * _LOOK_SHARE)

    def close(self) -> None:
        self.folder.close()
        if self.watch is not None:
            self.watch.unwatch(self.folder.path, self.folder.hear)
            if self.owns_watch:
                self.watch.close(wait=False)
        self.claims.close()
        self.owner.close()


class ClaimStorage(FolderStorage):
    """Bytes in files, claimed by rename; all of Huey's contract, for any Huey program.

    Order: priority falling, then as they came.
    Crash: kill -9 at any moment loses no message. One that ran to its end and was not acknowledged
    yet (microseconds) runs again.

    A subclass may keep other messages, in other folders: it has its own `enqueue` and
    `enqueued_items`, and says by `new_folder` and `new_claims` how they are put in order and
    claimed.
    """

    priority = True

    def __init__(
        self,
        name: str = "huey",
        path: str | Path | None = None,
        *,
        files: Files | None = None,
        base: str = "",
        durable: bool = False,
        blocking: bool = True,
        read_timeout: float = 1.0,
        clock: Clock | None = None,
        watch: FolderWatch | None = None,
        queue: str | None = None,
        running: str | None = None,
        settle_s: float = 2.0,
    ) -> None:
        """Give a `path`, or `files` and a `base` folder in them.

        durable: flush messages to the disk (they survive power loss). Only with `path`.
        blocking: `dequeue` waits up to `read_timeout` seconds; else Huey's worker polls.
        watch: who tells of new files. Without one a storage with a `path` that blocks makes its
            own, and any other looks at the folder itself.
        queue, running: folders of a subclass, which exist, in place of those of this storage.
        settle_s: a file that can not be used is quarantined when it was unchanged for so long.
        """
        if (path is None) == (files is None):
            raise ValueError("expected either path= or files=, got both or none; give one of them")
        self.blocking = blocking
        self.read_timeout = read_timeout
        self._root = Path(path) if path is not None else None
        if files is None:
            root = Path(path or ".")
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            files = Files(RealDisk(root), durable=durable)
        prefix = f"{base}/" if base else ""
        super().__init__(name, files, prefix, clock or SystemClock())
        self._watch = watch
        self._settle_s = settle_s
        self._paused = False
        self._stopped = False
        self._queue = queue or prefix + "queue"
        self._running = running or prefix + "running"
        self._done, self._owners = prefix + "done", prefix + "owners"
        folders = [] if queue else [self._queue, self._running, self._done]
        folders += [self._owners, self._due, self._scheduled]
        folders += [self._value_folder, self._counter_folder, paths.CORRUPT]
        self._files.make_folders([base, *folders] if base else folders)
        self._opening = threading.Lock()
        self._session: _Session | None = None

    # ---- Huey's contract: the queue -------------------------------------------------------

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        """Add a message. Crash: the whole message or none."""
        name = f"{falling(priority or 0)}-{self._namer.suffix()}"
        target = f"{self._queue}/{name}"
        session = self._session
        if session is not None and session.watch is not None:
            session.folder.expect(name)
        if not self.enqueue_due(data, target):
            self._files.write(target, wrap(data))
        if session is not None:
            session.folder.add(name, QueueEntry(name))

    def dequeue(self) -> bytes | None:
        """Claim the next message; what this thread claimed before is done with.

        It never raises for what lies in the folder: that is quarantined, with the reason. Where the
        disk fails, the message stays where it is and is tried again later.
        """
        if self._stopped:
            if self._session is not None:
                self._session.claims.finish_held()
            return None
        session = self._open()
        session.claims.finish_held()
        folder, wakes = session.folder, session.folder.wakes
        now = time.monotonic()
        deadline = now + (self.read_timeout if self.blocking else 0.0)
        if session.watch is None and now > session.look_again_at:
            session.look()
        while not self._stopped:
            waiting = folder.take()
            if waiting is None:
                if not self._wait(session, deadline, wakes):
                    return None
                continue
            try:
                message = session.claims.claim(waiting)
            except (BadRecord, StorageError) as error:
                folder.doubt(waiting.name, error)
            else:
                if message is not None:
                    return message
        return None

    def queue_size(self) -> int:
        """How many messages wait, by the folder itself."""
        return len(self._files.names(self._queue))

    def enqueued_items(self, limit: int | None = None) -> list[bytes]:
        return self._messages(self._queue, self._files.names(self._queue)[:limit])

    def flush_queue(self) -> None:
        self._empty(self._queue)
        if self._session is not None:
            self._session.look()

    # ---- beyond the contract --------------------------------------------------------------

    @property
    def depth(self) -> int:
        """How many messages wait, as far as known: free of cost; 0 before the first `dequeue`."""
        return len(self._session.folder) if self._session is not None else 0

    def upcoming(self, most: int) -> list[str]:
        """The names of the messages that are next, as far as known, at the cost of so many."""
        return self._session.folder.upcoming(most) if self._session is not None else []

    @property
    def paused(self) -> bool:
        """While this is set nothing is claimed; a change ends every waiting `dequeue`."""
        return self._paused

    @paused.setter
    def paused(self, value: bool) -> None:
        self._paused = value
        if self._session is not None:
            self._session.folder.paused = value
            self._session.folder.wake()

    def wake(self) -> None:
        """End every `dequeue` that is waiting: it gives None."""
        if self._session is not None:
            self._session.folder.wake()

    def halt(self) -> None:
        """Claim nothing any more. One assignment, so a signal's handler may call it."""
        self._stopped = True

    def stop(self) -> None:
        """Claim nothing any more and end every waiting `dequeue`."""
        self._stopped = True
        self.wake()

    def look(self, names: list[str] | None = None) -> None:
        """Look at these names in the queue, or at all of it; what a FolderWatch would tell."""
        self._open().folder.look(names)

    def owner_token(self) -> str:
        return self._open().owner.token

    def put_back(self) -> int:
        """Move what dead processes had claimed back to where it was; gives how many."""
        return self._open().owner.put_back()

    def owned(self) -> OwnedClaims | None:
        """The claims in use; None before the first, and where a subclass has others."""
        claims = self._session.claims if self._session is not None else None
        return claims if isinstance(claims, OwnedClaims) else None

    def close(self) -> None:
        """Let go of everything; the calling thread's claim counts as done."""
        with self._opening:
            session, self._session = self._session, None
        if session is not None and session.pid == os.getpid():
            session.close()

    def new_folder(self) -> QueueFolder:
        """How the waiting messages are put in order: here by their names."""

        def inspect(name: str, data: bytes, _seen_at: datetime) -> QueueEntry:
            unwrap(data)
            return QueueEntry(name)

        return QueueFolder(
            self._files,
            self._queue,
            self._clock,
            inspect=inspect,
            by_name=True,
            settle_s=self._settle_s,
        )

    def new_claims(self, folder: QueueFolder, owner: Owner) -> Claims:
        """How messages are claimed: here each claim has an owner, and is put back when it dies."""
        return OwnedClaims(self._files, folder, self._running, self._done, owner)

    def _wait(self, session: _Session, deadline: float, wakes: int) -> bool:
        """Nothing is ready: wait for it. Whether to try again."""
        folder = session.folder
        if session.watch is None:
            session.look()
            if folder.has_ready():
                return True
        left = deadline - time.monotonic()
        if left <= 0 or folder.wakes != wakes:
            return False
        session.claims.idle()
        folder.wait(left if session.watch is not None else min(left, _LOOK_EVERY_S), wakes)
        return True

    def _open(self) -> _Session:
        """The session of this process; the first call makes it."""
        session = self._session
        if session is not None and session.pid == os.getpid():
            return session
        if session is not None:  # forked: its threads and locks are the parent's
            session.owner.close()
            self._opening = threading.Lock()
            self._session = None
        with self._opening:
            if self._session is not None:
                return self._session
            # An owner first, then the orphans, then the watch, then a look at everything.
            owner = Owner(self._files, self._owners)
            owner.add_route(self._due, self._scheduled)
            folder = self.new_folder()
            folder.paused = self._paused
            claims = self.new_claims(folder, owner)
            owner.put_back()
            self.sweep_taken()
            watch, owns_watch = self._watch, False
            if watch is None and self._root is not None and self.blocking:
                watch, owns_watch = FolderWatch(self._root), True
            if watch is not None:
                watch.watch(folder.path, folder.hear)
            session = _Session(owner, folder, claims, watch, owns_watch)
            session.look()
            # A storage that nobody holds any more lets go; at the program's end the main thread is
            # done with its claim, while the lock is the kernel's to free.
            weakref.finalize(self, session.close).atexit = False
            weakref.finalize(self, claims.finish_held)
            self._session = session
            # Again, now that it can be seen: a pause may have ended while it was made.
            folder.paused = self._paused
            folder.wake()
            return session


class ClaimHuey(Huey):
    """Huey on files, for any program: `huey = ClaimHuey("my-app", path="queue")`.

    Crash: a message is acknowledged after it was executed and what follows from it (result, retry,
    next in the pipeline) was written. Killed before that, it runs again at the next start.
    """

    storage_class = ClaimStorage

    def __init__(self, name: str = "huey", *, path: str | Path, **options: Any) -> None:
        """Take Huey's own options and `ClaimStorage`'s."""
        options.setdefault("serializer", JsonSerializer())
        super().__init__(name, path=path, **options)
        self.signal(SIGNAL_INTERRUPTED)(self._interrupted)

    def dequeue(self) -> HueyTask | None:
        """The next task; a message that is none, or of an unknown function, goes to `corrupt/`."""
        try:
            task = super().dequeue()
        except Exception as error:
            claims = self._claims()
            if claims is not None:
                claims.reject_held(f"expected a task of this program, got {error!r}")
            raise
        claims = self._claims()
        if task is not None and claims is not None:
            task.claim = claims.held()
        return task

    def execute(self, task: HueyTask, timestamp: datetime | None = None) -> Any:
        """Run a task; its message is done when this returns."""
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is None or claim is None:
            return super().execute(task, timestamp)
        try:
            value = super().execute(task, timestamp)
        except BaseException:
            # The thread ends: the claim is neither done nor to be repeated at once.
            claims.keep_held()
            raise
        if claims.held() == claim:
            claims.finish_held()
        return value

    def _interrupted(self, _signal: str, task: HueyTask) -> None:
        """A task was broken off in this thread: its message goes back to the queue.

        Huey also tells this of tasks that other threads are still at: those keep their claims, and
        the next start finds them without an owner.
        """
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is not None and claim is not None and claims.held() == claim:
            claims.return_held()

    def _claims(self) -> OwnedClaims | None:
        return self.storage.owned() if isinstance(self.storage, ClaimStorage) else None
