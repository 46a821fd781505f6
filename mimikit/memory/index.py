"""What an index of passages offers, and the index in memory.

`MemoryTable` holds the files that changed since they were written to the index on disk: an edit is
found without waiting for a commit. `MemoryIndex` holds everything where tantivy cannot be imported;
it stores nothing on disk.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from mimikit.errors import StorageError
from mimikit.memory.passages import FAR, NEAR, Passage, Scope, Window, file_terms, neighbour_term
from mimikit.memory.ranking import Match, neighbours
from mimikit.memory.terms import Cutter

K1, B = 1.2, 0.75
SCOPES = (*NEAR, *FAR)


class Stamp(NamedTuple):
    """A file's size and modification time. Units: bytes, nanoseconds."""

    size: int
    mtime_ns: int


Changed: TypeAlias = tuple[str, Stamp, list[Passage]]
"""A file that was read: its path, its stamp before reading, its passages."""


class TermTotals(NamedTuple):
    """Of one scope: the number of passages and files, and of terms in them."""

    passages: int = 0
    terms: int = 0
    files: int = 0
    file_terms: int = 0

    @classmethod
    def of(cls, each: list[list[str]], whole: list[str]) -> TermTotals:
        """Of one file: the terms of its passages, and of the whole file."""
        return cls(len(each), sum(map(len, each)), int(bool(whole)), len(whole))

    @classmethod
    def sum(cls, each: Iterable[TermTotals]) -> TermTotals:
        return cls(*map(sum, zip(cls(), *each, strict=True)))


class BrokenIndex(StorageError):
    """The index cannot be used; it is rebuilt."""


class PassageView(Protocol):
    """An immutable snapshot of an index."""

    @property
    def stamps(self) -> Mapping[str, Stamp]: ...

    @property
    def passage_count(self) -> int: ...

    def totals(self, scope: Scope) -> TermTotals: ...

    def frequency(self, term: str, table: str) -> int:
        """The number of passages (or files, by `table`) that contain a term."""
        ...

    def search(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int, window: Window
    ) -> list[Match]:
        """The passages that contain any of the terms, best first, by BM25.

        weights: of each term, its `idf` included. mean: terms of a passage. Terms that only stand
        in neighbours raise a score, and never make a match.
        """
        ...

    def search_files(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int
    ) -> dict[str, float]:
        """The scores of whole files, by path. `mean`: terms of a file."""
        ...


class PassageIndex(Protocol):
    """Safe from several threads, but for one update at a time."""

    @property
    def view(self) -> PassageView:
        """The current snapshot; another object after each change."""
        ...

    @property
    def bytes_on_disk(self) -> int: ...

    def refresh(self) -> None:
        """Load what another process has indexed since.

        Raises:
            StorageError: the disk refuses.
        """
        ...

    def update(
        self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None = None
    ) -> bool:
        """Index changed files, remove those that are gone; False: another process is updating.

        Raises:
            StorageError: the disk refuses; BrokenIndex: the index cannot be used.
        """
        ...

    def clear(self) -> None: ...


def idf(
    weights: Mapping[str, float], frequencies: Mapping[str, int], passages: int
) -> dict[str, float]:
    """The weights times the inverse document frequency; never negative, as Okapi's can be."""
    return {
        term: weight
        * math.log(1 + (max(passages - frequencies[term], 0) + 0.5) / (frequencies[term] + 0.5))
        for term, weight in weights.items()
    }


# ---- in memory


@dataclass(frozen=True, slots=True)
class _ScopePart:
    """What a file has in one scope."""

    passages: list[Passage]
    each: list[Counter[str]]
    whole: Counter[str]
    totals: TermTotals


@dataclass(frozen=True, slots=True)
class _File:
    stamp: Stamp
    parts: Mapping[Scope, _ScopePart]


_Place: TypeAlias = tuple[str, int]
"""Of a passage: path and number; of a file: path and 0."""


