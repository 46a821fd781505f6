"""A state folder out of a zip that `state_export` wrote: all of it, checked, or nothing.

1. What the zip says of itself is checked: names, kinds, sizes, against its manifest.
2. It is unpacked into a folder beside the state folder; each file must have its size and SHA-256.
3. All of it is flushed, and that folder renamed to the state folder, which must not be there or be
   empty. Until then nothing stands at its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord, NewerState, NoRoom, StorageError
from mimikit.protocol import ids, paths, schema, snapshot
from mimikit.protocol.disk import DiskErrors, RealDisk
from mimikit.protocol.json import parse_object
from mimikit.protocol.records import bad_record
from mimikit.protocol.state_export import (
    FOLDER,
    FORMAT,
    MANIFEST,
    MOST_MANIFEST_BYTES,
    ExportedFile,
    ExportManifest,
)

UNFINISHED_PREFIX = ".mimikit-import-"
"""How a folder is named beside the state folder until it is whole."""
_BLOCK_BYTES = 2**20
_MOST_NAME_BYTES, _MOST_PARTS = 255, 16
_SPARE_BYTES = 64 * 2**20
"""What unpacking leaves of the disk."""
_ENCRYPTED = 1
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError, RuntimeError,
)  # fmt: skip
"""What the reader of zips raises, beside errors of the disk; NotImplementedError among the last."""


class _Member(NamedTuple):
    told: ExportedFile
    entry: zipfile.ZipInfo


def import_state(source: Path, target: Path) -> ExportManifest:
    """Make a state folder at `target` out of an export.

    Crash: no folder at `target` (or the empty one), or the whole; a folder `.mimikit-import-…` may
    stay beside it, and goes with the next import.

    Raises:
        BadInput: it is no export, is damaged, or something stands at `target`; nothing was changed.
        NewerState: a newer mimikit made it.
        NoRoom, StorageError: it does not fit, or the disk fails; nothing was changed.
    """
    check_free(target)
    with _opened(source) as archive:
        manifest = _manifest(source, archive)
        members = _members(source, archive, manifest)
        with DiskErrors(str(target.parent)):
            target.parent.mkdir(parents=True, exist_ok=True)
            parent = RealDisk(Path(os.path.realpath(target.parent)))
        with contextlib.closing(parent), _beside(parent) as name:
            _check_room(parent, members)
            with contextlib.closing(RealDisk(Path(parent.root) / name)) as disk:
                _unpack(source, archive, disk, members)
            _place(parent, name, target)
    return manifest


def check_free(target: Path) -> None:
    """Raise BadInput unless a state folder may come to `target`."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise BadInput(f"expected no state folder, or an empty one, got something else at {target}")
    try:
        is_taken = target.exists() and any(target.iterdir())
    except PermissionError:
        is_taken = True
    if is_taken:
        raise BadInput(
            f"expected no state folder, or an empty one, at {target}, got one with files in it; "
            "move it away, or name another with --state"
        )


@contextlib.contextmanager
def _opened(source: Path) -> Generator[zipfile.ZipFile]:
    if not source.is_file():
        got = "something else" if source.exists() else "nothing"
        raise BadInput(f"expected a file made by `mimikit export`, got {got} at {source}")
    try:
        with zipfile.ZipFile(source) as archive:
            yield archive
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror or error}; nothing was changed") from None
    except _DAMAGED as error:
        raise BadInput(
            f"expected a zip made by `mimikit export`, got one that is damaged or another file at "
            f"{source} ({error}); nothing was changed"
        ) from None


def _manifest(source: Path, archive: zipfile.ZipFile) -> ExportManifest:
    try:
        entry = archive.getinfo(MANIFEST)
    except KeyError:
        raise BadInput(f"{source}: expected {MANIFEST} in it, got none; it is no export") from None
    if entry.file_size > MOST_MANIFEST_BYTES:
        raise BadInput(f"{source}: expected a smaller {MANIFEST}, got {entry.file_size:,} bytes")
    with archive.open(entry) as stream:
        data = stream.read(MOST_MANIFEST_BYTES)
    try:
        parsed = parse_object(data)
        for key, known in (("format", FORMAT), ("schemaVersion", schema.STATE_SCHEMA)):
            got = parsed.get(key)
            if isinstance(got, int) and got > known:
                raise NewerState(
                    f"{source}: expected {key} {known} or older, got {got}; import it with "
                    "the newer mimikit that wrote it"
                )
        return ExportManifest.model_validate_json(data)
    except BadRecord as error:
        raise BadInput(f"{source}: {MANIFEST}: {error}; nothing was changed") from None
    except ValidationError as error:
        raise BadInput(f"{source}: {MANIFEST}: {bad_record(error)}; nothing was changed") from None


