"""The workspace's `docs/**/*.md`: read, never written, and no link followed.

Folders are opened part by part by descriptor, so that no name and no link leads out of `docs/`.
Hidden files and folders, and the state folder wherever it lies, are not shown.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import cast

from mimikit.errors import StorageError

ROOT = "docs"
MOST_FILES = 2_000
MOST_ENTRIES = 20_000
MOST_DEPTH = 16
_NOT_THERE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL}
)
_UNFIT = re.compile(r"[/\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


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
    """The markdown files of one workspace."""

    def __init__(self, workspace: Path, closed: str) -> None:
        """`closed` is the state folder; nothing in it is shown."""
        self._workspace = workspace
        self._closed = os.path.realpath(closed)

    def listed(self) -> list[Document]:
        """The documents that are there, by path; of very many the first that are found."""
        with _errors(ROOT), self._root() as root:
            if root is None:
                return []
            return sorted(self._walk(root), key=lambda document: document.path)

    def read(self, path: str, limit: int) -> tuple[bytes, Document] | None:
        """At most `limit` bytes of a document and what is known of it; None: there is none.

        Raises:
            StorageError: it is there and can not be read.
        """
        _, *folders, name = path.split("/")
        if not all(map(is_name, [*folders, name])) or len(folders) > MOST_DEPTH:
            return None
        if self._is_closed("/".join([ROOT, *folders])):
            return None
        with _errors(path), contextlib.ExitStack() as opened:
            at = opened.enter_context(self._root())
            for folder in folders:
                at = opened.enter_context(_descriptor(folder, _FOLDER, at))
            descriptor = opened.enter_context(_descriptor(name, _FILE, at))
            if descriptor is None:
                return None
            found = os.fstat(descriptor)
            if not S_ISREG(found.st_mode):
                return None
            data = _read(descriptor, min(limit, found.st_size))
            return data, Document(path, found.st_size, found.st_mtime_ns)

    @contextlib.contextmanager
    def _root(self) -> Generator[int | None]:
        """A descriptor of `docs/`; the workspace itself may be reached by a link."""
        above = _opened(str(self._workspace), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None)
        if above is None:
            yield None
            return
        try:
            with _descriptor(ROOT, _FOLDER, above) as root:
                yield root
        finally:
            os.close(above)

    def _walk(self, root: int) -> Iterator[Document]:
        """Every document below an opened `docs/`, within the bounds."""
        entries = files = 0
        walk = os.fwalk(".", dir_fd=root, follow_symlinks=False)
        with contextlib.closing(cast("Generator[tuple[str, list[str], list[str], int]]", walk)):
            for folder, folders, names, descriptor in walk:
                below = f"{ROOT}/{folder[2:]}".rstrip("/")
                entries += len(folders) + len(names)
                folders[:] = [] if below.count("/") >= MOST_DEPTH else self._entered(below, folders)
                for name in sorted(names):
                    document = _document(below, name, descriptor)
                    if document is not None:
                        files += 1
                        yield document
                    if files >= MOST_FILES:
                        return
                if entries > MOST_ENTRIES:
                    return

    def _entered(self, below: str, folders: list[str]) -> list[str]:
        return sorted(
            name for name in folders if is_name(name) and not self._is_closed(f"{below}/{name}")
        )

    def _is_closed(self, path: str) -> bool:
        real = os.path.realpath(self._workspace / path)
        return real == self._closed or real.startswith(self._closed + os.sep)


def _document(below: str, name: str, descriptor: int) -> Document | None:
    if not name.endswith(".md") or not is_name(name):
        return None
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return None
    if not S_ISREG(found.st_mode):
        return None
    return Document(f"{below}/{name}", found.st_size, found.st_mtime_ns)


@contextlib.contextmanager
def _descriptor(name: str, flags: int, folder: int | None) -> Generator[int | None]:
    """An opened file or folder in an opened folder; None when it is not there."""
    descriptor = None if folder is None else _opened(name, flags, folder)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(name: str, flags: int, folder: int | None) -> int | None:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def _read(descriptor: int, want: int) -> bytes:
    chunks: list[bytes] = []
    while want > 0:
        chunk = os.read(descriptor, want)
        if not chunk:
            break
        chunks.append(chunk)
        want -= len(chunk)
    return b"".join(chunks)


@contextlib.contextmanager
def _errors(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
