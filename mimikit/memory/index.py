"""What an index of passages is, and those that are kept in memory.

`MemTable`: the files that have changed since they were indexed. What was written a moment ago is
found without a flush of the index: that is for later, and for another thread.

`RankIndex`: everything, by rank-bm25; it serves where tantivy can not be imported, keeps nothing on
disk and is made anew from the files by each process.
"""

from __future__ import annotations

import copy
import heapq
import math
import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from mimikit.errors import StorageError
from mimikit.memory.passages import FAR, NEAR, Passage, Scope, Window, beside, file_terms
from mimikit.memory.ranking import Match, among
from mimikit.memory.terms import Cutter

T = TypeVar("T")
K1, B = 1.2, 0.75


class Stamp(NamedTuple):
    """A file's state. Units: bytes, nanoseconds."""

    size: int
    mtime_ns: int


class StampTable(Mapping[str, Stamp]):
    """The states of very many files, which never change: 70 bytes for each, where a dict takes 350.

    All paths in one piece, their numbers in another; places in it are found by the path's hash.
    """

    def __init__(self, rows: Iterable[tuple[str, Sequence[int]]] = (), width: int = 2) -> None:
        """`rows`: a file's stamp and, when `width` is more, what else is known; no path twice."""
        names, ends, numbers = bytearray(), array("I"), array("q")
        for path, row in rows:
            if len(row) != width:
                raise ValueError(f"expected {width} numbers, got {len(row)}")
            names += path.encode(errors="surrogatepass")
            ends.append(len(names))
            numbers.extend(row)
        self._names, self._ends, self._numbers, self._width = bytes(names), ends, numbers, width
        self._slots = array("I", bytes(4 * 2 ** (2 * len(ends)).bit_length()))
        """By hash: one more than a file's number; 0: nothing."""
        for number, path in enumerate(self._paths(), 1):
            self._slots[self._slot(path)] = number
        self._changed: dict[str, Sequence[int] | None] = {}
        """What is otherwise than in all of this; None: no more."""
        self._length = len(ends)

    def but(self, changes: Mapping[str, Sequence[int] | None]) -> StampTable:
        """The same with other rows for some files; None: without it."""
        made = copy.copy(self)
        made._changed = {**self._changed, **changes}
        made._length += sum((row is not None) - (path in self) for path, row in changes.items())
        is_much = len(made._changed) > len(self._ends) // 16
        return StampTable(made.rows(), self._width) if is_much else made

    def differs_in(self, other: Mapping[str, Stamp]) -> Iterable[str]:
        """Among these are all that are otherwise than in another."""
        if isinstance(other, StampTable) and other._names is self._names:
            return self._changed.keys() | other._changed.keys()
        return self.keys() | other.keys()

    def rows(self) -> Iterator[tuple[str, Sequence[int]]]:
        for number, path in enumerate(self._paths()):
            if path not in self._changed:
                yield path, self._row(number)
        yield from ((path, row) for path, row in self._changed.items() if row is not None)

    def row(self, path: str) -> Sequence[int] | None:
        if path in self._changed:
            return self._changed[path]
        number = self._slots[self._slot(path)]
        return self._row(number - 1) if number else None

    def __getitem__(self, path: str) -> Stamp:
        if (row := self.row(path)) is None:
            raise KeyError(path)
        return Stamp(row[0], row[1])

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self.rows())

    def __len__(self) -> int:
        return self._length

    def _paths(self) -> Iterator[str]:
        begin = 0
        for end in self._ends:
            yield self._names[begin:end].decode(errors="surrogatepass")
            begin = end

    def _row(self, number: int) -> Sequence[int]:
        return self._numbers[number * self._width : (number + 1) * self._width]

    def _slot(self, path: str) -> int:
        """Where a path's number stands, or would."""
        name, ends, slots = path.encode(errors="surrogatepass"), self._ends, self._slots
        slot = hash(path) % len(slots)
        while number := slots[slot]:
            if name == self._names[ends[number - 2] if number > 1 else 0 : ends[number - 1]]:
                break
            slot = (slot + 1) % len(slots)
        return slot


Changed: TypeAlias = tuple[str, Stamp, list[Passage]]
"""A file that was read: its path, its state before that, its passages."""


class TermTotals(NamedTuple):
    """Of one scope: how many passages and files, and how many terms in them."""

    passages: int = 0
    terms: int = 0
    files: int = 0
    file_terms: int = 0

    @classmethod
    def of(cls, each: list[list[str]], whole: list[str]) -> TermTotals:
        """Of one file: the terms of its passages, and its own."""
        return cls(len(each), sum(map(len, each)), int(bool(whole)), len(whole))

    @classmethod
    def sum(cls, each: Iterable[TermTotals]) -> TermTotals:
        return cls(*map(sum, zip(cls(), *each, strict=True)))


class BrokenIndex(StorageError):
    """The index can not be used; it is made anew."""


