"""Which files a pattern matches, compared with the standard library's glob."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.triggers.patterns import MAX_PATTERN, parse
from mimikit.triggers.workspace import FolderWorkspace

FILES = (
    "a.py", "b.txt", "src/a.py", "src/b.py", "src/lib/a.py", "src/lib/deep/x.py", "src/.hid/a.py",
    ".env", ".git/config", "src/.env", "with space/a b.txt", "中文/文件.py", "é/ü.txt", "a[1].txt",
    "src/UPPER.PY", "x-y_z", "dots..py", "src/lib/.x/.y/z", "a", "b/a", "b/b/a", "b/b/b/a",
    "back\\x",
    "plus+(1).txt", "^caret", "!bang", "]", "-",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        for name in FILES:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        yield folder


def found(root: str, pattern: str) -> set[str]:
    parsed = parse(pattern)
    seen = FolderWorkspace(Path(root), Path(root, ".mimikit")).list_files(parsed)
    assert seen is not None
    base = "" if parsed.base == "." or parsed.is_plain else f"{parsed.base}/"
    return {f"{base}{name}" for name in seen}


def by_glob(root: str, pattern: str) -> set[str]:
    names = glob.iglob(pattern, root_dir=root, recursive=True)
    return {os.path.normpath(name) for name in names if os.path.isfile(os.path.join(root, name))}


@pytest.mark.parametrize(
    "pattern",
    [
        "*", "*.py", "**", "**/*.py", "src/*.py", "src/**/*.py", "src/**", "**/a", "b/**/a",
        "**/b/**/a",
        "*/*", "*/*/*", ".*", ".*/*", "**/.*", "src/.hid/*", "src/.*/*", "src/**/.*", "?", "??",
        "?.py",
        "[ab].py", "[a-c].py", "[!a].py", "[!a-b]*", "*[!y]", "with space/*", "* */a b.*",
        "中文/*.py",
        "**/文件.py", "é/?.txt", "a[[]1].txt", "a[[]*", "[]]", "[!]]", "[-]", "[a-]*", "a*", "*a*",
        "*a*.*p*", "x-y_z*", "dots.*", "dots..*", "src/lib/.x/.y/*", "**/**", "**/**/a", "*/**/*/a",
        "b/*/*/*", "back\\*", "plus+(*", "[+-]*", "p[!a]us*", "[", "[a", "nothing*",
        "src/lib/**/x.py",
        "**/[s]rc", "**/lib/**", "a.py/*", "**/*.PY", "*.[pt][yx]*",
    ],
)  # fmt: skip
def test_a_pattern_means_what_glob_finds(tree: str, pattern: str) -> None:
    assert found(tree, pattern) == by_glob(tree, pattern)


PARTS = st.one_of(
    st.sampled_from(["**", "*", "src", "lib", "b", "a", "*.py", ".*", "?", "中文", "with space"]),
    st.text(alphabet="ab*?[]!-.p", min_size=1, max_size=6),
)


@pytest.mark.slow
def test_any_pattern_means_what_glob_finds(tree: str, size: int) -> None:
    @settings(max_examples=500 * size)
    @given(st.lists(PARTS, min_size=1, max_size=5).map("/".join))
    def holds(pattern: str) -> None:
        try:
            parsed = parse(pattern)
        except BadInput:
            return
        assume(not parsed.is_plain and not pattern.endswith("/."))  # that is how a path may end
        expected = by_glob(tree, pattern)
        assert found(tree, pattern) == expected
        for name in expected:
            if parsed.base == ".":
                folders = name.split("/")[:-1]
                for depth in range(1, len(folders) + 1):
                    assert parsed.enters("/".join(folders[:depth]))

    holds()


def test_a_caret_denies_as_an_exclamation_mark_does() -> None:
    assert parse("[^a].py").matches("b.py")
    assert not parse("[^a].py").matches("a.py")
    assert parse("[a^].py").matches("^.py")


def test_the_fixed_folders_before_the_first_wildcard_are_the_base() -> None:
    for text, base, parts in [
        ("src/lib/*.py", "src/lib", ("*.py",)),
        ("./src//lib/./x", "src/lib/x", ()),
        ("*.py", ".", ("*.py",)),
        ("/srv/x/**", "/srv/x", ("**",)),
        ("/*", "/", ("*",)),
        ("/", "/", ()),
        (".", ".", ()),
        ("a/**/**/b", "a", ("**", "b")),
        ("~/x", "~/x", ()),
        ("$HOME/x", "$HOME/x", ()),
    ]:
        pattern = parse(text)
        assert (pattern.base, pattern.parts) == (base, parts)
        assert pattern.is_plain == (not parts)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\n", "a\nb", "a\0b", "..", "../x", "a/../b", "a/..", "/..", "**a", "a**/b", "***",
        "[b-a]", "*a*b*c*d*e", "x" * (MAX_PATTERN + 1),
    ],
)  # fmt: skip
def test_an_invalid_pattern_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="expected") as caught:
        parse(text)
    assert caught.value.field == "path"
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", [".mimikit", "./.mimikit/", ".mimikit/**", ".mimikit/*/x.json"])
def test_the_state_folder_is_refused_since_its_trigger_would_never_fire(text: str) -> None:
    with pytest.raises(BadInput, match="is never watched") as caught:
        parse(text)
    assert caught.value.field == "path"


@given(st.text(max_size=60) | st.text(alphabet="*?[]!-/.\\^&~|a", max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        pattern = parse(text)
    except BadInput:
        return
    pattern.matches("a/b")
    pattern.enters("a")
