"""The in-memory disk as the crash driver wants it.

It shows, before every change, what a crash there would leave, without stopping the flow: one run of
a flow gives all its crash states.

`test_driver.py` proves that these images are those of `MemoryDisk` itself, stopped there.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import NamedTuple

from mimikit.protocol.disk import FileKind, FileStat
from mimikit.testing.memory_disk import Crash, DiskStep, MemoryDisk, _File, _Names, _Unsynced
from tests.crash.images import (
    HINT_FOLDERS,
    LINES,
    Image,
    Names,
    Open,
    Shots,
    is_hint,
    shared,
    synced,
    whole,
)
from tests.crash.power import Unflushed, linked, power_images
from tests.crash.sites import SHARED

MOST_LOOKS = 20_000
"""Reads and listings of one life; the longest flow needs a tenth."""


class Endless(BaseException):
    """The product goes round and round. A BaseException: no handler for errors may catch it."""


class Site(NamedTuple):
    """The place in the product that asked for a change."""

    module: str
    function: str
    line: int

    def __str__(self) -> str:
        return f"{self.module.removeprefix('mimikit.')}:{self.function}"


@dataclass
class WatchedDisk(MemoryDisk):
    """Tells `watch` of each change before it happens.

    hints: watch the changes of files that are hints as well.
    """

    watch: Callable[[DiskStep, Site], None] | None = None
    hints: bool = False
    fault: Callable[[str, str], OSError | None] | None = None
    _torn_file: tuple[str, _File, bytes] | None = field(default=None)
    _looks: int = 0
    _tree: dict[str, list[tuple[str, FileKind]]] | None = field(default=None)
    _seen: Shots = field(init=False)
    """What a killed process would leave now."""
    _flushed: Shots = field(init=False)
    """What of it nothing can take away."""
    _unflushed: dict[frozenset[str], Unflushed] = field(
        default_factory=dict[frozenset[str], Unflushed]
    )

    def __post_init__(self) -> None:
        self._seen = Shots(self._folders, whole)
        self._flushed = Shots(self._durable, synced)

    @classmethod
    def of(cls, image: Image, *, start_ns: int) -> WatchedDisk:
        """A disk that holds this; all of it flushed, unless the image says what is not."""
        contents = shared(image.folders)
        if image.open is None:
            inodes = itertools.count(1)
            folders: dict[str, _Names] = {
                folder: {
                    name: _File(next(inodes), data, data, start_ns) for name, data in names.items()
                }
                if names
                else {}
                for folder, names in contents.items()
            }
            durable = {folder: names.copy() for folder, names in folders.items()}
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
                for tree in (image.open.volatile_names, image.open.durable_names)
            )
            inodes = itertools.count(max(files, default=0) + 1)
            groups = image.open.linked
        disk = cls(
            _folders=folders,
            _durable=durable,
            _inodes=inodes,
            _time=itertools.count(start_ns + 1),
        )
        if image.open is None:
            disk._seen.begin(contents)
        for group in groups:
            disk._pending.append(_Unsynced(group, _restore(group, folders)))
        return disk

    def kill_image(self, *, then_power: bool = False) -> Image:
        """What a killed process leaves now; `then_power`: and what of it a power cut may undo."""
        folders = self._seen.all()
        if not then_power:
            return Image("kill", {**folders}, None, self._seen.meaning)
        files = {
            file.inode: (file.data, len(file.synced))
            for tree in (self._folders, self._durable)
            for names in tree.values()
            for file in names.values()
        }
        volatile, durable = _inodes(self._folders), _inodes(self._durable)
        left = Open(volatile, durable, files, tuple(linked(self._pending)), self._flushed.all())
        return Image("kill", {**folders}, left)

    def state(self) -> tuple[int, int, frozenset[frozenset[str]]]:
        """Equal for disks of which a kill, and a power cut, leave the same from now on."""
        self._seen.all()
        self._flushed.all()
        open_ = frozenset(linked(self._deciding()))
        return self._seen.meaning, self._flushed.meaning, open_

    def left_without(self, name: str, *, ends: bool) -> int:
        """Equal where a process that goes on finds the same but for what is left out.

        That is the file of this name at the top, and torn lines; `ends`: also at a file's end.
        """
        shots = self._seen.all()
        data = shots[""].get(name)
        left = self._seen.settled - (0 if data is None else hash(("", name, data)))
        for folder in LINES:
            if (names := shots.get(folder)) and (ends or not names.has_torn_end()):
                left += names.untorn() - names.settled
        return left

    def torn_image(self, share: float = 0.5) -> Image | None:
        """The same when it dies inside the write that comes next; None when that is no write."""
        if self._torn_file is None:
            return None
        path, file, data = self._torn_file
        folder, _, name = path.rpartition("/")
        folders, known = self._seen.all(), self._folders[folder]
        torn_data = file.data + data[: int(len(data) * share)]
        files = [(n, torn_data if n == name else f.data) for n, f in known.items()]
        torn = Names(folder, files, folders[folder])
        meaning = self._seen.meaning - folders[folder].meaning + torn.meaning
        return Image("torn", {**folders, folder: torn}, None, meaning)

    def power_images(self) -> Iterator[Image]:
        """What a power cut may leave now; nothing where all is flushed."""
        return power_images(self._deciding(), self._durable, self._flushed, self._unflushed)

    def _deciding(self) -> list[_Unsynced]:
        """The changes not flushed that something is decided by; of the others many may wait."""
        return [change for change in self._pending if not change.folders <= HINT_FOLDERS]

    def take_away(self, folders: Collection[str]) -> None:
        """What somebody else does at once: no step of the product's."""
        for image in (self._folders, self._durable):
            for path in [p for p in image for f in folders if p == f or p.startswith(f"{f}/")]:
                del image[path]
        gone = {f for change in self._pending for f in change.folders if f not in self._folders}
        self._pending = [change for change in self._pending if not change.folders & gone]
        self._folders_changed()

    def __enter__(self) -> None:
        """Begin an operation: none comes after the crash."""
        if self.dead:
            raise Crash

    def __exit__(self, *_error: object) -> None:
        pass  # whoever lives on this disk is one thread: nobody is to be kept out

    # ---- watching -----------------------------------------------------------------------

    def _step(self, operation: str, path: str) -> None:
        step = DiskStep(operation, path, "")
        if self.watch is not None:
            folder, _, name = path.rpartition("/")
            if self.hints or not is_hint(folder, name):
                self.watch(step, site(sys._getframe(1)))
        if self.fault is not None and (error := self.fault(operation, path)) is not None:
            raise error
        if self.crash_at is None and self.fail is None:
            self.log.append(step)
        else:
            super()._step(operation, path)

    def _write(self, file: _File, data: bytes, path: str) -> None:
        self._torn_file = (path, file, data)
        try:
            super()._write(file, data, path)
        finally:
            self._torn_file = None
            self._bytes_changed(path)

    def _flush(self, file: _File, path: str) -> None:
        super()._flush(file, path)
        self._bytes_changed(path)

    def _bytes_changed(self, path: str) -> None:
        """It may be flushed under another name, which is that of a change of names to come."""
        folder = path.rpartition("/")[0]
        self._seen.forget((folder,))
        if not self._flushed.is_unseen:  # which it stays where nobody asks for power cuts
            self._flushed.forget(self._linked_to(folder))

    def _linked_to(self, folder: str) -> frozenset[str]:
        """With this one, the folders whose changes hang together with its own."""
        groups = (group for group in linked(self._pending) if folder in group)
        return next(groups, frozenset({folder}))

    def _change(self, folders: frozenset[str], apply: Callable[[dict[str, _Names]], None]) -> None:
        super()._change(folders, apply)
        self._seen.forget(folders)

    def sync_dir(self, path: str) -> None:
        """Make names durable, as `MemoryDisk` does."""
        if self.dead:
            raise Crash
        for change in self._pending:  # a loop, as lives come here a million times
            if path in change.folders:
                break
        else:
            self._folder(path)
            return
        changed = self._linked_to(path)
        super().sync_dir(path)
        self._flushed.forget(changed)

    def make_dir(self, path: str) -> None:
        """Create one folder."""
        if path not in self._folders:
            super().make_dir(path)
            self._folders_changed()

    def remove_dir(self, path: str) -> None:
        """Remove one folder."""
        super().remove_dir(path)
        self._folders_changed()

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a folder."""
        is_folder = source in self._folders
        super().rename(source, target)
        if is_folder:
            self._folders_changed()

    def _folders_changed(self) -> None:
        self._tree = None
        self._seen.forget_all()
        self._flushed.forget_all()

    def read(
        self, path: str, *, offset: int = 0, limit: int | None = None, most: int | None = None
    ) -> bytes:
        """Bytes of a file; a fault may come here too."""
        self._maybe_fail("read", path)
        return super().read(path, offset=offset, limit=limit, most=most)

    def list_dir(self, path: str) -> list[tuple[str, FileKind]]:
        """Names and kinds; a fault may come here too."""
        self._maybe_fail("list", path)
        if self.dead:
            raise Crash
        known = self._folder(path)
        tree = self._tree if self._tree is not None else self._subfolders()
        if path not in tree:
            return [(name, "file") for name in known] if known else []  # most are empty
        return [*((name, "file") for name in known), *tree[path]]

    def stat(self, path: str) -> FileStat | None:
        """Size, time and kind, as `MemoryDisk` gives them."""
        if self.dead:
            raise Crash
        if path in self._folders:
            return _FOLDER
        folder, _, name = path.rpartition("/")
        file = self._folders.get(folder, _NOTHING).get(name)
        return file and FileStat("file", len(file.data), file.mtime_ns, file.inode)

    def holds(self, folder: str) -> bool:
        """Whether it is there, and to be made no more."""
        return folder in self._folders and not self.dead

    def is_empty(self, folder: str) -> bool:
        """Look whether it is there with nothing in it, where no look may fail."""
        if self.fault is not None or self.dead or self._looks >= MOST_LOOKS:
            return False
        if self._folders.get(folder, _MISSING):
            return False
        if folder in (self._tree if self._tree is not None else self._subfolders()):
            return False
        self._looks += 1
        return True

    def lacks(self, path: str) -> bool:
        """Look whether nothing stands there, in a folder that does, where no look may fail."""
        if self.fault is not None or self.dead or self._looks >= MOST_LOOKS:
            return False
        folder, _, name = path.rpartition("/")
        names = self._folders.get(folder)
        if names is None or name in names or path in self._folders:
            return False
        if name[:1] in ("", ".") or "\0" in name:  # it may be none
            return False
        self._looks += 1
        return True

    def is_settled(self, folder: str) -> bool:
        """Whether it is there, and none of its names is to be flushed."""
        if self.dead or folder not in self._folders:
            return False
        return not any(folder in change.folders for change in self._pending)

    def _subfolders(self) -> dict[str, list[tuple[str, FileKind]]]:
        """The folders in each folder; asked for ten times as often as anything else."""
        if self._tree is None:
            self._tree = {}
            for folder in filter(None, self._folders):
                above, _, name = folder.rpartition("/")
                self._tree.setdefault(above, []).append((name, "folder"))
        return self._tree

    def _maybe_fail(self, operation: str, path: str) -> None:
        self._looks += 1
        if self._looks > MOST_LOOKS:
            raise Endless(f"expected a life to end, but it still looks at {path}")
        if self.fault is not None and (error := self.fault(operation, path)) is not None:
            raise error


DISK_ROOMS = ("mimikit.protocol.", "mimikit.testing.")
LIFE = "_go"
"""The driver's frame in which the product lives: above it nobody asks for a change."""


