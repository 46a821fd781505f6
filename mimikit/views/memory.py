"""Memory files and documents as the page shows them: listed, and one with its text as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import markdown
from mimikit.memory.notes import Note, content_hash
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import time_text
from mimikit.views.base import CUT, Render
from mimikit.views.documents import ROOT as DOCS
from mimikit.views.documents import Documents, is_name

MAX_EDITED_BYTES = 2**20
"""A longer text is shown, but not edited here."""
MAX_SHOWN_BYTES = 4 * 2**20
_MAX_RENDERED = 100_000
"""Characters of a file that are made HTML."""

Kind = Literal["longTerm", "raw", "day", "month", "docs"]

_SUMMARIES = f"{paths.MEMORY_FOLDER}/summary"
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:-(.+))?\.md")
_MONTH = re.compile(r"(\d{4}-\d\d)\.md")
_NEW = re.compile(r"\d{4}-\d\d-\d\d(?:-[a-z0-9][a-z0-9-]{0,39})?\.md")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Named:
    """What a path says of a file."""

    path: str
    kind: Kind
    title: str
    day: date | None = None

    @property
    def may_be_made(self) -> bool:
        """Whether a new file may have this name."""
        if self.kind == "longTerm":
            return True
        name = self.path.rpartition("/")[2]
        return self.kind == "raw" and self.day is not None and _NEW.fullmatch(name) is not None


def named(path: str) -> Named | None:
    """What a path names; None where it is none of memory's and none of the documents'."""
    if path == paths.MEMORY:
        return Named(path, "longTerm", "memory")
    folder, _, name = path.rpartition("/")
    if not name.endswith(".md"):
        return None
    stem = name.removesuffix(".md")
    if folder == DOCS or folder.startswith(f"{DOCS}/"):
        below = path.split("/")[1:]
        title = "/".join([*below[:-1], stem])
        return Named(path, "docs", title) if all(map(is_name, below)) else None
    if not is_name(name):
        return None
    if folder == paths.MEMORY_FOLDER:
        return _raw(path, name, stem)
    if folder != _SUMMARIES:
        return None
    month = _MONTH.fullmatch(name)
    if month is not None and (first := _day(f"{month[1]}-01")) is not None:
        return Named(path, "month", stem, first)
    dated = _DATED.fullmatch(name)
    return Named(path, "day", stem, _day(dated[1]) if dated else None)


def _raw(path: str, name: str, stem: str) -> Named:
    dated = _DATED.fullmatch(name)
    day = _day(dated[1]) if dated else None
    if dated is None or day is None:
        return Named(path, "raw", stem)
    return Named(path, "raw", dated[2].replace("-", " ") if dated[2] else dated[1], day)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


class Library:
    """The files of memory and the documents of the workspace."""

    def __init__(self, files: ReadOnlyFiles, documents: Documents, render: Render) -> None:
        """Nothing is read before it is asked for."""
        self._files, self._documents, self._render = files, documents, render

    def listed(self) -> list[dict[str, Any]]:
        """Every file without its text: long-term, then by day, the newest first, then documents."""
        found = [self._entry(it, *seen) for it in self._mine() if (seen := self._seen(it.path))]
        months = {entry["title"] for entry in found if entry["kind"] == "month"}
        for entry in found:
            entry["hidden"] = entry["kind"] == "day" and (entry["day"] or "")[:7] in months
        order = {"longTerm": 2, "raw": 1, "day": 1, "month": 1}
        found.sort(key=lambda it: (order[it["kind"]], it["day"] or "", it["path"]), reverse=True)
        for document in self._documents.listed():
            known = named(document.path)
            if known is not None:
                found.append(self._entry(known, document.size, document.mtime_ns))
        return found

    def shown(self, known: Named) -> dict[str, Any] | None:
        """One file with its text; None when there is none."""
        read = self._read(known)
        if read is None:
            return None
        data, size, mtime_ns = read
        is_cut = len(data) < size
        if is_cut:
            data = data[: data.rfind(b"\n") + 1] or data
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        return self._whole(known, text, content_hash(text), size, mtime_ns) | {"cut": is_cut}

    def saved(self, known: Named, note: Note) -> dict[str, Any]:
        """A file as it was just saved."""
        size, mtime_ns = self._seen(note.path) or (len(note.text.encode()), 0)
        return self._whole(known, note.text, note.hash, size, mtime_ns) | {"cut": False}

    def size(self, path: str) -> int | None:
        """The size of a memory file; None when there is none.

        Raises:
            UnsafeFile: what stands there is no plain file.
        """
        stat = self._files.stat(path)
        if stat is not None and stat.kind != "file":
            raise UnsafeFile(f"expected a plain file, got something else, at {path}")
        return stat.size if stat else None

    def _mine(self) -> Iterator[Named]:
        yield Named(paths.MEMORY, "longTerm", "memory")
        for folder in (paths.MEMORY_FOLDER, _SUMMARIES):
            for name in self._names(folder):
                known = named(f"{folder}/{name}")
                if known is not None:
                    yield known

    def _names(self, folder: str) -> list[str]:
        try:
            return self._files.names(folder, suffix=".md")
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return []
            raise

    def _seen(self, path: str) -> tuple[int, int] | None:
        stat = self._files.stat(path)
        return (stat.size, stat.mtime_ns) if stat is not None and stat.kind == "file" else None

    def _read(self, known: Named) -> tuple[bytes, int, int] | None:
        """What can be shown of a file, its size and its time."""
        if known.kind == "docs":
            found = self._documents.read(known.path, MAX_SHOWN_BYTES)
            return None if found is None else (found[0], found[1].size, found[1].mtime_ns)
        seen = self._seen(known.path)
        if seen is None:
            return None
        data = self._files.part(known.path, 0, MAX_SHOWN_BYTES)
        # It may have been replaced since it was looked at: what was read says how long it is.
        return data, seen[0] if len(data) == MAX_SHOWN_BYTES else len(data), seen[1]

    def _entry(self, known: Named, size: int, mtime_ns: int) -> dict[str, Any]:
        return {
            "path": known.path,
            "kind": known.kind,
            "title": known.title,
            "day": known.day.isoformat() if known.day else None,
            "size": size,
            "modifiedAt": _time(mtime_ns),
            "editable": known.kind != "docs" and size <= MAX_EDITED_BYTES,
            "hidden": False,
        }

    def _whole(
        self, known: Named, text: str, hash_: str, size: int, mtime_ns: int
    ) -> dict[str, Any]:
        return {
            **self._entry(known, size, mtime_ns),
            "text": text,
            "html": html(text, self._render, has_marks=known.kind != "docs"),
            "hash": hash_,
        }


def _time(mtime_ns: int) -> str | None:
    """A file's time; None for one no calendar has."""
    try:
        return time_text(_EPOCH + timedelta(microseconds=mtime_ns // 1000))
    except (OverflowError, ValueError):
        return None


# ---- text as HTML


def html(text: str, render: Render, *, has_marks: bool) -> str:
    """A file as HTML, our marks of ids left out.

    Message by message: a code block that one of them left open ends with it.
    """
    made: list[str] = []
    left = _MAX_RENDERED
    for piece in _pieces(text) if has_marks else [text]:
        made.append(render(piece[:left]))
        left -= len(piece)
        if left < 0:
            made.append(render(CUT.strip()))
            break
    return "".join(made)


def _pieces(text: str) -> Iterator[str]:
    """The parts of a file of memory that stand for themselves."""
    piece: list[str] = []
    was_note = False
    for line in text.split("\n"):
        shown, begins, is_note = _unmarked(line)
        if piece and (begins or (is_note and not was_note)):
            yield "\n".join(piece)
            piece = []
        piece.append(shown)
        was_note = is_note or (was_note and not shown.strip())
    yield "\n".join(piece)


def _unmarked(line: str) -> tuple[str, bool, bool]:
    """A line without its mark, whether it begins a message or part, and whether it is a note."""
    if "<!-- " not in line:
        return line, False, False
    head = markdown.HEAD.fullmatch(line)
    if head is not None:
        return f"## {head['hour']}:{head['minute']} {head['role']}", True, False
    if markdown.PART.fullmatch(line):
        return "", True, False
    mark = None if line.startswith("\\") else markdown.NOTE_MARK.search(line)
    if mark is not None:
        return line[: mark.start()].rstrip(), False, True
    return markdown.unescape(line), False, False
