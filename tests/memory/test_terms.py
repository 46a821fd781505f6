"""Terms: equal for stored and queried text, with correct positions."""

from __future__ import annotations

import pytest
import rjieba
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory.terms import folded, has_cjk, located, occurrences, terms

ANY = st.text(st.characters(), max_size=80) | st.text(
    "aA1_.v'’ s中國国科学院的什么為éİßﬁＡ９ｱ한か\n\x00\ud800\u0301\u200f🦦", max_size=60
)


def cut(run: str) -> list[str]:
    return list(rjieba.cut_for_search(run))


@given(ANY)
def test_places_lie_inside_and_terms_are_plain(text: str) -> None:
    assert len(folded(text)) == len(text)
    for found in (located(text), located(text, cut)):
        for term in found:
            assert 0 <= term.start < term.end <= len(text)
            assert term.text
            assert not any(one.isspace() for one in term.text)
            if has_cjk(term.text):
                assert folded(text)[term.start : term.end] == term.text
            term.text.encode()  # it can be stored
    assert terms(text) == [term.text for term in located(text)]
    for term in occurrences(text, set(terms(text))):
        assert 0 <= term.start < term.end <= len(text)


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("資料庫", "资料库"),
        ("running tests", "test runs"),
        ("Zürich", "zurich"),
        ("ＡＢＣ１２３", "abc123"),
        ("userName", "user name"),
        ("parse_config_file", "parse config"),
        ("v2.13.4", "2.13.4"),
        ("André's", "andre"),
        ("中国科学院", "科学院"),
        ("E1027", "e1027"),
    ],
)
def test_query_terms_match_stored_terms(stored: str, asked: str) -> None:
    for one in (None, cut):
        assert set(terms(asked, one)) <= set(terms(stored, one))


def test_stop_words_and_bare_underscores_say_nothing() -> None:
    assert terms("the of _the_ ___ 的 什么 isn't") == []


def test_a_long_word_of_the_dictionary_knows_its_place() -> None:
    words = {term.text: (term.start, term.end) for term in located("在中国科学院", cut)}
    assert words["科学院"] == (3, 6)
    assert words["中国科学院"] == (1, 6)


def count_terms(text: str) -> int:
    return len(terms(text, cut))


@pytest.mark.parametrize("part", ["a", "A", "aA1_", "1", "1.", "v1.2 ", "_", "a's", "中国", "é"])
def test_hostile_text_has_terms_in_proportion(part: str) -> None:
    once, many = count_terms(part * 50), count_terms(part * 50 * 20)
    assert many <= 21 * max(once, 1)
    assert all(len(term) <= 64 for term in terms(part * 5000))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("C#", ["c#"]),
        ("C++ and c", ["c++", "c"]),
        (".NET", [".net", "net"]),
        ("node.js", ["node.js", "node", "js"]),
        ("a#b, C#1 and x.c++y", ["b", "c", "1", "x", "c", "y"]),
    ],
)
def test_names_with_signs_are_terms_of_their_own(text: str, found: list[str]) -> None:
    assert terms(text) == found
