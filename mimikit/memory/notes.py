"""What is shared with its user: the memory files, and the backlog, a list of checkboxes.

Every writer here reads, changes and replaces the whole file while it holds `memory.lock`, so that
two of ours never undo each other. An editor of the user's knows no lock: what it saved before we
read is kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mimikit.errors import BadInput, Conflict, NotFound, Refused
from mimikit.memory import markdown
from mimikit.memory.due import DatedBacklogItem, split, with_due
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import BacklogChange, RememberedNote
from mimikit.protocol.records import MAX_RECORD_BYTES
from mimikit.protocol.writer_lock import held

Action = Literal["add", "done", "undone", "remove", "due"]
"""`due`: the item is due when it says so, and at no time where it does not."""

MAX_ITEM = 2_000
"""Characters of an item of the backlog that a person may add."""

_BOM = "\ufeff"


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
    text = decoded.removeprefix(_BOM)
    return Note(path, text, content_hash(text), decoded.encode() == data)


def amend(files: Files, path: str, change: Callable[[str], str]) -> bool:
    """Replace a file by what `change` makes of its text ("" when there is none).

    Crash: the old text or the new. Gives False when nothing was to be changed.

    Raises:
        StorageError: the disk refuses, or another writer keeps the lock.
    """
    with held(files, paths.MEMORY_LOCK):
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
    with held(files, paths.MEMORY_LOCK):
        now = read(files, path)
        if (now.hash if now else None) != base:
            why = "it was changed meanwhile; look at it as it is now and edit that"
            if now is None:
                why = "expected the file that was edited, it is gone"
            elif base is None:
                why = "expected no such file yet, there is one"
            raise Conflict(
                f"{path}: {why}; nothing was saved", field="hash", code="changed_meanwhile"
            )
        if now is not None and not now.is_whole:
            raise Refused(
                f"{path}: expected UTF-8, got some other encoding, which would be lost; "
                "use an editor on the machine, or save it there as UTF-8"
            )
        files.write(path, data)
    return Note(path, text, content_hash(text))


def remember(files: Files, note: RememberedNote, at: datetime) -> str:
    """Write a note where it belongs; a note already there (by its id) is not written again.

    Gives the file's path.

    at: when it was said, in the workspace's zone, whose day names the file.
    Crash: the file is replaced whole; a replay finds the note's id in it.
    """
    path = paths.MEMORY if note.long_term else paths.memory_file(f"{at:%Y-%m-%d}.md")
    amend(files, path, lambda text: markdown.with_note(text, note.id, note.content))
    return path


# ---- the backlog

# An item is known by its text, so that a change made twice changes nothing more. Only the lines of
# the item that is named are touched; whatever else stands in the file stays as it is.

_ITEM = re.compile(r"([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[)([ xX])(\][ \t]+)(\S.*)")
_COMMENT = re.compile(r"<!--.*?-->")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OPENER = re.compile(r"[ \t]*(?:(`{3,})[^`]*$|(~{3,})|(<!--)(?!.*-->))")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?:\s|$)")


@dataclass(frozen=True, slots=True)
class BacklogEntry:
    """One checkbox: what it says, whether it is ticked, and its line in the file (from 1)."""

    text: str
    done: bool
    line: int
    due: str | None = None
    """When it is due, in the workspace's time: `2026-12-01 09:00`."""


@dataclass(frozen=True, slots=True)
class BacklogList:
    """The list as it was read, and the hash that guards a change of it."""

    items: list[BacklogEntry]
    hash: str


def backlog_items(text: str) -> list[BacklogEntry]:
    """The checkboxes of a text, in its order; those inside code or comments are none."""
    lines = text.removeprefix(_BOM).split("\n")
    return [
        BacklogEntry(item.name, parts[2] != " ", number + 1, item.due)
        for number, parts in _found(lines)
        for item in (due_item(parts[4]),)
    ]


