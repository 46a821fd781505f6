"""What a power cut may leave of a disk: any part of what is not flushed.

Folders whose changes hang together are put together once for each part of their changes that is
kept; a disk that a cut may leave is one such choice for each of them, beside what is flushed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mimikit.protocol.files import TEMP_PREFIX
from mimikit.testing.memory_disk import _File, _Names, _Unsynced
from tests.crash.images import Image, Names, Shots, is_hint

SHARES = (0.0, 0.5, 1.0)
"""Of the bytes not flushed, so much may be left."""


class Cut(NamedTuple):
    """Some folders as they are after a power cut."""

    folders: dict[str, Names]
    meaning: int


class Unflushed:
    """Folders whose changes hang together, and what a cut leaves of them."""

    def __init__(
        self, changes: list[_Unsynced], durable: dict[str, _Names], flushed: dict[str, Names]
    ) -> None:
        self._changes, self._durable, self.flushed = changes, durable, flushed
        self._cuts: dict[tuple[bool, ...], list[Cut]] = {}

    def is_still(self, changes: list[_Unsynced], flushed: dict[str, Names]) -> bool:
        """Whether nothing has changed in them; folders that have are other objects."""
        return changes == self._changes and all(
            flushed[folder] is names for folder, names in self.flushed.items()
        )

    def cuts(self, kept: tuple[bool, ...]) -> list[Cut]:
        """What is left when these changes are kept: one, or one for each share of the bytes."""
        if (found := self._cuts.get(kept)) is None:
            image = {folder: dict(self._durable[folder]) for folder in self.flushed}
            for change, is_kept in zip(self._changes, kept, strict=True):
                if is_kept:
                    change.apply(image)
            shares = SHARES if _is_dirty(image) else SHARES[:1]
            found = self._cuts[kept] = [_cut(image, share, self.flushed) for share in shares]
        return found


def linked(pending: Iterable[_Unsynced]) -> list[frozenset[str]]:
    """Folders with changes that are not flushed; those together whose changes hang together."""
    groups: list[frozenset[str]] = []
    for change in pending:
        joined = change.folders
        for group in [g for g in groups if g & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    return groups


def power_images(
    pending: Sequence[_Unsynced],
    durable: dict[str, _Names],
    shots: Shots,
    known: dict[frozenset[str], Unflushed],
) -> Iterator[Image]:
    """Each once: the subsets and shares of `MemoryDisk.after_power_loss`.

    known: what was put together for the change before, and is used again where nothing has changed.
    """
    flushed = shots.all()
    if not pending and not shots.dirty:
        return
    groups = linked(pending)
    groups += [frozenset({f}) for f in shots.dirty if not any(f in group for group in groups)]
    parts, left = list[Unflushed](), list[list[list[Cut]]]()
    for folders in groups:
        numbers = tuple([i for i, change in enumerate(pending) if change.folders & folders])
        changes = [pending[i] for i in numbers]
        part = known.get(folders)
        if part is None or not part.is_still(changes, flushed):
            of = {folder: flushed[folder] for folder in folders if folder in flushed}
            part = known[folders] = Unflushed(changes, durable, of)
        parts.append(part)
        left.append([part.cuts(kept) for kept in _choices(len(pending), numbers)])
    same = shots.meaning - sum(names.meaning for part in parts for names in part.flushed.values())
    met = set[int]()
    for choice in zip(*left, strict=True):
        for number in range(max(map(len, choice))):
            chosen = [cuts[min(number, len(cuts) - 1)] for cuts in choice]
            meaning = same + sum([cut.meaning for cut in chosen])
            if meaning in met:
                continue
            met.add(meaning)
            folders = dict[str, dict[str, bytes]](flushed)
            for cut in chosen:
                folders |= cut.folders
            yield Image("power", folders, None, meaning)


@functools.cache
def _choices(n: int, numbers: tuple[int, ...]) -> list[tuple[bool, ...]]:
    """Which of `n` changes are kept: none, all, each one alone, all but one, each first few.

    Of each choice: whether these numbers are among them.
    """
    everything = frozenset(range(n))
    keep = {frozenset[int](), everything}
    for i in range(n):
        keep |= {frozenset([i]), everything - {i}, frozenset(range(i))}
    return [tuple(i in kept for i in numbers) for kept in sorted(keep, key=sorted)]


def _is_dirty(image: dict[str, _Names]) -> bool:
    """Whether a file that something is decided by has bytes that are not flushed."""
    return any(
        len(file.synced) < len(file.data)
        and not (is_hint(folder, name) or name.startswith(TEMP_PREFIX))
        for folder, names in image.items()
        for name, file in names.items()
    )


def _cut(image: dict[str, _Names], share: float, flushed: dict[str, Names]) -> Cut:
    folders = {
        folder: Names(
            folder, [(name, _left(file, share)) for name, file in names.items()], flushed[folder]
        )
        for folder, names in image.items()
    }
    return Cut(folders, sum(names.meaning for names in folders.values()))


def _left(file: _File, share: float) -> bytes:
    extra = file.data[len(file.synced) :]
    return file.synced + extra[: int(len(extra) * share)] if extra else file.data
