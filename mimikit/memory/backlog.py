"""The backlog: the checkboxes of `backlog.md`, which its user edits too.

An item is known by its text, so that a change made twice changes nothing more. Only the lines of
the item that is named are touched; whatever else stands in the file stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mimikit.errors import Conflict, NotFound
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import BacklogChange

Action = Literal["add", "done", "undone", "remove"]

MAX_ITEM = 2_000
"""Characters of an item that a person may add."""

_BOM = "\ufeff"
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


@dataclass(frozen=True, slots=True)
class BacklogList:
    """The list as it was read, and the hash that guards a change of it."""

    items: list[BacklogEntry]
    hash: str


# ---- as text


def items(text: str) -> list[BacklogEntry]:
    """The checkboxes of a text, in its order; those inside code or comments are none."""
    found = _found(text.removeprefix(_BOM))
    return [BacklogEntry(plain(parts[4]), parts[2] != " ", number + 1) for number, parts in found]


def changed(text: str, action: Action, item: str) -> str:
    """The text after a change; the text itself when nothing was to be changed.

    Adding an item that is ticked opens it again. An item that stands there twice is changed twice.
    """
    name = plain(item)
    if not name:
        return text
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    mine = [(number, found) for number, found in _found(text) if plain(found[4]) == name]
    if action == "add" and not mine:
        return mark + _with_item(text, name)
    lines = text.split("\n")
    for number, found in reversed(mine):
        if action == "remove":
            del lines[number]
        elif (found[2] == " ") == (action == "done"):
            lines[number] = f"{found[1]}{'x' if action == 'done' else ' '}{found[3]}{found[4]}"
    return mark + "\n".join(lines)


def plain(item: str) -> str:
    """An item as it is compared and shown: one line, comments and what is no text left out."""
    try:
        sound = item.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        sound = item.encode("utf-8", "replace").decode()
    return " ".join(_CONTROL.sub(" ", _COMMENT.sub(" ", sound)).split())


def _found(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines that are items: their numbers from 0 and their parts."""
    lines = text.split("\n")
    for number, is_hidden in enumerate(_hidden(lines)):
        found = None if is_hidden else _ITEM.fullmatch(lines[number])
        if found is not None and plain(found[4]):
            yield number, found


def _hidden(lines: list[str]) -> Iterator[bool]:
    """Of each line whether it belongs to a code block or a comment of several lines."""
    end: re.Pattern[str] | None = None
    for line in lines:
        if end is not None:
            yield True
            if end.search(line):
                end = None
            continue
        opened = _OPENER.match(line)
        yield opened is not None
        if opened is not None:
            fence = opened[1] or opened[2]
            end = re.compile(rf"^[ \t]*{fence[0]}{{{len(fence)},}}\s*$" if fence else "-->")


def _with_item(text: str, name: str) -> str:
    """The text with a new item after its last one, or at its end."""
    lines = text.split("\n")
    hidden = list(_hidden(lines))
    known = [number for number, _ in _found(text)]
    if known:
        at = _after_block(lines, hidden, known[-1])
    else:  # after the last line that says something
        at = _outside(hidden, len(text.rstrip().split("\n")) if text.strip() else 0)
    made = _inserted(lines, at, name, apart=not known)
    if any(item.text == name for item in items(made)):
        return made
    return _inserted(lines, 0, name, apart=False)  # code or a comment that never ends is below


def _inserted(lines: list[str], at: int, name: str, *, apart: bool) -> str:
    before, rest = lines[:at], lines[at:]
    ending = "\r" if before and before[-1].endswith("\r") else ""
    new = [f"- [ ] {name}{ending}"]
    if apart and before and before[-1].strip():
        new.insert(0, ending)
    return "\n".join([*before, *new, *(rest or [""])])


def _after_block(lines: list[str], hidden: list[bool], number: int) -> int:
    end, is_apart = number + 1, False
    for at in range(end, len(lines)):
        line = lines[at]
        if not line.strip():
            is_apart = True
            continue
        if is_apart and not line.startswith((" ", "\t")):
            break
        if _HEADING.match(line) and not hidden[at]:
            break
        end, is_apart = at + 1, False
    return _outside(hidden, end)


def _outside(hidden: list[bool], at: int) -> int:
    """A place that is not within code or a comment; the end where there is none."""
    while 0 < at < len(hidden) and hidden[at - 1] and hidden[at]:
        at += 1
    return at


# ---- in the file


def load(files: Files) -> BacklogList:
    """The list as it stands; empty when there is no file."""
    note = notes.read(files, paths.BACKLOG)
    text = note.text if note else ""
    return BacklogList(items(text), notes.content_hash(text))


def change(files: Files, action: Action, item: str, base: str | None = None) -> BacklogList:
    """Make a change somebody asked for; gives the list after it.

    base: the hash of the list it was asked of; None: whatever the list is now.
    Crash: the old list or the new.

    Raises:
        NotFound: no such item is there to be ticked, opened or removed.
        Conflict: the list is not the one it was asked of.
        StorageError: the disk refuses.
    """

    def edit(text: str) -> str:
        read = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if base is not None and notes.content_hash(read.removeprefix(_BOM)) != base:
            raise Conflict(
                f"{paths.BACKLOG}: it was changed meanwhile; look at it as it is now, then again",
                field="hash",
            )
        name = plain(item)
        if action != "add" and not any(known.text == name for known in items(text)):
            raise NotFound(
                f"item: expected one of the list, got {name[:80]!r}; nothing was changed",
                field="item",
            )
        return changed(text, action, item)

    notes.amend(files, paths.BACKLOG, edit)
    return load(files)


def apply(files: Files, asked: BacklogChange) -> None:
    """Apply the change of a turn; applying it twice changes nothing more."""
    notes.amend(files, paths.BACKLOG, lambda text: changed(text, asked.action, asked.item))
