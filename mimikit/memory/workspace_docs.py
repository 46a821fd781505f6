"""Reads the workspace's `docs/**/*.md`, without links, hidden files and the state folder."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from mimikit.errors import StorageError

ROOT = "docs"
MAX_FILES = 5_000
MAX_ENTRIES = 100_000
MAX_DEPTH = 16
_MISSING = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
    *(errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL),
)
_CONTROL = re.compile(r"[/\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """Units: bytes, nanoseconds."""

    path: str
    size: int
    mtime_ns: int


def is_name(name: str) -> bool:
    """Whether a path segment is a valid, visible name; keeps out `..`, slashes and NUL."""
    return (
        bool(name)
        and not name.startswith(".")
        and _CONTROL.search(name) is None
        and len(name.encode("utf-8", "replace")) <= 255
    )


class Documents:
    def __init__(self, workspace: Path, state: str) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._state = Path(os.path.realpath(state))

    def listed(self) -> list[Document]:
        """At most MAX_FILES documents, by path."""
        top, entries = self._workspace / ROOT, 0
        documents: list[Document] = []
        for place, folders, names in os.walk(top) if self._is_readable(top) else ():
            folder = Path(place)
            entries += len(folders) + len(names)
            is_deepest = len(folder.relative_to(top).parts) >= MAX_DEPTH
            inner = [name for name in sorted(folders) if is_name(name) and not is_deepest]
            folders[:] = [name for name in inner if self._is_readable(folder / name)]
            found = (self._document(folder / name) for name in sorted(names))
            documents += [document for document in found if document]
            if entries > MAX_ENTRIES or len(documents) >= MAX_FILES:
                break
        return sorted(documents[:MAX_FILES], key=lambda document: document.path)

    def read(self, path: str, limit: int) -> tuple[bytes, Document] | None:
        """At most `limit` bytes of a document; None when there is none.

        Raises:
            StorageError: it exists and cannot be read.
        """
        names = path.split("/")[1:]
        if not all(map(is_name, names)) or len(names) > MAX_DEPTH + 1:
            return None
        if not self._is_readable(file := self._workspace / path):
            return None
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(file, flags), "rb") as opened:
                stat = os.fstat(opened.fileno())
                if not S_ISREG(stat.st_mode):
                    return None
                return opened.read(limit), Document(path, stat.st_size, stat.st_mtime_ns)
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise StorageError(f"{path}: {error.strerror or error}") from error

    def _document(self, file: Path) -> Document | None:
        if file.suffix != ".md" or not is_name(file.name):
            return None
        try:
            stat = file.lstat()
        except OSError:
            return None
        path = file.relative_to(self._workspace).as_posix()
        return Document(path, stat.st_size, stat.st_mtime_ns) if S_ISREG(stat.st_mode) else None

    def _is_readable(self, path: Path) -> bool:
        """Whether no link leads to it, and it is outside the state folder."""
        is_state = path == self._state or path.is_relative_to(self._state)
        return os.path.realpath(path) == str(path) and not is_state