def _members(source: Path, archive: zipfile.ZipFile, manifest: ExportManifest) -> list[_Member]:
    """Each file with what the manifest says of it; all of them are ones that may be unpacked."""
    told = {FOLDER + one.path: one for one in manifest.files}
    entries = [entry for entry in archive.infolist() if entry.filename != MANIFEST]
    names = [entry.filename for entry in entries]
    if len(told) != len(manifest.files) or len(set(names)) != len(names):
        raise BadInput(f"{source}: expected each name once, got one twice; nothing was changed")
    if odd := sorted(told.keys() ^ set(names)):
        where = "the manifest alone" if odd[0] in told else "the zip alone"
        raise BadInput(f"{source}: {odd[0]!r} stands in {where}; nothing was changed")
    for entry in entries:
        if (reason := _objection(entry, told[entry.filename])) is not None:
            raise BadInput(f"{source}: {entry.filename!r}: {reason}; nothing was changed")
    folders = {name.rpartition("/")[0] for name in names}
    if both := folders & set(names):
        raise BadInput(f"{source}: {min(both)!r} is a file and a folder; nothing was changed")
    return [_Member(told[entry.filename], entry) for entry in entries]


def _objection(entry: zipfile.ZipInfo, told: ExportedFile) -> str | None:
    """Why this is not to be unpacked; None: it may be."""
    parts = told.path.split("/")
    if not all(map(_is_name, parts)) or len(parts) > _MOST_PARTS:
        return "expected a path within the state folder"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or entry.is_dir():
        return "expected a plain file, got a link, a folder or a device"
    if entry.flag_bits & _ENCRYPTED:
        return "expected no password, got one"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"expected it stored or deflated, got method {entry.compress_type}"
    if entry.file_size != told.size or told.size < 0:
        return f"expected {told.size:,} bytes, got {entry.file_size:,}"
    return None


def _is_name(part: str) -> bool:
    is_plain = part not in ("", ".", "..") and "\x00" not in part and snapshot.is_text(part)
    return is_plain and len(part.encode()) <= _MOST_NAME_BYTES


def _check_room(parent: RealDisk, members: list[_Member]) -> None:
    there = os.statvfs(parent.root)
    free = there.f_bavail * there.f_frsize
    needed = sum(one.told.size + there.f_bsize for one in members) + _SPARE_BYTES
    if needed > free:
        raise NoRoom(
            f"expected {needed / 1e6:,.0f} MB of room at {parent.root}, got {free / 1e6:,.0f} MB; "
            "free some, nothing was changed"
        )


@contextlib.contextmanager
def _beside(parent: RealDisk) -> Generator[str]:
    """The name of a new folder beside the state folder; gone at the end, if it is still there."""
    name = f"{UNFINISHED_PREFIX}{ids.writer_name()}"
    with DiskErrors(parent.root):
        for other in ids.abandoned(parent.list_dir(paths.ROOT), "folder", UNFINISHED_PREFIX):
            shutil.rmtree(Path(parent.root) / other, ignore_errors=True)
        parent.make_dir(name)
    try:
        yield name
    finally:
        shutil.rmtree(Path(parent.root) / name, ignore_errors=True)


def _unpack(source: Path, archive: zipfile.ZipFile, disk: RealDisk, members: list[_Member]) -> None:
    """Write every file, proved by its SHA-256, and flush all of them."""
    made: set[str] = set()
    for told, entry in members:
        folders = told.path.split("/")[:-1]
        for number in range(1, len(folders) + 1):
            folder = "/".join(folders[:number])
            if folder not in made:
                with DiskErrors(folder):
                    disk.make_dir(folder)
                made.add(folder)
        with DiskErrors(told.path):
            _unpack_one(source, archive, disk, _Member(told, entry))
    for folder in (*made, paths.ROOT):
        with DiskErrors(folder):
            disk.sync_dir(folder)


def _unpack_one(source: Path, archive: zipfile.ZipFile, disk: RealDisk, member: _Member) -> None:
    told, entry = member
    folder, _, name = told.path.rpartition("/")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=disk.folder_fd(folder))
    digest, left = hashlib.sha256(), told.size
    with os.fdopen(descriptor, "wb") as file:
        with archive.open(entry) as stream:
            while left and (block := stream.read(min(left, _BLOCK_BYTES))):
                left -= len(block)
                digest.update(block)
                file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if left or digest.hexdigest() != told.sha256:
        raise BadInput(
            f"{source}: {told.path!r} is not what was exported (its SHA-256 differs); the file is "
            "damaged, nothing was changed"
        )


def _place(parent: RealDisk, name: str, target: Path) -> None:
    """The one step by which the state folder is there; an empty folder is replaced by it."""
    with DiskErrors(str(target)):
        try:
            parent.rename(name, target.name)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise BadInput(f"something came to {target} meanwhile; nothing was changed") from error
        except OSError as error:
            check_free(target)
            raise StorageError(f"{target}: {error.strerror}; nothing was changed") from error
        parent.sync_dir(paths.ROOT)
