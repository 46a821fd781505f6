"""Huey's values by key, counters and schedule; a small file each."""

# Huey has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

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
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TypeVar, cast

from huey.constants import EmptyData
from huey.storage import BaseStorage

from mimikit.clock import Clock
from mimikit.errors import BadRecord
from mimikit.hueyfiles.owners import claim_name
from mimikit.hueyfiles.serializer import embed, extract, identity, unwrap, wrap
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.records import MAX_RECORD_BYTES

_TAKEN = ".taken"
_TAKEN_AGE_S = 60.0
_CHECK_EVERY_S = 5.0
# Two changes within one tick of the file system's clock share one mtime: a folder's state is cached
# only when its last change is older than this.
_TRUSTED_AFTER_S = 0.1

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - Huey's times carry no zone; only their order matters
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = 1 << 62

_T = TypeVar("_T")


class _Reader(threading.local):
    """Messages this thread took from the schedule and has not enqueued: files and bytes by id."""

    def __init__(self) -> None:
        self.due: dict[bytes, list[tuple[str, bytes]]] = {}


class FolderStorage(BaseStorage):
    """Huey's storage except for the queue.

    Values (results, revocations, locks) are named by hashes of their keys; a text and its UTF-8
    bytes are the same key. Reads and writes take no lock: Huey asks for two keys before every task.

    Huey reads due messages from the schedule and enqueues them one by one; if it were killed in
    between, they would be lost. So reading moves them to `due/`, under the reader's name, and
    enqueueing moves the same file into the queue. When the thread reads the schedule again, it is
    done with the previous ones; those of a dead reader are moved back at the next start.
    """

    def __init__(self, name: str, files: Files, prefix: str, clock: Clock) -> None:
        super().__init__(name)
        self._files = files
        self._clock = clock
        self._value_folder, self._counter_folder = prefix + "values", prefix + "counters"
        self._scheduled, self._due = prefix + "schedule", prefix + "due"
        self._namer = MessageNamer(clock)
        self._reader = _Reader()
        self._no_values_at: int | None = None
        self._check_values_at = 0.0

    def owner_token(self) -> str:
        raise NotImplementedError

    # ---- values and counters --------------------------------------------------------------

    def put_data(self, key: str | bytes, value: bytes, is_result: bool = False) -> None:
        self._files.write(_path(self._value_folder, key), _entry(key, value))

    def put_if_empty(self, key: str | bytes, value: bytes, ttl: int | None = None) -> bool:
        if ttl is not None:
            raise NotImplementedError("ttl is not supported by this storage")
        return self._files.create(_path(self._value_folder, key), _entry(key, value))

    def peek_data(self, key: str | bytes) -> bytes | type[EmptyData]:
        return self.peek_many([key]).get(key, EmptyData)

    def peek_many(self, keys: Iterable[str | bytes]) -> dict[str | bytes, bytes]:
        found: dict[str | bytes, bytes] = {}
        if self._has_no_values():
            return found
        for key in keys:
            if (value := self._load(_path(self._value_folder, key), _value)) is not None:
                found[key] = value
        return found

    def pop_data(self, key: str | bytes) -> bytes | type[EmptyData]:
        """Remove and return a value. Crash: a value that was taken but not returned is lost."""
        path = _path(self._value_folder, key)
        taken = f"{path.removesuffix('.json')}.{secrets.token_hex(4)}{_TAKEN}"
        if not self._files.move(path, taken):
            return EmptyData
        value = self._load(taken, _value)
        self._files.remove(taken)
        return EmptyData if value is None else value

    def delete_data(self, key: str | bytes) -> bool:
        return not self._has_no_values() and self._files.remove(_path(self._value_folder, key))

    def has_data_for_key(self, key: str | bytes) -> bool:
        return self._files.fs.stat(_path(self._value_folder, key)) is not None

    def result_store_size(self) -> int:
        return len(self._files.names(self._value_folder))

    def result_items(self) -> dict[str, bytes]:
        folder = self._value_folder
        items = (self._load(f"{folder}/{name}", _item) for name in self._files.names(folder))
        return dict(item for item in items if item is not None)

    def flush_results(self) -> None:
        self._empty(self._value_folder, suffix="")

    def sweep_taken(self) -> None:
        now = self._clock.now()
        for name in self._files.names(self._value_folder, suffix=_TAKEN):
            found = self._files.stat(f"{self._value_folder}/{name}")
            if found is not None and now.timestamp() - found.mtime_ns / 1e9 > _TAKEN_AGE_S:
                self._files.remove(f"{self._value_folder}/{name}")

    def incr(self, key: str | bytes, amount: int = 1) -> int:
        path = _path(self._counter_folder, key)
        with self._files.locked(f"{self._counter_folder}/guard.lock"):
            value = (self._load(path, _number) or 0) + amount
            self._files.write(path, dump_line({**_key_json(key), "value": value}))
        return value

    def delete_counter(self, key: str | bytes) -> None:
        self._files.remove(_path(self._counter_folder, key))

    def flush_counters(self) -> None:
        self._empty(self._counter_folder)

    def _has_no_values(self) -> bool:
        """Whether there are certainly no values: the folder was empty, and its mtime is unchanged.

        Huey asks for three keys around every task: this saves a third of a task's time.
        """
        found = self._files.fs.stat(self._value_folder)
        mtime_ns = found.mtime_ns if found else 0
        if mtime_ns == self._no_values_at:
            return True
        if time.monotonic() < self._check_values_at:
            return False
        self._check_values_at = time.monotonic() + _CHECK_EVERY_S
        empty = self._is_settled(mtime_ns) and not self._files.names(self._value_folder, suffix="")
        self._no_values_at = mtime_ns if empty else None
        return empty

    def _is_settled(self, mtime_ns: int) -> bool:
        """Whether no further change of a folder can get this mtime."""
        age_s = self._clock.now().timestamp() - mtime_ns / 1e9
        return mtime_ns != 0 and age_s > _TRUSTED_AFTER_S

    def _load(self, path: str, parse: Callable[[bytes], _T]) -> _T | None:
        """Read and parse a file; None when there is none, or a bad one, which is quarantined."""
        data = self._files.read(path, max_bytes=MAX_RECORD_BYTES)
        if data is None:
            return None
        try:
            return parse(data)
        except BadRecord as error:
            self._files.quarantine(path, str(error))
            return None

    # ---- the schedule ---------------------------------------------------------------------

    def add_to_schedule(self, data: bytes, ts: datetime) -> None:
        name = f"{_time_key(ts)}-{self._namer.suffix()}"
        self._files.write(f"{self._scheduled}/{name}", wrap(data))

    def read_schedule(self, ts: datetime) -> list[bytes]:
        """Take the messages due at `ts`; those this thread took before are dropped."""
        owner = self.owner_token()
        for path, _ in chain.from_iterable(self._reader.due.values()):
            self._files.remove(path)
        self._reader.due.clear()
        last = _time_key(ts)
        messages: list[bytes] = []
        for name in self._files.names(self._scheduled):
            if name[: len(last)] > last:
                break
            taken = f"{self._due}/{claim_name(owner, name)}"
            if not self._files.move(f"{self._scheduled}/{name}", taken):
                continue
            if (message := self._load(taken, unwrap)) is not None:
                self._reader.due.setdefault(identity(message), []).append((taken, message))
                messages.append(message)
        return messages

    def enqueue_due(self, data: bytes, target: str) -> bool:
        """Enqueue a message that this thread took from the schedule; False when it took none.

        If Huey changed the message (a new expiry), the queue's file is written and the due file
        removed last: a crash in between repeats it.
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

    def schedule_size(self) -> int:
        return len(self._files.names(self._scheduled))

    def scheduled_items(self, limit: int | None = None) -> list[bytes]:
        return self._messages(self._scheduled, self._files.names(self._scheduled)[:limit])

    def flush_schedule(self) -> None:
        self._empty(self._scheduled)

    # ---- any folder -----------------------------------------------------------------------

    def _messages(self, folder: str, names: list[str]) -> list[bytes]:
        """Read the messages in these files; bad files are skipped."""
        messages: list[bytes] = []
        for name in names:
            data = self._files.read(f"{folder}/{name}", max_bytes=MAX_RECORD_BYTES)
            if data is not None:
                with contextlib.suppress(BadRecord):
                    messages.append(unwrap(data))
        return messages

    def _empty(self, folder: str, *, suffix: str = ".json") -> None:
        """Remove the files of a folder, not the folder, which is watched."""
        for name in self._files.names(folder, suffix=suffix):
            with contextlib.suppress(FileNotFoundError):
                self._files.fs.unlink(f"{folder}/{name}")
        if self._files.durable:
            self._files.fs.sync_dir(folder)


def _path(folder: str, key: str | bytes) -> str:
    raw = key if isinstance(key, bytes) else key.encode()
    return f"{folder}/{hashlib.sha256(raw).hexdigest()}.json"


def _entry(key: str | bytes, value: bytes) -> bytes:
    return dump_line({**_key_json(key), "value": embed(value)})


def _key_json(key: str | bytes) -> dict[str, Json]:
    try:
        return {"key": key if isinstance(key, str) else key.decode()}
    except UnicodeDecodeError:
        return {"keyBase64": base64.b64encode(cast("bytes", key)).decode()}


def _value(data: bytes) -> bytes:
    return extract(parse_object(data).get("value"))


def _item(data: bytes) -> tuple[str, bytes]:
    record = parse_object(data)
    key, coded = record.get("key"), record.get("keyBase64")
    if not isinstance(key, str):
        raw = base64.b64decode(coded if isinstance(coded, str) else "")
        key = raw.decode(errors="backslashreplace")
    return key, extract(record.get("value"))


def _number(data: bytes) -> int:
    value = parse_object(data).get("value")
    if not isinstance(value, int):
        raise BadRecord("value: expected a whole number")
    return value


def _time_key(at: datetime) -> str:
    naive = at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    return f"{(naive - _EPOCH) // _MICROSECOND + _OFFSET:016x}"


class MessageNamer:
    """Creates unique names that sort by time, even if the clock stands still or goes back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._pid = 0
        self._maker = ""
        self._last = 0

    def suffix(self) -> str:
        with self._guard:
            if self._pid != os.getpid():
                self._pid, self._maker = os.getpid(), secrets.token_hex(4)
            # The clock has milliseconds; names within one are counted up.
            now = int(self._clock.now().timestamp() * 1000) * 1000
            self._last = max(now, self._last + 1)
            return f"{self._last:014x}-{self._maker}.json"


def falling(priority: float) -> str:
    """Encode a number as text that sorts in descending order, by transforming the float's bits."""
    if math.isnan(priority):
        raise ValueError("priority: expected a number, got nan")
    (bits,) = struct.unpack(">Q", struct.pack(">d", 0.0 - priority))
    mask = (1 << 64) - 1 if bits >> 63 else 1 << 63  # of a negative all bits, else the sign
    return f"{bits ^ mask:016x}"
