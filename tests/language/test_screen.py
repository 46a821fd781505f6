"""Lines that a program rewrites are shown as a terminal leaves them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines.shell import _Output
from mimikit.language.plain_text import plain
from mimikit.language.screen import MAX_LINE, ScreenText
from tests.support.engine_requests import Desk

PRINTED = {
    "a progress bar": ("\r10%\r20%\r30%\n", "30%\n"),
    "a shorter line over a longer one": ("abc\rX\n", "Xbc\n"),
    "a line wiped with blanks": ("downloading\r           \rdone\n", "done\n"),
    "a line erased": ("50% of it\r\x1b[Kdone\n", "done\n"),
    "a line erased whole": ("50% of it\x1b[2K\rdone\n", "done\n"),
    "a spinner": ("work |\b/\b-\b\bx\n", "workx-\n"),
    "the cursor up": ("a: 1\nb: 1\n\x1b[2Aa: 2\n\x1b[1Bc", "a: 2\nb: 1\nc"),
    "up and erased": ("one\ntwo\n\x1b[1A\x1b[2Kthree\n", "one\nthree\n"),
    "below erased": ("one\ntwo\nthree\x1b[1A\r\x1b[Jend", "one\nend"),
    "a screen begun anew": ("old\n\x1b[H\x1b[2J\x1b[3Jnew", "new"),
    "a column": ("ab\x1b[6Gc\x1b[2D\x1b[Cd", "ab   d"),
    "line ends of Windows": ("a\r\nb\r\n", "a\nb\n"),
    "colours between": ("\x1b[32m1%\x1b[0m\r\x1b[32m2%\x1b[0m", "2%"),
    "blanks at an end": ("a  \nb", "a  \nb"),
}


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_last_state_of_a_line_is_shown(name: str, size: int) -> None:
    printed, shown = PRINTED[name]
    assert plain(printed) == shown
    desk = Desk()
    output = _Output(desk.event, 10_000, 10_000)
    data = printed.encode()
    for at in range(0, len(data), size):
        output.take("stdout", data[at : at + size])
    output.close()
    assert output.text() == shown


def test_output_is_live_and_never_shows_a_line_twice() -> None:
    desk = Desk()
    output = _Output(desk.event, 10_000, 10_000)
    output.take("stdout", b"begun\n\r10%\r20%")
    output.tick()
    assert [(kind, text) for kind, text, _ in desk.events] == [
        ("output", "begun\n"),
        ("line", "20%"),
    ]
    output.take("stdout", b"\r30%\n")
    output.close()
    shown = [text for kind, text, _ in desk.events if kind == "output"]
    assert "".join(shown) == "begun\n30%\n"
    assert output.text() == "begun\n30%\n"


def test_an_endless_line_and_far_moves_cost_little_memory() -> None:
    screen = ScreenText()
    total = sum(len(screen.feed("." * 100)) for _ in range(1000))
    assert total >= 100_000 - MAX_LINE - 100
    assert len(plain("\x1b[9999C\x1b[9999Bx" * 100)) <= MAX_LINE + 300 * 100


@given(
    st.lists(st.sampled_from(["\r", "\b", "\x1b[A", "\x1b[2A", "\x1b[K", "\n", "ab", "中"])),
    st.integers(1, 5),
)
def test_how_output_is_cut_changes_nothing(parts: list[str], size: int) -> None:
    printed = "".join(parts)
    output = _Output(lambda *_: None, 10_000, 10_000)
    data = printed.encode()
    for at in range(0, len(data), size):
        output.take("stdout", data[at : at + size])
    output.close()
    assert output.text() == plain(printed)
