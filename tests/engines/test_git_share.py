"""What is given of one git folder, by what stands there: no sandbox, and nothing is changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mimikit.engines import git
from mimikit.engines.git import FolderShare, judge
from mimikit.engines.git_folders import SHUT
from tests.support.runs import Ground, ground


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return ground(tmp_path)


def git_folder(folder: Path) -> Path:
    """As much of one as git looks for."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text("[core]\n")
    return folder


def tree(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_the_workspaces_own_is_written(here: Ground) -> None:
    own = git_folder(here.workspace / ".git")
    before = tree(here.root)
    assert judge(own, here.workspace, [own]) == FolderShare(
        own, {own: own.stat().st_ino}, is_own=True
    )
    assert tree(here.root) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("owner", ["a stranger", "the workspace's owner"])
def test_a_git_folder_of_somebody_else_is_shut_as_a_whole(here: Ground, owner: str) -> None:
    other = git_folder(here.workspace / "in" / ".git")
    os.chown(other, 4242, 4242)
    if owner == "the workspace's owner":
        os.chown(here.workspace, 4242, 4242)
        assert judge(other, here.workspace, [other]).shut == ()
        return
    share = judge(other, here.workspace, [other])
    assert (share.folders, share.shut) == ({}, (other,))
    assert share.note == f"the git folder of {other} is read-only: {other} is somebody else's"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_nothing_is_made_in_a_git_folder_of_somebody_else(here: Ground) -> None:
    own = git_folder(here.workspace / ".git")
    os.chown(own, 4242, 4242)
    before = tree(own)
    with git.held(here.workspace, here.state) as found:
        assert (found.writable, found.shut) == ([], [own])
        assert tree(own) == before


def test_what_is_shut_is_all_that_makes_git_run_programs(here: Ground) -> None:
    own = git_folder(here.workspace / ".git")
    with git.held(here.workspace, here.state) as found:
        assert found.shut == [own / name for name in SHUT]
        assert all(path.exists() for path in found.shut)
    assert {"hooks/", "config", "config.worktree", "info/", "modules/", "worktrees/"} <= set(SHUT)


def test_a_folder_that_takes_the_place_of_the_one_looked_at_is_not_given(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a run that goes on may exchange them: what was looked at is elsewhere then."""
    own = git_folder(here.workspace / ".git")
    other = git_folder(here.workspace / "other")

    def exchanged(entry: Path, workspace: Path, met: list[Path]) -> FolderShare:
        share = judge(entry, workspace, met)
        if entry == own:
            own.rename(here.workspace / "away")
            other.rename(own)
        return share

    monkeypatch.setattr(git, "judge", exchanged)
    with git.held(here.workspace, here.state) as found:
        assert own not in found.writable
        assert own in found.shut
    assert f"{own} was exchanged meanwhile" in found.notes[0]


@pytest.mark.parametrize("folder", ["", "refs/heads"])
def test_the_lock_of_an_editor_closes_no_repository(here: Ground, folder: str) -> None:
    own = git_folder(here.workspace / ".git")
    (own / folder).mkdir(exist_ok=True)
    lock = own / folder / ".#COMMIT_EDITMSG"
    lock.symlink_to("me@host.1234:1700000000")
    with git.held(here.workspace, here.state) as found:
        assert found.writable == [own]
    assert (found.notes, found.left) == ([], [])
    assert lock.is_symlink()


@pytest.mark.parametrize("to", ["/usr/elsewhere", "../elsewhere", "..", "config"])
def test_what_only_looks_like_one_does(here: Ground, to: str) -> None:
    own = git_folder(here.workspace / ".git")
    (own / ".#COMMIT_EDITMSG").symlink_to(to)
    share = judge(own, here.workspace, [own])
    assert share.shut == (own,)
    assert share.note
    assert share.note.endswith(".#COMMIT_EDITMSG is a link")


def test_links_are_given_to_nobody_and_more_than_can_be_held_is_shut(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, link = git_folder(here.workspace / "in" / ".git"), here.workspace / "x" / ".git"
    link.parent.mkdir()
    link.symlink_to(inner)
    assert judge(link, here.workspace, [link]) == FolderShare(link)
    monkeypatch.setattr(git, "MOST_WRITABLE", 1)
    assert judge(inner, here.workspace, [link, inner]) == FolderShare(inner, shut=(inner,))
