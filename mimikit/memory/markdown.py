"""Parses and writes the Markdown files of memory: days of messages, notes, summaries. Pure.

Everything written has an id, so that nothing is written twice. Users may edit the files: anything
else is preserved as text. Lines that look like one of our marks are escaped by a backslash, so that
no text can forge an entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Literal

from mimikit.memory.terms import stop_words
from mimikit.protocol.models import Message, parse_time, time_text

_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
_SOURCE = r"[A-Za-z0-9][A-Za-z0-9._/-]*"

HEAD = re.compile(
    rf"## (?P<hour>\d\d):(?P<minute>\d\d) (?P<role>user|agent|system)"
    rf" <!-- (?P<id>{_ID}) (?P<at>{_INSTANT})(?P<code> code)? -->[ \t\r]*"
)
"""The first line of a message. For `fullmatch`."""
_LIKE_HEAD = re.compile(r"\s{0,3}#{1,6}\s+\d{1,2}:\d\d\s+(?:user|agent|system)\b.*", re.DOTALL)
"""A line that a reader would mistake for one."""
NOTE_MARK = re.compile(rf"<!-- (?P<id>{_ID})(?: (?P<at>{_INSTANT}))? -->[ \t\r]*$")
"""The end of a note's last line. For `search`."""
PART = re.compile(rf"<!-- part (?P<id>{_ID}): from (?P<sources>{_SOURCE}(?:, {_SOURCE})*) -->\s*")
"""The first line of a part of a summary. For `fullmatch`."""
_BULLET = re.compile(r"^\s*(?:[-*+]\s+)?")
_TITLE = re.compile(r"\ufeff?# (?:Summary of )?\d{4}-\d\d(?:-\d\d)?\s*")

