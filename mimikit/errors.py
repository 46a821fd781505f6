"""Every error mimikit raises on purpose; the text is for users: "expected X, got Y; do Z"."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Literal, TypeAlias

ErrorCode: TypeAlias = Literal[
    "failed", "bad_input", "not_found", "conflict", "refused", "storage", "newer_state",
    # a value of any field
    "missing", "unknown_field", "wrong_type", "too_long", "too_short", "too_large", "too_small",
    "not_one_of", "bad_format", "bad_id", "bad_time", "bad_zone", "bad_name", "bad_path",
    # requests, logins, permissions
    "bad_request", "body_too_large", "too_many", "logged_out", "bad_token", "login_link_used",
    "no_remote_commands", "no_remote_variable", "docs_read_only", "disk_full",
    # conflicts
    "id_taken", "changed_meanwhile", "question_closed", "has_ended", "not_ended",
    # triggers, settings, memory
    "bad_when", "bad_cron", "no_future_time", "no_subject", "condition_cycle", "trigger_broken",
    "nothing_to_change", "bad_settings", "bad_address", "bad_key", "bad_variable", "key_again",
    "bad_note_name", "not_utf8", "files_full", "no_apprise",
]  # fmt: skip
"""What an error means; the page has words for each, in its reader's language."""
ErrorParams: TypeAlias = Mapping[str, str | int | float]


class MimikitError(Exception):
    permanent = True
    default_code: ErrorCode = "failed"

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        code: ErrorCode | None = None,
        params: ErrorParams | None = None,
    ) -> None:
        """`field`: of the input. `params`: what the page's words for the code have to fill in."""
        super().__init__(message)
        self.field = field
        self.code: ErrorCode = code or self.default_code
        self.params: ErrorParams = params or {}


class BadInput(MimikitError):
    """The caller's input cannot be used: 4xx over HTTP, exit code 2 in a terminal."""

    default_code = "bad_input"


class BadRecord(BadInput):
    """A record, or a value in it, does not fit its model; `field` says where."""


class NotFound(BadInput):
    """The thing named does not exist."""

    default_code = "not_found"


class Conflict(BadInput):
    """The thing changed meanwhile, or its id is taken."""

    default_code = "conflict"


class Refused(MimikitError):
    """A rule of security or permission says no."""

    default_code = "refused"


class StorageError(MimikitError):
    """The disk failed (full, read-only, I/O error); its contents are unchanged."""

    permanent = False
    default_code = "storage"


class UnsafeFile(StorageError):
    """A link, fifo, device or folder, or an unreadable or too large file."""

    permanent = True


class AlreadyRunning(MimikitError):
    """Another consumer holds this state folder."""


class BadSettings(MimikitError):
    """The settings cannot be used."""

    default_code = "bad_settings"


class NewerState(MimikitError):
    """The state folder was written by a newer mimikit; this one must not write to it."""

    default_code = "newer_state"


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
