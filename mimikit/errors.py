"""Every error mimikit raises on purpose; the text is for users: "expected X, got Y; do Z"."""

from __future__ import annotations

import errno


class MimikitError(Exception):
    permanent = True


class BadInput(MimikitError):
    """The caller's input cannot be used: 4xx over HTTP, exit code 2 in a terminal."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class BadRecord(BadInput):
    """A record, or a value in it, does not fit its model; `field` says where."""


class NotFound(BadInput):
    """The thing named does not exist."""


class Conflict(BadInput):
    """The thing changed meanwhile, or its id is taken."""


class Refused(MimikitError):
    """A rule of security or permission says no."""


class StorageError(MimikitError):
    """The disk failed (full, read-only, I/O error); its contents are unchanged."""

    permanent = False


class UnsafeFile(StorageError):
    """A link, fifo, device or folder, or an unreadable or too large file."""

    permanent = True


class AlreadyRunning(MimikitError):
    """Another consumer holds this state folder."""


class BadSettings(MimikitError):
    """The settings cannot be used."""


class NewerState(MimikitError):
    """The state folder was written by a newer mimikit; this one must not write to it."""


class EngineError(MimikitError):
    permanent = False


class ProgramLost(MimikitError):
    """A program was started, and its end could not be observed."""


_SHORT = {
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "this machine has too many files open",
    errno.ENOMEM: "no memory is left",
    errno.EAGAIN: "no more processes can be started",
}


def shortage_of(error: BaseException | None) -> str | None:
    """The lack of memory, threads or descriptors that caused an error; None: another cause."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _SHORT:
            return _SHORT[error.errno]
        if isinstance(error, MemoryError):
            return _SHORT[errno.ENOMEM]
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return _SHORT[errno.EAGAIN]
        error = error.__cause__
    return None
