"""The lock of the one consumer of a state folder."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Generator

from mimikit.errors import AlreadyRunning, UnsafeFile
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.runtime import LockHolder
from mimikit.state import State

LOOK_S = 0.1
MAX_LOOKS = 30
"""Tries before a lock held by no living consumer is given up, `LOOK_S` seconds apart."""


def take_consumer_lock(state: State) -> Lock:
    """Become the one consumer of this folder; gives the lock of `consumer.lock`.

    The folder itself is locked, too: whoever removes the file lets no second consumer in.

    Raises:
        AlreadyRunning: another holds it; the message names who.
    """
    lock = free_lock(state)
    state.files.save(
        paths.CONSUMER_HOLDER,
        LockHolder(
            pid=os.getpid(),
            process_started=ids.own_start_time(),
            boot_id=ids.boot_id(),
            host=socket.gethostname(),
            started_at=state.clock.now(),
        ),
    )
    return lock


def free_lock(state: State) -> Lock:
    """The locks of the folder and of the file in it, as that of the file.

    Whoever only looks has let go of them in a moment; for a consumer nobody waits.
    """
    lock, looks = _both_locks(state), 0
    while lock is None and looks < (1 if _living_holder(state) else MAX_LOOKS):
        threading.Event().wait(LOOK_S)
        lock, looks = _both_locks(state), looks + 1
    if lock is not None:
        return lock
    if (holder := _living_holder(state)) is None:
        path = state.path / paths.CONSUMER_LOCK
        raise AlreadyRunning(f"{path} is locked by a program that is no consumer; end it first")
    who, since = f"process {holder.pid} on {holder.host}", f"{holder.started_at:%Y-%m-%d %H:%M}"
    raise AlreadyRunning(
        f"{state.path} is in use: {who} is its consumer, since {since} UTC; end it first"
    )


def _both_locks(state: State) -> Lock | None:
    with contextlib.ExitStack() as held:
        for path in (paths.ROOT, paths.CONSUMER_LOCK):
            try:
                lock = state.files.lock(path)
            except UnsafeFile as error:  # the folder's lock is held by now: nobody relies on it
                state.files.quarantine(path, str(error))
                lock = state.files.lock(path)
            if lock is None:
                return None
            held.callback(lock.release)
        return Lock(held.pop_all().close, lock.inode)


def _living_holder(state: State) -> LockHolder | None:
    """Who says that it is the consumer, unless it has ended for certain."""
    holder = state.files.peek(paths.CONSUMER_HOLDER, LockHolder)
    if holder is None or holder.host != socket.gethostname():
        return holder
    is_alive = ids.is_alive(holder.pid, holder.process_started, holder.boot_id)
    return holder if is_alive else None


@contextlib.contextmanager
def in_place_of_consumer(state: State) -> Generator[None]:
    """Hold the consumer's lock for a moment, to do its work where none is running.

    Raises:
        AlreadyRunning: one is.
    """
    lock = free_lock(state)
    try:
        yield
    finally:
        lock.release()
