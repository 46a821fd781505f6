"""Scanning real folders: links, loops, the state folder, unreadable and too many files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mimikit.triggers import workspace
from mimikit.triggers.patterns import list_all, parse
from mimikit.triggers.workspace import FolderWorkspace

NOBODY = 65534


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that other users can read, as root ignores permissions."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder, "ws")


@pytest.fixture
def here(root: Path) -> FolderWorkspace:
    write(root, "a.txt", ".mimikit/state.json", "src/x.py", "src/lib/y.py", ".hidden/z.py")
    return FolderWorkspace(root, root / ".mimikit")


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names(here: FolderWorkspace, pattern: str) -> set[str]:
    seen = here.list_files(parse(pattern))
    assert seen is not None
    return set(seen)


def test_a_plain_folder_means_all_files_below_it_but_hidden_ones(
    here: FolderWorkspace, root: Path
) -> None:
    write(root, "src/.cache/x", "src/.env", "src/lib/deep/z")
    assert names(here, "src") == {"x.py", "lib/y.py", "lib/deep/z"}
    assert names(here, ".") == {"a.txt", "src/x.py", "src/lib/y.py", "src/lib/deep/z"}
    assert names(here, ".hidden") == {"z.py"}


def test_missing_files_are_not_found(here: FolderWorkspace) -> None:
    for pattern in ("no", "no/**", "a.txt/*", "a.txt/x", "x" * 300, f"{'y' * 300}/*", "no*"):
        assert here.list_files(parse(pattern)) == {}
        assert not here.exists(parse(pattern))


def test_things_of_any_kind_exist_by_their_name_and_files_by_a_glob(
    here: FolderWorkspace, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    (root / "dangling").symlink_to("nowhere")
    for pattern in ("a.txt", "src", "pipe", "src/**/*.py", ".hidden/*", "dangling*"):
        assert here.exists(parse(pattern))
    for pattern in ("dangling", "pip?", "*.md", "src/*.txt"):
        assert not here.exists(parse(pattern))


def test_links_are_followed_only_as_the_base_of_a_glob(here: FolderWorkspace, root: Path) -> None:
    (root / "src/loop").symlink_to(root, target_is_directory=True)
    (root / "src/lib/up").symlink_to("..", target_is_directory=True)
    (root / "src/self").symlink_to("self")
    (root / "src/file").symlink_to("x.py")
    (root / "src/dangling").symlink_to("nowhere")
    links = {"loop", "lib/up", "self", "file", "dangling"}
    assert names(here, "src/**") == {"x.py", "lib/y.py", *links}
    assert names(here, "src") == {"x.py", "lib/y.py", *links}
    assert names(here, "src/loop/**/*.py") == {"src/x.py", "src/lib/y.py"}  # named: it is meant
    for link in sorted(links):
        stat = (root / "src" / link).lstat()
        assert (here.list_files(parse("src/**")) or {})[link] == [stat.st_mtime_ns, stat.st_size]


@pytest.mark.parametrize(
    "pattern",
    [
        ".*/state.json", ".m*/**", "**/.mimikit/*", "door/**", "door", "door/state.json",
        "up/.mimikit/*", "up/.*/st*",
        "{root}/.mimikit", "{root}/.mimikit/*", "{root}/.mimikit/state.json",
        "{root}/door/state.json",
    ],
)  # fmt: skip
def test_the_state_folder_is_unreachable_by_any_path(
    here: FolderWorkspace, root: Path, pattern: str
) -> None:
    (root / "door").symlink_to(".mimikit", target_is_directory=True)
    (root / "up").symlink_to(".", target_is_directory=True)
    meant = parse(pattern.format(root=root))
    assert here.list_files(meant) == {}
    assert not here.exists(meant)


def test_a_state_folder_that_is_not_hidden_is_closed_too(root: Path) -> None:
    write(root, "state/x", "state2/y")
    here = FolderWorkspace(root, root / "state")
    assert names(here, "**") == {"state2/y"}
    assert names(here, ".") == {"state2/y"}


def test_unreadable_files_are_not_found(here: FolderWorkspace, root: Path) -> None:
    write(root, "shut/inner/x", "dark/y", "open/z")
    (root / "shut").chmod(0o000)
    (root / "dark").chmod(0o400)  # its names may be read, but nothing about them
    me = os.geteuid()
    if me == 0:
        os.seteuid(NOBODY)
    try:
        assert names(here, "*/**") == {"src/x.py", "src/lib/y.py", "open/z"}
        for pattern in ("shut/inner/x", "shut/inner", "shut/*", "dark/y", "dark/*"):
            assert here.list_files(parse(pattern)) == {}
            assert not here.exists(parse(pattern))
        assert here.folders_in(root / "shut") == []
    finally:
        if me == 0:
            os.seteuid(me)
        (root / "shut").chmod(0o700)
        (root / "dark").chmod(0o700)


def test_too_many_files_are_distinguished_from_none(root: Path) -> None:
    write(root, "big/0")
    for number in range(1, workspace.MAX_FILES):
        os.link(root / "big/0", root / "big" / str(number))
    here = FolderWorkspace(root, root / ".mimikit")
    assert len(here.list_files(parse("big/*")) or ()) == workspace.MAX_FILES
    write(root, "big/one more")
    for pattern in ("big/*", "**", "big", "."):
        assert here.list_files(parse(pattern)) is None
        assert here.exists(parse(pattern))
    assert names(here, "big/1?") == {f"1{digit}" for digit in range(10)}


def test_is_inside_resolves_links(here: FolderWorkspace, root: Path) -> None:
    (root.parent / "ws-other").mkdir()
    (root / "src/out").symlink_to(root.parent, target_is_directory=True)
    (root / "src/up").symlink_to("..", target_is_directory=True)
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "dangling").symlink_to("/no/where")
    for pattern in (".", "*", "no/such", "src/**/*.py", "src/up/src/*", "src/out/ws/*", str(root)):
        assert here.is_inside(parse(pattern)), pattern
    outside = (
        *("/", "/etc/*", "src/out", "src/out/*", "src/out/no", "src/up/src/out/x", "passwd"),
        *("dangling", f"{root}-other/*", f"{root}/src/out/*"),
    )
    for pattern in outside:
        assert not here.is_inside(parse(pattern)), pattern
    (root.parent / "linked").symlink_to(root, target_is_directory=True)
    linked = FolderWorkspace(root.parent / "linked", root / ".mimikit")
    assert linked.is_inside(parse("src/*"))
    assert linked.is_inside(parse(f"{root}/src/*"))
    assert not linked.is_inside(parse("src/out/*"))


def test_a_plain_path_that_is_a_link_is_followed_to_its_target(
    here: FolderWorkspace, root: Path
) -> None:
    (root / "link").symlink_to("src/x.py")
    for target in ("src/x.py", "src/lib/y.py"):  # swapped in between
        (root / "link").unlink()
        (root / "link").symlink_to(target)
        stat = (root / target).stat()
        assert here.list_files(parse("link")) == {"link": [stat.st_mtime_ns, stat.st_size]}
    (root / "src/lib/y.py").write_text("edited, and longer")
    assert (here.list_files(parse("link")) or {})["link"][1] == 18
    (root / "src/lib/y.py").unlink()
    assert here.list_files(parse("link"))  # the link itself, which leads nowhere
    assert here.exists(parse("link")) is False


def test_a_path_that_exists_is_taken_as_it_is(here: FolderWorkspace, root: Path) -> None:
    (root / "Invoice [2026].pdf").write_text("x")
    (root / "Invoice 2.pdf").write_text("y")
    assert names(here, "Invoice [2026].pdf") == {"Invoice [2026].pdf"}
    assert here.exists(parse("Invoice [2026].pdf"))
    assert names(here, "Invoice [12].pdf") == {"Invoice 2.pdf"}
    (root / "a[1]").mkdir()
    (root / "a[1]/b").write_text("z")
    assert names(here, "a[1]/b") == {"a[1]/b"}
    assert parse("a[1]/b").enters("a[1]")
    assert parse("a[1]/b").matches("a[1]/b")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/*.{py,txt}", {"src/x.py", "src/z.txt"}),
        ("{src,src/lib}/*.py", {"src/x.py", "src/lib/y.py"}),
        ("src/{x,{z,nothing}}.{py,txt}", {"src/x.py", "src/z.txt"}),
        ("src/x.{py}", set()),
        ("src/odd{1,2}.md", {"src/odd{1,2}.md"}),
    ],
)
def test_braces_are_alternatives(
    here: FolderWorkspace, root: Path, path: str, expected: set[str]
) -> None:
    (root / "src/z.txt").write_text("z")
    (root / "src/odd{1,2}.md").write_text("o")
    found = list_all(path, here.list_files)
    assert found is not None
    assert set(found) == expected
