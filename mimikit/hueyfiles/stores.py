"""What Huey keeps beside its queue: values by key, counters, the schedule; a small file each."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import math
import os
import secrets
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import cast

from huey.constants import EmptyData

from mimikit.clock import Clock
from mimikit.errors import BadRecord
from mimikit.hueyfiles.folder import read_bytes
from mimikit.hueyfiles.owned_claims import claim_name, wait_for_lock
from mimikit.hueyfiles.serializer import embed, extract, identity, unwrap, wrap
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json, dump_line, parse_object

_LOCK_WAIT_S = 10.0
_TAKEN = ".taken"
_TAKEN_AGE_S = 60.0
_CHECK_EVERY_S = 5.0
# Two changes within one step of the file system's clock share one time: what was seen of a folder
# is believed only when its last change is older than this.
_TRUSTED_AFTER_S = 0.1

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - Huey's times carry no zone; only their order matters
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = 1 << 62
_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1


class KeyValue:
    """Results, revocations and locks by key, one small file each in one folder.

    Names are hashes of the keys, since a key may be any text or bytes: a text and its UTF-8 bytes
    are the same key. No lock stands in the way of reads and writes (Huey asks for two keys before
    every task).
    """

    def __init__(self, files: Files, folder: str, clock: Clock) -> None:
        self._files = files
        self._folder = folder
        self._clock = clock
        self._empty_at: int | None = None
        self._check_at = 0.0

    def put(self, key: str | bytes, value: bytes) -> None:
        self._files.write(self._path(key), _entry(key, value))

    def put_if_empty(self, key: str | bytes, value: bytes) -> bool:
        """Set a value unless there is one; of several at once one wins."""
        return self._files.create(self._path(key), _entry(key, value))

    def peek(self, key: str | bytes) -> bytes | type[EmptyData]:
        return self.peek_many([key]).get(key, EmptyData)

    def peek_many(self, keys: Iterable[str | bytes]) -> dict[str | bytes, bytes]:
        """The values of those keys that have one."""
        found: dict[str | bytes, bytes] = {}
        if self._is_empty():
            return found
        for key in keys:
            if (entry := self._load(self._path(key))) is not None:
                found[key] = entry[1]
        return found

    def pop(self, key: str | bytes) -> bytes | type[EmptyData]:
        """The value, taken away; of several at once one gets it.

        Crash: a value taken but not handed over is lost with its taker.
        """
        path = self._path(key)
        taken = f"{path.removesuffix('.json')}.{secrets.token_hex(4)}{_TAKEN}"
        if not self._files.move(path, taken):
            return EmptyData
        entry = self._load(taken)
        self._files.remove(taken)
        return EmptyData if entry is None else entry[1]

    def delete(self, key: str | bytes) -> bool:
        """Remove a value; whether there was one."""
        return not self._is_empty() and self._files.remove(self._path(key))

    def has(self, key: str | bytes) -> bool:
        return self._files.fs.stat(self._path(key)) is not None

    def __len__(self) -> int:
        return len(self._files.names(self._folder))

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Every key, as text, and its value."""
        for name in self._files.names(self._folder):
            if (entry := self._load(f"{self._folder}/{name}")) is not None:
                yield _key_text(entry[0]), entry[1]

    def sweep(self) -> None:
        """Remove what was being taken when its taker died."""
        now = self._clock.now()
        for name in self._files.names(self._folder, suffix=_TAKEN):
            found = self._files.stat(f"{self._folder}/{name}")
            if found is not None and now.timestamp() - found.mtime_ns / 1e9 > _TAKEN_AGE_S:
                self._files.remove(f"{self._folder}/{name}")

    def _path(self, key: str | bytes) -> str:
        return f"{self._folder}/{_hashed(key)}.json"

    def _is_empty(self) -> bool:
        """Whether the folder is surely empty: it was, and its time has not changed since.

        Huey asks for three keys around every task, and where no task is revoked and no result is
        kept there is none.
        """
        found = self._files.fs.stat(self._folder)
        mtime_ns = found.mtime_ns if found else 0
        if mtime_ns == self._empty_at:
            return True
        if time.monotonic() < self._check_at:
            return False
        self._check_at = time.monotonic() + _CHECK_EVERY_S
        settled = mtime_ns and self._clock.now().timestamp() - mtime_ns / 1e9 > _TRUSTED_AFTER_S
        empty = settled and not self._files.names(self._folder, suffix="")
        self._empty_at = mtime_ns if empty else None
        return bool(empty)

    def _load(self, path: str) -> tuple[dict[str, Json], bytes] | None:
        """The record in a file and its value; one that can not be read is put aside: None."""
        data = read_bytes(self._files, path)
        if data is None:
            return None
        try:
            record = parse_object(data)
            return record, extract(record.get("value"))
        except BadRecord as error:
            self._files.quarantine(path, str(error))
            return None


