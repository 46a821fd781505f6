"""The index on disk and the one in memory give the same scores, those of BM25."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rank_bm25 import BM25Okapi

from mimikit.memory.index import (
    K1,
    SCOPES,
    B,
    Changed,
    MemoryView,
    Stamp,
    TermTotals,
    idf,
    view_of,
)
from mimikit.memory.passages import MEMORY, NOTES, TRANSCRIPT, Passage, Scope, Window, file_terms
from mimikit.memory.tantivy_index import TantivyIndex, TantivyView
from mimikit.state import open_state
from tests.memory.questions import empty_world

WORDS = [f"w{a}{b}" for a in "bcdfg" for b in "hjklm"]
LENGTHS = 0.04
"""The index keeps the length of a passage in one byte, which makes it a little shorter: scores came
out less than so much apart, relatively."""


@pytest.fixture
def index(tmp_path: Path) -> TantivyIndex:
    world = empty_world(tmp_path)
    return TantivyIndex(world.files, world.path)


def made(number: int, *, alone: bool = True) -> list[Changed]:
    dice = random.Random(number)
    return [
        (
            f"memory/n{file}.md",
            Stamp(1, file),
            [
                Passage(" ".join(dice.choices(WORDS, k=dice.randint(1, 30))), line, is_note=alone)
                for line in range(dice.randint(1, 6))
            ],
        )
        for file in range(12)
    ]


def held_and_view(
    index: TantivyIndex, number: int, *, alone: bool = True
) -> tuple[MemoryView, TantivyView | MemoryView, list[Changed]]:
    files = made(number, alone=alone)
    assert index.update(files, [])
    return view_of(files), index.view, files


@pytest.mark.parametrize("number", range(5))
def test_scores_agree_with_each_other_and_with_bm25(index: TantivyIndex, number: int) -> None:
    """rank-bm25's counts and lengths with our idf: its own is negative for common words."""
    held, view, files = held_and_view(index, number)
    each = [
        (path, passage, terms)
        for path, _, found in files
        for part in file_terms(path, found, None)
        for passage, terms in zip(part.passages, part.each, strict=True)
    ]
    oracle = BM25Okapi([terms for _, _, terms in each], k1=K1, b=B)
    for scope in SCOPES:
        assert view.totals[scope] == held.totals[scope]
        assert (view.totals[scope] == TermTotals()) == (scope != NOTES)
    assert view.passage_count == len(each)
    dice = random.Random(number)
    for _ in range(10):
        weights = {word: dice.choice([1.0, 0.2]) for word in dice.sample(WORDS, 4)}
        often = {word: held.frequency(word, NOTES.passage) for word in weights}
        assert often == {word: sum(word in one for one in oracle.doc_freqs) for word in weights}
        assert often == {word: view.frequency(word, NOTES.passage) for word in weights}
        says = idf(weights, often, len(each))
        wanted: dict[tuple[str, int], float] = {}
        for (path, passage, _), freqs, length in zip(
            each, oracle.doc_freqs, oracle.doc_len, strict=True
        ):
            norm = K1 * (1 - B + B * length * len(each) / sum(oracle.doc_len))
            score = sum(
                says[w] * freqs.get(w, 0) * (K1 + 1) / (freqs.get(w, 0) + norm) for w in weights
            )
            if score:
                wanted[path, passage.line] = score
        assert wanted
        mean = held.totals[NOTES].terms / len(each)
        ours = {
            (m.path, m.passage.line): m.score
            for m in held.search(says, NOTES, mean, 1000, Window())
        }
        assert ours == pytest.approx(wanted, rel=1e-9)
        theirs = {
            (m.path, m.passage.line): m.score
            for m in view.search(says, NOTES, mean, 1000, Window())
        }
        assert theirs == pytest.approx(wanted, rel=LENGTHS)


def test_a_view_stays_as_it_was_while_the_index_goes_on(index: TantivyIndex) -> None:
    index.update([("memory.md", Stamp(1, 1), [Passage("badger", 1)])], [])
    view = index.view
    index.update([("memory.md", Stamp(2, 2), [Passage("walrus", 1)])], [])
    assert view.search({"badger": 1.0}, NOTES, 1.0, 10, Window())
    assert view.stamps == {"memory.md": Stamp(1, 1)}
    assert not index.view.search({"badger": 1.0}, NOTES, 1.0, 10, Window())
    index.update([], ["memory.md"])
    assert not index.view.search({"walrus": 1.0}, NOTES, 1.0, 10, Window())
    assert index.view.stamps == {}
    assert index.view.passage_count == 0