Kind = Literal["message", "note", "text"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a raw file: a message, a note, or text written by the user."""

    kind: Kind
    text: str
    line: int
    """1-based, including the head."""
    text_line: int
    """1-based first line of `text`."""
    id: str | None = None
    role: str | None = None
    at: datetime | None = None
    is_by_code: bool = False
    """Whether it was generated; then it is not searched."""


@dataclass(frozen=True, slots=True)
class SummaryPart:
    id: str
    sources: tuple[str, ...]
    """Ids of messages or names of files that it summarises."""
    text: str
    line: int


def escape(text: str) -> str:
    """Put a backslash before lines that look like one of our marks."""
    lines = _encodable(text).split("\n")
    return "\n".join("\\" + line if _is_mark(line.lstrip("\\")) else line for line in lines)


def unescape(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        line[1:] if line[:1] == "\\" and _is_mark(line.lstrip("\\")) else line for line in lines
    )


# ---- raw files


def ids(text: str) -> frozenset[str]:
    heads = (HEAD.fullmatch(line) for line in text.split("\n") if line.startswith("## "))
    return frozenset(head["id"] for head in heads if head)


def note_ids(text: str) -> frozenset[str]:
    marks = map(note_mark, text.split("\n"))
    return frozenset(mark["id"] for mark in marks if mark)


def extended(text: str, day: date, messages: Iterable[Message], zone: tzinfo) -> str:
    """Append messages to a raw file, unless they are in it. `text`: "" for a new file."""
    have = set(ids(text))
    added: list[str] = []
    for message in messages:
        if message.id not in have:
            have.add(message.id)
            added.append(block(message, zone))
    if not added:
        return text
    return _append(text or f"# {day.isoformat()}\n", "\n".join(added))


def block(message: Message, zone: tzinfo) -> str:
    at = message.created_at
    mark = f"{message.id} {time_text(at)}{' code' * message.is_by_code}"
    head = f"## {at.astimezone(zone):%H:%M} {message.role} <!-- {mark} -->"
    return f"{head}\n\n{escape(message.text)}\n"


def with_note(text: str, note_id: str, content: str, at: datetime | None = None) -> str:
    """Append a note to a file, unless it is in it (by its id)."""
    if note_id in note_ids(text):
        return text
    block = _note_block(
        _encodable(content).strip(), f"<!-- {note_id}{(at and f' {time_text(at)}') or ''} -->"
    )
    if not text.strip():
        return block
    bare = text.rstrip("\n")
    return f"{bare}\n{block}" if note_mark(bare.rpartition("\n")[2]) else _append(text, block)


def _note_block(content: str, mark: str) -> str:
    """A list item; further lines are indented, and the mark is on a separate line.

    A first line that looks like one of our marks is moved to the next line and escaped.
    """
    if "\n" not in content:
        return f"- {content} {mark}\n"
    first, *rest = escape(content).split("\n")
    begun = "-" if _is_mark(first.lstrip("\\")) else f"- {first}"
    rest = [first, *rest] if begun == "-" else rest
    return "\n".join([begun, *(f"  {line}" if line else "" for line in rest), f"  {mark}\n"])


def entries(text: str) -> list[Entry]:
    """All entries of a raw file (or memory.md), in order, without the title."""
    result: list[Entry] = []
    lines = text.split("\n")
    head: re.Match[str] | None = None
    start = 1 if _TITLE.fullmatch(lines[0]) else 0
    """Index of the first line of the current entry's text."""
    for number, line in enumerate(lines[start:], start):
        next_head = HEAD.fullmatch(line)
        mark = None if next_head else note_mark(line)
        if next_head or mark:
            note = _note_entry(lines, start, number, mark) if mark else None
            result += _text_entry(head, lines[start : note.line - 1 if note else number], start)
            result += [note] if note else []
            head, start = next_head, number + 1
    return result + _text_entry(head, lines[start:], start)


def _note_entry(lines: list[str], start: int, number: int, mark: re.Match[str]) -> Entry:
    """The note whose mark is on line `number`; it begins not before line `start`."""
    content = lines[number][: mark.start()].strip()
    first = number - 1
    if not content and lines[number].startswith("  "):  # of several lines
        while first > start and (lines[first][:2] == "  " or not lines[first].strip()):
            first -= 1
        if first >= start and lines[first][:2] in ("- ", "-"):
            body = [lines[first][2:]] if lines[first][2:] else []
            body += [line.removeprefix("  ") for line in lines[first + 1 : number]]
            text = unescape("\n".join(body))
            return Entry("note", text, first + 1, first + 1, mark["id"], at=parse_time(mark["at"]))
    content = "" if content == "-" else content.removeprefix("- ").strip()
    at = parse_time(mark["at"])
    return Entry("note", content, number + 1, number + 1, mark["id"], at=at)


def _text_entry(head: re.Match[str] | None, lines: list[str], start: int) -> list[Entry]:
    """The message of `head`, or free text, in `lines`, which follow line `start`."""
    if head is None:
        blank = len(list(itertools.takewhile(lambda line: not line.strip(), lines)))
        text = unescape("\n".join(lines[blank:]).rstrip())
        return [Entry("text", text, start + blank + 1, start + blank + 1)] if text else []
    first = 1 if lines and not lines[0].strip() else 0
    last = len(lines) - (len(lines) > first and not lines[-1].strip())
    text = unescape("\n".join(lines[first:last]))
    at = parse_time(head["at"])
    by_code = head["code"] is not None or head["role"] == "system"
    line = start + first + 1
    return [Entry("message", text, start, line, head["id"], head["role"], at, by_code)]


@dataclass(frozen=True, slots=True)
class NoteLines:
    """A note, or a line of the user's own text, which has no id; and its lines, 0-based."""

    text: str
    id: str | None
    first: int
    end: int


def notes_in(text: str) -> list[NoteLines]:
    lines = text.split("\n")
    marks = [(number, mark["id"]) for number, line in enumerate(lines) if (mark := note_mark(line))]
    found: list[NoteLines] = []
    for entry in entries(text):
        if entry.kind == "note":
            last = next(n for n, id_ in marks if id_ == entry.id and n >= entry.line - 1)
            found.append(NoteLines(entry.text, entry.id, entry.line - 1, last + 1))
        elif entry.kind == "text":
            for number, line in enumerate(entry.text.split("\n"), entry.text_line - 1):
                if (bare := _BULLET.sub("", line).strip()) and not bare.startswith(("#", "<!--")):
                    found.append(NoteLines(bare, None, number, number + 1))
    return found


def without_note(text: str, note_id: str | None, content: str) -> str:
    """Without the note of that id; without an id, without the lines of that text."""
    lines = text.split("\n")
    for note in reversed(notes_in(text)):
        if note.id == note_id and (note_id or note.text == content):
            del lines[note.first : note.end]
    return "\n".join(lines)


# ---- summaries


def part_ids(text: str) -> frozenset[str]:
    return frozenset(part.id for part in parts(text))


def covered(text: str) -> frozenset[str]:
    """Sources of a summary: ids of messages, names of files."""
    return frozenset(source for part in parts(text) for source in part.sources)


def parts(text: str) -> list[SummaryPart]:
    lines = text.split("\n")
    marks = [(n, found) for n, line in enumerate(lines) if (found := PART.fullmatch(line))]
    ends = [*(number for number, _ in marks[1:]), len(lines)]
    return [
        SummaryPart(
            found["id"],
            tuple(found["sources"].split(", ")),
            unescape("\n".join(lines[number + 1 : end])).strip(),
            number + 1,
        )
        for (number, found), end in zip(marks, ends, strict=False)
    ]


def extended_summary(
    text: str, name: str, part_id: str, sources: Sequence[str], summary: str
) -> str:
    """Append a part to a summary, unless it is in it (by its id).

    name: the day or the month, as `2026-01-20` or `2026-01`.

    Raises:
        ValueError: a source is neither an id nor the plain name of a file.
    """
    if part_id in part_ids(text):
        return text
    mark = f"<!-- part {part_id}: from {', '.join(sources)} -->"
    if not PART.fullmatch(mark):
        raise ValueError(f"expected ids and file names as sources, got {mark[:200]!r}")
    return _append(text or f"# Summary of {name}\n", f"{mark}\n{escape(summary.strip())}\n")


# ---- lines: only line feeds end them


def _append(text: str, more: str) -> str:
    return text + ("\n" if text.endswith("\n") else "\n\n") + more


def _is_mark(line: str) -> bool:
    if "<!-- " in line and (NOTE_MARK.search(line) or PART.fullmatch(line)):
        return True
    return _LIKE_HEAD.fullmatch(line) is not None


def note_mark(line: str) -> re.Match[str] | None:
    is_escaped = line.startswith(("\\", "  \\")) or HEAD.fullmatch(line) is not None
    return NOTE_MARK.search(line) if "<!-- " in line and not is_escaped else None


def _encodable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# ---- names of raw files

FILE_BYTES = 2**16
"""A larger raw file is continued in a new one: each append rewrites and reindexes the file."""
SLUG_CHARACTERS = 32
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)[A-Za-z0-9._-]*\.md")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_WORD, _MAX_WORDS = 16, 4
_DIGITS = 2
"""A word with more digits is probably a key."""
_STOP = stop_words("file names")
_SHORT_ID = re.compile(r"-([0-9a-hjkmnp-tv-z]{26})")


