"""What works in a worktree of self-awake changes that and nothing else, whatever it tries."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines import process
from mimikit.engines.base import EngineRequest
from mimikit.engines.shell import ShellEngine
from mimikit.engines.worker_sandbox import WorkerSandbox
from mimikit.engines.worktrees import BRANCHES, GitWorktrees
from mimikit.roles.worktree_place import kept_of
from tests.support.repositories import STATES, git, repository, users
from tests.support.runs import Ground, ground

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "git"),
]
ATTACK = """
try() { "$@" 2>/dev/null; }
try sh -c 'echo evil >> {top}/a.py'
try sh -c 'echo evil >> {top}/unknown'
try git -C {top} commit -qam evil
try git -C {top} stash
try git commit -qam evil
try git branch evil
try git update-ref refs/heads/main HEAD
try sh -c 'echo evil >> {top}/.git/config'
try sh -c 'echo evil > {top}/.git/hooks/post-checkout'
try rm -rf {top}/.git {top}/sub
try sh -c 'echo "gitdir: /elsewhere" > .git'
try sh -c 'cat {top}/.mimikit/secret && echo seen'
try sh -c 'cat "$HOME/.ssh/key" && echo seen'
echo better > a.py
git status --short
echo all was tried
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A workspace that is a repository, with a state folder in it and a key at home."""
    made = ground(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "key").write_text("very private\n")
    files = {"a.py": "one\n", "sub/b.py": "two\n", ".gitignore": ".mimikit\n"}
    repository(made.workspace, files)
    (made.state / "secret").write_text("very secret\n")
    (made.workspace / "a.py").write_text("mine, and not committed\n")
    return made


def in_worktree(
    here: Ground, workspace: Path | None = None, line: str = ATTACK
) -> tuple[GitWorktrees, EngineRequest]:
    """A request that works in a worktree of the workspace, as the dispatcher makes it."""
    trees = GitWorktrees(here.root / "worktrees", here.state)
    place = trees.look(workspace or here.workspace)
    trees.make(place, "awake-one", f"{BRANCHES}one")
    tree = here.root / "worktrees" / "awake-one"
    line = line.replace("{top}", str(here.workspace))
    return trees, here.request(line, workspace=tree, kept=kept_of(place, tree))


def judge(here: Ground, trees: GitWorktrees, before: dict[str, str], said: str) -> None:
    tree = here.root / "worktrees" / "awake-one"
    assert "all was tried" in said
    assert "seen" not in said
    assert " M a.py" in said, "git can be asked there"
    assert users(here.workspace) == before
    assert (tree / "a.py").read_text() == "better\n"
    assert list(trees.change(trees.look(here.workspace), "awake-one").files) == ["a.py"]


def test_a_check_changes_its_worktree_alone_and_reads_no_secret(here: Ground) -> None:
    trees, request = in_worktree(here)
    before = users(here.workspace)
    outcome = ShellEngine(Settings()).run(request)
    assert outcome.status == "done", outcome.error
    judge(here, trees, before, outcome.text)


@pytest.mark.parametrize("state", ["with a submodule", "with a linked worktree"])
def test_what_a_repository_is_a_part_of_is_not_changed_either(here: Ground, state: str) -> None:
    STATES[state](here.workspace)
    part = {
        "with a submodule": here.workspace / "lib",
        "with a linked worktree": here.workspace.parent / f"{here.workspace.name}-wt",
    }[state]
    line = (
        "for at in {top}/a.py {top}/unknown {top}/.git/config; do echo evil >> $at; done; touch x"
    )
    _, request = in_worktree(here, part, line)
    before = users(here.workspace)
    outcome = ShellEngine(Settings()).run(request)
    assert outcome.status == "done", outcome.error
    assert (request.workspace / "x").exists()
    assert users(here.workspace) == before


def test_a_check_reaches_no_program_that_waits_for_the_owner_s_orders(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = here.root / "agent"
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(path))
        agent.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        _, request = in_worktree(here, line=f"test -S {path} && echo reached; echo tried")
        outcome = ShellEngine(Settings()).run(request)
        alone = ShellEngine(Settings()).run(replace(request, kept=()))
    assert outcome.text.split() == ["tried"], outcome.error
    assert alone.text.split() == ["reached", "tried"], "the owner's own lines do"


@pytest.mark.parametrize("confined", [True, False], ids=["confined", "with a sandbox of its own"])
def test_a_worker_changes_its_worktree_alone(here: Ground, *, confined: bool) -> None:
    trees, request = in_worktree(here)
    before, box = users(here.workspace), WorkerSandbox(here.state, [])
    with box.git_held(request) as folders:
        argv = ["/bin/sh", "-c", request.prompt]
        argv = box.masked(argv, request, folders, confined=confined)
        _, out, complaints = process.output(argv, cwd=request.workspace)
    judge(here, trees, before, out + complaints)


def test_a_reviewer_changes_nothing_at_all(here: Ground) -> None:
    _, request = in_worktree(here)
    request = replace(request, read_only=True)
    box = WorkerSandbox(here.state, [])
    with box.git_held(request) as folders:
        argv = box.masked(["/bin/sh", "-c", request.prompt], request, folders, confined=True)
        process.output(argv, cwd=request.workspace)
    assert (request.workspace / "a.py").read_text() == "one\n"


def test_without_a_sandbox_no_check_runs(here: Ground) -> None:
    _, request = in_worktree(here)
    settings = Settings.model_validate({"command": {"sandbox": "off"}})
    outcome = ShellEngine(settings).run(request)
    assert outcome.failure_reason == "refused"
    assert (request.workspace / "a.py").read_text() == "one\n"
    assert "main" in git(here.workspace, "branch")
