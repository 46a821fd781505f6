"""The lock that lets someone see a whole state folder at one instant, while others write to it.

Each change of a state folder is one step of a disk, and holds this lock shared for as long as the
step takes: microseconds, no flush is among it. Who takes a snapshot holds it alone, so that nothing
changes meanwhile, in any process: what is seen then is what a kill at that instant would leave. The
kernel frees the lock of whoever dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
import time
import weakref

from mimikit.protocol import paths

PATIENCE_S = 20.0
"""So long a change waits for a snapshot; then it is made all the same: somebody stopped there."""
_LOOK_S = 0.002
_LOOK_UP_EVERY_S = 1.0
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SnapshotLock:
    """The lock of one folder for one process, whose threads hold it together.

    `with lock:` stands around a change. It never raises: where the lock can not be had (no more
    open files, a link in its place, a file system without locks) the change is made without it;
    who takes a snapshot looks twice, and so finds out.
    """

    def __init__(self, root: int) -> None:
        """`root`: a descriptor of the folder. Nothing is opened before the first change."""
        self._root = root
        self._descriptor: int | None = None
        self._look_at_s = 0.0
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """As at first. A forked child shares the open file, and so the lock, with its parent."""
        self.close()
        self._threads = threading.Lock()
        self._count, self._is_held = 0, False

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> None:
        with self._threads:
            if self._count == 0:
                self._is_held = self._take(fcntl.LOCK_SH, PATIENCE_S)
            self._count += 1

    def __exit__(self, *_of_error: object) -> None:
        with self._threads:
            self._count -= 1
            if self._count == 0 and self._is_held and self._descriptor is not None:
                with contextlib.suppress(OSError):
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def take_alone(self, patience_s: float) -> bool:
        """Have nobody change anything until `release`; False where that can not be had in time.

        Whoever holds it makes no change by a disk that has this lock: it would wait for itself.
        """
        with self._threads:
            return self._count == 0 and self._take(fcntl.LOCK_EX, patience_s)

    def release(self) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _take(self, kind: int, patience_s: float) -> bool:
        deadline_s: float | None = None
        while True:
            try:
                fcntl.flock(self._open(), kind | fcntl.LOCK_NB)
            except BlockingIOError:
                now_s = time.monotonic()
                deadline_s = deadline_s or now_s + patience_s
                if now_s > deadline_s:
                    return False
                time.sleep(_LOOK_S)
            except OSError:
                return False
            else:
                return True

    def _open(self) -> int:
        """The file that stands there, looked up once a second: of a removed one nobody knows."""
        now_s, known = time.monotonic(), self._descriptor
        if known is not None:
            if now_s < self._look_at_s:
                return known
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(paths.SNAPSHOT_LOCK, dir_fd=self._root, follow_symlinks=False)
                if os.path.samestat(there, os.fstat(known)):
                    self._look_at_s = now_s + _LOOK_UP_EVERY_S
                    return known
            self.close()
        found = os.open(paths.SNAPSHOT_LOCK, _FLAGS, 0o600, dir_fd=self._root)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError("expected a plain file")
        self._descriptor, self._look_at_s = found, now_s + _LOOK_UP_EVERY_S
        return found


_all: weakref.WeakSet[SnapshotLock] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_all):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)
