"""Search quality on our own question set: a note ranks before chatter."""

from __future__ import annotations

import pytest

from benchmarks import own_set
from mimikit.memory.search import MemorySearch
from mimikit.memory.terms import ChineseDictionary
from mimikit.memory.tokens import count
from tests.memory.questions import empty_world


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[MemorySearch, list[own_set.Question]]:
    world = empty_world(tmp_path_factory.mktemp("own"), zone="UTC")
    questions = own_set.write(world.path)
    words = ChineseDictionary()
    words.load()
    search = world.search(words=words)
    search.refresh()
    return search, questions


def test_the_right_passage_is_the_first_hit(
    asked: tuple[MemorySearch, list[own_set.Question]],
) -> None:
    search, questions = asked
    missed: list[tuple[str, str, str]] = []
    for question in questions:
        hits = search.find(question.text)
        first = (hits[0].source, hits[0].text) if hits else ("", "")
        if first[0] != question.source or question.answer not in first[1]:
            missed.append((question.kind, question.text, first[1]))
    assert [one for one in missed if one[0] == "note"] == []
    assert 100 * len(missed) <= 3 * len(questions), missed


def test_recall_has_the_right_source_first_with_the_fact_verbatim(
    asked: tuple[MemorySearch, list[own_set.Question]],
) -> None:
    search, questions = asked
    missed: list[tuple[str, str, str]] = []
    for question in questions:
        hits = search.recall(question.text)
        assert len(hits) <= 5
        assert sum(count(f"[{hit.source}] {hit.snippet}") for hit in hits) <= 2048
        first = hits[0] if hits else None
        if not first or first.source != question.source or question.answer not in first.snippet:
            missed.append((question.kind, question.text, first.snippet[:200] if first else ""))
    assert [one for one in missed if one[0] == "note"] == []
    assert 100 * len(missed) <= 3 * len(questions), missed


def test_replies_written_by_code_are_not_found(
    asked: tuple[MemorySearch, list[own_set.Question]],
) -> None:
    search, _ = asked
    hits = search.find("I can't answer that without a model", limit=50)
    assert not [hit for hit in hits if "can't answer" in hit.text]
