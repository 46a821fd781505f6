"""An opened state folder: its path, files, settings, and the search in its memory."""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit import config
from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.errors import BadInput
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files, ReadOnlyFiles

if TYPE_CHECKING:
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
    """Create the missing folders of a state.

    Raises:
        BadInput: something else is in the place of a folder.
    """
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

    Raises:
        BadInput: a link in the workspace leads to the state folder.
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
    """Open a state folder; creates a missing one.

    Raises:
        BadInput: it does not exist (without `create`), or is not your folder.
        BadSettings: its settings are not valid.
    """
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
