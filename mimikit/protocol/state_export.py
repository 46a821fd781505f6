"""A state folder as one zip with checksums: what is in it, and how it is written.

Shape: the files below `state/`, and last `manifest.json`, which names each with its size and its
SHA-256. Any unzip opens it; `state_import` makes a state folder of it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
import zipfile
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from pydantic import Field

from mimikit.errors import BadInput
from mimikit.protocol import ids, paths, schema, snapshot
from mimikit.protocol.disk import DiskErrors, RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Instant, Record
from mimikit.protocol.snapshot import SnapshotFile

MANIFEST = "manifest.json"
FOLDER = "state/"
FORMAT = 1
"""Of the zip; that of the folder in it is another matter (`schema`)."""
MOST_MANIFEST_BYTES = 2**28
_PREFIX = ".mimikit-export-"
_OF_ZIP = (1980, 2107)
"""The years a zip can tell."""


class ExportedFile(Record):
    path: str
    size: int
    """Bytes."""
    sha256: str


class ExportManifest(Record):
    """`manifest.json`: written last, so a zip that has one was written to its end."""

    format: int = FORMAT
    schema_version: int = 1
    """Of the folder: older mimikits import none of it."""
    mimikit_version: str
    created_at: Instant
    with_secrets: bool = False
    files: list[ExportedFile] = Field(default_factory=list[ExportedFile])
    left_out: dict[str, str] = Field(default_factory=dict[str, str])
    """What lay there and is not in it, with the reason."""


def export_state(
    disk: RealDisk, target: Path, now: datetime, *, version: str, with_secrets: bool
) -> ExportManifest:
    """Write a snapshot of a state folder into a zip, 0600, which replaces what is at `target`.

    Crash: the old file or the new one; a temp file may stay beside it, and goes with the next
    export into that folder. An error leaves the old file, and nothing else.

    Raises:
        BadInput: no file can stand at `target`.
        NewerState: a newer mimikit wrote the folder.
        StorageError: there is no room, or something can not be read.
    """
    files = Files(disk)
    schema.check_not_newer(files)
    place = Path(os.path.realpath(target.parent))
    is_odd = target.is_symlink() or (target.exists() and not target.is_file())
    if not place.is_dir() or is_odd or not target.name:
        raise BadInput(f"expected a file's name in a folder that exists, got {target}")
    if place.is_relative_to(os.path.realpath(disk.root)):
        raise BadInput(f"expected a file outside of the state folder, got {target}")
    with (
        contextlib.closing(RealDisk(place)) as beside,
        snapshot.taken(disk, with_secrets=with_secrets) as found,
        _written(beside, target.name) as file,
    ):
        manifest = ExportManifest(
            schema_version=schema.schema_of(files).schema_version,
            mimikit_version=version,
            created_at=now,
            with_secrets=with_secrets,
            left_out=found.left_out,
        )
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            added = [_add(archive, disk, one) for one in found.files]
            manifest = manifest.but(files=added)
            archive.writestr(_entry(MANIFEST, now.timestamp()), manifest.to_json())
    return manifest


def _add(archive: zipfile.ZipFile, disk: RealDisk, file: SnapshotFile) -> ExportedFile:
    digest, entry = hashlib.sha256(), _entry(FOLDER + file.path, file.mtime_ns / 1e9)
    entry.file_size = file.size  # whether it needs the form for large files is settled by this
    with archive.open(entry, "w") as stream:
        for block in snapshot.blocks(disk, file):
            digest.update(block)
            stream.write(block)
    return ExportedFile(path=file.path, size=file.size, sha256=digest.hexdigest())


def _entry(name: str, written_s: float) -> zipfile.ZipInfo:
    year, *rest = time.gmtime(min(max(written_s, 0), 2**32))[:6]
    when = (year, *rest) if _OF_ZIP[0] <= year <= _OF_ZIP[1] else (_OF_ZIP[0], 1, 1, 0, 0, 0)
    entry = zipfile.ZipInfo(name, when)  # pyright: ignore[reportArgumentType]
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    return entry


@contextlib.contextmanager
def _written(place: RealDisk, name: str) -> Generator[BinaryIO]:
    """A new file beside `name`, which takes its place at the end, or is gone."""
    temp = f"{_PREFIX}{ids.writer_name()}"
    with DiskErrors(f"{place.root}/{name}"):
        for other in ids.abandoned(place.list_dir(paths.ROOT), "file", _PREFIX):
            place.unlink(other)
        place.write_new(temp, b"", sync=False)
        try:
            with (Path(place.root) / temp).open("r+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            place.rename(temp, name)
            place.sync_dir(paths.ROOT)
        except BaseException:
            with contextlib.suppress(OSError):
                place.unlink(temp)
            raise
