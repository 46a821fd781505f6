"""The file system interface and its implementation on the real disk; only `files.py` uses it.

Paths are relative to the state folder. Every operation opens its folder by descriptor and never
follows a link, so no path leads out of the state folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat as stat_bits
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

from mimikit.errors import StorageError, UnsafeFile

FileKind: TypeAlias = Literal["file", "folder", "other"]

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RENAME_NOREPLACE = 1
_renameat2: Callable[..., int] | None = getattr(
    ctypes.CDLL(None, use_errno=True), "renameat2", None
)


class FileStat(NamedTuple):
    kind: FileKind
    size: int
    mtime_ns: int
    inode: int


class Lock(NamedTuple):
    """A file lock that the kernel releases when its process dies. Not inherited over exec."""

    release: Callable[[], None]
    """Idempotent."""
    inode: int = 0
    """Of the locked file; if another file is at its path now, the lock excludes nobody."""


class FileSystem(Protocol):
    """The primitive file operations; a crash can fall between any two.

    Raises: OSError with its errno for every operation; UnsafeFile from `read` and `append_line`.
    """

    root: str

    def make_dir(self, path: str) -> None:
        """Create one folder, 0700; no error where anything exists at its path."""

    def list_dir(self, path: str) -> list[tuple[str, FileKind]]: ...

    def stat_dir(self, path: str) -> Iterable[tuple[str, FileStat]]: ...

    def stat(self, path: str) -> FileStat | None: ...

    def read(
        self, path: str, *, offset: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> bytes:
        """Read a plain file; UnsafeFile for a fifo, a device, or more than `max_bytes`."""
        ...

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        """Create a new file, 0600; with `sync`, fsync it."""

    def append_line(self, path: str, line: bytes, *, sync: bool) -> int:
        """Append `line` in one write, after ending a torn last line; returns its offset."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces what is at `target`."""

    def rename_exclusive(self, source: str, target: str) -> None:
        """Atomic; FileExistsError when `target` exists."""

    def unlink(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None:
        """Fsync a folder: the names in it survive a power cut."""

    def sync_file(self, path: str) -> None:
        """Fsync a file that may have been written by another process."""

    def lock(self, path: str) -> Lock | None:
        """Lock a file with flock; None when it is locked already."""

    def is_in_place(self) -> bool:
        """Whether the opened root folder has not been moved, removed or replaced."""
        ...

    def is_full(self) -> bool:
        """Whether no room or no inode is left."""
        ...


_LEAST_ROOM = 2**14
"""Bytes; with less a disk is full."""


class _Folder(NamedTuple):
    descriptor: int
    device: int
    inode: int


class RealDisk:
    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._folders: dict[str, _Folder] = {"": _folder_of(os.open(root, _FOLDER_FLAGS))}
        self._opening = threading.Lock()
        self._closing = weakref.finalize(self, _close_all, self._folders)
        self._closing.atexit = False  # a thread may still write then; the system closes them

    def close(self) -> None:
        self._closing()

    def is_in_place(self) -> bool:
        try:
            return _is_same(self._folders[""], Path(self.root).lstat())
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError:  # of a parent folder: no evidence of a move
            return True

    def is_full(self) -> bool:
        try:
            seen = os.statvfs(self.root)
        except OSError:
            return False
        return seen.f_bavail * seen.f_frsize < _LEAST_ROOM or (seen.f_files > 0 == seen.f_favail)

    def folder_fd(self, path: str) -> int:
        """A descriptor of a folder, opened without following links and cached.

        The cache is checked by inode, as the folder may have been moved or replaced.

        Raises:
            OSError: no such folder; EBADF: this disk was closed.
        """
        known = self._folders.get(path)
        if known is not None and not path:
            return known.descriptor
        if not path:
            raise OSError(errno.EBADF, "expected an open disk, got one that was closed", self.root)
        parent, _, name = path.rpartition("/")
        above = self.folder_fd(parent)
        if known is not None and _is_same(
            known, os.stat(name, dir_fd=above, follow_symlinks=False)
        ):
            return known.descriptor
        with self._opening:
            if self._folders.get(path) == known:  # not opened yet, or replaced
                opened = _folder_of(os.open(file_name(name), _FOLDER_FLAGS, dir_fd=above))
                if known is not None:  # keep the number: another thread may be using it
                    os.dup2(opened.descriptor, known.descriptor, inheritable=False)
                    os.close(opened.descriptor)
                    opened = opened._replace(descriptor=known.descriptor)
                self._folders[path] = opened
            return self._folders[path].descriptor

    def make_dir(self, path: str) -> None:
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            folder, name = self._split(path)
            os.mkdir(name, 0o700, dir_fd=folder)

    def list_dir(self, path: str) -> list[tuple[str, FileKind]]:
        with self._scan(path) as entries:
            return [(entry.name, _entry_kind(entry)) for entry in entries]

    def stat_dir(self, path: str) -> Iterator[tuple[str, FileStat]]:
        with self._scan(path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    yield entry.name, _stat_of(entry.stat(follow_symlinks=False))

    def stat(self, path: str) -> FileStat | None:
        try:
            folder, name = self._split(path)
            return _stat_of(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(
        self, path: str, *, offset: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> bytes:
        descriptor = self._open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            size = _plain_size(descriptor, path)
            check_size(size, max_bytes, path)
            left = size - offset if limit is None else min(size - offset, limit)
            chunks: list[bytes] = []
            while left > 0 and (chunk := os.pread(descriptor, left, offset)):
                chunks.append(chunk)
                offset += len(chunk)
                left -= len(chunk)
            return b"".join(chunks)
        finally:
            os.close(descriptor)

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        descriptor = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def append_line(self, path: str, line: bytes, *, sync: bool) -> int:
        descriptor = self._open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK)
        try:
            size = _plain_size(descriptor, path)
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            written = os.write(descriptor, b"\n" + line if torn else line)
            if written != len(line) + torn:
                raise OSError(errno.ENOSPC, "short write", path)
            if sync:
                os.fsync(descriptor)
            return size + torn
        finally:
            os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        source_folder, source_name = self._split(source)
        target_folder, target_name = self._split(target)
        os.rename(source_name, target_name, src_dir_fd=source_folder, dst_dir_fd=target_folder)

    def rename_exclusive(self, source: str, target: str) -> None:
        source_folder, old = self._split(source)
        target_folder, new = self._split(target)
        if _renameat2 is not None:
            before, after = (source_folder, os.fsencode(old)), (target_folder, os.fsencode(new))
            if not _renameat2(*before, *after, _RENAME_NOREPLACE):
                return
            code = ctypes.get_errno()
            if code not in (errno.ENOSYS, errno.EINVAL):
                raise OSError(code, os.strerror(code), target)
        # Not supported by this system or file system.
        os.link(old, new, src_dir_fd=source_folder, dst_dir_fd=target_folder, follow_symlinks=False)
        os.unlink(old, dir_fd=source_folder)

    def unlink(self, path: str) -> None:
        folder, name = self._split(path)
        os.unlink(name, dir_fd=folder)

    def sync_dir(self, path: str) -> None:
        os.fsync(self.folder_fd(path))

    def sync_file(self, path: str) -> None:
        descriptor = self._open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> Lock | None:
        descriptor = self._open(path, os.O_RDWR | os.O_CREAT)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            return Lock(stack.pop_all().close, os.fstat(descriptor).st_ino)

    @contextlib.contextmanager
    def _scan(self, path: str) -> Generator[Iterator[os.DirEntry[str]]]:
        # A new descriptor: duplicates share their position, so two threads would each list a part.
        listing = os.open(".", _FOLDER_FLAGS, dir_fd=self.folder_fd(path))
        try:
            with os.scandir(listing) as entries:
                yield entries
        finally:
            os.close(listing)

    def _split(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return self.folder_fd(folder), file_name(name)

    def _open(self, path: str, flags: int) -> int:
        folder, name = self._split(path)
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise UnsafeFile(f"expected a plain file, got something else, at {path}") from None
            raise


def _plain_size(descriptor: int, path: str) -> int:
    status = os.fstat(descriptor)
    if not stat_bits.S_ISREG(status.st_mode):
        raise UnsafeFile(f"expected a plain file, got something else, at {path}")
    return status.st_size


class DiskErrors:
    """Context manager: turns an OSError into a StorageError with the path and the remedy.

    A class, not a generator, as it is four times as fast: it is entered for every read.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, FileExistsError):
            remedy = _REMEDY.get(error.errno or 0, error.strerror or str(error))
            code = "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "storage"
            raise StorageError(f"{self._path}: {remedy}", code=code) from error


_REMEDY = {
    errno.ENOSPC: (  # of bytes or of inodes
        "the disk is full, or can hold no more files; free some space or remove files, "
        "nothing was changed"
    ),
    errno.EDQUOT: "the disk quota is used up; free some space, nothing was changed",
    errno.EROFS: "the disk is read-only; make it writable, nothing was changed",
    errno.EIO: "the disk failed to read or write; check it, nothing was changed",
    errno.EMFILE: "too many open files; close some or raise the limit",
    errno.EACCES: "permission denied; the state folder must belong to you",
    errno.ENOTDIR: "expected a folder, got something else; put the folder back",
    errno.ENOENT: "the folder is gone; was the state folder moved or deleted?",
}


def check_size(size: int, max_bytes: int | None, path: str) -> None:
    """Raise UnsafeFile for a file larger than `max_bytes`."""
    if max_bytes is not None and size > max_bytes:
        raise UnsafeFile(f"expected at most {max_bytes:,} bytes, got {size:,}, at {path}")


def _close_all(folders: dict[str, _Folder]) -> None:
    while folders:
        os.close(folders.popitem()[1].descriptor)


def _folder_of(descriptor: int) -> _Folder:
    found = os.fstat(descriptor)
    return _Folder(descriptor, found.st_dev, found.st_ino)


def _is_same(folder: _Folder, found: os.stat_result) -> bool:
    return (folder.inode, folder.device) == (found.st_ino, found.st_dev)


def file_name(name: str) -> str:
    """Return `name`; UnsafeFile when it is no plain file name."""
    if name in ("", ".", "..") or "\x00" in name:
        raise UnsafeFile(f"expected a file name, got {name!r}")
    return name


def _stat_of(found: os.stat_result) -> FileStat:
    kind: FileKind = "other"
    if stat_bits.S_ISREG(found.st_mode):
        kind = "file"
    elif stat_bits.S_ISDIR(found.st_mode):
        kind = "folder"
    return FileStat(kind, found.st_size, found.st_mtime_ns, found.st_ino)


def _entry_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "folder" if entry.is_dir(follow_symlinks=False) else "other"
