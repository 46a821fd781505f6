"""JSON from outside: strict, and never an exception of another kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.errors import BadRecord
from mimikit.protocol.json import MAX_DEPTH, dump_line, parse_json, parse_object

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "line 1, column 1"),
        (b'{"a": 1,\n "b": }', "line 2"),
        (b'{"a": 1, "a": 2}', "each key once, got 'a' twice"),
        (b"NaN", "expected a number, got NaN"),
        (b"1e400", "finite number"),
        (b'"\\ud800"', "lone surrogate"),
        (b'"\xed\xa0\x80"', "expected UTF-8"),
        (b"\xff", "expected UTF-8 text, got byte 0"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), f"at most {MAX_DEPTH} levels"),
        (b"[" * 100_000, "levels of nesting"),
        (b'{"a":' * 100_000, "levels of nesting"),
        (b"9" * 5000, "4300"),
    ],
    ids=lambda value: value[:20].decode(errors="replace") if isinstance(value, bytes) else None,
)
def test_what_python_would_take_or_choke_on_is_refused_with_a_reason(
    data: bytes, reason: str
) -> None:
    with pytest.raises(BadRecord) as caught:
        parse_json(data)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xef\xbb\xbf{}", {}),
        (b'"\\ud83d\\ude00"', "😀"),
        ("“中文”".join('""').encode(), "“中文”"),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
        (b'"' + b"[" * 100 + b'"', "[" * 100),
        (b"-0.0", -0.0),
        (b"9" * 400, int("9" * 400)),
    ],
    ids=["bom", "pair", "chinese", "as deep as may be", "brackets in text", "zero", "big"],
)
def test_what_is_good_json_is_taken(data: bytes, value: object) -> None:
    parsed = parse_json(data)
    assert value is None or parsed == value


@pytest.mark.parametrize("data", [b"[]", b"null", b"1", b'"x"', b"true"])
def test_only_an_object_is_an_object(data: bytes) -> None:
    with pytest.raises(BadRecord, match="expected a JSON object, got "):
        parse_object(data)


@given(VALUES)
def test_a_value_comes_back_from_its_line(value: object) -> None:
    line = dump_line(value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert parse_json(line) == value


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_reason(data: bytes) -> None:
    try:
        parse_json(data)
    except BadRecord as error:
        assert str(error)


@given(VALUES, st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_no_flipped_byte_raises_anything_but_a_reason(value: object, at: int, byte: int) -> None:
    data = bytearray(dump_line(value))
    data[at % len(data)] = byte
    try:
        parse_json(bytes(data))
    except BadRecord as error:
        assert str(error)