def test_the_best_of_a_part_and_of_a_time_are_found(index: TantivyIndex) -> None:
    day = datetime(2026, 1, 10, tzinfo=UTC)
    said = [
        Passage(f"otter {'badger ' * n}", n, at=day + timedelta(days=n), is_note=True)
        for n in range(9)
    ]
    index.update(
        [
            ("memory/a.md", Stamp(1, 1), [*said, Passage("otter", 10, is_note=True)]),
            ("history/2026-01-10.jsonl", Stamp(2, 2), [Passage("otter", 1, at=day)]),
        ],
        [],
    )

    def lines(scope: Scope, limit: int, window: Window) -> list[int]:
        found = index.view.search({"otter": 1.0}, scope, 1.0, limit, window)
        scores = [match.score for match in found]
        assert scores == sorted(scores, reverse=True)
        return [match.passage.line for match in found]

    assert sorted(lines(NOTES, 100, Window())) == [*range(9), 10]
    assert set(lines(NOTES, 3, Window())) == {0, 1, 10}
    inside = Window(day + timedelta(days=2), day + timedelta(days=5))
    assert lines(NOTES, 100, inside) == [2, 3, 4]
    assert lines(NOTES, 1, Window(before=day + timedelta(days=2))) == [0]
    assert lines(TRANSCRIPT, 100, Window()) == [1]
    assert lines(TRANSCRIPT, 100, Window(after=day + timedelta(days=1))) == []
    assert index.view.search({"nothing": 1.0}, NOTES, 1.0, 10, Window()) == []
    assert index.view.search({}, NOTES, 1.0, 10, Window()) == []


def test_a_search_during_a_rebuild_does_not_close_the_index(tmp_path: Path) -> None:
    world = empty_world(tmp_path)
    index = TantivyIndex(world.files, world.path)
    index.update([("memory.md", Stamp(1, 1), [Passage("badger", 1)])], [])
    world.files.write("cache/search/unfinished", b"", sync=False)  # whoever wrote last has died

    def anew() -> Iterator[Changed]:
        index.refresh()  # a search: there is no manifest now
        yield "memory.md", Stamp(1, 2), [Passage("walrus", 1)]

    index.update(anew(), [])
    index.update([("memory/a.md", Stamp(1, 1), [Passage("heron", 1)])], [])
    assert set(index.view.stamps) == {"memory.md", "memory/a.md"}
    assert index.view.search({"walrus": 1.0}, NOTES, 1.0, 10, Window())


def test_an_update_that_another_makes_is_left_to_it(tmp_path: Path) -> None:
    world = empty_world(tmp_path)
    lock = world.files.lock("cache/search.lock")
    assert lock is not None
    index = TantivyIndex(world.files, world.path)
    assert not index.update([("memory.md", Stamp(1, 1), [Passage("word", 1)])], [])
    lock.release()
    assert index.update([("memory.md", Stamp(1, 1), [Passage("word", 1)])], [])


def test_its_files_are_private(tmp_path: Path) -> None:
    state = open_state(tmp_path / ".mimikit", tmp_path)
    before = os.umask(0o022)
    try:
        TantivyIndex(state.files, state.path).update(made(1), [])
    finally:
        os.umask(before)
    entries = list((state.path / "cache/search").rglob("*"))
    assert len(entries) > 3
    assert [entry.name for entry in entries if entry.lstat().st_mode & 0o077] == []


def test_an_indexed_file_is_counted_once_however_often_it_changes(tmp_path: Path) -> None:
    state = empty_world(tmp_path)
    index = TantivyIndex(state.files, state.path)
    for words in ("one", "one two", "one two three"):
        index.update([("memory.md", Stamp(len(words), 1), [Passage(words, 1)])], [])
    index.update([("memory/a.md", Stamp(1, 1), [Passage("four", 1)])], ["no.md", "memory.md"])
    other = TantivyIndex(state.files, state.path)
    other.refresh()
    [only] = file_terms("memory/a.md", [Passage("four", 1)], None)
    totals = TermTotals.of(only)
    assert index.view.totals[MEMORY] == other.view.totals[MEMORY] == totals
    assert index.view.totals[NOTES] == other.view.totals[NOTES] == TermTotals()
