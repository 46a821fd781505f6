"""A state folder: found and opened, with its settings and search; exported to a zip, imported."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mimikit import config
from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.errors import BadInput, BadRecord, NewerState, StorageError
from mimikit.log import EventLog
from mimikit.protocol import json, paths
from mimikit.protocol.disk import DiskErrors, FileSystem, RealDisk
from mimikit.protocol.files import TEMP_PREFIX, Files, ReadOnlyFiles
from mimikit.protocol.models import History
from mimikit.protocol.results import StatusCheckpoint

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    from mimikit.memory.search import MemorySearch


_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


@dataclass(frozen=True)
class State:
    path: Path
    workspace: Path
    files: Files
    settings: Settings
    clock: Clock
    log: EventLog

    @functools.cached_property
    def search(self) -> MemorySearch:
        return make_search(self)

    def read_only(self) -> ReadOnlyState:
        """For every process but the consumer; its log is writable."""
        files = ReadOnlyFiles(self.files)
        return ReadOnlyState(self.path, self.workspace, files, self.settings, self.clock, self.log)


@dataclass(frozen=True)
class ReadOnlyState(State):
    """A state that quarantines nothing."""

    files: ReadOnlyFiles


def make_folders(files: Files) -> None:
    """Create the missing folders of a state; BadInput if something else is in the place of one."""
    for folder in paths.FOLDERS:  # parents come first
        found = files.stat(folder)
        if found is not None and found.kind != "folder":
            got = "a file" if found.kind == "file" else "a link or a device"
            raise BadInput(
                f"{folder}: expected a folder, got {got}; put the folder back, or remove that"
            )
    files.make_folders()


def make_search(state: State, *, words: bool = True, stays: bool = False) -> MemorySearch:
    """A search over a state folder and its workspace.

    words: use the dictionary of Chinese words. stays: for a long-lived process.
    """
    from mimikit.memory.search import MemorySearch, open_index
    from mimikit.memory.terms import ChineseDictionary
    from mimikit.protocol.watch import FolderWatch

    return MemorySearch(
        state.files,
        workspace=state.workspace,
        index=open_index(state.files, state.path),
        zone=state.settings.zone,
        clock=state.clock,
        words=ChineseDictionary() if words else None,
        watch=FolderWatch(state.path, everything=True) if stays else None,
        patience_s=2.0 if stays else 3600.0,
    )


def find_state(state: Path | None = None, workspace: Path | None = None) -> tuple[Path, Path]:
    """State folder and workspace, as real paths: arguments, else environment, else here.

    BadInput if a link in the workspace leads to the state folder.
    """
    env_workspace, env_state = os.environ.get("MIMIKIT_WORKSPACE"), os.environ.get("MIMIKIT_STATE")
    work = workspace or (Path(env_workspace) if env_workspace else Path.cwd())
    found = (state or (Path(env_state) if env_state else work / paths.STATE_FOLDER)).absolute()
    top, real = _real(work), _real(found.parent) / found.name  # it must not be a link itself
    for link in _links_on_the_way(found.parent):
        if link.is_relative_to(top):
            raise BadInput(
                f"state: {link} is a link in the workspace: whoever works there could lead it to a "
                f"state of his own; give --state {real}"
            )
    return real, top


def _links_on_the_way(path: Path) -> set[Path]:
    """Every link on the way to `path`, by its real place."""
    links: set[Path] = set()
    ways = [path]
    while ways:
        way = ways.pop()
        for step in (way, *way.parents):
            if step.is_symlink() and (link := _real(step.parent) / step.name) not in links:
                links.add(link)
                ways.append(step.parent / step.readlink())
    return links


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def open_state(state: Path, workspace: Path, *, create: bool = True) -> State:
    """Open a state folder; BadInput if it is missing (without `create`) or not your folder."""
    if not workspace.is_dir():
        raise BadInput(f"workspace: expected a folder, got {workspace}")
    if not state.exists():
        if not create:
            raise BadInput(f"no state folder at {state}; `mimikit init` makes one")
        state.mkdir(mode=0o700, parents=True)
    if state.is_symlink() or not state.is_dir():
        raise BadInput(f"state: expected a folder that is not a link, got {state}")
    if state.stat().st_uid != os.getuid():
        raise BadInput(f"state: expected a folder of yours, but {state} belongs to somebody else")
    settings = config.load(state)
    files = Files(RealDisk(state), durable=settings.durability == "full")
    make_folders(files)
    clock = SystemClock()
    log = EventLog(files, clock, rotate_bytes=settings.retention.log_file_mb * 2**20)
    return State(state, workspace, files, settings, clock, log)


def limit_malloc_arenas() -> None:
    """Have glibc return freed memory to the system: one malloc arena instead of one per thread."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, 2**17)


