"""Edits the memory files and the backlog (a list of checkboxes).

Each edit reads, changes and replaces the whole file under `memory.lock`. Users' editors take no
lock: an edit saved before our read is preserved.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mimikit.errors import BadInput, Conflict, NotFound, Refused, UnsafeFile
from mimikit.memory import markdown
from mimikit.memory.terms import folded, has_cjk, terms
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import BacklogChange, ForgottenNote, RememberedNote
from mimikit.protocol.records import MAX_RECORD_BYTES

Action = Literal["add", "done", "undone", "remove"]

MAX_ITEM = 2_000
"""Characters of a backlog item."""

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Note:
    """A file's text with its hash, for optimistic locking."""

    path: str
    text: str
    hash: str
    is_whole: bool = True
    """Whether the file is valid UTF-8; invalid bytes are shown as `\ufffd`."""


def content_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read(files: Files, path: str) -> Note | None:
    data = files.read(path)
    if data is None:
        return None
    decoded = data.decode("utf-8", "replace")
    text = decoded.removeprefix(_BOM)
    return Note(path, text, content_hash(text), decoded.encode() == data)


def amend(files: Files, path: str, change: Callable[[str], str]) -> bool:
    """Apply `change` to the text of a file ("" if missing); False: nothing changed.

    Crash: the old text or the new.

    Raises:
        StorageError: the disk refuses, or another writer holds the lock.
    """
    with files.locked(paths.MEMORY_LOCK):
        data = files.read(path)
        text = "" if data is None else data.decode("utf-8", "surrogateescape")
        changed = change(text)
        if changed == text:
            return False
        files.write(path, changed.encode("utf-8", "surrogateescape"))
        return True


def replace(files: Files, path: str, text: str, base: str | None) -> Note:
    """Save an edit of the text with the hash `base` (None: a new file).

    Raises:
        Conflict: the file was changed, created or deleted meanwhile.
        BadInput: the text is too long.
        Refused: the file is not UTF-8, so that the edit would lose bytes.
    """
    data = text.encode(errors="replace")
    text = data.decode()
    if len(data) > MAX_RECORD_BYTES:
        raise BadInput(
            f"text: expected at most {MAX_RECORD_BYTES} bytes, got {len(data)}", field="text"
        )
    with files.locked(paths.MEMORY_LOCK):
        now = read(files, path)
        if (now.hash if now else None) != base:
            why = "it was changed meanwhile; reload it and edit again"
            if now is None:
                why = "it was deleted meanwhile"
            elif base is None:
                why = "it already exists"
            message = f"{path}: {why}; nothing was saved"
            raise Conflict(message, field="hash", code="changed_meanwhile")
        if now is not None and not now.is_whole:
            raise Refused(
                f"{path}: expected UTF-8, got another encoding, which saving would destroy; "
                "convert it to UTF-8, or use an editor on the machine",
                code="not_utf8",
            )
        files.write(path, data)
    return Note(path, text, content_hash(text))


def remember(files: Files, note: RememberedNote, at: datetime) -> str:
    """Append a note to its file, once (by its id); returns the path.

    at: in the workspace's zone; its day names the file.
    Crash: a replay finds the note's id in the file.
    """
    path = paths.MEMORY if note.long_term else paths.memory_file(f"{at:%Y-%m-%d}.md")
    amend(files, path, lambda text: markdown.with_note(text, note.id, note.content, at))
    return path


def forget(files: Files, note: ForgottenNote) -> None:
    """Remove a note from its file. Crash: a replay does not find it any more."""
    amend(files, note.path, lambda text: markdown.without_note(text, note.note_id, note.content))


def find_notes(files: Files, what: str) -> list[ForgottenNote]:
    """The notes meant by an id, by their text, by a part of it or, as a last guess, by words."""
    known: list[ForgottenNote] = []
    names = files.names(paths.MEMORY_FOLDER, suffix=".md")
    for path in (paths.MEMORY, *map(paths.memory_file, names)):
        with contextlib.suppress(UnsafeFile):
            file = read(files, path)
            found = markdown.notes_in(file.text) if file else []
            known += [ForgottenNote(path=path, note_id=n.id, content=n.text) for n in found]
    plain = folded(what).strip(" .。!！\"'")
    if not plain:
        return []
    guesses = (
        [note for note in known if note.note_id == what.strip()],
        [note for note in known if folded(note.content).strip(" .。!！") == plain],
        [note for note in known if plain in folded(note.content)],
        [note for note in known if mentions(note.content, what)],
    )
    return next((found for found in guesses if found), list[ForgottenNote]())


def mentions(text: str, what: str) -> bool:
    """Whether a text has all words of another; of Chinese all characters."""
    said = set(terms(text))
    wanted = {term for term in terms(what) if len(term) == 1 or not has_cjk(term)}
    return bool(wanted) and wanted <= said


# ---- the backlog

# An item is identified by its text, so that changes are idempotent. Other lines are preserved.

