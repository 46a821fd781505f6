"""Splits files into passages, the unit of search and quotation. Pure.

A message, a note or a paragraph is one passage, unchanged; a long one is split at the ends of lines
and sentences.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, tzinfo
from typing import Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter, ValidationError

from mimikit.memory import markdown
from mimikit.memory.terms import Cutter, terms
from mimikit.protocol import paths
from mimikit.protocol.models import Message
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult

Kind: TypeAlias = Literal["memory", "summary", "docs", "transcript", "result"]

PASSAGE_CHARACTERS = 1200
_WRAPPED = 100
"""A line of more characters is a separate paragraph, not part of a wrapped one."""
_TOGETHER = 300
"""Adjacent short lines form one passage up to this many characters."""
_MAX_PASSAGES = 20_000

OWN, ABOVE = 4, 2
AROUND = {-2: 1, -1: 2, 1: 1}
"""Term weights of a passage, its context, and its neighbours by offset.

Measured on dialogues (docs/memory.md): the previous message often gives the topic.
"""
_AROUND_TERMS = 60
_FILE_TERMS = 5000
_SPEAKER = re.compile(r"[^\W\d_][\w.'-]*(?: [\w.'-]+){0,2}[:：]")

_PART = re.compile(r"(.+\.jsonl)@(\d+)\+(\d+)")
_DAY = re.compile(r"(?:^|/)(\d{4}-\d\d-\d\d)(?=[-.])")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_SIGN = re.compile(r"[-*+]\s+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？；])")


@dataclass(frozen=True, slots=True)
class Passage:
    text: str
    line: int
    """1-based first line in the file; 0 in a JSON file."""
    context: str = ""
    """The headings above; searched but not shown."""
    at: datetime | None = None
    day: date | None = None
    role: str | None = None
    message_id: str | None = None
    task_id: str | None = None
    is_note: bool = False
    """Notes have no neighbours."""
    is_cut_before: bool = False
    is_cut_after: bool = False


class Scope(NamedTuple):
    """A section of the index with separate term statistics: the names of its two tables.

    So a few short notes are not scored against the statistics of many results.
    """

    passage: str
    file: str


NOTES = Scope("notes", "")
"""`memory.md`, and remembered notes in any file."""
MEMORY = Scope("memory", "memory-files")
"""Days of messages, free text in their files, and summaries."""
DOCS = Scope("docs", "docs-files")
TRANSCRIPT = Scope("transcript", "transcript-files")
RESULTS = Scope("results", "results-files")
NEAR, FAR = (NOTES, MEMORY, DOCS), (TRANSCRIPT, RESULTS)
"""Scopes of `recall`; `find` covers both."""
_BY_KIND: dict[Kind, Scope] = {
    "memory": MEMORY, "summary": MEMORY, "docs": DOCS, "transcript": TRANSCRIPT, "result": RESULTS,
}  # fmt: skip


def is_near(path: str) -> bool:
    return scope_of(path) in NEAR


def scope_of(path: str, passage: Passage | None = None) -> Scope:
    if path.startswith(paths.MEMORY) or (passage is not None and passage.is_note):
        return NOTES
    return _BY_KIND[kind_of(path)]


class Window(NamedTuple):
    """A time range, inclusive to exclusive. Passages without a time are outside."""

    after: datetime | None = None
    before: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.after is None and self.before is None

    def contains(self, at: datetime | None) -> bool:
        if at is None or self.is_open:
            return self.is_open
        is_early = self.after is not None and at < self.after
        return not is_early and (self.before is None or at < self.before)


class FilePart(NamedTuple):
    """A file, or a part of a long transcript."""

    path: str
    offset: int = 0
    lines: int = 0

    @property
    def name(self) -> str:
        return f"{self.path}@{self.offset}+{self.lines}" if self.offset else self.path


def part_of(path: str) -> FilePart:
    match = _PART.fullmatch(path)
    return FilePart(match[1], int(match[2]), int(match[3])) if match else FilePart(path)


@functools.lru_cache(4096)
def kind_of(path: str) -> Kind:
    if path.startswith("docs/"):
        return "docs"
    if path.startswith(f"{paths.TRANSCRIPT}/"):
        return "transcript"
    if path.startswith(f"{paths.MEMORY_FOLDER}/summary/"):
        return "summary"
    in_memory = path.startswith((paths.MEMORY, f"{paths.MEMORY_FOLDER}/"))
    return "memory" if in_memory else "result"


def day_of(path: str) -> date | None:
    match = _DAY.search(path)
    return markdown.parse_day(match[1]) if match else None


def of_file(path: str, data: bytes, zone: tzinfo) -> list[Passage]:
    """The passages of a file, in order; invalid content has none."""
    kind = kind_of(path)
    if kind == "transcript":
        pieces = _transcript(data, part_of(path).lines + 1, zone)
    elif kind == "result":
        pieces = _result(path, data, zone)
    elif b"\0" in data:  # binary
        pieces = iter(())
    else:
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        pieces = _summary(text) if kind == "summary" else _raw(text, zone)
        day, begins = day_of(path), None
        with contextlib.suppress(OverflowError):  # in the year 1
            begins = datetime.combine(day, time(), zone).astimezone(UTC) if day else None
        pieces = (p if p.day else replace(p, day=day, at=begins) for p in pieces)
    return list(itertools.islice(pieces, _MAX_PASSAGES))


def _raw(text: str, zone: tzinfo) -> Iterator[Passage]:
    for entry in markdown.entries(text):
        if entry.is_by_code:
            continue
        if entry.kind == "message":
            day = entry.at.astimezone(zone).date() if entry.at else None
            message = Passage(entry.text, entry.line, "", entry.at, day, entry.role, entry.id)
            yield from _pieces(message, entry.text_line)
        elif entry.kind == "note":
            day = entry.at.astimezone(zone).date() if entry.at else None
            yield Passage(entry.text, entry.line, "", entry.at, day, is_note=True)
        else:
            yield from _paragraphs(entry.text, entry.line)


def _summary(text: str) -> Iterator[Passage]:
    parts = [(part.text, part.line + 1) for part in markdown.parts(text)]
    for content, line in parts or [(text, 1)]:
        yield from _paragraphs(content, line)


def _transcript(data: bytes, first_line: int, zone: tzinfo) -> Iterator[Passage]:
    for number, line in enumerate(data.split(b"\n"), first_line):
        try:
            message = Message.model_validate_json(line)
        except ValidationError:
            continue
        if message.is_by_code:
            continue
        at = message.created_at
        day = at.astimezone(zone).date()
        yield from _pieces(Passage(message.text, number, "", at, day, message.role, message.id))


def _result(path: str, data: bytes, zone: tzinfo) -> Iterator[Passage]:
    model = PlanResult if path.startswith("planner/") else TaskResult
    try:
        result = model.model_validate_json(data)
    except ValidationError:
        return
    if isinstance(result, TaskResult) and result.internal:
        return
    text = (result.summary or "") if isinstance(result, PlanResult) else result.text
    if text.count("\ufffd") > len(text) // 20:  # binary output
        return
    at = result.completed_at
    yield from _pieces(Passage(text, 0, "", at, at.astimezone(zone).date(), task_id=result.id))


def _pieces(whole: Passage, line: int | None = None) -> Iterator[Passage]:
    """Split a text into passages of at most `PASSAGE_CHARACTERS` characters.

    line: where the text begins; None: all pieces get the line of the whole.
    """
    if len(whole.text) <= PASSAGE_CHARACTERS:
        if whole.text.strip():
            yield whole
        return
    pieces: list[tuple[str, int]] = []
    """Each with the number of line breaks before it."""
    piece, begun, passed = "", 0, 0
    for part in _fragments(whole.text):
        if piece and len(piece) + len(part) > PASSAGE_CHARACTERS:
            pieces.append((piece, begun))
            piece = ""
        if not piece.strip():
            begun, piece = passed, ""
        piece += part
        passed += part.count("\n")
    if piece.strip():
        pieces.append((piece, begun))
    for at, (text, offset) in enumerate(pieces):
        number = whole.line if line is None else line + offset
        cuts = {"is_cut_before": at > 0, "is_cut_after": at + 1 < len(pieces)}
        yield replace(whole, text=text.strip(), line=number, **cuts)


def _fragments(text: str) -> Iterator[str]:
    """Lines, or the sentences of long lines, or slices of long sentences."""
    for line in text.splitlines(keepends=True):
        if len(line) <= PASSAGE_CHARACTERS:
            yield line
            continue
        at = 0
        for end in [*(match.end() for match in _ENDS.finditer(line)), len(line)]:
            yield from (
                line[i : min(i + PASSAGE_CHARACTERS, end)]
                for i in range(at, end, PASSAGE_CHARACTERS)
            )
            at = end


def _paragraphs(text: str, line: int) -> Iterator[Passage]:
    """The paragraphs of a document with their headings. `line`: where the text begins."""
    headings: list[tuple[int, str]] = []
    # HTML comments make no heading and no passage, and end no paragraph.
    closed, mark, rest = text.rpartition("-->")
    bare = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), closed + mark) + rest
    seen = [*bare.split("\n"), ""]
    block: list[str] = []
    begun = line
    in_code = False
    bare_heading: list[Passage] = []
    """The last heading, until text follows; a heading without text is a passage itself."""
    for number, written in enumerate([*text.split("\n"), ""], line):
        is_seen = bool(seen[number - line].strip())
        in_code ^= is_seen and _FENCE.match(written) is not None
        heading = _HEADING.fullmatch(written) if is_seen and not in_code else None
        if heading or not is_seen:
            yield from _block(block, begun, _words(headings))
            block = []
            if heading:
                level, words = len(heading[1]), heading[2].rstrip().rstrip("#").rstrip()
                if headings and headings[-1][0] >= level:
                    yield from bare_heading
                headings = [above for above in headings if above[0] < level]
                bare_heading = list(_pieces(Passage(words, number, _words(headings)), number))
                headings.append((level, words[:_TOGETHER]))
            continue
        bare_heading = []
        if not block:
            begun = number
        block.append(written)
    yield from bare_heading


def _words(headings: list[tuple[int, str]]) -> str:
    return " ".join(words for _, words in headings)


def _block(lines: list[str], begun: int, above: str) -> Iterator[Passage]:
    """The passages of a paragraph: one if short, else one per long line or list item."""
    is_short = len("\n".join(lines).strip()) <= _TOGETHER
    groups: list[list[str]] = []
    for line in lines:
        last = groups[-1] if groups else []
        alone = len(line) > _WRAPPED or _ITEM.match(line)
        full = sum(map(len, last)) + len(line) > _TOGETHER
        if last and (is_short or not (alone or full or len(last[-1]) > _WRAPPED)):
            last.append(line)
        else:
            groups.append([line])
    for group in groups:
        text = "\n".join(group).strip()
        if len(group) == 1 and (sign := _SIGN.match(text)):  # a single list item
            text = text[sign.end() :]
        yield from _pieces(Passage(text, begun, above), begun)
        begun += len(group)


_ADAPTER = TypeAdapter(Passage)


def to_bytes(passage: Passage) -> bytes:
    return _ADAPTER.dump_json(passage, exclude_defaults=True)


def from_bytes(data: bytes) -> Passage:
    return _ADAPTER.validate_json(data)


# ---- the terms of passages and files


class ScopeTerms(NamedTuple):
    scope: Scope
    passages: list[Passage]
    each: list[list[str]]
    whole: list[str]
    """Terms of the whole file; empty for notes, which are unrelated to each other."""


def file_terms(path: str, passages: list[Passage], cut: Cutter | None) -> list[ScopeTerms]:
    by_scope: dict[Scope, list[Passage]] = {}
    for passage in passages:
        by_scope.setdefault(scope_of(path, passage), []).append(passage)
    return [_scope_terms(scope, mine, cut) for scope, mine in by_scope.items()]


def _scope_terms(scope: Scope, passages: list[Passage], cut: Cutter | None) -> ScopeTerms:
    own = [terms(passage.text, cut) for passage in passages]
    shared: list[list[str]] = []
    """The terms that neighbours get, without the speaker of a line (`Ann Lee: …`)."""
    for passage, mine in zip(passages, own, strict=True):
        label = _SPEAKER.match(passage.text)
        named = len(terms(label[0])) if label else 0
        shared.append(mine[named : named + _AROUND_TERMS])
    each: list[list[str]] = []
    for number, passage in enumerate(passages):
        mine = own[number] * OWN + terms(passage.context, cut) * ABOVE + _date_terms(passage.day)
        contained = frozenset(mine)
        for step, times in AROUND.items():
            at = number + step
            if 0 <= at < len(passages) and not passage.is_note and not passages[at].is_note:
                mine += [t if t in contained else neighbour_term(t) for t in shared[at]] * times
        each.append(mine)
    days = {passage.day for passage in passages}
    dates = _date_terms(days.pop()) if len(days) == 1 else []
    every = itertools.islice(itertools.chain.from_iterable(own), _FILE_TERMS)
    return ScopeTerms(scope, passages, each, [*every, *dates] if scope.file else [])


def neighbour_term(term: str) -> str:
    """The indexed form of a neighbour's term: it raises scores but makes no match."""
    return f"~{term}"


def _date_terms(day: date | None) -> list[str]:
    """The terms of a day in words: `28 January 2026`."""
    return terms(f"{day.day} {day:%B} {day.year}") if day else []
