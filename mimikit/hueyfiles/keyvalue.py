"""Huey's results, revocations and locks by key, and its counters: one small JSON file each.

Names are hashes of the keys, since a key may be any text or bytes. No lock stands in the way of
reads and writes (Huey asks for two keys before every task); only counters need one.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Iterable, Iterator
from typing import cast

from huey.constants import EmptyData

from mimikit.clock import Clock
from mimikit.errors import BadRecord
from mimikit.hueyfiles.claims import wait_for_lock
from mimikit.hueyfiles.folder import read_bytes
from mimikit.hueyfiles.serializer import embed, extract
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json, dump_line, parse_object

_LOCK_WAIT_S = 10.0
_TAKEN = ".taken"
_TAKEN_AGE_S = 60.0
_SETTLED_S = 0.1
_CHECK_EVERY_S = 5.0


class KeyValue:
    """Values by key in one folder. A text and its UTF-8 bytes are the same key."""

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
        kept there is none. Two changes within one step of the file system's clock share one time,
        so an empty folder is believed only when its last change is some while ago.
        """
        found = self._files.fs.stat(self._folder)
        mtime_ns = found.mtime_ns if found else 0
        if mtime_ns == self._empty_at:
            return True
        if time.monotonic() < self._check_at:
            return False
        self._check_at = time.monotonic() + _CHECK_EVERY_S
        settled = mtime_ns and self._clock.now().timestamp() - mtime_ns / 1e9 > _SETTLED_S
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
