"""Files that the user sends: `files/{SHA-256}` and a record beside each.

The bytes are written first and the record last, and go the other way round: what has a record is
there. The same file twice is one; what a message calls it stands in the message. Records are
written and removed by who holds `files.lock`, so that none goes which was just made anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from mimikit.config import FileSettings
from mimikit.conversation import file_types
from mimikit.errors import BadInput, NoRoom, NotFound
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import MOST_FILES, FileRef, Instant
from mimikit.protocol.writer_lock import held

PART = 500
"""So many records are searched for names of files before others have their turn."""
_USED_AFTER = timedelta(hours=12)
"""Well below the shortest time that `files.days` may set."""
_HASH = re.compile(rb'"([0-9a-f]{64})"')


class StoredFile(FileRef):
    """`files/{id}.json`: it is there once this is."""

    created_at: Instant


def keep(files: Files, data: bytes, name: str, now: datetime, settings: FileSettings) -> StoredFile:
    """Keep a file; once this returns it is on disk. Of one that is there its name and time change.

    Crash: bytes without a record, which nobody sees and retention removes; sent again, it is whole.

    Raises:
        BadInput: it is empty. NoRoom: it is too large, or all of them together are.
    """
    if not data:
        said = "expected a file with something in it, got an empty one"
        raise BadInput(said, field="body", code="file_empty")
    check_size(len(data), settings)
    picture = file_types.picture_of(data)
    found = StoredFile(
        id=hashlib.sha256(data).hexdigest(),
        name=file_types.harmless_name(name),
        media_type=picture[0] if picture else file_types.media_type(data),
        size=len(data),
        width=picture and picture[1],
        height=picture and picture[2],
        created_at=now,
    )
    path = paths.file_bytes(found.id)
    _lay_down(files, path, data, settings)
    with held(files, paths.FILES_LOCK):
        if not files.exists(path):  # it was there, and retention has removed it since
            _lay_down(files, path, data, settings)
        files.save(paths.file_record(found.id), found)
    return found


def _lay_down(files: Files, path: str, data: bytes, settings: FileSettings) -> None:
    if not files.exists(path):
        _check_room(files, len(data), settings)
    files.create(path, data)


def check_size(size: int, settings: FileSettings) -> None:
    """Raise BadInput for a file of more bytes than one may have."""
    if size > settings.file_mb * 2**20:
        raise BadInput(
            f"expected a file of at most {settings.file_mb} MB, got {size / 2**20:.1f} MB; "
            "`files.file_mb` sets how much is taken",
            field="body",
            code="file_too_large",
            params={"limit": settings.file_mb},
        )


def _check_room(files: Files, size: int, settings: FileSettings) -> None:
    held = sum(stat.size for stat in files.stats(paths.FILES, suffix="").values())
    if held + size > settings.folder_mb * 2**20:
        raise NoRoom(
            f"the files kept take {held / 2**20:.0f} MB of {settings.folder_mb} MB already; "
            "`files.folder_mb` sets how much is kept, `files.days` how long",
            code="files_full",
            params={"limit": settings.folder_mb},
        )


def find(files: Files, file_id: str) -> StoredFile | None:
    """What is known of a file that is there; None when it is not, or no longer."""
    found = files.peek(paths.file_record(file_id), StoredFile)
    return found if found is not None and files.exists(paths.file_bytes(file_id)) else None


def read(files: Files, file_id: str) -> bytes | None:
    """Its bytes; None when it is not there, or no longer what it was."""
    data = files.read(paths.file_bytes(file_id), most=64 * 2**20)
    if data is None or hashlib.sha256(data).hexdigest() != file_id:
        return None
    return data


def named(files: Files, ids: Sequence[str], now: datetime) -> list[FileRef]:
    """These files as a message names them; each is used now, and stays for a while.

    Raises:
        BadInput: they are too many. NotFound: one is not there.
    """
    ids = list(dict.fromkeys(ids))
    if len(ids) > MOST_FILES:
        said = f"expected at most {MOST_FILES} files, got {len(ids)}"
        raise BadInput(said, field="files", code="too_many", params={"limit": MOST_FILES})
    refs: list[FileRef] = []
    for file_id in ids:
        found = use(files, file_id, now)
        if found is None:
            said = f"files: {file_id[:12]}… is not kept here, or no longer; send it again"
            raise NotFound(said, field="files", code="no_file")
        refs.append(FileRef.model_validate(found.model_dump(include=set(FileRef.model_fields))))
    return refs


def use(files: Files, file_id: str, now: datetime) -> StoredFile | None:
    """A file that a message names now, which stays for a while; None when it is not there."""
    found = find(files, file_id)
    if found is None or abs(now - found.created_at) < _USED_AFTER:
        return found
    with held(files, paths.FILES_LOCK):
        if (found := find(files, file_id)) is None:  # it has gone the moment before
            return None
        used = found.but(created_at=now)
        files.save(paths.file_record(file_id), used)
        return used


# ---- what goes


def expired(files: Files, limit_ns: int) -> Iterator[str | None]:
    """Ids of files that were sent before then and nothing names.

    None now and then: others may do something in between.
    """
    stats = files.stats(paths.FILES, suffix="")
    old = {
        name.removesuffix(".json")
        for name, stat in stats.items()
        if stat.mtime_ns < limit_ns and (name.endswith(".json") or f"{name}.json" not in stats)
    }
    for number, path in enumerate(_places(files) if old else (), start=1):
        old.difference_update(_names_in(files.read(path) or b""))
        if number % PART == 0:
            yield None
    yield from sorted(old)


def remove_expired(files: Files, id_: str, limit_ns: int) -> list[str]:
    """Remove one of those, unless it was sent or used meanwhile; gives the paths that are gone.

    Nothing is waited for: while somebody writes a record, all stay until their time comes again.
    Crash: the record goes before the bytes, which are removed the next time.
    """
    lock = files.lock(paths.FILES_LOCK)
    if lock is None:
        return []
    try:
        record, data = paths.file_record(id_), paths.file_bytes(id_)
        gone = [record] if _is_old(files, record, limit_ns) and files.remove(record) else []
        if not files.exists(record) and _is_old(files, data, limit_ns) and files.remove(data):
            gone.append(data)
        return gone
    finally:
        lock.release()


def _is_old(files: Files, path: str, limit_ns: int) -> bool:
    stat = files.stat(path)
    return stat is not None and stat.mtime_ns < limit_ns


def _places(files: Files) -> Iterator[str]:
    """Every record that may name a file: messages at hand, what waits, what is set up.

    In the order in which names go from one to the other: what is moved on meanwhile is met there.
    """
    folders = [paths.HOOKS_NEW, paths.HOOKS_DONE]
    folders += [paths.INBOX, paths.TURNS_NEW, paths.TRIGGERS, paths.TRIGGER_STATE]
    folders += [
        f"{name}/{part}" for name in paths.QUEUES for part in ("queue", "running", "results")
    ]
    for folder in folders:
        yield from (f"{folder}/{name}" for name in files.names(folder))
    yield paths.HISTORY


def _names_in(data: bytes) -> Iterable[str]:
    return (found.decode() for found in _HASH.findall(data))
