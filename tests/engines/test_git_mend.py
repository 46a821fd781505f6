"""What a run leaves in a git folder, by which the owner's git would write or run what it says."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from mimikit.engines import git, git_mend, process
from mimikit.engines.git_mend import why_odd
from tests.engines.test_git import here, repository, run_git, worker
from tests.support.ordinary_user import as_an_ordinary_user, folder_of_an_ordinary_user
from tests.support.runs import Ground, ground

__all__ = ["here"]

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "git"),
]


def index_of(folder: Path, names: list[str], version: int = 2) -> bytes:
    """An index as git writes it, with a file of each name."""
    (folder / "evil").write_text("#!/bin/sh\n")
    blob = bytes.fromhex(run_git(folder, "hash-object", "-w", "evil").strip())
    (folder / "evil").unlink()
    data, before = struct.pack(">4sII", b"DIRC", version, len(names)), b""
    for name in sorted(map(os.fsencode, names)):
        head = struct.pack(">6I", *[0] * 6) + struct.pack(">I", 0o100755) + bytes(12) + blob
        entry = head + struct.pack(">H", min(len(name), 0xFFF))
        if version == 4:
            assert len(before) < 128
            same = next((i for i in range(len(before)) if before[: i + 1] != name[: i + 1]), 0)
            entry += bytes([len(before) - same]) + name[same:] + b"\0"
        else:
            entry += name
            entry += bytes(8 - len(entry) % 8)
        data, before = data + entry, name
    return data + bytes(20)


ODD = [
    ".git/hooks/pre-commit", "../home/.bashrc", "/etc/x", "a/./b", "a//b", "a/.GIT/x", "GIT~1/x",
    ".mimikit/config.toml", "a/.Mimikit", "kept/.hg/hgrc",
]  # fmt: skip


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("names", [[name] for name in ODD[:2]] + [ODD[:2]], ids=str)
def test_an_index_that_leads_out_of_the_workspace_is_set_aside(
    here: Ground, names: list[str], version: int, killed: bool
) -> None:
    """Without that `git restore .` writes what it names: a hook, a file of the home."""
    repository(here.workspace)
    own = here.workspace / ".git"
    (here.workspace / "data").write_bytes(index_of(here.workspace, ["file", *names], version))
    if killed:
        (own / "index").write_bytes((here.workspace / "data").read_bytes())
    with worker(here, here.workspace) as (inside, found):
        if not killed:
            process.output([*inside, "/bin/sh", "-c", "cp data .git/index"], cwd=here.workspace)
    (here.workspace / "data").unlink()
    assert "was renamed to index.odd" in found.left[0]
    assert names[-1] in found.left[0] or len(names) > 1
    run_git(here.workspace, "reset", "-q")
    run_git(here.workspace, "restore", ".")
    assert not (own / "hooks" / "pre-commit").exists()
    assert not (here.root / "home" / ".bashrc").exists()
    assert (here.workspace / "file").read_text() == "one\n"
    assert (own / "index.odd").exists()
    with worker(here, here.workspace) as (_, found):
        pass
    assert found.left == []


def test_git_does_write_what_such_an_index_says(here: Ground) -> None:
    """Else the test above could not fail."""
    repository(here.workspace)
    (here.workspace / ".git" / "index").write_bytes(index_of(here.workspace, ODD[:2]))
    run_git(here.workspace, "restore", ".")
    assert (here.workspace / ".git" / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize(
    "line",
    [
        "cp data .git/sharedindex.0123456789012345678901234567890123456789",
        "cp data .git/index.mine",
        "echo x > .git/index",
        ": > .git/index",
        "rm .git/index; mkdir .git/index",
        "rm .git/index; mkfifo .git/index",
        "cp data .git/index; touch .git/index.odd",
        "cp data .git/index; chmod 500 .git",
    ],
)
def test_what_stands_in_the_place_of_an_index_is_set_aside_too(here: Ground, line: str) -> None:
    repository(here.workspace)
    (here.workspace / "data").write_bytes(index_of(here.workspace, ODD))
    with worker(here, here.workspace) as (inside, found):
        process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
    assert "was renamed to" in "".join(found.left)
    shared = "shared" in line
    assert (here.workspace / ".git" / "index").exists() == (not shared and ".mine" in line)
    run_git(here.workspace, "reset", "-q")
    assert run_git(here.workspace, "ls-files").split() == ["file"]


def test_the_index_of_a_linked_worktree_is_looked_at(here: Ground) -> None:
    repository(here.workspace / "main")
    run_git(here.workspace / "main", "worktree", "add", "-q", "../side")
    (here.workspace / "data").write_bytes(index_of(here.workspace / "main", ODD))
    own = here.workspace / "main" / ".git" / "worktrees" / "side"
    line = f"cp data {own}/index && echo written"
    with worker(here, here.workspace) as (inside, found):
        _, said, _ = process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
    assert "written" in said
    assert (own / "index.odd").exists(), found.left


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("version", [2, 3, 4])
def test_each_name_that_leads_out_is_odd(here: Ground, name: str, version: int) -> None:
    repository(here.workspace)
    for others in ([], ["z", "a", "a/b"]):
        assert repr(name) in str(why_odd(index_of(here.workspace, [name, *others], version)))
    assert (
        why_odd(index_of(here.workspace, [".gitignore", "a/...", "git", "a.git/b", "hg/x"])) is None
    )


def test_whatever_git_itself_writes_is_plain(here: Ground) -> None:
    """Also in blocks for several threads, in two files, of folders alone, and with long names."""
    for kind in ("sha1", "sha256"):
        top = here.workspace / kind
        top.mkdir()
        run_git(top, "init", "-q", f"--object-format={kind}")
        for number in range(300):
            file = top / f"d{number % 7}" / f"e{number % 31}" / f"{number}-{'ü' * (number % 100)}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("1")
        for words in (
            ["add", "."],
            ["commit", "-qm", "first"],
            ["update-index", "--index-version", "4"],
            ["-c", "index.threads=3", "update-index", "--index-version", "2"],
            ["-c", "index.threads=3", "update-index", "--index-version", "4"],
            ["update-index", "--skip-worktree", "d0/e0/0-"],
            ["update-index", "--split-index"],
            ["rm", "-q", "--cached", "d1/e1/1-ü"],
            ["update-index", "--no-split-index"],
            ["sparse-checkout", "init", "--cone", "--sparse-index"],
            ["sparse-checkout", "set", "d1"],
        ):
            run_git(top, *words)
            for path in (*top.glob(".git/index"), *top.glob(".git/sharedindex.*")):
                assert why_odd(path.read_bytes(), 20 if kind == "sha1" else 32) is None, words
    with git.held(here.workspace, here.state) as found:
        assert len(found.writable) + len(found.met) >= 2
    assert found.left == []


def test_names_that_only_some_of_gits_threads_would_read_are_odd(here: Ground) -> None:
    """Where a thread begins, and where the names end, is written in the index as well."""
    repository(here.workspace)
    plain = index_of(here.workspace, ["file"])[:-20]
    hidden = index_of(here.workspace, [".git/config"])[12:-20]
    at = len(plain) + 8
    payload = struct.pack(">4sI", b"ZZZZ", len(hidden)) + hidden
    blocks = struct.pack(">4sIIII", b"IEOT", 12, 1, at, 1)
    assert why_odd(plain + payload + bytes(20)) is None
    assert ".git/config" in str(why_odd(plain + payload + blocks + bytes(20)))
    for end, is_plain in ((len(plain), True), (at, False)):
        last = struct.pack(">4sII", b"EOIE", 24, end) + bytes(20)
        assert (why_odd(plain + payload + last + bytes(20)) is None) == is_plain


@pytest.mark.parametrize(
    "place",
    ["info/commit-graph", "info/packs", "pack/x.pack", "ab", "zz", "ff/0", "pack", "info/commit"],
)
def test_links_among_the_objects_are_removed_and_told(here: Ground, place: str) -> None:
    repository(here.workspace)
    mine = here.root / "mine"
    mine.write_text("mine\n")
    objects = here.workspace / ".git" / "objects"
    line = f"mkdir -p $(dirname {place}); rm -rf {place}; ln -s {mine} {place}"
    with worker(here, here.workspace) as (inside, found):
        process.output([*inside, "/bin/sh", "-c", line], cwd=objects)
        assert (objects / place).is_symlink()
    assert f"removed {objects / place}, a link to {mine}" in found.left[0]
    for words in (["gc", "-q"], ["commit-graph", "write"]):
        run_git(here.workspace, *words)
    assert mine.read_text() == "mine\n"


def test_many_links_fill_no_result(here: Ground) -> None:
    repository(here.workspace)
    with git.held(here.workspace, here.state) as found:
        for number in range(50):
            (here.workspace / ".git" / "objects" / f"link{number}").symlink_to("/")
    assert [len(found.left), found.left[-1]] == [git_mend.MOST_TOLD + 1, "… and 30 more"]
    assert not any(path.is_symlink() for path in (here.workspace / ".git").rglob("*"))


@pytest.mark.parametrize("mode", ["000", "500"])
def test_links_in_folders_without_permissions_are_removed(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def test() -> None:
        here = ground(root / "ground")
        monkeypatch.setenv("HOME", str(root))
        if not os.access(sys.executable, os.X_OK):  # root's own
            monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        repository(here.workspace)
        deep = here.workspace / ".git" / "logs" / "a" / "b"
        line = f"mkdir -p {deep}; ln -s /x {deep}/link; chmod {mode} {deep} {deep.parent}"
        with worker(here, here.workspace) as (inside, found):
            process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
        assert list(deep.iterdir()) == []
        assert any(f"removed {deep}/link" in said for said in found.left), found.left
        with worker(here, here.workspace) as (_, found):
            assert found.writable == [here.workspace / ".git"]

    with folder_of_an_ordinary_user() as root:
        as_an_ordinary_user(test)


HARD = (
    "git init -q proj; ln proj/.git/config c; echo one > proj/.git/hooks/pre-commit; "
    "chmod 755 proj/.git/hooks/pre-commit; ln proj/.git/hooks/pre-commit h; "
    "ln proj/.git/info/exclude e"
)


def test_a_repository_that_a_run_made_shares_no_file_with_the_workspace(here: Ground) -> None:
    with worker(here, here.workspace) as (inside, found):
        process.output([*inside, "/bin/sh", "-c", HARD], cwd=here.workspace)
    said = "was the same file as another: it is one of its own now"
    assert sum(said in told for told in found.left) == 3, found.left
    with worker(here, here.workspace, found.met) as (inside, found):
        line = "for it in c h e; do echo two >> $it && echo written; done"
        _, out, _ = process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
    assert out.split() == ["written"] * 3
    own = here.workspace / "proj" / ".git"
    for path in (own / "config", own / "hooks" / "pre-commit", own / "info" / "exclude"):
        assert "two" not in path.read_text()
    assert (own / "hooks" / "pre-commit").stat().st_mode & 0o777 == 0o755
    assert found.notes == []


def test_many_names_of_one_file_do_not_fill_the_disk(here: Ground) -> None:
    names = 40
    with git.held(here.workspace, here.state) as found:
        for repo in (here.workspace / "one", here.workspace / "two"):
            repo.mkdir()
            run_git(repo, "init", "-q")
            for number in range(names // 2):
                hook = repo / ".git" / "hooks" / f"hook-{number}"
                file = here.workspace / "one" / ".git" / "hooks" / "hook-0"
                if hook == file:
                    file.write_bytes(bytes(2**20))
                else:
                    hook.hardlink_to(file)
    inodes = {path.stat().st_ino for path in here.workspace.rglob("hook-*")}
    assert len(inodes) == 17  # sixteen copies, and the one that the rest go on sharing
    told = " ".join(found.left)
    assert told.count("/hook-") == names - 4
    assert told.count("is the same file as another: give it a copy") == git_mend.MOST_TOLD
    assert "… and 4 more" in told
    assert told.count("it is one of its own now") == 16


def test_what_is_the_same_file_as_another_is_told_in_each_run_and_stays_so(here: Ground) -> None:
    """The owner may have made it so; and a run that made it may have been killed."""
    subprocess.run(["/bin/sh", "-c", HARD], cwd=here.workspace, check=True)
    config = here.workspace / "proj" / ".git" / "config"
    for _ in range(2):
        with git.held(here.workspace, here.state) as found:
            told = [note for note in found.notes if "is the same file as another" in note]
        assert len(told) == 3
        assert str(config) in told[0]
    assert config.stat().st_nlink == 2


@pytest.mark.parametrize("place", ["config", "hooks", "hooks/pre-commit", "info/attributes"])
def test_what_links_lead_to_is_read_only_too_and_told(here: Ground, place: str) -> None:
    repository(here.workspace)
    own, target = here.workspace / ".git", here.workspace / "scripts" / "it"
    target.parent.mkdir()
    if (own / place).exists():
        (own / place).rename(target)
    else:
        target.write_text("one\n")
    (own / place).parent.mkdir(exist_ok=True)
    (own / place).symlink_to(target)
    file = target / "pre-commit" if target.is_dir() else target
    line = f"echo two > {file}; mv scripts away; echo hi > made"
    with worker(here, here.workspace) as (inside, found):
        process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
    assert (here.workspace / "made").exists()
    assert not file.exists() or file.read_text() != "two\n"
    assert not (here.workspace / "away").exists()
    assert f"{target} is read-only: {own / place} leads there" in found.notes


@pytest.mark.parametrize("way", ["not there", "by a link", "around it"])
def test_what_links_lead_to_and_can_not_be_shut_is_told(here: Ground, way: str) -> None:
    repository(here.workspace)
    link = here.workspace / ".git" / "hooks" / "pre-commit"
    to = here.workspace / "scripts" / "it"
    if way == "by a link":
        (here.workspace / "real").mkdir()
        (here.workspace / "real" / "it").write_text("one\n")
        (here.workspace / "scripts").symlink_to("real")
    link.symlink_to(here.workspace if way == "around it" else to)
    with git.held(here.workspace, here.state) as found:
        pass
    assert any(f"{link} leads where agents can write" in note for note in found.notes)


def test_links_into_a_state_name_nothing_to_mount(here: Ground) -> None:
    """What is mounted within a mask is seen through it."""
    repository(here.workspace)
    secret = here.state / "secret"
    secret.write_text("secret")
    (here.workspace / ".git" / "hooks" / "pre-commit").symlink_to(secret)
    with git.held(here.workspace, here.state) as found:
        assert secret not in found.shut


@pytest.mark.parametrize("mode", ["777", "4750", "1770"])
def test_permissions_that_a_run_adds_to_the_workspace_are_taken_back(
    here: Ground, mode: str
) -> None:
    here.workspace.chmod(0o750)
    with worker(here, here.workspace) as (inside, found):
        process.output([*inside, "/bin/sh", "-c", f"chmod {mode} ."], cwd=here.workspace)
        assert here.workspace.stat().st_mode & 0o7777 == int(mode, 8)
    assert here.workspace.stat().st_mode & 0o7777 == 0o750
    assert found.left == [f"took permissions of {here.workspace} away that had been added"]


PUT = """
blob=$(echo {text} | git hash-object -w --stdin)
git update-index --add --cacheinfo "100755,$blob,{path}"
"""
AS_BRANCH = """
commit=$(git -c user.name=n -c user.email=a@b commit-tree -m more $(git write-tree))
git update-ref refs/heads/{name} $commit
"""
GUARDED = [".mimikit/worker/queue/evil.json", "my origin.git/hooks/pre-push", "sub/.jj/x%(y)"]


def guarded(here: Ground) -> None:
    repository(here.workspace)
    run_git(here.workspace, "init", "-q", "--bare", "my origin.git")
    (here.workspace / "sub" / ".jj").mkdir(parents=True)


@pytest.mark.parametrize("path", GUARDED)
def test_an_index_that_leads_where_no_worker_writes_is_set_aside(here: Ground, path: str) -> None:
    """To the state, to a bare repository, to one of another program."""
    guarded(here)
    with worker(here, here.workspace) as (inside, found):
        line = f"set -e {PUT.format(text='evil', path=path)}"
        process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
    assert f"has an entry named {path!r}: it was renamed to index.odd" in found.left[0]


@pytest.mark.parametrize("path", GUARDED)
def test_a_commit_that_leads_where_no_worker_writes_is_told_once(here: Ground, path: str) -> None:
    """Who checks it out has git write there."""
    guarded(here)
    told: list[list[str]] = []
    for name, text in (("one", "evil"), ("two", "evil"), ("one", "worse"), ("one", "worse")):
        line = f"set -e; export GIT_INDEX_FILE=$PWD/mine {PUT.format(text=text, path=path)}"
        line += AS_BRANCH.format(name=name)
        with worker(here, here.workspace) as (inside, found):
            process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
        assert run_git(here.workspace, "show", f"{name}:{path}") == f"{text}\n"
        told.append(found.left)
    top = next(top for top in (".mimikit", "my origin.git", "sub/.jj") if path.startswith(top))
    said = f"refs/heads/one has {top}: to check it out or to merge it writes there"
    assert told == [[said], [], [said], []]


def test_a_repository_in_another_whose_files_that_has_is_no_surprise(here: Ground) -> None:
    """As those that a project keeps for its tests."""
    guarded(here)
    run_git(here.workspace, "add", "-f", "my origin.git")
    run_git(here.workspace, "commit", "-qm", "for tests")
    with worker(here, here.workspace) as (_, found):
        pass
    assert found.left == []
    assert "my origin.git/config" in run_git(here.workspace, "ls-files")
