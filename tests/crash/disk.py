"""The in-memory disk of the crash driver.

It shows, before every change, what a crash there would leave, without stopping the flow: one run of
a flow gives all its crash states.

`test_driver.py` proves that these images are those of `MemoryDisk` itself, stopped there.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import NamedTuple, TypeAlias

from mimikit.protocol.disk import FileKind, FileStat
from mimikit.protocol.files import TEMP_PREFIX
from tests.crash.sites import SHARED
from tests.support.memory_disk import DiskStep, MemoryDisk, _File, _Names, _Unsynced

Contents: TypeAlias = dict[str, dict[str, bytes]]
MOST_LOOKS = 20_000
"""Reads and listings of one life; the longest flow needs a tenth."""
HINTS = frozenset({"events.jsonl", "events.1.jsonl", "log.jsonl", "health.json"})


class Endless(BaseException):
    """The product never becomes idle. A BaseException: no error handler may catch it."""


class Site(NamedTuple):
    """The place in the product that asked for a change."""

    module: str
    function: str
    line: int

    def __str__(self) -> str:
        return f"{self.module.removeprefix('mimikit.')}:{self.function}"


class Image(NamedTuple):
    """What a crash leaves: the files, and whether the machine lost power or only the process.

    A killed process leaves what it wrote, but what it had not flushed may still get lost when the
    power fails later: then `open` says what is flushed.
    """

    kind: str
    folders: Contents
    open: Open | None = None

    def key(self) -> int:
        """Equal for disks that mean the same: hints left out, temp files by their name alone."""
        if self.open is None:
            return _meaning(self.folders)
        return hash((_meaning(self.folders), _meaning(self.open.durable()), self.open.linked))


class Open(NamedTuple):
    """A disk with changes that are not flushed: names by inode, and the bytes of each inode."""

    volatile_names: dict[str, dict[str, int]]
    durable_names: dict[str, dict[str, int]]
    files: dict[int, tuple[bytes, int]]
    """Inode → its bytes, and how many of them are flushed."""
    linked: tuple[frozenset[str], ...]
    """Folders whose changes become durable together."""

    def durable(self) -> Contents:
        """What is left when all that is not flushed is lost."""
        return {
            folder: {
                name: self.files[inode][0][: self.files[inode][1]] for name, inode in names.items()
            }
            for folder, names in self.durable_names.items()
        }


def _meaning(folders: Contents) -> int:
    return hash(
        frozenset(
            (folder, name, b"" if name.startswith(TEMP_PREFIX) else data)
            for folder, names in folders.items()
            for name, data in names.items()
            if not is_hint(folder, name)
        )
    )


def is_hint(folder: str, name: str) -> bool:
    """Whether no decision depends on the file: feed, log, heartbeat, output, kept prompts."""
    return folder in ("runs", "side/prompts") or (not folder and name in HINTS)


@dataclass
class WatchedDisk(MemoryDisk):
    """Calls `watch` before each change.

    hints: watch the changes of files that are hints as well.
    """

    watch: Callable[[DiskStep, Site], None] | None = None
    hints: bool = False
    fault: Callable[[str, str], OSError | None] | None = None
    _torn_file: tuple[_File, bytes] | None = field(default=None)
    _looks: int = 0
    _tree: tuple[int, dict[str, list[tuple[str, FileKind]]]] | None = field(default=None)

    @classmethod
    def of(cls, image: Image, *, start_ns: int) -> WatchedDisk:
        """A disk that holds this; all of it flushed, unless the image says what is not."""
        if image.open is None:
            inodes = itertools.count(1)
            folders: dict[str, _Names] = {
                folder: {
                    name: _File(next(inodes), data, data, start_ns) for name, data in names.items()
                }
                for folder, names in image.folders.items()
            }
            durable = {folder: dict(names) for folder, names in folders.items()}
            groups: tuple[frozenset[str], ...] = ()
        else:
            files = {
                inode: _File(inode, data, data[:synced], start_ns)
                for inode, (data, synced) in image.open.files.items()
            }
            folders, durable = (
                {
                    folder: {name: files[inode] for name, inode in names.items()}
                    for folder, names in tree.items()
                }
                for tree in image.open[:2]
            )
            inodes = itertools.count(max(files, default=0) + 1)
            groups = image.open.linked
        disk = cls(
            _folders=folders, _durable=durable, _inodes=inodes, _time=itertools.count(start_ns + 1)
        )
        for group in groups:
            disk._pending.append(_Unsynced(group, _restore(group, folders)))
        return disk

    def kill_image(self, *, then_power: bool = False) -> Image:
        """What a killed process leaves now; `then_power`: and what of it a power cut may undo."""
        folders = _frozen(self._folders)
        if not then_power:
            return Image("kill", folders)
        groups: list[frozenset[str]] = []
        for change in self._pending:
            joined = change.folders
            for group in [g for g in groups if g & joined]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
        files = {
            file.inode: (file.data, len(file.synced))
            for tree in (self._folders, self._durable)
            for names in tree.values()
            for file in names.values()
        }
        left = Open(_inodes(self._folders), _inodes(self._durable), files, tuple(groups))
        return Image("kill", folders, left)

    def torn_image(self, share: float = 0.5) -> Image | None:
        """The same when it dies inside the write that comes next; None when that is no write."""
        if self._torn_file is None:
            return None
        file, data = self._torn_file
        whole = file.data
        file.data = whole + data[: int(len(data) * share)]
        try:
            return Image("torn", _frozen(self._folders))
        finally:
            file.data = whole

    def power_images(self) -> Iterator[Image]:
        """What a power cut may leave now: the subsets and shares of `after_power_loss`."""
        pending = [change for change in self._pending if change.folders != frozenset({"runs"})]
        n = len(pending)
        if not n and not self._is_dirty():
            return
        everything = frozenset(range(n))
        keep = {frozenset[int](), everything}
        for i in range(n):
            keep |= {frozenset([i]), everything - {i}, frozenset(range(i))}
        for kept in sorted(keep, key=sorted):
            image = {folder: dict(names) for folder, names in self._durable.items()}
            for i in sorted(kept):
                pending[i].apply(image)
            yield from self._shares(image)

    def _shares(self, image: dict[str, _Names]) -> Iterator[Image]:
        dirty = False
        for share in (0.0, 0.5, 1.0):
            folders: Contents = {}
            for folder, names in image.items():
                folders[folder] = {}
                for name, file in names.items():
                    data = file.data
                    if len(file.synced) < len(data):
                        extra = data[len(file.synced) :]
                        data = file.synced + extra[: int(len(extra) * share)]
                        dirty = dirty or not (is_hint(folder, name) or name.startswith(TEMP_PREFIX))
                    folders[folder][name] = data
            yield Image("power", folders)
            if not dirty:
                return

    def _is_dirty(self) -> bool:
        return any(
            len(file.synced) < len(file.data) and not is_hint(folder, name)
            for folder, names in self._folders.items()
            for name, file in names.items()
        )

    # ---- watching -----------------------------------------------------------------------

    def _step(self, operation: str, path: str) -> None:
        if self.watch is not None:
            folder, _, name = path.rpartition("/")
            if self.hints or not is_hint(folder, name):
                self.watch(DiskStep(operation, path), site(sys._getframe(1)))
        if self.fault is not None and (error := self.fault(operation, path)) is not None:
            raise error
        super()._step(operation, path)

    def _write(self, file: _File, data: bytes, path: str) -> None:
        self._torn_file = (file, data)
        try:
            super()._write(file, data, path)
        finally:
            self._torn_file = None

    def read(
        self, path: str, *, offset: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> bytes:
        """Bytes of a file; a fault may come here too."""
        self._maybe_fail("read", path)
        return super().read(path, offset=offset, limit=limit, max_bytes=max_bytes)

    def stat(self, path: str) -> FileStat | None:
        """What stands there; a fault may come here too."""
        if self.fault is not None and (error := self.fault("stat", path)) is not None:
            raise error
        return super().stat(path)

    def list_dir(self, path: str) -> list[tuple[str, FileKind]]:
        """Names and kinds; a fault may come here too."""
        self._maybe_fail("list", path)
        with self:
            files: list[tuple[str, FileKind]] = [(name, "file") for name in self._folder(path)]
            return files + self._subfolders().get(path, [])

    def _subfolders(self) -> dict[str, list[tuple[str, FileKind]]]:
        """Subfolders by folder; cached, as this is asked ten times as often as anything else."""
        if self._tree is None or self._tree[0] != len(self._folders):
            tree: dict[str, list[tuple[str, FileKind]]] = {}
            for folder in filter(None, self._folders):
                above, _, name = folder.rpartition("/")
                tree.setdefault(above, []).append((name, "folder"))
            self._tree = (len(self._folders), tree)
        return self._tree[1]

    def _maybe_fail(self, operation: str, path: str) -> None:
        self._looks += 1
        if self._looks > MOST_LOOKS:
            raise Endless(f"expected a life to end, but it still looks at {path}")
        if self.fault is not None and (error := self.fault(operation, path)) is not None:
            raise error


DISK_ROOM = "mimikit.protocol."
LIFE = "_go"
"""The driver's frame below which the product runs."""


