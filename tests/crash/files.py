"""The product's `Files` on a watched disk, which answers at once where nothing is to be seen.

A recovery looks some four times at each of fifty folders, and most of them are empty: to go all the
way down for each such look was a fifth of what the crash tests cost. What holds anything, is
missing, or may be refused goes the product's way.
"""

from __future__ import annotations

from collections.abc import Iterable

from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from tests.crash.disk import WatchedDisk


class QuickFiles(Files):
    """Differs from `Files` in nothing but what it costs; `test_driver` compares them."""

    def __init__(self, disk: WatchedDisk) -> None:
        super().__init__(disk)
        self._disk = disk

    def make_folders(self, folders: Iterable[str] = paths.FOLDERS) -> None:
        """Create those that are missing; those that are there change nothing."""
        super().make_folders([folder for folder in folders if not self._disk.holds(folder)])

    def stat(self, path: str) -> FileStat | None:
        """Size, time and kind; this disk refuses no such look."""
        return self._disk.stat(path)

    def read(self, path: str, *, most: int | None = None) -> bytes | None:
        """The bytes of a file; None when there is none."""
        return None if self._disk.lacks(path) else super().read(path, most=most)

    def part(self, path: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; nothing when there is no file."""
        return b"" if self._disk.lacks(path) else super().part(path, offset, limit)

    def names(self, folder: str, *, suffix: str = ".json") -> list[str]:
        """Names of the files in a folder; what can be no record is set aside."""
        return [] if self._disk.is_empty(folder) else super().names(folder, suffix=suffix)

    def sweep_temps(self, folder: str) -> int:
        """Remove temp files whose owner is dead; gives how many."""
        return 0 if self._disk.is_empty(folder) else super().sweep_temps(folder)

    def settle(self, folders: Iterable[str], lines: Iterable[str]) -> None:
        """Flush what a killed process wrote and did not."""
        super().settle([f for f in folders if not self._disk.is_settled(f)], lines)
