"""Huey storage on plain files: a message is a file, a claim is a rename, nothing is pickled.

Layout, below the storage's own folder:

    queue/      {priority}-{time}-{maker}.json: sorted by name they are in order
    running/    {owner}~{name}: claimed by a living process
    done/       acknowledged; removed while idle
    schedule/   {time}-…json; due/ {owner}~{name}: read, not yet enqueued
    values/  counters/      by hash of their keys
    owners/     one lock file per process
    corrupt/    quarantined files, each with its reason
"""

# Huey has no types.
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

_POLL_S = 0.05
"""Scan interval of an idle storage without a watch."""
_RESCAN_S = 1.0
"""Scan interval of a busy one, as others may enqueue with a higher priority."""
_RESCAN_SHARE = 50
"""Rescans use at most one part in so many of the time."""


@dataclass(eq=False)
class _Session:
    """The resources of a storage in one process that claims."""

    owner: Owner
    folder: QueueFolder
    claims: Claims
    watch: FolderWatch | None
    owns_watch: bool
    pid: int = field(default_factory=os.getpid)
    refresh_at: float = 0.0

    def refresh(self) -> None:
        began = time.monotonic()
        self.folder.refresh(None)
        spent = time.monotonic() - began
        self.refresh_at = began + max(_RESCAN_S, spent * _RESCAN_SHARE)

    def close(self) -> None:
        self.folder.close()
        if self.watch is not None:
            self.watch.unwatch(self.folder.path, self.folder.on_change)
            if self.owns_watch:
                self.watch.close(wait=False)
        self.claims.close()
        self.owner.close()


class ClaimStorage(FolderStorage):
    """Huey's storage contract on files; messages are claimed by rename.

    Order: highest priority first, then first in, first out.
    Crash: kill -9 at any moment loses no message. One that was executed and not yet acknowledged
    (microseconds) runs again.

    A subclass with other messages overrides `enqueue`, `enqueued_items`, `new_folder` and
    `new_claims`.
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
        """Requires a `path`, or `files` and a `base` folder in them.

        durable: fsync messages, so that they survive power loss. Only with `path`.
        blocking: `dequeue` waits up to `read_timeout` seconds; else Huey's worker polls.
        watch: reports new files. Without one a blocking storage with a `path` creates its own, and
            any other polls.
        queue, running: existing folders of a subclass.
        settle_s: a bad file is quarantined once it was unchanged for so long.
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
        """Claim the next message; the thread's previous claim is acknowledged.

        A bad file is quarantined, not raised. If the disk fails, the message stays queued.
        """
        if self._stopped:
            if self._session is not None:
                self._session.claims.acknowledge_current()
            return None
        session = self._open()
        session.claims.acknowledge_current()
        folder, wakes = session.folder, session.folder.wakes
        now = time.monotonic()
        deadline = now + (self.read_timeout if self.blocking else 0.0)
        if session.watch is None and now > session.refresh_at:
            session.refresh()
        while not self._stopped:
            waiting = folder.take()
            if waiting is None:
                if not self._wait(session, deadline, wakes):
                    return None
                continue
            try:
                message = session.claims.claim(waiting)
            except (BadRecord, StorageError) as error:
                folder.suspect(waiting.name, error)
            else:
                if message is not None:
                    return message
        return None

    def queue_size(self) -> int:
        return len(self._files.names(self._queue))

    def enqueued_items(self, limit: int | None = None) -> list[bytes]:
        return self._messages(self._queue, self._files.names(self._queue)[:limit])

    def flush_queue(self) -> None:
        self._empty(self._queue)
        if self._session is not None:
            self._session.refresh()

    # ---- beyond the contract --------------------------------------------------------------

    @property
    def depth(self) -> int:
        """Number of waiting messages in the index; 0 before the first `dequeue`."""
        return len(self._session.folder) if self._session is not None else 0

    def upcoming(self, most: int) -> list[str]:
        return self._session.folder.upcoming(most) if self._session is not None else []

    @property
    def paused(self) -> bool:
        """While set, nothing is claimed; a change ends every waiting `dequeue`."""
        return self._paused

    @paused.setter
    def paused(self, value: bool) -> None:
        self._paused = value
        if self._session is not None:
            self._session.folder.paused = value
            self._session.folder.wake()

    def wake(self) -> None:
        if self._session is not None:
            self._session.folder.wake()

    def halt(self) -> None:
        """Claim nothing any more. One assignment, so a signal handler may call it."""
        self._stopped = True

    def stop(self) -> None:
        """Claim nothing any more and end every waiting `dequeue`."""
        self._stopped = True
        self.wake()

    def refresh(self, names: list[str] | None = None) -> None:
        """Read these names in the queue, or scan it, as a FolderWatch would."""
        self._open().folder.refresh(names)

    def owner_token(self) -> str:
        return self._open().owner.token

    def owned(self) -> OwnedClaims | None:
        """The claims; None before the first one, and for a subclass with its own."""
        claims = self._session.claims if self._session is not None else None
        return claims if isinstance(claims, OwnedClaims) else None

    def close(self) -> None:
        """Release everything; the calling thread's claim is acknowledged."""
        with self._opening:
            session, self._session = self._session, None
        if session is not None and session.pid == os.getpid():
            session.close()

    def new_folder(self) -> QueueFolder:

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
        return OwnedClaims(self._files, folder, self._running, self._done, owner)

    def _wait(self, session: _Session, deadline: float, wakes: int) -> bool:
        """Wait for a message; returns whether to try again."""
        folder = session.folder
        if session.watch is None:
            session.refresh()
            if folder.has_ready():
                return True
        left = deadline - time.monotonic()
        if left <= 0 or folder.wakes != wakes:
            return False
        session.claims.idle()
        folder.wait(left if session.watch is not None else min(left, _POLL_S), wakes)
        return True

    def _open(self) -> _Session:
        """The session of this process, opened on the first call."""
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
            # In this order: owner, orphans, watch, full scan.
            owner = Owner(self._files, self._owners)
            owner.add_route(self._due, self._scheduled)
            folder = self.new_folder()
            folder.paused = self._paused
            claims = self.new_claims(folder, owner)
            owner.requeue_orphans()
            self.sweep_taken()
            watch, owns_watch = self._watch, False
            if watch is None and self._root is not None and self.blocking:
                watch, owns_watch = FolderWatch(self._root), True
            if watch is not None:
                watch.watch(folder.path, folder.on_change)
            session = _Session(owner, folder, claims, watch, owns_watch)
            session.refresh()
            # A garbage-collected storage is closed; at exit the main thread's claim is acknowledged
            # and the kernel frees the lock.
            weakref.finalize(self, session.close).atexit = False
            weakref.finalize(self, claims.acknowledge_current)
            self._session = session
            # Again, now that the session is visible: a pause may have ended meanwhile.
            folder.paused = self._paused
            folder.wake()
            return session


