"""The workspace's `docs/**/*.md`: read, never written, and no link followed.

Hidden files and folders, and the state folder wherever it lies, are not shown.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from mimikit.errors import StorageError

ROOT = "docs"
MAX_FILES = 2_000
MAX_ENTRIES = 20_000
MAX_DEPTH = 16
_NOT_THERE = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.ENXIO,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        errno.EISDIR,
    }
)
_UNFIT = re.compile(r"[/\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A file below `docs/`, without its text. Units: bytes, nanoseconds."""

    path: str
    size: int
    mtime_ns: int


def is_name(name: str) -> bool:
    """Whether a part of an address may be a file's or folder's name: plain, not hidden, not long.

    This also keeps out `..`, NUL and whatever else could not stand in an address again.
    """
    return (
        bool(name)
        and not name.startswith(".")
        and _UNFIT.search(name) is None
        and len(name.encode("utf-8", "replace")) <= 255
    )


class Documents:
    def __init__(self, workspace: Path, state: str) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._state = Path(os.path.realpath(state))

    def listed(self) -> list[Document]:
        """The documents that are there, by path; of very many the first that are found."""
        return sorted(self._walk(), key=lambda document: document.path)

    def read(self, path: str, limit: int) -> tuple[bytes, Document] | None:
        """At most `limit` bytes of a document and what is known of it; None: there is none.

        Raises:
            StorageError: it is there and cannot be read.
        """
        names = path.split("/")[1:]
        if not all(map(is_name, names)) or len(names) > MAX_DEPTH + 1:
            return None
        if not self._is_open(file := self._workspace / path):
            return None
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(file, flags), "rb") as opened:
                found = os.fstat(opened.fileno())
                if not S_ISREG(found.st_mode):
                    return None
                return opened.read(limit), Document(path, found.st_size, found.st_mtime_ns)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise StorageError(f"{path}: {error.strerror or error}") from error

    def _walk(self) -> Iterator[Document]:
        entries = files = 0
        top = self._workspace / ROOT
        if not self._is_open(top):
            return
        for place, folders, names in os.walk(top):
            folder = Path(place)
            entries += len(folders) + len(names)
            is_deepest = len(folder.relative_to(top).parts) >= MAX_DEPTH
            inner = [name for name in sorted(folders) if is_name(name)]
            folders[:] = [n for n in inner if not is_deepest and self._is_open(folder / n)]
            for name in sorted(names):
                if document := self._document(folder / name):
                    files += 1
                    yield document
                if files >= MAX_FILES:
                    return
            if entries > MAX_ENTRIES:
                return

    def _document(self, file: Path) -> Document | None:
        if file.suffix != ".md" or not is_name(file.name):
            return None
        try:
            found = file.lstat()
        except OSError:
            return None
        path = file.relative_to(self._workspace).as_posix()
        return Document(path, found.st_size, found.st_mtime_ns) if S_ISREG(found.st_mode) else None

    def _is_open(self, path: Path) -> bool:
        """Whether it is reached by no link below the workspace, and is not of the state folder."""
        is_state = path == self._state or path.is_relative_to(self._state)
        return os.path.realpath(path) == str(path) and not is_state