class Counters:
    """Numbers by key; changed under one lock that is held for a moment."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder

    def incr(self, key: str | bytes, amount: int = 1) -> int:
        """Add to a counter, 0 at first; gives the new value."""
        path = f"{self._folder}/{_hashed(key)}.json"
        lock = wait_for_lock(self._files, f"{self._folder}/guard.lock", _LOCK_WAIT_S)
        try:
            value = self._read(path) + amount
            self._files.write(path, dump_line({**_key_json(key), "value": value}))
            return value
        finally:
            lock.release()

    def delete(self, key: str | bytes) -> None:
        self._files.remove(f"{self._folder}/{_hashed(key)}.json")

    def _read(self, path: str) -> int:
        data = read_bytes(self._files, path)
        if data is None:
            return 0
        try:
            value = parse_object(data).get("value")
        except BadRecord as error:
            value, reason = None, str(error)
        else:
            reason = "value: expected a whole number"
        if isinstance(value, int):
            return value
        self._files.quarantine(path, reason)
        return 0


def _entry(key: str | bytes, value: bytes) -> bytes:
    return dump_line({**_key_json(key), "value": embed(value)})


def _hashed(key: str | bytes) -> str:
    return hashlib.sha256(key if isinstance(key, bytes) else key.encode()).hexdigest()


def _key_json(key: str | bytes) -> dict[str, Json]:
    try:
        return {"key": key if isinstance(key, str) else key.decode()}
    except UnicodeDecodeError:
        return {"keyBase64": base64.b64encode(cast("bytes", key)).decode()}


def _key_text(record: dict[str, Json]) -> str:
    key, coded = record.get("key"), record.get("keyBase64")
    if isinstance(key, str):
        return key
    return base64.b64decode(coded if isinstance(coded, str) else "").decode(
        errors="backslashreplace"
    )


class _Reader(threading.local):
    """What this thread read and has not enqueued: by identity the due files and their bytes."""

    def __init__(self) -> None:
        self.due: dict[bytes, list[tuple[str, bytes]]] = {}


class MessageSchedule:
    """Huey's schedule: messages that wait for their time, one file each.

    Huey reads the due messages out of the schedule and enqueues them one by one: killed in between,
    it loses them. So they are not removed when read but moved to `due/`, under their reader's name.
    From there each leaves in one of three ways: its enqueueing moves the very file into the queue
    (one rename: it is never in both and never in none); the same thread reads the schedule again,
    so it is done with the last lot; or the reader is dead, then the next start moves it back.
    """

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


class MessageNamer:
    """Makes names that are never used twice, by this process or another.

    Sorted as text they are in Huey's order: higher priority and older first. Where the clock stands
    or goes back, the names still count on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._pid = 0
        self._maker = ""
        self._last = 0

    def name(self, priority: float | None) -> str:
        return f"{falling(priority or 0)}-{self.suffix()}"

    def suffix(self) -> str:
        """The microsecond of its making, never the same twice, and who made it."""
        with self._guard:
            if self._pid != os.getpid():
                self._pid, self._maker = os.getpid(), secrets.token_hex(4)
            # The clock has milliseconds; what comes within one counts on.
            now = int(self._clock.now().timestamp() * 1000) * 1000
            self._last = max(now, self._last + 1)
            return f"{self._last:014x}-{self._maker}.json"


def falling(priority: float) -> str:
    """Any number as text that sorts the other way round: the bits of a float, made to count up."""
    if math.isnan(priority):
        raise ValueError("priority: expected a number, got nan")
    (bits,) = struct.unpack(">Q", struct.pack(">d", 0.0 - priority))
    return f"{bits ^ (_ALL_BITS if bits >> 63 else _SIGN):016x}"