def site(frame: FrameType | None) -> Site:
    """The nearest frame of the product outside the room that writes."""
    while frame is not None and frame.f_code.co_name != LIFE:
        module = frame.f_globals["__name__"]
        if module.startswith("mimikit.") and not module.startswith(DISK_ROOM):
            return Site(module, frame.f_code.co_name, frame.f_lineno)
        if module == "tests.support.product":
            return Site(module, frame.f_code.co_name, frame.f_lineno)
        frame = frame.f_back
    return Site("client", "client", 0)


def asker(frame: FrameType | None) -> Site:
    """As `site`, but for a file shared with the user: who had it changed."""
    while frame is not None and frame.f_code.co_name != LIFE and not _is_shared(frame):
        frame = frame.f_back
    while frame is not None and _is_shared(frame):
        frame = frame.f_back
    return site(frame)


def _is_shared(frame: FrameType) -> bool:
    is_named = frame.f_code.co_name in SHARED  # few names are; the module is asked only then
    return is_named and frame.f_globals["__name__"] == "mimikit.memory.notes"


def _restore(
    group: frozenset[str], folders: dict[str, _Names]
) -> Callable[[dict[str, _Names]], None]:
    """A change that restores these folders as they were at the kill."""
    kept = {folder: dict(folders[folder]) for folder in group}

    def apply(image: dict[str, _Names]) -> None:
        for folder, names in kept.items():
            image[folder] = dict(names)

    return apply


def _inodes(folders: dict[str, _Names]) -> dict[str, dict[str, int]]:
    return {
        folder: {name: file.inode for name, file in names.items()}
        for folder, names in folders.items()
    }


def _frozen(folders: dict[str, _Names]) -> Contents:
    return {
        folder: {name: file.data for name, file in names.items()}
        for folder, names in folders.items()
    }
