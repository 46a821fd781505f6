"""What programs print is fit to be shown, however it is cut into pieces."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.language.plain_text import LineReader, PlainStream, TextTail, as_json, plain


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[31mred\x1b[0m and \x1b[1;4mbold\x1b[m", "red and bold"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPstring\x1b\\after", "after"),
        ("\x9b1mtext", "text"),
        ("\x1b(Btext\x1b=", "text"),
        ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        ("a\x00b\x07c\x08d\x7fe\tf\n", "abde\tf\n"),
        ("safe\u202egnp.exe\u2066", "safegnp.exe"),
        ("中文 café 🎉", "中文 café 🎉"),
        ("\ud83d\ude00 \ud83d.", "😀 \ufffd."),
        ("fee\U000e0074\U000e0061\U000e0067 \U000e0001due", "fee due"),
        ("a\u200bd\u2060m\ufeffi\xadn\u200e\u061c", "admin"),
        ("ad\u200cm\u200din \u200d\u200c\u200c", "admin "),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष र्\u200cय", "क्\u200dष र्\u200cय"),
        (
            "👨\u200d👩\u200d👧 ❤️\u200d🔥 👩🏽\u200d💻 1️⃣",
            "👨\u200d👩\u200d👧 ❤️\u200d🔥 👩🏽\u200d💻 1️⃣",
        ),
        ("م\u200d\u200c\u200d 中\U000e0101\U000e0102\ufe0f", "م\u200d 中\U000e0101"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴"),
        ("\x1b", ""),
        ("", ""),
    ],
)
def test_escapes_and_control_characters_are_taken_out(printed: str, shown: str) -> None:
    assert plain(printed) == shown


HAVE_A_SHAPE = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f]"
)


def test_nothing_invisible_stays_but_joiners_where_a_script_joins() -> None:
    format_ = {chr(at) for at in range(0x110000) if unicodedata.category(chr(at)) == "Cf"}
    kept = {one for one in format_ if one in plain(f"a{one}b") or one in plain(f"م{one}م")}
    assert {one for one in kept if not HAVE_A_SHAPE.match(one)} == {"\u200c", "\u200d"}


def test_json_is_the_same_and_shows_what_is_not_seen() -> None:
    value = {"title": "a\x9b1m\u202eb\U000e0041\x7f\n", "中文": ["می\u200cخواهم"]}
    text = as_json(value, indent=2)
    assert json.loads(text) == value
    assert r"a\u009b1m\u202eb\udb40\udc41\u007f\n" in text
    assert "中文" in text
    assert "\n" in text


@given(
    st.lists(
        st.sampled_from(
            [
                "\x1b[31m",
                "\x1b]0;t\x07",
                "\r\n",
                "中",
                "🎉",
                "word ",
                "\n",
                "\x1b[0m",
                "می\u200cخواهم",
                "👨\u200d👩",
            ]
        ),
        max_size=8,
    ),
    st.integers(1, 5),
)
def test_how_bytes_are_cut_changes_nothing(parts: list[str], size: int) -> None:
    data = "".join(parts).encode()
    stream = PlainStream()
    pieces = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert "".join([*pieces, stream.feed(b"", last=True)]) == plain("".join(parts))


@given(st.lists(st.text(max_size=7), max_size=30), st.integers(1, 20))
def test_a_tail_is_the_end_of_the_whole(parts: list[str], limit: int) -> None:
    tail, whole = TextTail(limit), "".join(parts)
    for part in parts:
        tail.add(part)
    assert tail.text() == whole[-limit:]
    assert tail.total == len(whole)


@given(st.binary(max_size=60), st.integers(1, 7))
def test_lines_are_put_together_whatever_the_pieces(data: bytes, size: int) -> None:
    lines = LineReader(100)
    got = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    assert got == data.split(b"\n")[:-1]
    assert lines.feed(b"\n") == data.split(b"\n")[-1:]


def test_a_line_too_long_is_left_out() -> None:
    lines = LineReader(5)
    assert lines.feed(b"short\n" + b"x" * 4) == [b"short"]
    assert lines.feed(b"y" * 1000) == []
    assert lines.feed(b"z\nnext\n") == [b"next"]
