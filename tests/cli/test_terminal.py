"""Text fits its columns, and cannot play tricks on the terminal."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.cli import terminal


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("你好", 4), ("e\u0301", 1), (click.style("red", fg="red"), 3), ("", 0)],
)
def test_width_counts_columns(text: str, columns: int) -> None:
    assert terminal.width(text) == columns


@given(st.text(max_size=80), st.integers(min_value=1, max_value=80))
def test_what_is_clipped_fits(text: str, columns: int) -> None:
    assert terminal.width(terminal.clip(text, columns)) <= columns


def test_what_fits_is_not_clipped_and_keeps_its_colour() -> None:
    red = click.style("red", fg="red")
    assert terminal.clip(red, 3) == red


def test_a_colour_is_never_cut_in_half() -> None:
    assert terminal.clip(click.style("colourful", fg="red"), 5) == "colo…"


def test_columns_stand_under_each_other_in_chinese_too() -> None:
    lines = terminal.aligned([("ID", "WHAT"), ("a", "买牛奶"), ("bcd", "x")])
    assert lines == ["ID   WHAT", "a    买牛奶", "bcd  x"]


@pytest.mark.parametrize("show", [terminal.one_line, terminal.block, terminal.indented])
def test_escapes_of_a_program_do_not_reach_the_terminal(show: object) -> None:
    assert callable(show)
    assert not {"\x1b", "\x9b"} & set(str(show("\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b2J")))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("canceled x", "Canceled x."),
        ("Done.", "Done."),
        ("task-1 ended as canceled", "task-1 ended as canceled."),
    ],
)
def test_a_message_becomes_a_sentence(message: str, told: str) -> None:
    assert terminal.sentence(message) == told
