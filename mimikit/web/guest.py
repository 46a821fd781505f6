"""State files as a guest may use them: create and read, never judge.

The consumer keeps the folders: it alone moves a broken file to `corrupt/`. Functions of other rooms
that `load` are given these files, and so leave in place what they can not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json, parse_object


class GuestFiles(Files):
    """Files that are never quarantined from here."""

    def __init__(self, files: Files) -> None:
        """Use the same disk as `files`."""
        super().__init__(files.fs, durable=files.durable)

    def quarantine(self, path: str, reason: str) -> None:
        """Nothing: a broken file is its keeper's to move."""

    def lines(self, path: str, *, offset: int = 0) -> Iterator[tuple[int, dict[str, Json]]]:
        """Each line's end offset and object; none where no plain file stands."""
        try:
            yield from super().lines(path, offset=offset)
        except UnsafeFile:
            return

    def head_lines(
        self, path: str, *, limit_bytes: int = 4096
    ) -> Iterator[tuple[int, dict[str, Json]]]:
        """The lines within the first bytes of a file; none where no plain file stands."""
        try:
            yield from super().head_lines(path, limit_bytes=limit_bytes)
        except UnsafeFile:
            return

    def part(self, path: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; nothing when there is no file."""
        try:
            return self.fs.read(path, offset=offset, limit=limit)
        except (FileNotFoundError, UnsafeFile):
            return b""
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error

    def tail(self, path: str, limit: int) -> list[dict[str, Json]]:
        """The objects on the whole lines within the last `limit` bytes, oldest first."""
        stat = self.stat(path)
        start = max(stat.size - limit, 0) if stat else 0
        data = self.part(path, start, limit)
        if start:
            data = data.partition(b"\n")[2]
        return [value for _, value in whole_lines(data)]


def whole_lines(data: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
    """Each line's end within `data` and its object; torn and foreign lines are skipped."""
    end = 0
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        end += len(line)
        try:
            yield end, parse_object(line)
        except BadRecord:
            continue
