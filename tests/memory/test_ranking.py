"""Ranking, snippets, excerpts, and the plain scan."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory.passages import Passage, Window
from mimikit.memory.ranking import (
    EXCERPT,
    SNIPPET,
    Match,
    excerpts,
    may_contain,
    neighbours,
    rank,
    scan,
    scanned_words,
    snippet,
)

TODAY = date(2026, 2, 1)
DAY = date(2026, 1, 10)


def match(path: str, score: float, text: str = "text", day: date | None = DAY) -> Match:
    return Match(path, Passage(text, 1, day=day), score)


def paths(found: list[Match]) -> list[str]:
    return [hit.path for hit in found]


def test_a_score_far_below_the_best_is_no_hit() -> None:
    found = [match("memory/a.md", 10, "a"), match("memory/b.md", 0.5, "b")]
    assert paths(rank(found, {}, TODAY, 10)) == ["memory/a.md"]
    assert rank([], {}, TODAY, 10) == []
    assert rank(found, {}, TODAY, 0) == []


@given(st.text("ab 中国。\n", max_size=900), st.sampled_from(["a", "中", "国", "zz"]))
def test_a_snippet_is_a_part_of_the_text(text: str, term: str) -> None:
    cut = snippet(text, {term: 1.0})
    assert cut.strip("…").strip() in text
    assert len(cut.strip("…")) <= SNIPPET


def test_a_snippet_shows_the_best_place() -> None:
    text = "x " * 500 + "the key is under the mat " + "y " * 500
    shown = snippet(text, {"key": 1.0, "mat": 1.0})
    assert "key is under the mat" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def hits(path: str, known: list[Passage], scores: dict[int, float]) -> list[Match]:
    return [Match(path, known[n], score, n, neighbours(known, n)) for n, score in scores.items()]


def test_an_excerpt_has_the_best_of_its_source_in_order_and_nothing_twice() -> None:
    known = [Passage(f"line {n}", n, role="user") for n in range(9)]
    found = hits("m.md", known, {7: 3.0, 2: 2.0, 3: 1.0})
    [(hit, text)] = excerpts(found, {"line": 1.0}, 5, 1000, len)
    assert hit is found[0]
    assert text == (
        "user: line 1\nuser: line 2\nuser: line 3\nuser: line 4\n…\n"
        "user: line 6\nuser: line 7\nuser: line 8"
    )


def test_with_little_room_the_best_are_quoted() -> None:
    known = [Passage(f"line {n}", n, role="user") for n in range(9)]
    found = hits("m.md", known, {7: 3.0, 2: 2.0, 3: 1.0}) + hits("n.md", known, {5: 0.9})
    made = excerpts(found, {"line": 1.0}, 5, 40, len)
    assert [text for _, text in made] == ["user: line 7\nuser: line 8"]
    assert [hit.path for hit, _ in excerpts(found, {"line": 1.0}, 5, 500, len)] == ["m.md", "n.md"]
    assert [hit.path for hit, _ in excerpts(found, {"line": 1.0}, 1, 500, len)] == ["m.md"]
    assert excerpts(found, {"line": 1.0}, 5, 10, len) == []
    assert excerpts([], {}, 5, 1000, len) == []


@pytest.mark.parametrize("role", ["user", "agent", None])
def test_a_long_passage_is_cut_and_quoted_whole_where_there_is_room(role: str | None) -> None:
    known = [Passage("word " * 200 + "key" + " word" * 200, 1, role=role)]
    for budget in (600, 3000):
        [one] = excerpts(hits("m.md", known, {0: 1.0}), {"key": 1.0}, 5, budget, len)
        said = one.text.removeprefix(f"{role}: " if role else "")
        assert said.strip("…") in known[0].text
        assert (said == known[0].text) == (budget == 3000)
        assert len(said) <= EXCERPT + 2 or budget == 3000
        assert "key" in said


@given(
    st.lists(st.integers(1, 700), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.floats(0.1, 9.0)), min_size=1, max_size=9),
    st.integers(0, 3000),
)
def test_excerpts_fit_their_budget_and_are_verbatim(
    lengths: list[int], scores: list[tuple[int, float]], budget: int
) -> None:
    known = [
        Passage("ab. " * (length // 4) + f"n{n}", n, role="user" if n % 3 else None)
        for n, length in enumerate(lengths)
    ]
    best = sorted(dict(scores).items(), key=lambda item: -item[1])
    found = hits("m.md", known, {n: score for n, score in best if n < len(known)})
    made = excerpts(found, {"n1": 1.0}, 5, budget, len)
    assert sum(len(f"[{hit.path}] {text}") for hit, text in made) <= budget
    for _, text in made:
        for part in text.replace("user: ", "").replace("\n", "…").split("…"):
            assert any(part in passage.text for passage in known)


def test_notes_stand_alone() -> None:
    known = [Passage(f"note {n}", n, is_note=True) for n in range(3)]
    [one] = excerpts(hits("m.md", known, {1: 1.0}), {}, 5, 1000, len)
    assert one.text == "note 1"


def test_pieces_of_one_text_are_not_joined() -> None:
    known = [Passage("123", 1, is_cut_after=True), Passage("456", 1, is_cut_before=True)]
    [one] = excerpts(hits("m.md", known, {0: 2.0, 1: 1.0}), {}, 5, 1000, len)
    assert one.text == "123…\n…\n…456"


def test_a_note_ranks_before_a_message_with_up_to_twice_its_score() -> None:
    said = match("memory/2026-01-10.md", 0.9, "said")
    note = Match("memory/2026-01-11.md", Passage("note", 1, day=DAY, is_note=True), 0.5)
    lesser = Match("memory.md", Passage("lesser", 1), 0.3)
    assert [hit.passage.text for hit in rank([said, note, lesser], {}, TODAY, 3)] == [
        "note", "said", "lesser",
    ]  # fmt: skip


def test_matching_notes_are_always_among_the_hits() -> None:
    said = [match(f"memory/2026-01-{n:02}.md", 0.9, f"said {n}") for n in range(1, 20)]
    notes = [Match("memory.md", Passage(f"note {n}", n), 0.2) for n in range(9)]
    found = rank([*said, *notes], {}, TODAY, 6)
    assert [hit.path == "memory.md" for hit in found] == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("的", "我的书", True),
        ("怎么", "怎么做", True),
        ("the", "over the hill", True),
        ("ocument", "Documents", True),
        ("資料", "资料库", True),
        ("的", "book", False),
        ("", "anything", False),
    ],
)
def test_the_plain_scan_finds_substrings(query: str, text: str, found: bool) -> None:
    wanted = scanned_words(query)
    assert may_contain(text.encode(), wanted) == found
    seen = scan("m.md", [Passage(text, 1)], wanted, Window()) if wanted else []
    assert bool(seen) == found