class PassageView(Protocol):
    """What is indexed at one moment: what can be found, and of which files. Never changes."""

    @property
    def stamps(self) -> Mapping[str, Stamp]: ...

    @property
    def passage_count(self) -> int: ...

    def totals(self, scope: Scope) -> TermTotals: ...

    def frequency(self, term: str, table: str) -> int:
        """In how many passages, or files, of a scope a term stands. `table`: one of the scope's."""
        ...

    def search(
        self, says: Mapping[str, float], scope: Scope, limit: int, window: Window
    ) -> list[Match]:
        """The passages that have some of the terms themselves, best first, by BM25.

        says: how much each term says (`idf`). k1 is 1.2, b 0.75. The neighbours' terms add to it.
        """
        ...

    def search_files(self, says: Mapping[str, float], scope: Scope, limit: int) -> dict[str, float]:
        """The score of whole files, by path: what a passage stands among says what it is about."""
        ...


class PassageIndex(Protocol):
    """One process's hold of an index; safe from several threads, but updates are one at a time."""

    @property
    def view(self) -> PassageView:
        """What can be searched now; another object after each change."""
        ...

    @property
    def bytes_on_disk(self) -> int: ...

    def refresh(self) -> None:
        """Take up what another process has indexed since.

        Raises:
            StorageError: the disk refuses.
        """
        ...

    def update(
        self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None = None
    ) -> bool:
        """Index files anew and forget those that are gone; False when another process does so now.

        Raises:
            StorageError: the disk refuses; BrokenIndex: the index can not be used.
        """
        ...

    def clear(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _TermCounts:
    """How often each term stands in a passage or a file."""

    often: Counter[str]
    length: int

    def score(self, says: Mapping[str, float], average: float) -> float:
        """Nothing when it has none of the terms itself."""
        norm = K1 * (1 - B + B * self.length / max(average, 1.0))
        score = 0.0
        is_own = False
        for term, weight in says.items():
            times = self.often.get(term)
            is_own |= times is not None
            if times := times or self.often.get(beside(term)):
                score += weight * times * (K1 + 1) / (times + norm)
        return score if is_own else 0.0


@dataclass(frozen=True, slots=True)
class _FilePart:
    """What a file has in one scope."""

    passages: list[Passage]
    each: list[_TermCounts]
    whole: _TermCounts
    totals: TermTotals


@dataclass(frozen=True, slots=True)
class _File:
    stamp: Stamp
    parts: Mapping[Scope, _FilePart]


class MemTableView:
    """What is held at one moment. Never changes."""

    def __init__(self, files: Mapping[str, _File]) -> None:
        self.files = files
        self.parts: dict[Scope, dict[str, _FilePart]] = {scope: {} for scope in (*NEAR, *FAR)}
        for path, file in files.items():
            for scope, part in file.parts.items():
                self.parts[scope][path] = part
        self.stamps: Mapping[str, Stamp] = {path: file.stamp for path, file in files.items()}
        self._totals: dict[Scope, TermTotals] = {
            scope: TermTotals.sum(part.totals for part in parts.values())
            for scope, parts in self.parts.items()
        }
        self.passage_count = sum(totals.passages for totals in self._totals.values())
        self._often: dict[str, Counter[str]] = {}

    def totals(self, scope: Scope) -> TermTotals:
        return self._totals[scope]

    def frequency(self, term: str, table: str) -> int:
        if table not in self._often:  # once for all terms: a long question has thousands
            often = Counter[str]()
            for scope, parts in self.parts.items():
                for part in parts.values() if table in scope else ():
                    for one in part.each if table == scope.passage else [part.whole]:
                        often.update(one.often.keys())
            self._often[table] = often  # only now: another thread may be counting with it
        return self._often[table][term] + self._often[table][beside(term)]

    def search(
        self, says: Mapping[str, float], scope: Scope, average: float, window: Window
    ) -> list[Match]:
        """The passages that hold any of the terms. `average`: terms of a passage."""
        return [
            Match(path, passage, score, number, among(part.passages, number))
            for path, part in self.parts[scope].items()
            for number, (passage, counts) in enumerate(zip(part.passages, part.each, strict=True))
            if window.holds(passage.at) and (score := counts.score(says, average))
        ]

    def search_files(
        self, says: Mapping[str, float], scope: Scope, average: float
    ) -> dict[str, float]:
        """The scores of whole files. `average`: terms of a file."""
        parts = self.parts[scope].items()
        return {path: part.whole.score(says, average) for path, part in parts}


class MemTable:
    """Holds some files; safe from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.view = MemTableView({})
        """What is held; another object after each change."""

    def put(self, changed: Iterable[Changed], cut: Cutter | None = None) -> None:
        made: dict[str, _File] = {}
        for path, stamp, found in changed:
            parts: dict[Scope, _FilePart] = {}
            for scope, mine, each, whole in file_terms(path, found, cut):
                *counts, all_of_it = (_TermCounts(Counter(t), len(t)) for t in [*each, whole])
                parts[scope] = _FilePart(mine, counts, all_of_it, TermTotals.of(each, whole))
            made[path] = _File(stamp, parts)
        with self._guard:
            self.view = MemTableView({**self.view.files, **made})

    def keep(self, wanted: Callable[[str, Stamp], bool]) -> None:
        """Hold no others than those wanted."""
        with self._guard:
            kept = {p: file for p, file in self.view.files.items() if wanted(p, file.stamp)}
            if len(kept) != len(self.view.files):
                self.view = MemTableView(kept)


def idf(weights: Mapping[str, float], often: Mapping[str, int], passages: int) -> dict[str, float]:
    """How much each term says: never negative, also among one or two passages."""
    return {
        term: weight * math.log(1 + (max(passages - often[term], 0) + 0.5) / (often[term] + 0.5))
        for term, weight in weights.items()
    }


# ---- everything, where tantivy can not be imported


class _Ranked(Generic[T]):
    """The passages of a scope, or its files, as rank-bm25 scores them."""

    def __init__(self, known: Sequence[T], each: Sequence[_TermCounts]) -> None:
        self._known = known
        self.places: dict[str, list[int]] = defaultdict(list)
        """By term: the numbers of those that hold it."""
        for number, counts in enumerate(each):
            for term in counts.often:
                self.places[term].append(number)
        if not self.places:  # nothing, or files in which nothing stands
            return
        corpus = (list(counts.often.elements()) for counts in each)
        made: Any = import_module("rank_bm25").BM25Okapi(corpus, k1=K1, b=B)
        made.doc_freqs = [counts.often for counts in each]  # equal ones: no second copy of them all
        # Else made of a list by each term.
        made.doc_len = import_module("numpy").array(made.doc_len)
        # How much a term says is the caller's to tell.
        made.idf = dict.fromkeys(self.places, 1.0)
        made.avgdl = max(sum(counts.length for counts in each) / len(each), 1.0)
        self._okapi = made

    def frequency(self, term: str) -> int:
        return len(self.places.get(term, ())) + len(self.places.get(beside(term), ()))

    def best(
        self, says: Mapping[str, float], limit: int, is_wanted: Callable[[T], bool]
    ) -> list[tuple[T, float]]:
        """Those that hold any of the terms themselves, and their scores, best first."""
        scores: dict[int, float] = defaultdict(float)
        own = {number for term in says for number in self.places.get(term, ())}
        for term, weight in says.items():
            for known in (term, beside(term)):
                if places := self.places.get(known):
                    found: list[float] = self._okapi.get_batch_scores([known], places)
                    for number, score in zip(places, found, strict=True):
                        scores[number] += weight * score
        wanted = [number for number in own if is_wanted(self._known[number])]
        best = heapq.nlargest(limit, wanted, key=lambda number: (scores[number], -number))
        return [(self._known[number], scores[number]) for number in best]


class RankView:
    def __init__(self, held: MemTableView) -> None:
        self.stamps, self.passage_count, self.totals = held.stamps, held.passage_count, held.totals
        self._passages: dict[str, _Ranked[tuple[str, list[Passage], int]]] = {}
        self._files: dict[str, _Ranked[str]] = {}
        for scope, files in held.parts.items():
            known = [(p, f.passages, n) for p, f in files.items() for n in range(len(f.passages))]
            each = [counts for file in files.values() for counts in file.each]
            self._passages[scope.passage] = _Ranked(known, each)
            whole = [file.whole for file in files.values()]
            self._files[scope.file] = _Ranked([*files], whole)

    def frequency(self, term: str, table: str) -> int:
        return (self._passages.get(table) or self._files[table]).frequency(term)

    def search(
        self, says: Mapping[str, float], scope: Scope, limit: int, window: Window
    ) -> list[Match]:
        table = self._passages[scope.passage]
        best = table.best(says, limit, lambda it: window.holds(it[1][it[2]].at))
        return [Match(p, found[n], score, n, among(found, n)) for (p, found, n), score in best]

    def search_files(self, says: Mapping[str, float], scope: Scope, limit: int) -> dict[str, float]:
        return dict(self._files[scope.file].best(says, limit, lambda _: True))


EMPTY_VIEW = RankView(MemTableView({}))


class RankIndex:
    """An index that one process keeps in memory: nobody else changes it, nothing breaks it."""

    bytes_on_disk = 0

    def __init__(self) -> None:
        self.clear()

    def refresh(self) -> None:
        """There is no other process to learn from."""

    def update(
        self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None = None
    ) -> bool:
        without = frozenset(gone)
        self._table.put(changed, cut)
        self._table.keep(lambda path, _: path not in without)
        self.view = RankView(self._table.view)
        return True

    def clear(self) -> None:
        self._table = MemTable()
        self.view = RankView(self._table.view)
