"""The files that have changed since they were indexed: searched in memory, by the same scores.

What was written a moment ago is found without a flush of the index: that is for later, and for
another thread.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mimikit.memory.documents import Stamp
from mimikit.memory.passages import Passage, Scope, Window, scope_of
from mimikit.memory.ranking import Match
from mimikit.memory.terms import Cutter, counted

K1, B = 1.2, 0.75


class Totals(NamedTuple):
    """Of one part of what is searched: how many passages and files, and how many terms in them."""

    passages: int = 0
    terms: int = 0
    files: int = 0
    file_terms: int = 0

    def plus(self, other: Totals) -> Totals:
        """Both together."""
        return Totals(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often each term stands in a passage or a file."""

    often: Counter[str]
    length: int

    def score(self, idf: Mapping[str, float], average: float) -> float:
        """BM25."""
        score = 0.0
        norm = K1 * (1 - B + B * self.length / max(average, 1.0))
        for term, weight in idf.items():
            times = self.often.get(term)
            if times:
                score += weight * times * (K1 + 1) / (times + norm)
        return score


@dataclass(frozen=True, slots=True)
class _File:
    stamp: Stamp
    scope: Scope
    passages: list[Passage]
    each: list[_Counts]
    whole: _Counts

    @property
    def totals(self) -> Totals:
        terms = sum(counts.length for counts in self.each)
        return Totals(len(self.passages), terms, 1, self.whole.length)


class Held:
    """What is held at one moment. Never changes."""

    def __init__(self, files: Mapping[str, _File]) -> None:
        """These files."""
        self.files = files
        self.stamps: Mapping[str, Stamp] = {path: file.stamp for path, file in files.items()}
        self._often: dict[Scope, Counter[str]] = {}

    @property
    def passage_count(self) -> int:
        """How many passages are held."""
        return sum(len(file.passages) for file in self.files.values())

    def totals(self, scope: Scope) -> Totals:
        """How much is held of one part."""
        found = Totals()
        for file in self._of(scope):
            found = found.plus(file.totals)
        return found

    def frequency(self, term: str, scope: Scope) -> int:
        """In how many passages a term stands."""
        often = self._often.get(scope)
        if often is None:  # once for all terms: a long question has thousands
            often = Counter(
                term for file in self._of(scope) for one in file.each for term in one.often
            )
            self._often[scope] = often
        return often[term]

    def search(
        self, idf: Mapping[str, float], scope: Scope, average: float, window: Window
    ) -> list[Match]:
        """The passages that hold any of the terms. `average`: terms of a passage."""
        return [
            Match(path, passage, score)
            for path, file in self.files.items()
            if file.scope == scope
            for passage, counts in zip(file.passages, file.each, strict=True)
            if window.holds(passage.at) and (score := counts.score(idf, average))
        ]

    def search_files(
        self, idf: Mapping[str, float], scope: Scope, average: float
    ) -> dict[str, float]:
        """The scores of whole files. `average`: terms of a file."""
        return {
            path: file.whole.score(idf, average)
            for path, file in self.files.items()
            if file.scope == scope
        }

    def _of(self, scope: Scope) -> Iterator[_File]:
        return (file for file in self.files.values() if file.scope == scope)


class Fresh:
    """Holds some files; safe from any thread."""

    def __init__(self) -> None:
        """Nothing is held."""
        self._guard = threading.Lock()
        self.now = Held({})
        """What is held; another object after each change."""

    def put(
        self, changed: Iterable[tuple[str, Stamp, list[Passage]]], cut: Cutter | None = None
    ) -> None:
        """Hold these files as they are now."""
        made = {path: _file(path, stamp, found, cut) for path, stamp, found in changed}
        with self._guard:
            self.now = Held({**self.now.files, **made})

    def keep(self, wanted: Callable[[str, Stamp], bool]) -> None:
        """Hold no others than those wanted."""
        with self._guard:
            files = self.now.files
            kept = {path: file for path, file in files.items() if wanted(path, file.stamp)}
            if len(kept) != len(files):
                self.now = Held(kept)


def idf(weights: Mapping[str, float], often: Mapping[str, int], passages: int) -> dict[str, float]:
    """How much each term says: never negative, also among one or two passages."""
    return {
        term: weight * math.log(1 + (max(passages - often[term], 0) + 0.5) / (often[term] + 0.5))
        for term, weight in weights.items()
    }


def _file(path: str, stamp: Stamp, found: list[Passage], cut: Cutter | None) -> _File:
    made = counted(found, cut)
    each = [_Counts(Counter(terms), len(terms)) for terms in made.each]
    whole = _Counts(Counter(made.whole), len(made.whole))
    return _File(stamp, scope_of(path), found, each, whole)
