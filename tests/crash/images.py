"""What a crash leaves, as values: images of a disk that share what has not changed between them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from mimikit.protocol import paths
from mimikit.protocol.files import TEMP_PREFIX
from mimikit.testing.memory_disk import _File, _Names

LINES = (paths.TRANSCRIPT, paths.LEDGER, paths.USAGE, paths.NOTIFICATIONS)
"""Folders with files of lines that something is decided by."""
HINT_FOLDERS = frozenset({"runs", "side/prompts"})
HINTS = frozenset({"events.jsonl", "events.1.jsonl", "log.jsonl", "health.json"})


class Names(dict[str, bytes]):
    """The files of one folder by name. Images share it: whoever wants to change it copies it."""

    __slots__ = ("_untorn", "folder", "meaning", "settled", "whole")

    def __init__(
        self, folder: str, files: Iterable[tuple[str, bytes]], like: Names | None = None
    ) -> None:
        """`like`: those of the same folder at another time, from which few differ."""
        super().__init__(files)
        if like is None:
            settled, temps, whole = _sums(folder, self.items())
        else:
            settled, temps, whole = like.settled, like.meaning - like.settled, like.whole
            other = [(n, data) for n, data in self.items() if like.get(n) is not data]
            gone = [(n, data) for n, data in like.items() if self.get(n) is not data]
            for sign, changed in ((1, other), (-1, gone)):
                more = _sums(folder, changed) if changed else (0, 0, 0)
                settled += sign * more[0]
                temps += sign * more[1]
                whole += sign * more[2]
        self.folder = folder
        self._untorn: int | None = None
        self.meaning = settled + temps
        """A number that is equal where the product decides the same: hints left out, temp files by
        their folder alone, as nobody looks at what is swept. Those of folders add up to that of
        their disk."""
        self.settled = settled
        """The same without temp files."""
        self.whole = whole
        """The same of every byte."""

    def has_torn_end(self) -> bool:
        """Whether a file of lines ends within one, which the next writer has to see to."""
        ends = [data[-1:] for name, data in self.items() if name.endswith(".jsonl")]
        return not all(end in b"\n" for end in ends)

    def untorn(self) -> int:
        """`settled` where torn lines count as none, as they do to whoever reads them."""
        if self._untorn is None:
            self._untorn = self.settled
            for name, data in self.items() if self.folder in LINES else ():
                if name.endswith(".jsonl") and (kept := _without_torn(data)) != data:
                    self._untorn += hash((self.folder, name, kept))
                    self._untorn -= hash((self.folder, name, data))
        return self._untorn


def _sums(folder: str, files: Iterable[tuple[str, bytes]]) -> tuple[int, int, int]:
    """What these add to `settled`, for temp files, and to `whole`."""
    settled = temps = whole = 0
    for name, data in files:
        part = hash((folder, name, data))
        whole += part
        if is_hint(folder, name):
            continue
        if name.startswith(TEMP_PREFIX):
            temps += hash((folder, TEMP_PREFIX))
        else:
            settled += part
    return settled, temps, whole


@functools.lru_cache(2_000)
def _without_torn(data: bytes) -> bytes:
    return b"".join(line for line in data.splitlines(keepends=True) if not _is_torn(line))


@functools.lru_cache(20_000)
def _is_torn(line: bytes) -> bool:
    """Whether it is no more than the beginning of a line of ours."""
    try:
        json.loads(line)
    except ValueError:
        return line.startswith(b"{")
    return False


Contents: TypeAlias = "dict[str, dict[str, bytes]]"


def is_hint(folder: str, name: str) -> bool:
    """Whether nothing is decided by what it holds: feed, log, heartbeat, output, kept prompts."""
    return folder in HINT_FOLDERS or (not folder and name in HINTS)


def shared(contents: Mapping[str, Mapping[str, bytes]]) -> dict[str, Names]:
    """These folders as images hold them."""
    if all(isinstance(names, Names) for names in contents.values()):
        return cast("dict[str, Names]", contents)
    return {
        folder: names if isinstance(names, Names) else Names(folder, names.items())
        for folder, names in contents.items()
    }


@dataclass(slots=True)
class Image:
    """What a crash leaves: the files, and whether the machine lost power or only the process.

    A killed process leaves what it wrote, but what it had not flushed may still get lost when the
    power fails later: then `open` says what is flushed.
    """

    kind: str
    folders: Contents
    open: Open | None = None
    _key: int | None = field(default=None, compare=False)

    def key(self) -> int:
        """Equal for disks that mean the same: hints left out, temp files by their folder alone."""
        if self._key is None:
            meaning = sum(names.meaning for names in shared(self.folders).values())
            if self.open is not None:
                flushed = sum(names.meaning for names in self.open.durable.values())
                meaning = hash((meaning, flushed, self.open.linked))
            self._key = meaning
        return self._key

    def settled(self, *, untorn: bool) -> int:
        """What `key` would be if no temp file lay there, and all were flushed.

        untorn: torn lines count as none.
        """
        folders = shared(self.folders).values()
        return sum([names.untorn() if untorn else names.settled for names in folders])

    def temps(self) -> int:
        """Equal where temp files lie in the same folders."""
        return sum([names.meaning - names.settled for names in shared(self.folders).values()])


@dataclass(slots=True)
class Open:
    """A disk with changes that are not flushed: names by inode, and the bytes of each inode."""

    volatile_names: dict[str, dict[str, int]]
    durable_names: dict[str, dict[str, int]]
    files: dict[int, tuple[bytes, int]]
    """Inode → its bytes, and how many of them are flushed."""
    linked: tuple[frozenset[str], ...]
    """Folders whose changes hang together."""
    durable: dict[str, Names]
    """What is left when all that is not flushed is lost."""


class Shots:
    """The folders of a disk as values; made anew only where something has changed."""

    def __init__(self, tree: dict[str, _Names], data: Callable[[_File], bytes]) -> None:
        self._tree, self._data = tree, data
        self._shots: dict[str, Names] = {}
        self._stale: set[str] | None = None
        """Folders to be made anew; None: all."""
        self.meaning = self.settled = 0
        """The sums of theirs."""
        self.dirty: set[str] = set()
        """Folders with a file that something is decided by and that is not flushed."""

    @property
    def is_unseen(self) -> bool:
        """Whether nothing has been asked for since all of it has changed."""
        return self._stale is None

    def begin(self, shots: dict[str, Names]) -> None:
        """They are these, all of them flushed."""
        self._shots, self._stale = shots, set()
        self.meaning = sum(names.meaning for names in shots.values())
        self.settled = sum(names.settled for names in shots.values())

    def forget(self, folders: Iterable[str]) -> None:
        """Something has changed in these."""
        if self._stale is not None:
            self._stale.update(folders)

    def forget_all(self) -> None:
        """Folders have come or gone."""
        self._stale = None

    def all(self) -> dict[str, Names]:
        """Each folder. What was given stays as it is."""
        if self._stale is None:
            self.dirty.clear()
            self.begin({folder: self._made(folder, None) for folder in self._tree})
        elif self._stale:
            self._shots = dict(self._shots)
            for folder in self._stale & self._tree.keys():
                old = self._shots[folder]
                new = self._made(folder, old)
                self._shots[folder] = new
                self.meaning += new.meaning - old.meaning
                self.settled += new.settled - old.settled
            self._stale.clear()
        return self._shots

    def _made(self, folder: str, like: Names | None) -> Names:
        names, data = self._tree[folder], self._data
        if any(
            len(file.synced) < len(file.data) and not is_hint(folder, name)
            for name, file in names.items()
        ):
            self.dirty.add(folder)
        else:
            self.dirty.discard(folder)
        return Names(folder, [(name, data(file)) for name, file in names.items()], like)


def whole(file: _File) -> bytes:
    """All bytes of a file."""
    return file.data


def synced(file: _File) -> bytes:
    """Those that are flushed."""
    return file.synced
