"""Memory files and documents, the search index, and search hits."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mimikit.memory import markdown
from mimikit.memory.notes import Note, content_hash
from mimikit.memory.workspace_docs import ROOT as DOCS
from mimikit.memory.workspace_docs import Documents, is_name
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Hit, Instant, to_utc
from mimikit.views.base import CUT, Render, Title, View

if TYPE_CHECKING:
    from mimikit.memory.search import IndexStatus, MemorySearch

MAX_EDITED_BYTES = 2**20
MAX_SHOWN_BYTES = 4 * 2**20
_MAX_RENDERED = 100_000

MemoryKind = Literal["longTerm", "raw", "day", "month", "docs"]
_KINDS: tuple[MemoryKind, ...] = ("longTerm", "raw", "day", "month", "docs")

_SUMMARIES = f"{paths.MEMORY_FOLDER}/summary"
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:-(.+))?\.md")
_MONTH = re.compile(r"(\d{4}-\d\d)\.md")
_NEW = re.compile(r"\d{4}-\d\d-\d\d(?:-[a-z0-9][a-z0-9-]{0,39})?\.md")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryFile(View):
    path: str
    kind: MemoryKind
    title: Title
    day: date | None
    size: int
    modified_at: Instant | None
    editable: bool
    hidden: bool
    """A day's summary that the month's summary contains."""


class MemoryText(MemoryFile):
    text: str
    hash: str
    """To be sent with an edit."""


class NoteView(MemoryText):
    html: str
    cut: bool
    """Whether the file is longer than `text`."""


class IndexView(View):
    files: int
    passages: int
    fresh: bool
    words: str
    fallback: str | None
    """Why the files are scanned without the index."""


class MemoryFiles(View):
    files: list[MemoryFile]


class MemoryList(MemoryFiles):
    index: IndexView


class SearchHit(View):
    """A search hit with its snippet."""

    source: str
    kind: str
    snippet: str
    marks: list[tuple[int, int]]
    """Begin and end of each match in the snippet. Units: characters; sorted, disjoint."""
    score: float
    day: date | None
    line: int
    """0 for a hit that is not in a text file."""
    message_id: str | None
    role: str | None
    task_id: str | None


class SearchBasics(View):
    query: str
    fallback: str | None
    """Why the files were scanned without the index."""


class SearchAnswer(SearchBasics):
    hits: list[SearchHit]
    took_ms: float


@dataclass(frozen=True, slots=True)
class MemoryPath:
    path: str
    kind: MemoryKind
    title: str
    day: date | None = None

    @property
    def may_be_created(self) -> bool:
        if self.kind == "longTerm":
            return True
        name = self.path.rpartition("/")[2]
        return self.kind == "raw" and self.day is not None and _NEW.fullmatch(name) is not None


def parse_path(path: str) -> MemoryPath | None:
    """Parse a path; None when it is no memory file and no document."""
    if path == paths.MEMORY:
        return MemoryPath(path, "longTerm", "memory")
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    if not name.endswith(".md"):
        return None
    if folder == DOCS or folder.startswith(f"{DOCS}/"):
        below = path.split("/")[1:]
        title = "/".join([*below[:-1], stem])
        return MemoryPath(path, "docs", title) if all(map(is_name, below)) else None
    if folder not in (paths.MEMORY_FOLDER, _SUMMARIES) or not is_name(name):
        return None
    month, dated = _MONTH.fullmatch(name), _DATED.fullmatch(name)
    day = markdown.parse_day(dated[1]) if dated else None
    if folder == _SUMMARIES:
        first = markdown.parse_day(f"{month[1]}-01") if month else None
        return MemoryPath(path, "month" if first else "day", stem, first or day)
    if dated and day:
        stem = dated[2].replace("-", " ") if dated[2] else dated[1]
    return MemoryPath(path, "raw", stem, day)


class MemoryReader:
    def __init__(self, files: ReadOnlyFiles, documents: Documents, render: Render) -> None:
        self._files, self._documents, self._render = files, documents, render

    def listed(self) -> list[MemoryFile]:
        """Every file: long-term notes, then by day, newest first, then documents."""
        found = [MemoryPath(paths.MEMORY, "longTerm", "memory")]
        for folder in (paths.MEMORY_FOLDER, _SUMMARIES):
            found += [it for name in self._names(folder) if (it := parse_path(f"{folder}/{name}"))]
        existing = [(it, stat) for it in found if (stat := self._stat(it.path))]
        months = {it.title for it, _ in existing if it.kind == "month"}
        entries = [
            _entry(it, *stat, hidden=it.kind == "day" and f"{it.day}"[:7] in months)
            for it, stat in existing
        ]
        entries.sort(
            key=lambda it: (it.kind == "longTerm", f"{it.day or ''}", it.path), reverse=True
        )
        for document in self._documents.listed():
            if it := parse_path(document.path):
                entries.append(_entry(it, document.size, document.mtime_ns))
        return entries

    def read(self, target: MemoryPath) -> NoteView | None:
        if target.kind == "docs":
            document = self._documents.read(target.path, MAX_SHOWN_BYTES)
            if document is None:
                return None
            data, size, mtime_ns = document[0], document[1].size, document[1].mtime_ns
        else:
            stat = self._stat(target.path)
            if stat is None:
                return None
            size, mtime_ns = stat
            data = self._files.part(target.path, 0, MAX_SHOWN_BYTES)
            if len(data) < MAX_SHOWN_BYTES:
                size = len(data)  # replaced since its stat
        is_cut = len(data) < size
        if is_cut:
            data = data[: data.rfind(b"\n") + 1] or data
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        return self._note(target, text, content_hash(text), size, mtime_ns, is_cut=is_cut)

    def view(self, target: MemoryPath, note: Note) -> NoteView:
        size, mtime_ns = self._stat(note.path) or (len(note.text.encode()), 0)
        return self._note(target, note.text, note.hash, size, mtime_ns, is_cut=False)

    def size(self, path: str) -> int | None:
        """The size of a plain file; None when there is none."""
        stat = self._stat(path)
        return stat[0] if stat else None

    def _names(self, folder: str) -> list[str]:
        stat = self._files.stat(folder)
        is_folder = stat is not None and stat.kind == "folder"
        return self._files.names(folder, suffix=".md") if is_folder else []

    def _stat(self, path: str) -> tuple[int, int] | None:
        stat = self._files.stat(path)
        return (stat.size, stat.mtime_ns) if stat is not None and stat.kind == "file" else None

    def _note(
        self, target: MemoryPath, text: str, hash_: str, size: int, mtime_ns: int, *, is_cut: bool
    ) -> NoteView:
        return NoteView.of(
            _entry(target, size, mtime_ns),
            text=text,
            html=html(text, self._render, has_marks=target.kind != "docs"),
            hash=hash_,
            cut=is_cut,
        )


def _entry(target: MemoryPath, size: int, mtime_ns: int, *, hidden: bool = False) -> MemoryFile:
    modified_at = None
    with contextlib.suppress(OverflowError, ValueError):  # an invalid time
        modified_at = to_utc(_EPOCH + timedelta(microseconds=mtime_ns // 1000))
    return MemoryFile(
        path=target.path,
        kind=target.kind,
        title=target.title,
        day=target.day,
        size=size,
        modified_at=modified_at,
        editable=target.kind != "docs" and size <= MAX_EDITED_BYTES,
        hidden=hidden,
    )


# ---- HTML


def html(text: str, render: Render, *, has_marks: bool) -> str:
    """A file as HTML, without id comments.

    Each message is rendered separately, so that an unclosed code block ends with its message.
    """
    parts: list[str] = []
    left = _MAX_RENDERED
    for piece in _pieces(text) if has_marks else [text]:
        parts.append(render(piece[:left]))
        left -= len(piece)
        if left < 0:
            parts.append(render(CUT.strip()))
            break
    return "".join(parts)


def _pieces(text: str) -> Iterator[str]:
    piece: list[str] = []
    was_note = False
    for line in text.split("\n"):
        shown, begins, is_note = unmarked(line)
        if piece and (begins or (is_note and not was_note)):
            yield "\n".join(piece)
            piece = []
        piece.append(shown)
        was_note = is_note or (was_note and not shown.strip())
    yield "\n".join(piece)


def unmarked(line: str) -> tuple[str, bool, bool]:
    """A line without its id comment, whether it begins a message, and whether it is a note."""
    if "<!-- " not in line:
        return line, False, False
    head = markdown.HEAD.fullmatch(line)
    if head is not None:
        return f"## {head['hour']}:{head['minute']} {head['role']}", True, False
    if markdown.PART.fullmatch(line):
        return "", True, False
    mark = markdown.note_mark(line)
    if mark is not None:
        return line[: mark.start()].rstrip(), False, True
    return markdown.unescape(line), False, False


# ---- search


def index_view(search: MemorySearch) -> IndexView:
    """The state of the search index; an error becomes its `fallback`."""
    try:
        status = search.status()
    except Exception as error:  # noqa: BLE001
        return IndexView(files=0, passages=0, fresh=False, words="not loaded", fallback=str(error))
    return IndexView.model_validate(status, from_attributes=True)


def hit_view(hit: Hit, query: str) -> SearchHit:
    return SearchHit.of(hit, marks=marks(query, hit.snippet))


def marks(query: str, snippet: str) -> list[tuple[int, int]]:
    """Begin and end of each match in a snippet. Units: characters; sorted, disjoint.

    Single Chinese characters count only where nothing longer matches.
    """
    from mimikit.memory import terms

    places = terms.occurrences(snippet, set(terms.terms(query)))
    long = [term for term in places if len(term.text) > 1 or not terms.has_cjk(term.text)]
    joined: list[tuple[int, int]] = []
    for start, end in sorted((term.start, term.end) for term in long or places):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


# ---- for the terminal


class IndexReport(IndexView):
    """Units: bytes."""

    bytes: int
    stale_files: int
    refreshed_at: Instant | None


class MemoryReport(View):
    index: IndexReport
    files: dict[MemoryKind, int]
    tokens: str | None
    """The tokenizer; null: token counts are estimates."""
    took_ms: int | None = Field(default=None, exclude_if=lambda value: value is None)


def memory_report(
    status: IndexStatus, files: Sequence[MemoryFile], took_ms: int | None = None
) -> MemoryReport:
    from mimikit.memory import tokens

    kinds = [file.kind for file in files]
    return MemoryReport(
        index=IndexReport.model_validate(status, from_attributes=True),
        files={kind: kinds.count(kind) for kind in _KINDS},
        tokens=tokens.origin(),
        took_ms=took_ms,
    )


class HitReport(SearchHit):
    text: str


class SearchReport(SearchBasics):
    hits: list[HitReport]


class NoteReport(View):
    id: str
    path: str
    text: str