_VERSIONED = {paths.HISTORY: History, paths.TASK_STATUS: StatusCheckpoint}


def check_schema(path: str, version: object) -> None:
    """Raise NewerState for a `schemaVersion` that this version does not know."""
    known = _VERSIONED[path].model_fields["schema_version"].default
    if isinstance(version, int) and version > known:
        raise NewerState(
            f"{path}: expected schemaVersion {known} or older, got {version}; "
            "use the newer mimikit that wrote it"
        )


# ---- export and import

_EXPORT_MARK = b"mimikit export 1"
"""The comment of the zip, with the version of its layout."""
_MAX_BYTES = 2**30
"""Of one file, as it is read whole."""
_NOT_EXPORTED = frozenset({
    paths.SECRETS, paths.CACHE, paths.PAGES, paths.IMPROVEMENTS, paths.HEALTH,
    paths.CONSUMER_HOLDER, paths.EVENTS, paths.OLD_EVENTS,
})  # fmt: skip
"""What is secret, describes processes, or is made anew."""


def is_exported(path: str) -> bool:
    whole = PurePosixPath(path)
    is_passing = whole.suffix == ".lock" or whole.name.startswith(TEMP_PREFIX)
    was_secret = path.startswith(f"{paths.CORRUPT}/") and f"-{paths.SECRETS}_" in path
    return not (is_passing or was_secret) and _NOT_EXPORTED.isdisjoint(
        map(str, (whole, *whole.parents))
    )


def export_state(files: Files, target: Path, *, replace: bool) -> list[str]:
    """Write a state folder into a zip, 0600; returns what is left out, as it is no plain file.

    The caller holds `consumer.lock`, so that nothing moves meanwhile. Crash: what was at `target`,
    or the whole; a file `.tmp-…` may be left beside it.
    """
    from zipfile import ZIP_DEFLATED, ZipFile

    folder, temp = _real(target.parent), f"{TEMP_PREFIX}{secrets.token_hex(6)}"
    if not folder.is_dir() or (os.path.lexists(target) and not replace):
        got = "which exists; `--force` replaces it" if folder.is_dir() else "which has no folder"
        raise BadInput(f"expected a new file, got {target}, {got}")
    left_out = list[str]()
    with DiskErrors(str(target)), contextlib.closing(RealDisk(folder)) as disk:
        try:
            disk.write_new(temp, b"", sync=False)
            with ZipFile(folder / temp, "w", ZIP_DEFLATED) as archive:
                archive.comment = _EXPORT_MARK
                for path, is_file in _exported_paths(files):
                    data = files.read(path, max_bytes=_MAX_BYTES) if is_file else None
                    if data is None:
                        left_out.append(path)
                    else:
                        archive.writestr(path, data)
            disk.sync_file(temp)
            (disk.rename if replace else disk.rename_exclusive)(temp, target.name)
            disk.sync_dir(paths.ROOT)
        finally:
            with contextlib.suppress(OSError):
                disk.unlink(temp)
    return left_out