_FOREIGN, _OURS, _SHARED, _LIFE = range(4)
_KINDS: dict[int, int] = {}
"""By the id of its code, which is kept, what a frame is."""


def site(frame: FrameType | None) -> Site:
    """The nearest frame of the product outside the room that writes."""
    while frame is not None and (kind := _kind(frame)) != _LIFE:
        if kind != _FOREIGN:
            return Site(frame.f_globals["__name__"], frame.f_code.co_name, frame.f_lineno)
        frame = frame.f_back
    return Site("client", "client", 0)


def asker(frame: FrameType | None) -> Site | None:
    """As `site`, but of a shared file: who had it changed; None where it is none."""
    while frame is not None and (kind := _kind(frame)) != _LIFE:
        if kind == _SHARED:
            while frame is not None and _kind(frame) == _SHARED:
                frame = frame.f_back
            return site(frame)
        frame = frame.f_back
    return None


def _kind(frame: FrameType) -> int:
    code = frame.f_code
    kind = _KINDS.get(id(code))
    if kind is None:
        module = frame.f_globals["__name__"]
        is_products = module.startswith("mimikit.") and not module.startswith(DISK_ROOMS)
        kind = _OURS if is_products or module == "tests.support.product" else _FOREIGN
        if code.co_name == LIFE:
            kind = _LIFE
        elif code.co_name in SHARED and module == "mimikit.memory.notes":
            kind = _SHARED
        _KINDS[id(code)] = kind
        _KEPT.append(code)
    return kind


def _restore(
    group: frozenset[str], folders: dict[str, _Names]
) -> Callable[[dict[str, _Names]], None]:
    """The change that makes these folders as they were when the process was killed."""
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


_KEPT: list[CodeType] = []
_FOLDER = FileStat("folder", 0, 0, 0)
_NOTHING: Mapping[str, _File] = {}
_MISSING: Mapping[str, _File] = {"": _File(0)}
"""Stands for a folder that is not there: it is not an empty one."""
