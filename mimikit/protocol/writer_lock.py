"""A lock for files that several processes read, change and replace: one at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

from mimikit.errors import StorageError
from mimikit.protocol.files import Files

_PATIENCE_S = 5.0
_LOOK_S = 0.005


@contextlib.contextmanager
def held(files: Files, path: str, *, patience_s: float | None = None) -> Generator[None]:
    """Hold the lock of this path; other writers wait. Not for long work: read what you need before.

    Crash: the kernel frees it.

    Raises:
        StorageError: another writer has kept it for so long, else for five seconds.
    """
    pause = threading.Event()
    for _ in range(int((patience_s or _PATIENCE_S) / _LOOK_S)):
        lock = files.lock(path)
        if lock is not None:
            break
        pause.wait(_LOOK_S)
    else:
        raise StorageError(f"{path}: another writer keeps it; try again")
    try:
        yield
    finally:
        lock.release()