def _exported_paths(files: Files, folder: str = paths.ROOT) -> Iterator[tuple[str, bool]]:
    """Everything below a folder but folders; whether it is a file with a name in UTF-8.

    `files/` comes last: a terminal stores a file before the message that names it.
    """
    with DiskErrors(folder):
        listed = files.fs.list_dir(folder)
    for name, kind in sorted(listed, key=lambda entry: (entry[0] == paths.FILES, entry)):
        path = f"{folder}/{name}".lstrip("/")
        if kind == "folder" and is_exported(path):
            yield from _exported_paths(files, path)
        elif is_exported(path):
            yield path, kind == "file" and path.encode(errors="replace").decode() == path


def import_state(source: Path, state: Path) -> int:
    """Make a state folder of an export, where none or an empty one is; returns how many files.

    Crash: what was at `state`, or the whole; a folder `.mimikit-import-…` may be left beside it.
    """
    from zipfile import BadZipFile, ZipFile
    from zlib import error as DamagedData  # noqa: N812 - an exception

    if state.is_symlink() or state.is_file() or any(state.glob("*")):
        raise BadInput(f"expected {state} to be absent or empty; `--state` names another folder")
    temp = f".mimikit-import-{secrets.token_hex(6)}"
    try:
        with ZipFile(source) as archive, contextlib.closing(RealDisk(state.parent)) as disk:
            check_export(archive, shutil.disk_usage(state.parent).free)
            place_state(disk, archive, temp, state.name)
            return len(archive.filelist)
    except (OSError, BadZipFile, DamagedData, EOFError, RuntimeError, ValueError) as error:
        raise BadInput(f"{source} cannot be imported: {error}; nothing was changed") from None
    finally:
        shutil.rmtree(state.parent / temp, ignore_errors=True)


def check_export(archive: ZipFile, free_bytes: int) -> None:
    """Check everything but the contents, whose checksums are compared when they are read."""
    names = archive.namelist()
    folders = {str(above) for name in names for above in PurePosixPath(name).parents}
    if archive.comment != _EXPORT_MARK:
        raise BadInput("expected a zip that `mimikit export` wrote, got another or a newer one")
    if len({*names, *folders}) < len(names) + len(folders):
        raise BadInput("expected each name in the zip once, got one twice")
    for entry in archive.filelist:
        if not _is_importable(entry):
            expected = "expected plain files of a state folder, without secrets"
            raise BadInput(f"{expected}, got {entry.filename!r} in the zip")
    if (size := sum(entry.file_size for entry in archive.filelist)) > free_bytes:
        text = f"expected {size:,} bytes of room for the state folder, got {free_bytes:,}"
        raise StorageError(text, code="disk_full")
    for path in _VERSIONED.keys() & {*names}:
        with contextlib.suppress(BadRecord):  # the start sets it aside
            check_schema(path, json.parse_object(archive.read(path)).get("schemaVersion"))


def _is_importable(entry: ZipInfo) -> bool:
    is_inside = {"", ".", ".."}.isdisjoint(entry.filename.split("/"))
    is_file = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
    return is_inside and is_file and is_exported(entry.filename) and entry.file_size <= _MAX_BYTES


def place_state(fs: FileSystem, archive: ZipFile, temp: str, name: str) -> None:
    """Unpack into the new folder `temp`, flush all of it, and rename it to `name`."""
    entries = {f"{temp}/{entry.filename}": entry for entry in archive.filelist}
    above = {str(folder) for path in entries for folder in PurePosixPath(path).parents}
    folders = sorted(above | {temp})[1:]  # parents come first; without "."
    Files(fs).make_folders(folders)
    for path, entry in entries.items():
        with DiskErrors(path):
            fs.write_new(path, archive.read(entry), sync=True)
    with DiskErrors(name):
        for folder in folders:
            fs.sync_dir(folder)
        fs.rename(temp, name)
        fs.sync_dir(paths.ROOT)
