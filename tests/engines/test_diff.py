"""How texts differ, without git."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines import changes
from mimikit.protocol.diffs import DiffHunk


def shown(old: bytes, new: bytes) -> list[DiffHunk]:
    return [hunk for one in changes.compare([(old, new)], None) for hunk in one.hunks]


def patched(old: bytes, hunks: list[DiffHunk]) -> bytes:
    """What `patch` makes of it: a reader of hunks that is not the product's."""
    *lines, last = old.split(b"\n")
    lines = [line + b"\n" for line in lines] + ([last] if last else [])
    made, at = list[bytes](), 0
    for hunk in hunks:
        start = hunk.old_start - (hunk.old_lines > 0)
        made += lines[at:start]
        at = start
        for number, line in enumerate(hunk.lines):
            has_end = hunk.lines[number + 1 : number + 2] != ["\\ No newline at end of file"]
            text = line[1:].encode() + b"\n" * has_end
            if line[0] in "- ":
                assert lines[at] == text
                at += 1
            if line[0] in "+ ":
                made.append(text)
    return b"".join(made + lines[at:])


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d  ", "ü", "中文"]), max_size=40)


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_a_diff_makes_the_new_text_of_the_old(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    before = "\n".join(old).encode() + b"\n" * old_ends
    after = "\n".join(new).encode() + b"\n" * new_ends
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


def test_a_small_change_in_a_long_file_stays_small() -> None:
    lines = [b"line %d\n" % n for n in range(30_000)]
    (hunk,) = shown(b"".join(lines), b"".join([*lines[:-2], b"new\n", lines[-1]]))
    assert (hunk.old_start, hunk.new_start) == (29_996, 29_996)
    assert hunk.lines[3:5] == ["-line 29998", "+new"]


def test_texts_too_long_for_difflib_have_no_lines() -> None:
    old = b"".join(b"%d\n" % n for n in range(1001))
    (found,) = changes.compare([(old, old[::-1])], None)
    assert (found.unshown, found.hunks) == ("big", [])


def test_equal_and_unknown_contents_are_no_difference() -> None:
    assert changes.compare([(b"a", b"a"), (None, None)], None) == []


def test_what_git_writes_is_read() -> None:
    head = [b"index 1..2", b"--- a/1", b"+++ b/1", b"@@ -1 +1,2 @@ def f"]
    (hunk,) = changes.hunks_of([*head, b"-a", b"+-- b\r", b"+c", b"\\ No newline at end of file"])
    assert (hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines) == (1, 1, 1, 2)
    assert hunk.lines == ["-a", "+-- b\r", "+c", "\\ No newline at end of file"]


def test_what_is_too_much_is_cut_and_counted() -> None:
    (hunk,) = shown(b"", b"".join(b"%d\n" % n for n in range(5000)))
    hunks, cut = changes.cut([hunk], changes.MAX_CHARACTERS)
    assert [len(one.lines) for one in hunks] == [changes.MAX_LINES]
    assert cut == 5000 - changes.MAX_LINES
    (hunk,) = shown(b"", b"x" * 5000)
    assert len(hunk.lines[0]) < changes.MAX_LINE_CHARACTERS + 60
    assert "3000 more characters" in hunk.lines[0]