class ClaimHuey(Huey):
    """Huey on files, for any program: `huey = ClaimHuey("my-app", path="queue")`.

    Crash: a message is acknowledged after it was executed and its result, retry and next pipeline
    task were written. If the process is killed before, it runs again at the next start.
    """

    storage_class = ClaimStorage

    def __init__(self, name: str = "huey", *, path: str | Path, **options: Any) -> None:
        """`options`: Huey's own and `ClaimStorage`'s."""
        options.setdefault("serializer", JsonSerializer())
        super().__init__(name, path=path, **options)
        self.signal(SIGNAL_INTERRUPTED)(self._interrupted)

    def dequeue(self) -> HueyTask | None:
        """The next task; a bad message, or one of an unknown function, is quarantined."""
        try:
            task = super().dequeue()
        except Exception as error:
            claims = self._claims()
            if claims is not None:
                claims.quarantine_current(f"expected a task of this program, got {error!r}")
            raise
        claims = self._claims()
        if task is not None and claims is not None:
            task.claim = claims.current()
        return task

    def execute(self, task: HueyTask, timestamp: datetime | None = None) -> Any:
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is None or claim is None:
            return super().execute(task, timestamp)
        try:
            value = super().execute(task, timestamp)
        except BaseException:
            # The thread ends: the claim stays in running/, and is not repeated at once.
            claims.detach_current()
            raise
        if claims.current() == claim:
            claims.acknowledge_current()
        return value

    def _interrupted(self, _signal: str, task: HueyTask) -> None:
        """Requeue a task interrupted in this thread.

        Huey also sends this signal for tasks of other threads: those keep their claims, which the
        next start finds orphaned.
        """
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is not None and claim is not None and claims.current() == claim:
            claims.requeue_current()

    def _claims(self) -> OwnedClaims | None:
        return self.storage.owned() if isinstance(self.storage, ClaimStorage) else None
