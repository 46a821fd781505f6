"""The reply that is being written: its pieces have a place, and make one text however they come."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.conversation.drafts import (
    MOST_CHARACTERS,
    DraftCursor,
    DraftPiece,
    streamed,
    units,
)
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.testing.memory_disk import MemoryDisk


@pytest.fixture
def files() -> Files:
    made = Files(MemoryDisk())
    made.make_folders()
    return made


def write(files: Files, pieces: Sequence[DraftPiece], *, engine: str = "codex") -> None:
    path = paths.run_output("turn-1")
    files.append(path, {"type": "started", "text": engine, "data": {"attempt": 1}})
    for part, at, text in pieces:
        files.append(path, {"type": "delta", "text": text, "data": {"part": part, "at": at}})


def test_a_length_is_counted_as_browsers_count() -> None:
    assert [units("abc"), units("漢字"), units("😀"), units("")] == [3, 2, 2, 0]


@given(st.lists(st.text(max_size=30), max_size=20))
def test_pieces_follow_one_another_without_a_gap(texts: list[str]) -> None:
    cursor = DraftCursor(1)
    pieces = [piece for text in texts for piece in cursor.pieces(text)]
    assert all(after.at == before.end for before, after in pairwise(pieces))
    assert not pieces or (pieces[0].at == 0 and not pieces[0].text[0].isspace())


def test_a_part_begins_anew_and_is_greater_than_those_before() -> None:
    cursor = DraftCursor(1)
    first = [*cursor.pieces("let me look")]
    cursor.end_part()
    cursor.end_part()  # nothing was said meanwhile
    second = [*cursor.pieces("here"), *cursor.pieces(" it is")]
    again = [*DraftCursor(2).pieces("once more")]
    assert [piece.at for piece in second] == [0, 4]
    assert first[0].part < second[0].part < again[0].part


def test_a_long_piece_is_cut_and_nothing_of_it_is_lost() -> None:
    text = "a" + "x" * (2 * MOST_CHARACTERS)
    assert "".join(piece.text for piece in DraftCursor(1).pieces(text)) == text


def test_what_was_said_last_is_read_back(files: Files) -> None:
    cursor = DraftCursor(1)
    early = [*cursor.pieces("let me look")]
    cursor.end_part()
    write(files, [*early, *cursor.pieces("It is 😀 "), *cursor.pieces("here")])
    assert streamed(files, "turn-1") == ("It is 😀 here", "codex")


def test_of_a_piece_that_was_lost_nothing_after_it_is_taken(files: Files) -> None:
    one, two, three = (DraftPiece(1, 0, "a"), DraftPiece(1, 1, "b"), DraftPiece(1, 2, "c"))
    write(files, [one, three])
    assert streamed(files, "turn-1").text == "a"
    assert two.end == three.at


def test_a_turn_that_said_nothing_has_nothing_to_keep(files: Files) -> None:
    assert streamed(files, "turn-1") == ("", "")
    write(files, [])
    assert streamed(files, "turn-1") == ("", "")
