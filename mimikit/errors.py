"""Every error mimikit raises on purpose.

The text of each is made for its user: "expected X, got Y, in PLACE; do Z".
"""

from __future__ import annotations


class MimikitError(Exception):
    """The root: catch this to catch everything raised on purpose."""

    permanent = True


class BadInput(MimikitError):
    """What the caller gave cannot be used: 4xx over HTTP, exit code 2 in a terminal."""

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
    """The disk could not do it (full, read-only, failing); what was on it is unchanged."""

    permanent = False


class UnsafeFile(StorageError):
    """Where a file of ours is expected stands something else.

    A link, fifo, device or folder, one that we may not read, or one larger than ours ever are.
    """

    permanent = True


class AlreadyRunning(MimikitError):
    """Another consumer holds this state folder."""


class StateMoved(MimikitError):
    """The state folder, or what lies in it, was moved, removed or replaced under this process."""


class BadSettings(MimikitError):
    """The settings cannot be used."""


class NewerState(MimikitError):
    """The state folder was written by a newer mimikit; this one must not write to it."""


class EngineError(MimikitError):
    """An engine could not be run."""

    permanent = False
