"""Huey's schedule: messages that wait for their time, one file each.

Huey reads the due messages out of the schedule and enqueues them one by one: killed in between, it
loses them. So they are not removed when read but moved to `due/`, under their reader's name. From
there each leaves in one of three ways: its enqueueing moves the very file into the queue (one
rename: it is never in both and never in none); the same thread reads the schedule again, so it is
done with the last lot; or the reader is dead, then the next start moves it back to the schedule.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime, timedelta
from itertools import chain

from mimikit.clock import Clock
from mimikit.errors import BadRecord
from mimikit.hueyfiles.claims import claim_name
from mimikit.hueyfiles.folder import read_bytes
from mimikit.hueyfiles.serializer import identity, unwrap, wrap
from mimikit.protocol.files import Files

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - Huey's times carry no zone; only their order matters
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = 1 << 62
_TRUSTED_AFTER_S = 0.1


class _Reader(threading.local):
    """What this thread read and has not enqueued: by identity the due files and their bytes."""

    def __init__(self) -> None:
        self.due: dict[bytes, list[tuple[str, bytes]]] = {}


class MessageSchedule:
    """Messages in the order of their times."""

    def __init__(self, files: Files, folder: str, due: str, clock: Clock) -> None:
        self._files = files
        self._folder = folder
        self._due = due
        self._clock = clock
        self._reader = _Reader()
        self._listing: tuple[int, list[str]] | None = None

    def add(self, data: bytes, at: datetime, suffix: str) -> None:
        """Keep a message until `at`; `suffix` makes its name unique and orders equals."""
        self._files.write(f"{self._folder}/{_time_key(at)}-{suffix}", wrap(data))

    def names(self) -> list[str]:
        """The files, soonest first. A folder that did not change is not listed again."""
        found = self._files.stat(self._folder)
        mtime_ns = found.mtime_ns if found else 0
        known = self._listing
        if known is not None and known[0] == mtime_ns:
            return known[1]
        names = self._files.names(self._folder)
        # Two changes within one step of the file system's clock share one time: a fresh listing
        # is believed only later.
        old = mtime_ns and self._clock.now().timestamp() - mtime_ns / 1e9 > _TRUSTED_AFTER_S
        self._listing = (mtime_ns, names) if old else None
        return names

    def items(self, limit: int | None = None) -> list[bytes]:
        """The messages, soonest first."""
        return read_messages(self._files, self._folder, self.names()[:limit])

    def read(self, at: datetime, owner: str) -> list[bytes]:
        """Take the messages due at `at`; what this thread read before is done with."""
        for path, _ in chain.from_iterable(self._reader.due.values()):
            self._files.remove(path)
        self._reader.due.clear()
        last = _time_key(at)
        messages: list[bytes] = []
        for name in list(self.names()):
            if name[: len(last)] > last:
                break
            taken = f"{self._due}/{claim_name(owner, name)}"
            if not self._files.move(f"{self._folder}/{name}", taken):
                continue
            data = read_bytes(self._files, taken)
            if data is None:
                continue
            try:
                message = unwrap(data)
            except BadRecord as error:
                self._files.quarantine(taken, str(error))
                continue
            self._reader.due.setdefault(identity(message), []).append((taken, message))
            messages.append(message)
        return messages

    def enqueue(self, data: bytes, target: str) -> bool:
        """Enqueue what this thread read from the schedule as `target`; False when it did not.

        Where the message is no longer the one that was read (an expiry counted anew), the queue's
        file is written and the due file goes last: dying in between repeats it.
        """
        same = self._reader.due.get(identity(data)) if self._reader.due else None
        if not same:
            return False
        path, known = same.pop(0)
        if known == data:
            return self._files.move(path, target)
        self._files.write(target, wrap(data))
        self._files.remove(path)
        return True


def read_messages(files: Files, folder: str, names: list[str]) -> list[bytes]:
    """The messages in these files, in their order; what can not be used is left out."""
    messages: list[bytes] = []
    for name in names:
        with contextlib.suppress(BadRecord):
            if (data := read_bytes(files, f"{folder}/{name}")) is not None:
                messages.append(unwrap(data))
    return messages


def _time_key(at: datetime) -> str:
    naive = at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    return f"{(naive - _EPOCH) // _MICROSECOND + _OFFSET:016x}"