def changed_backlog(text: str, action: Action, item: str) -> str:
    """The text after a change; the text itself when nothing was to be changed.

    Adding an item that is ticked opens it again, and one that is due has that said of it. An item
    that stands there twice is changed twice.
    """
    name, due = due_item(item)
    if not name:
        return text
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    lines = text.split("\n")
    mine = [(number, found) for number, found in _found(lines) if due_item(found[4]).name == name]
    if action == "add" and not mine:
        return mark + _with_item(lines, with_due(name, due))
    for number, found in reversed(mine):
        if action == "remove":
            del lines[number]
            continue
        said = found[4]
        if action == "due" or (action == "add" and due is not None):
            kept = said.rstrip("\r")
            said = with_due(kept, due) + said[len(kept) :]
            lines[number] = f"{found[1]}{found[2]}{found[3]}{said}"
        if action != "due" and (found[2] == " ") == (action == "done"):
            lines[number] = f"{found[1]}{'x' if action == 'done' else ' '}{found[3]}{said}"
    return mark + "\n".join(lines)


def due_item(item: str) -> DatedBacklogItem:
    """An item as it is compared and shown, and when it is due."""
    return split(plain_item(item))


def plain_item(item: str) -> str:
    """An item as it is compared and shown: one line, comments and what is no text left out."""
    try:
        sound = item.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        sound = item.encode("utf-8", "replace").decode()
    return " ".join(_CONTROL.sub(" ", _COMMENT.sub(" ", sound)).split())


def _found(lines: list[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines that are items: their numbers from 0 and their parts."""
    for number, is_hidden in enumerate(_hidden(lines)):
        found = None if is_hidden else _ITEM.fullmatch(lines[number])
        if found is not None and plain_item(found[4]):
            yield number, found


def _hidden(lines: list[str]) -> Iterator[bool]:
    """Of each line whether it belongs to a code block or a comment of several lines."""
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
    """The text with a new item after its last one and what belongs to that, or at its end."""
    hidden = list(_hidden(lines))
    known = [number for number, _ in _found(lines)]
    at, is_apart = known[-1] + 1 if known else 0, False
    for number, line in enumerate(lines[at:], at):
        is_heading = _HEADING.match(line) and not hidden[number]
        if not line.strip():
            is_apart = True
        elif known and (is_heading or (is_apart and line[0] not in " \t")):
            break
        else:
            at, is_apart = number + 1, False
    # A place that is not within code or a comment; the end where there is none.
    while 0 < at < len(hidden) and hidden[at - 1] and hidden[at]:
        at += 1
    before, rest = lines[:at], lines[at:] or [""]
    ending = "\r" if before and before[-1].endswith("\r") else ""
    gap = [ending] if not known and before and before[-1].strip() else []
    made = "\n".join([*before, *gap, f"- [ ] {name}{ending}", *rest])
    if any(item.text == split(name).name for item in backlog_items(made)):
        return made
    return "\n".join([f"- [ ] {name}", *lines])  # code or a comment that never ends is below


def load_backlog(files: Files) -> BacklogList:
    """The list as it stands; empty when there is no file."""
    note = read(files, paths.BACKLOG) or Note(paths.BACKLOG, "", content_hash(""))
    return BacklogList(backlog_items(note.text), note.hash)


def change_backlog(files: Files, action: Action, item: str, base: str | None = None) -> BacklogList:
    """Make a change somebody asked for; gives the list after it.

    base: the hash of the list it was asked of; None: whatever the list is now.
    Crash: the old list or the new.

    Raises:
        NotFound: no such item is there to be ticked, opened or removed.
        Conflict: the list is not the one it was asked of.
        StorageError: the disk refuses.
    """

    def edit(text: str) -> str:
        seen = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if base is not None and content_hash(seen.removeprefix(_BOM)) != base:
            raise Conflict(
                f"{paths.BACKLOG}: it was changed meanwhile; look at it as it is now, then again",
                field="hash",
                code="changed_meanwhile",
            )
        name = due_item(item).name
        if action != "add" and not any(known.text == name for known in backlog_items(text)):
            raise NotFound(
                f"item: expected one of the list, got {name[:80]!r}; nothing was changed",
                field="item",
                code="no_item",
            )
        return changed_backlog(text, action, item)

    amend(files, paths.BACKLOG, edit)
    return load_backlog(files)


def apply_backlog(files: Files, asked: BacklogChange) -> None:
    """Apply the change of a turn; applying it twice changes nothing more."""
    amend(files, paths.BACKLOG, lambda text: changed_backlog(text, asked.action, asked.item))