_ITEM = re.compile(r"([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[)([ xX])(\][ \t]+)(\S.*)")
_COMMENT = re.compile(r"<!--.*?-->")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OPENER = re.compile(r"[ \t]*(?:(`{3,})[^`]*$|(~{3,})|(<!--)(?!.*-->))")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?:\s|$)")


@dataclass(frozen=True, slots=True)
class BacklogEntry:
    text: str
    done: bool
    line: int


@dataclass(frozen=True, slots=True)
class BacklogList:
    """The items with the file's hash, for optimistic locking."""

    items: list[BacklogEntry]
    hash: str


def backlog_items(text: str) -> list[BacklogEntry]:
    """The checkboxes of a text, in order, except in code or comments."""
    lines = text.removeprefix(_BOM).split("\n")
    return [
        BacklogEntry(plain_item(parts[4]), parts[2] != " ", number + 1)
        for number, parts in _item_lines(lines)
    ]


def changed_backlog(text: str, action: Action, item: str) -> str:
    """The text after a change. Adding a done item reopens it; duplicates change together."""
    name = plain_item(item)
    if not name:
        return text
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    lines = text.split("\n")
    mine = [(number, parts) for number, parts in _item_lines(lines) if plain_item(parts[4]) == name]
    if action == "add" and not mine:
        return mark + _with_item(lines, name)
    for number, parts in reversed(mine):
        if action == "remove":
            del lines[number]
        elif (parts[2] == " ") == (action == "done"):
            lines[number] = f"{parts[1]}{'x' if action == 'done' else ' '}{parts[3]}{parts[4]}"
    return mark + "\n".join(lines)


def plain_item(item: str) -> str:
    """Normalise an item to one line without comments and control characters."""
    try:
        sound = item.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        sound = item.encode("utf-8", "replace").decode()
    return " ".join(_CONTROL.sub(" ", _COMMENT.sub(" ", sound)).split())


def _item_lines(lines: list[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines with items: 0-based numbers, and matches of `_ITEM`."""
    for number, is_hidden in enumerate(_hidden(lines)):
        parts = None if is_hidden else _ITEM.fullmatch(lines[number])
        if parts is not None and plain_item(parts[4]):
            yield number, parts


def _hidden(lines: list[str]) -> Iterator[bool]:
    """For each line, whether it is in a code block or a multi-line comment."""
    end: re.Pattern[str] | None = None
    for line in lines:
        if end is not None:
            yield True
            end = None if end.search(line) else end
            continue
        opened = _OPENER.match(line)
        yield opened is not None
        if opened is not None:
            fence = opened[1] or opened[2]
            end = re.compile(rf"^[ \t]*{fence[0]}{{{len(fence)},}}\s*$" if fence else "-->")


def _with_item(lines: list[str], name: str) -> str:
    """Insert a new item after the last one, or at the end."""
    hidden = list(_hidden(lines))
    known = [number for number, _ in _item_lines(lines)]
    at, is_apart = known[-1] + 1 if known else 0, False
    for number, line in enumerate(lines[at:], at):
        is_heading = _HEADING.match(line) and not hidden[number]
        if not line.strip():
            is_apart = True
        elif known and (is_heading or (is_apart and line[0] not in " \t")):
            break
        else:
            at, is_apart = number + 1, False
    # Do not split a code block or comment.
    while 0 < at < len(hidden) and hidden[at - 1] and hidden[at]:
        at += 1
    before, rest = lines[:at], lines[at:] or [""]
    ending = "\r" if before and before[-1].endswith("\r") else ""
    gap = [ending] if not known and before and before[-1].strip() else []
    changed = "\n".join([*before, *gap, f"- [ ] {name}{ending}", *rest])
    if any(item.text == name for item in backlog_items(changed)):
        return changed
    return "\n".join([f"- [ ] {name}", *lines])  # an unclosed code block or comment follows


def load_backlog(files: Files) -> BacklogList:
    note = read(files, paths.BACKLOG) or Note(paths.BACKLOG, "", content_hash(""))
    return BacklogList(backlog_items(note.text), note.hash)


def change_backlog(files: Files, action: Action, item: str, base: str | None = None) -> BacklogList:
    """Change the list; returns the new one.

    base: the hash the change is based on; None: any.
    Crash: the old list or the new.

    Raises:
        NotFound: there is no such item.
        Conflict: the list has changed since `base`.
        StorageError: the disk refuses.
    """

    def edit(text: str) -> str:
        seen = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if base is not None and content_hash(seen.removeprefix(_BOM)) != base:
            message = f"{paths.BACKLOG}: it was changed meanwhile; reload it and try again"
            raise Conflict(message, field="hash", code="changed_meanwhile")
        name = plain_item(item)
        if action != "add" and not any(known.text == name for known in backlog_items(text)):
            raise NotFound(
                f"item: expected one of the list, got {name[:80]!r}; nothing was changed",
                field="item",
            )
        return changed_backlog(text, action, item)

    amend(files, paths.BACKLOG, edit)
    return load_backlog(files)


def apply_backlog(files: Files, asked: BacklogChange) -> None:
    amend(files, paths.BACKLOG, lambda text: changed_backlog(text, asked.action, asked.item))
