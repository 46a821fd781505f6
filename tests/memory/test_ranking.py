"""Which matches are hits and in which order; snippets and quotations; the plain scan."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory.passages import Passage, Window
from mimikit.memory.ranking import (
    LEAST_SHARE,
    SNIPPET,
    WIDTH,
    Match,
    among,
    may_hold,
    quotations,
    rank,
    recency,
    scan,
    scanned_words,
    snippet,
    visible,
)

TODAY = date(2026, 2, 1)
DAY = date(2026, 1, 10)


def match(path: str, score: float, text: str = "text", day: date | None = DAY) -> Match:
    return Match(path, Passage(text, 1, day=day), score)


def paths(hits: list[Match]) -> list[str]:
    return [hit.path for hit in hits]


def test_a_days_own_words_take_the_place_of_its_summary() -> None:
    summary = match("memory/summary/2026-01-10.md", 10, "summary")
    own = match("memory/2026-01-10.md", 5, "own")
    other = match("memory/2026-01-11.md", 7, "other", date(2026, 1, 11))
    hits = rank([summary, own, other], {}, TODAY, 10)
    assert paths(hits) == ["memory/2026-01-10.md", "memory/2026-01-11.md"]
    assert rank([summary, own, other], {}, TODAY, 1) == hits[:1]


def test_words_of_the_day_that_hardly_match_do_not_take_its_summary_away() -> None:
    summary = match("memory/summary/2026-01-10.md", 10, "summary")
    own = match("memory/2026-01-10.md", 10 * LEAST_SHARE * 0.5, "own")
    assert paths(rank([summary, own], {}, TODAY, 10)) == ["memory/summary/2026-01-10.md"]


def test_what_is_far_below_the_best_is_no_hit() -> None:
    hits = [match("memory/a.md", 10, "a"), match("memory/b.md", 0.5, "b")]
    assert paths(rank(hits, {}, TODAY, 10)) == ["memory/a.md"]
    assert rank([], {}, TODAY, 10) == []
    assert rank(hits, {}, TODAY, 0) == []


def test_recent_days_count_a_little_more() -> None:
    ages = [recency(TODAY - timedelta(days=days), TODAY) for days in (0, 5, 35, 400)]
    assert ages[0] == ages[1] > ages[2] > ages[3] >= 1
    assert ages[0] < 1.2


def test_a_month_hides_its_days_alone() -> None:
    folder = "memory/summary/"
    known = [f"{folder}2025-12.md", f"{folder}2025-12-03.md", f"{folder}2026-01-03.md", "memory.md"]
    assert visible(dict.fromkeys(known)) == [known[0], *known[2:]]


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


def test_quotations_hold_what_stands_beside_and_nothing_twice() -> None:
    known = [Passage(f"line {n}", n, role="user") for n in range(6)]
    hits = [Match("m.md", known[n], 5 - n, among(known, n)) for n in (2, 3, 0)]
    made = quotations(hits, {"line": 1.0}, 5)
    assert len(made) == 1
    assert made[0][1] == "\n".join(f"user: line {n}" for n in range(6))


@pytest.mark.parametrize("role", ["user", "agent", None])
def test_a_long_quotation_is_cut_and_says_so(role: str | None) -> None:
    known = [Passage("word " * 200, 1, role=role), Passage("beside", 2, role=role)]
    [one] = quotations([Match("m.md", known[0], 1.0, among(known, 0))], {"word": 1.0}, 5)
    assert len(one[1]) <= WIDTH
    assert one[1].endswith(" [truncated]")
    assert one[1].startswith(f"{role}: " if role else "word")


def test_notes_stand_alone() -> None:
    known = [Passage(f"note {n}", n, alone=True) for n in range(3)]
    [one] = quotations([Match("m.md", known[1], 1.0, among(known, 1))], {}, 5)
    assert one[1] == "note 1"


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
def test_the_plain_scan_looks_for_what_stands_there(query: str, text: str, found: bool) -> None:
    wanted = scanned_words(query)
    assert may_hold(text.encode(), wanted) == found
    hits = scan("m.md", [Passage(text, 1)], wanted, Window()) if wanted else []
    assert bool(hits) == found


@given(st.integers(1, 900), st.integers(0, 400), st.sampled_from("az界"))
def test_a_snippet_of_an_endless_word_is_a_part_of_it(
    length: int, before: int, letter: str
) -> None:
    text = "x " * before + letter * length
    shown = snippet(text, {letter * min(length, 64): 1.0, "x": 0.1})
    assert len(shown) <= SNIPPET + 2
    assert shown.strip("…") in text
