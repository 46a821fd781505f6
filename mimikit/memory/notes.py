"""Memory files and the backlog are shared with their user: every writer here holds `memory.lock`.

A writer reads, changes and replaces the whole file while it holds the lock, so that two of ours
never undo each other. An editor of the user's knows no lock: what it saved before we read is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime

from mimikit.errors import BadInput, Conflict, Refused, StorageError
from mimikit.memory import markdown
from mimikit.protocol import paths
from mimikit.protocol.files import MAX_RECORD_BYTES, Files
from mimikit.protocol.models import RememberedNote

_PATIENCE_S = 5.0
_LOOK_S = 0.005


@dataclass(frozen=True, slots=True)
class Note:
    """A file's text as it was read, and the hash that guards an edit of it."""

    path: str
    text: str
    hash: str
    is_whole: bool = True
    """Whether the text is all that stands there; what is no UTF-8 is shown as `\ufffd`."""


def content_hash(text: str) -> str:
    """What guards an edit: the SHA-256 of the text it was based on, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(files: Files, path: str) -> Note | None:
    """A memory file; None when there is none."""
    data = files.read(path)
    if data is None:
        return None
    decoded = data.decode("utf-8", "replace")
    text = decoded.removeprefix("\ufeff")
    return Note(path, text, content_hash(text), decoded.encode() == data)


def amend(files: Files, path: str, change: Callable[[str], str]) -> bool:
    """Replace a file by what `change` makes of its text ("" when there is none).

    Crash: the old text or the new. Gives False when nothing was to be changed.

    Raises:
        StorageError: the disk refuses, or another writer keeps the lock.
    """
    with held(files):
        data = files.read(path)
        text = "" if data is None else data.decode("utf-8", "surrogateescape")
        changed = change(text)
        if changed == text:
            return False
        files.write(path, changed.encode("utf-8", "surrogateescape"))
        return True


def replace(files: Files, path: str, text: str, base: str | None) -> Note:
    """Replace a file by an edit that was based on the text of hash `base` (None: a new file).

    Raises:
        Conflict: it changed meanwhile, is there already, or is gone; nothing was written.
        BadInput: the text is too long.
        Refused: what stands there is no UTF-8, so that the edit was not based on all of it.
    """
    data = text.encode(errors="replace")
    text = data.decode()
    if len(data) > MAX_RECORD_BYTES:
        raise BadInput(
            f"text: expected at most {MAX_RECORD_BYTES} bytes, got {len(data)}", field="text"
        )
    with held(files):
        now = read(files, path)
        if (now.hash if now else None) != base:
            raise Conflict(f"{path}: {_why(now, base)}; nothing was saved", field="hash")
        if now is not None and not now.is_whole:
            raise Refused(
                f"{path}: expected UTF-8, got some other encoding, which would be lost; "
                "use an editor on the machine, or save it there as UTF-8"
            )
        files.write(path, data)
    return Note(path, text, content_hash(text))


def _why(now: Note | None, base: str | None) -> str:
    if now is None:
        return "expected the file that was edited, it is gone"
    if base is None:
        return "expected no such file yet, there is one"
    return "it was changed meanwhile; look at it as it is now and edit that"


@contextlib.contextmanager
def held(files: Files) -> Generator[None]:
    """Hold `memory.lock`; other writers wait. Not for long work: read what you need before.

    Raises:
        StorageError: another writer has kept it for seconds.
    """
    pause = threading.Event()
    for _ in range(int(_PATIENCE_S / _LOOK_S)):
        lock = files.lock(paths.MEMORY_LOCK)
        if lock is not None:
            break
        pause.wait(_LOOK_S)
    else:
        raise StorageError(f"{paths.MEMORY_LOCK}: another writer keeps it; try again")
    try:
        yield
    finally:
        lock.release()


def remember(files: Files, note: RememberedNote, at: datetime) -> None:
    """Write a note where it belongs; a note already there (by its id) is not written again.

    at: when it was said, in the workspace's zone, whose day names the file.
    Crash: the file is replaced whole; a replay finds the note's id in it.
    """
    path = paths.MEMORY if note.long_term else paths.memory_file(f"{at:%Y-%m-%d}.md")
    amend(files, path, lambda text: markdown.with_note(text, note.id, note.content))
