"""Messages are stored, found and quoted verbatim; cuts are marked."""

from __future__ import annotations

from datetime import UTC, date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory import archive, markdown
from mimikit.memory.passages import PASSAGE_CHARACTERS, Passage, of_file
from tests.memory.questions import ZONE, said

DAY = date(2026, 1, 28)
EXACT = [
    "The score was 5 - 3 at half-time.", "The door opens at 09:13. The alarm rings at 21:40.",
    "Flat 12. Door 3) left.", "  - nested   item", "1. first\n2. second\n10) tenth",
    "- [x] done - or not", "# A heading", "* * *", "> 5 GB are needed",
    "| a | b |\n|---|---|\n|  1 |  - 2 |",
    "```python\nif a  <  b:\n\treturn a - b  # 1. no item\n```", "a <!-- unseen --> b",
    "<!-- one\nof two lines -->", "x  =  1;\ty = 2",
    "会议在 9:30。改到 10 - 11 点！ 三楼，3) 室；好…",
    "價格：1,280 元 － 折扣 5 - 3", "-5 degrees. -- 3 . 4", "one\r\ntwo\r\n\r\nthree",
    "tea\u00a0time\u2028later\x0bon", "\\n \\## 09:30 user", "## 09:30 user",
    "it is <!-- note-1 -->", "", "   ",
]  # fmt: skip
PIECE = st.sampled_from(EXACT) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
)
TEXT = st.lists(PIECE, min_size=1, max_size=8).map("\n".join)
LONG = st.tuples(TEXT, st.integers(1, 60)).map(lambda made: (made[0] + "\n") * made[1])


def of_message(text: str) -> list[Passage]:
    written = markdown.extended("", DAY, [said(1, text, "user", "2026-01-28")], ZONE)
    return of_file("memory/2026-01-28.md", written.encode(), ZONE)


@given(TEXT.filter(lambda text: text.strip() and len(text) <= PASSAGE_CHARACTERS))
def test_a_message_that_fits_is_whole(text: str) -> None:
    assert [p.text for p in of_message(text)] == [text]


@given(LONG)
def test_pieces_of_a_long_text_are_marked_as_cut(text: str) -> None:
    found = of_message(text)
    at = 0
    for number, passage in enumerate(found):
        gap, at = text[at:].index(passage.text), at + text[at:].index(passage.text)
        assert not text[at - gap : at].strip()
        assert (passage.is_cut_before, passage.is_cut_after) == (
            number > 0,
            number + 1 < len(found),
        )
        at += len(passage.text)


@given(TEXT)
def test_a_summary_by_rule_quotes_sentences_verbatim(text: str) -> None:
    made = archive.summarise([archive.DatedText("2026-01-28 09:30", "user", text)])
    for line in made.split("\n") if made else []:
        sentence = line.removeprefix("- 2026-01-28 09:30 user: ").removesuffix("…")
        assert sentence in text


@pytest.mark.parametrize(
    "text",
    [
        "The score was 5 - 3.",
        "It rings at 09:13. The door opens.",
        "1. flour 200 g\n2. eggs 3",
        "-5 degrees at night, 3 - 5 by day",
    ],
)
@pytest.mark.parametrize("path", ["docs/a.md", "memory.md", "memory/2026-01-28.md"])
def test_a_single_line_keeps_numbers_and_dashes(path: str, text: str) -> None:
    assert [p.text for p in of_file(path, text.encode(), UTC)] == [text]


def test_the_sign_of_an_item_alone_is_left_out_as_that_of_a_note() -> None:
    assert [p.text for p in of_file("docs/a.md", b"- 5 - 3 - 1", UTC)] == ["5 - 3 - 1"]
    assert [p.text for p in of_file("docs/a.md", b"1. 5 - 3", UTC)] == ["1. 5 - 3"]