def parse_day(text: str | None) -> date | None:
    """A day such as 2026-01-28; None for anything else."""
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text) if text else None
    return None


def date_of(name: str) -> date | None:
    match = _DATED.fullmatch(name)
    return parse_day(match[1]) if match else None


def slug(messages: Sequence[Message], taken: Collection[str] = ()) -> str:
    """A short file name from the longest and most frequent words; deterministic.

    taken: slugs already in use for this day.
    """
    counts: Counter[str] = Counter()
    for message in messages:
        for word in _WORD.findall(message.text[:20_000]):
            counts.update(part.lower() for part in _CAMEL.split(word))
    known = [
        word
        for word in counts.keys() - _STOP
        if 3 <= len(word) <= _MAX_WORD and sum(map(str.isdigit, word)) <= _DIGITS
    ]
    chosen: list[str] = []
    room = SLUG_CHARACTERS + 1  # the last one has no hyphen
    for word in sorted(known, key=lambda word: (-counts[word] * len(word), word)):
        if len(word) + 1 <= room and len(chosen) < _MAX_WORDS:
            chosen.append(word)
            room -= len(word) + 1
    base = "-".join(chosen)
    if not base:
        first = messages[0].id
        ulid = _SHORT_ID.search(first)
        base = f"mem-{ulid[1][-8:] if ulid else hashlib.sha256(first.encode()).hexdigest()[:8]}"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base[: SLUG_CHARACTERS - len(str(number)) - 1].rstrip('-')}-{number}"
    return name


def raw_name(
    day: date, messages: Sequence[Message], sizes: Mapping[str, int], *, flush: bool = False
) -> str:
    """The name of the raw file to which messages are appended.

    sizes: of the files of that day, in bytes; -1: not to be extended.
    """
    if flush:
        return f"{day.isoformat()}.md"
    prefix = f"{day.isoformat()}-"
    own = [name for name in sizes if name.startswith(prefix)]
    if open_ := [name for name in own if 0 <= sizes[name] < FILE_BYTES]:
        return max(open_)
    taken = {name.removeprefix(prefix).removesuffix(".md") for name in own}
    return f"{prefix}{slug(messages, taken)}.md"
