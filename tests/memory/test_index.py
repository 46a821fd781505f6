"""Scores: those of the index, of what is held in memory and of rank-bm25's counts agree."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from rank_bm25 import BM25Okapi

from mimikit.memory.documents import Stamp
from mimikit.memory.memtable import K1, B, Fresh, Held, idf
from mimikit.memory.passages import NEAR, Passage, Window
from mimikit.memory.tantivy_index import Index, View
from mimikit.memory.terms import counted
from mimikit.state import open_state
from tests.memory.questions import empty_world

WORDS = [f"w{a}{b}" for a in "bcdfg" for b in "hjklm"]
LENGTHS = 0.04
"""The index keeps the length of a passage in one byte, which makes it a little shorter: scores came
out less than so much apart, relatively."""


def made(number: int) -> list[tuple[str, Stamp, list[Passage]]]:
    dice = random.Random(number)
    return [
        (
            f"memory/n{file}.md",
            Stamp(1, file),
            [
                Passage(" ".join(dice.choices(WORDS, k=dice.randint(1, 30))), line, alone=True)
                for line in range(dice.randint(1, 6))
            ],
        )
        for file in range(12)
    ]


def both(tmp_path: Path, number: int) -> tuple[Held, View, list[tuple[str, Stamp, list[Passage]]]]:
    files = made(number)
    fresh = Fresh()
    fresh.put(files)
    world = empty_world(tmp_path)
    index = Index(world.files, world.path)
    assert index.update(files, [])
    return fresh.now, index.view, files


@pytest.mark.parametrize("number", range(5))
def test_scores_agree_with_each_other_and_with_bm25(tmp_path: Path, number: int) -> None:
    """rank-bm25's counts and lengths with our idf: its own is negative for common words.

    The index counts its documents of whole files too, in the mean and in the idf; so do we.
    """
    held, view, files = both(tmp_path, number)
    each = [(path, p, t) for path, _, f in files for p, t in zip(f, counted(f, None).each)]  # noqa: B905
    oracle = BM25Okapi([terms for _, _, terms in each], k1=K1, b=B)
    assert view.totals(NEAR) == held.totals(NEAR)
    dice = random.Random(number)
    for _ in range(10):
        weights = {word: dice.choice([1.0, 0.2]) for word in dice.sample(WORDS, 4)}
        often = {word: held.frequency(word, NEAR) for word in weights}
        assert often == {word: sum(word in one for one in oracle.doc_freqs) for word in weights}
        assert often == {word: view.frequency(word, NEAR) for word in weights}
        documents = len(each) + len(files)
        says = idf(weights, often, documents)
        wanted: dict[tuple[str, int], float] = {}
        for (path, passage, _), freqs, length in zip(
            each, oracle.doc_freqs, oracle.doc_len, strict=True
        ):
            norm = K1 * (1 - B + B * length * documents / sum(oracle.doc_len))
            score = sum(
                says[w] * freqs.get(w, 0) * (K1 + 1) / (freqs.get(w, 0) + norm) for w in weights
            )
            if score:
                wanted[path, passage.line] = score
        assert wanted
        mean = held.totals(NEAR).terms / documents
        ours = {(m.path, m.passage.line): m.score for m in held.search(says, NEAR, mean, Window())}
        assert ours == pytest.approx(wanted, rel=1e-9)
        theirs = {
            (m.path, m.passage.line): m.score for m in view.search(weights, NEAR, 1000, Window())
        }
        assert theirs == pytest.approx(wanted, rel=LENGTHS)


def test_one_passage_has_a_score_above_nothing(tmp_path: Path) -> None:
    world = empty_world(tmp_path)
    index = Index(world.files, world.path)
    index.update([("memory.md", Stamp(1, 1), [Passage("word", 1)])], [])
    [hit] = index.view.search({"word": 1.0}, NEAR, 10, Window())
    assert hit.score > 0


def test_a_view_stays_as_it_was_while_the_index_goes_on(tmp_path: Path) -> None:
    world = empty_world(tmp_path)
    index = Index(world.files, world.path)
    index.update([("memory.md", Stamp(1, 1), [Passage("badger", 1)])], [])
    view = index.view
    index.update([("memory.md", Stamp(2, 2), [Passage("walrus", 1)])], [])
    assert view.search({"badger": 1.0}, NEAR, 10, Window())
    assert view.stamps == {"memory.md": Stamp(1, 1)}
    assert not index.view.search({"badger": 1.0}, NEAR, 10, Window())
    index.update([], ["memory.md"])
    assert not index.view.search({"walrus": 1.0}, NEAR, 10, Window())
    assert index.view.stamps == {}


def test_an_update_that_another_makes_is_left_to_it(tmp_path: Path) -> None:
    world = empty_world(tmp_path)
    lock = world.files.lock("cache/search.lock")
    assert lock is not None
    index = Index(world.files, world.path)
    assert not index.update([("memory.md", Stamp(1, 1), [Passage("word", 1)])], [])
    lock.release()
    assert index.update([("memory.md", Stamp(1, 1), [Passage("word", 1)])], [])


def test_its_files_are_private(tmp_path: Path) -> None:
    state = open_state(tmp_path / ".mimikit", tmp_path)
    before = os.umask(0o022)
    try:
        Index(state.files, state.path).update(made(1), [])
    finally:
        os.umask(before)
    entries = list((state.path / "cache/search").iterdir())
    assert len(entries) > 3
    assert [entry.name for entry in entries if entry.lstat().st_mode & 0o077] == []
