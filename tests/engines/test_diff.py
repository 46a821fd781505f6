"""How texts differ: right for any two, and soon told for any two."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines import diff
from mimikit.protocol.diffs import DiffHunk


def shown(old: bytes, new: bytes) -> list[DiffHunk]:
    a, b = diff.lines_of(old), diff.lines_of(new)
    hunks, cut = diff.hunks_of(a, b, diff.changes_of(a, b))
    assert cut == 0
    return hunks


def patched(old: bytes, hunks: list[DiffHunk]) -> bytes:
    """What `patch` makes of it: a reader of hunks that is not the product's."""
    lines, made, at = diff.lines_of(old), list[bytes](), 0
    for hunk in hunks:
        start = hunk.old_start - (hunk.old_lines > 0)
        made += lines[at:start]
        at = start
        for line in hunk.lines:
            text = line[1:].encode() + b"\n"
            if line[0] == "\\":
                made[-1:] = [made[-1].removesuffix(b"\n")] if hunk.lines[-1] == line else made[-1:]
            elif line[0] == "+":
                made.append(text)
            else:
                assert lines[at].removesuffix(b"\n") + b"\n" == text
                made += [text] if line[0] == " " else []
                at += 1
    return b"".join(made + lines[at:])


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d  ", "ü", "中文"]), max_size=40)


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_a_diff_makes_the_new_text_of_the_old(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    before = "\n".join(old).encode() + b"\n" * old_ends
    after = "\n".join(new).encode() + b"\n" * new_ends
    a, b = diff.lines_of(before), diff.lines_of(after)
    changes = diff.changes_of(a, b)
    made, at = list[bytes](), 0
    for i, i_end, j, j_end in changes:
        made += a[at:i] + b[j:j_end]
        at = i_end
    assert b"".join(made + a[at:]) == after
    if old_ends and new_ends:
        assert patched(before, shown(before, after)) == after


def test_a_hunk_shows_three_lines_around_a_change() -> None:
    old = b"".join(b"%d\n" % n for n in range(1, 21))
    (hunk,) = shown(old, old.replace(b"10\n", b"ten\n"))
    assert (hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines) == (7, 7, 7, 7)
    assert hunk.lines == [" 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    old = b"".join(b"%d\n" % n for n in range(1, 41))
    new = old.replace(b"\n5\n", b"\nfive\n").replace(b"\n30\n", b"\nthirty\n")
    assert [hunk.new_start for hunk in shown(old, new)] == [2, 27]


def test_a_new_and_an_emptied_file_have_no_line_on_one_side() -> None:
    (new,), (gone,) = shown(b"", b"a\nb"), shown(b"a\n", b"")
    assert (new.old_start, new.old_lines, new.new_start, new.new_lines) == (0, 0, 1, 2)
    assert new.lines == ["+a", "+b", "\\ No newline at end of file"]
    assert (gone.old_start, gone.old_lines, gone.new_start, gone.new_lines) == (1, 1, 0, 0)


def test_bytes_that_are_no_text_stand_as_numbers() -> None:
    (hunk,) = shown(b"", "é\n".encode("latin-1"))
    assert hunk.lines == ["+\\xe9"]


def test_a_small_change_at_both_ends_of_a_long_file_stays_small() -> None:
    lines = [b"line %d\n" % n for n in range(30_000)]
    new = [b"first\n", *lines[1:-1], b"last\n"]
    changes = diff.changes_of(lines, new)
    assert changes == [(0, 1, 0, 1), (29_999, 30_000, 29_999, 30_000)]


@pytest.mark.parametrize("kinds", [2, 200, 10**9])
def test_any_two_long_files_are_compared_to_their_end(kinds: int) -> None:
    dice = random.Random(kinds)
    old = [b"%d\n" % dice.randrange(kinds) for _ in range(20_000)]
    new = [b"%d\n" % dice.randrange(kinds) for _ in range(20_000)]
    made, at = list[bytes](), 0
    for i, i_end, j, j_end in diff.changes_of(old, new):
        made += old[at:i] + new[j:j_end]
        at = i_end
    assert made + old[at:] == new


def test_what_is_too_much_is_cut_and_counted() -> None:
    new = [b"%d\n" % n for n in range(5000)]
    hunks, cut = diff.hunks_of([], new, diff.changes_of([], new))
    assert sum(len(hunk.lines) for hunk in hunks) == diff.MOST_LINES
    assert cut == 5000 - diff.MOST_LINES
    (hunk,), cut = diff.hunks_of([], [b"x" * 5000], [(0, 0, 0, 1)])
    assert len(hunk.lines[0]) < diff.MOST_OF_LINE + 60
    assert "3000 more characters" in hunk.lines[0]