@dataclass(slots=True)
class _Postings:
    """Term → place → count, of the passages or the files of a scope."""

    lengths: dict[_Place, int] = field(default_factory=dict[_Place, int])
    counts: dict[str, dict[_Place, int]] = field(
        default_factory=lambda: defaultdict[str, dict[_Place, int]](dict)
    )

    def add(self, place: _Place, terms: Counter[str]) -> None:
        self.lengths[place] = terms.total()
        for term, count in terms.items():
            self.counts[term][place] = count

    def frequency(self, term: str) -> int:
        return len(self.counts.get(term, ())) + len(self.counts.get(neighbour_term(term), ()))

    def scores(self, weights: Mapping[str, float], mean: float) -> dict[_Place, float]:
        """BM25."""
        matching = (place for term in weights for place in self.counts.get(term, ()))
        scores = dict.fromkeys(matching, 0.0)
        for term, weight in weights.items():
            for known in (term, neighbour_term(term)):
                for place, count in self.counts.get(known, {}).items():
                    if place in scores:
                        norm = K1 * (1 - B + B * self.lengths[place] / max(mean, 1.0))
                        scores[place] += weight * count * (K1 + 1) / (count + norm)
        return scores


class MemoryView:
    """A `PassageView` of files in memory."""

    def __init__(self, files: Mapping[str, _File]) -> None:
        self.files = files
        self.stamps: Mapping[str, Stamp] = {path: file.stamp for path, file in files.items()}
        self._parts: dict[Scope, dict[str, _ScopePart]] = {scope: {} for scope in SCOPES}
        for path, file in files.items():
            for scope, part in file.parts.items():
                self._parts[scope][path] = part
        self._totals = {
            scope: TermTotals.sum(part.totals for part in parts.values())
            for scope, parts in self._parts.items()
        }
        self.passage_count = sum(totals.passages for totals in self._totals.values())
        self._postings: dict[str, _Postings] = {}

    def totals(self, scope: Scope) -> TermTotals:
        return self._totals[scope]

    def frequency(self, term: str, table: str) -> int:
        return self._table(table).frequency(term)

    def search(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int, window: Window
    ) -> list[Match]:
        matches: list[Match] = []
        for (path, number), score in self._table(scope.passage).scores(weights, mean).items():
            passages = self._parts[scope][path].passages
            if window.contains(passages[number].at):
                beside = neighbours(passages, number)
                matches.append(Match(path, passages[number], score, number, beside))
        return sorted(matches, key=lambda match: (-match.score, match.path, match.number))[:limit]

    def search_files(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int
    ) -> dict[str, float]:
        scores = self._table(scope.file).scores(weights, mean)
        best = sorted(scores.items(), key=lambda item: -item[1])[:limit]
        return {path: score for (path, _), score in best}

    def _table(self, table: str) -> _Postings:
        """Built when it is first asked for."""
        known = self._postings.get(table)
        if known is None:
            known = _Postings()
            for scope, parts in self._parts.items():
                for path, part in parts.items() if table in scope else ():
                    terms = part.each if table == scope.passage else [part.whole]
                    for number, counts in enumerate(terms):
                        known.add((path, number), counts)
            self._postings[table] = known
        return known


EMPTY_VIEW = MemoryView({})


class MemoryTable:
    """Files in memory; safe from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.view = EMPTY_VIEW
        """The current snapshot; another object after each change."""

    def put(self, changed: Iterable[Changed], cut: Cutter | None = None) -> None:
        added: dict[str, _File] = {}
        for path, stamp, in_file in changed:
            parts = {
                scope: _ScopePart(
                    passages, [*map(Counter, each)], Counter(whole), TermTotals.of(each, whole)
                )
                for scope, passages, each, whole in file_terms(path, in_file, cut)
            }
            added[path] = _File(stamp, parts)
        with self._guard:
            self.view = MemoryView({**self.view.files, **added})

    def keep(self, wanted: Callable[[str, Stamp], bool]) -> None:
        """Drop all other files."""
        with self._guard:
            files = {p: file for p, file in self.view.files.items() if wanted(p, file.stamp)}
            if len(files) != len(self.view.files):
                self.view = MemoryView(files)


class MemoryIndex(MemoryTable):
    """A `PassageIndex` of one process, where tantivy cannot be imported."""

    bytes_on_disk = 0

    def refresh(self) -> None:
        """Nothing to load: no other process changes it."""

    def update(
        self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None = None
    ) -> bool:
        removed = frozenset(gone)
        self.put(changed, cut)
        self.keep(lambda path, _: path not in removed)
        return True

    def clear(self) -> None:
        self.keep(lambda _path, _stamp: False)
