"""The index in memory, and the statistics that it shares with the index on disk.

It has the files that changed since the last write to the index on disk, so that an edit is found
without waiting for a commit; and all files where tantivy cannot be imported.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from mimikit.errors import StorageError
from mimikit.memory.passages import (
    FAR,
    NEAR,
    Passage,
    Scope,
    ScopeTerms,
    Window,
    file_terms,
    neighbour_term,
)
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
    """Counts of one scope: passages and files, and the terms in them."""

    passages: int = 0
    terms: int = 0
    files: int = 0
    file_terms: int = 0

    @classmethod
    def of(cls, part: ScopeTerms) -> TermTotals:
        whole = len(part.whole)
        return cls(len(part.each), sum(map(len, part.each)), int(whole > 0), whole)

    @classmethod
    def sum(cls, each: Iterable[TermTotals]) -> TermTotals:
        return cls(*map(sum, zip(cls(), *each, strict=True)))


class BrokenIndex(StorageError):
    """The index on disk cannot be used; it is rebuilt."""


def idf(
    weights: Mapping[str, float], frequencies: Mapping[str, int], passages: int
) -> dict[str, float]:
    """Multiply weights by the inverse document frequency; never negative, as Okapi's can be."""
    return {
        term: weight
        * math.log(1 + (max(passages - frequencies[term], 0) + 0.5) / (frequencies[term] + 0.5))
        for term, weight in weights.items()
    }


_Place: TypeAlias = tuple[str, int]
"""Of a passage: path and number; of a file: path and 0."""


class _Postings:
    """Term → place → count, of the passages or the files of a scope."""

    def __init__(self, documents: Iterable[tuple[_Place, list[str]]]) -> None:
        self.lengths: dict[_Place, int] = {}
        self.counts = defaultdict[str, Counter[_Place]](Counter)
        for place, terms in documents:
            self.lengths[place] = len(terms)
            for term in terms:
                self.counts[term][place] += 1

    def frequency(self, term: str) -> int:
        return len(self.counts.get(term, ())) + len(self.counts.get(neighbour_term(term), ()))

    def scores(self, weights: Mapping[str, float], mean: float) -> dict[_Place, float]:
        matching = (place for term in weights for place in self.counts.get(term, ()))
        scores = dict.fromkeys(matching, 0.0)
        for term, weight in weights.items():
            for known in (term, neighbour_term(term)):
                for place, count in self.counts.get(known, Counter[_Place]()).items():
                    if place in scores:
                        norm = K1 * (1 - B + B * self.lengths[place] / max(mean, 1.0))
                        scores[place] += weight * count * (K1 + 1) / (count + norm)
        return scores


class MemoryView:
    """An immutable snapshot of the index in memory."""

    def __init__(self, files: Mapping[str, tuple[Stamp, list[ScopeTerms]]]) -> None:
        self.files = files
        self.stamps = {path: stamp for path, (stamp, _) in files.items()}
        self._parts: dict[Scope, dict[str, ScopeTerms]] = {scope: {} for scope in SCOPES}
        for path, (_, parts) in files.items():
            for part in parts:
                self._parts[part.scope][path] = part
        self.totals = {
            scope: TermTotals.sum(map(TermTotals.of, parts.values()))
            for scope, parts in self._parts.items()
        }
        self.passage_count = sum(totals.passages for totals in self.totals.values())
        self._postings: dict[str, _Postings] = {}

    def frequency(self, term: str, table: str) -> int:
        """The number of passages (or files, by `table`) that contain a term."""
        return self._table(table).frequency(term)

    def search(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int, window: Window
    ) -> list[Match]:
        """The passages that contain any of the terms, best first, by BM25.

        weights: of each term, its `idf` included. mean: terms of a passage. Terms found only in
        neighbouring passages raise a score, but never make a match.
        """
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
        """The scores of whole files, by path. `mean`: terms of a file."""
        scores = self._table(scope.file).scores(weights, mean)
        best = sorted(scores.items(), key=lambda item: -item[1])[:limit]
        return {path: score for (path, _), score in best}

    def _table(self, table: str) -> _Postings:
        known = self._postings.get(table)
        if known is None:
            [scope] = (scope for scope in SCOPES if table in scope)
            is_file = table == scope.file
            known = self._postings[table] = _Postings(
                ((path, number), terms)
                for path, part in self._parts[scope].items()
                for number, terms in enumerate([part.whole] if is_file else part.each)
            )
        return known


EMPTY_VIEW = MemoryView({})


def view_of(changed: Iterable[Changed], cut: Cutter | None = None) -> MemoryView:
    return MemoryView({path: (stamp, file_terms(path, it, cut)) for path, stamp, it in changed})
