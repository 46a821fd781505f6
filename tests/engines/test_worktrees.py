"""Git's worktrees for self-awake: made, committed, removed; nothing of the user's is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path
from random import Random

import pytest

from mimikit.engines.worktrees import BRANCHES, GitWorktrees
from mimikit.errors import BadInput
from mimikit.protocol.self_awake import RepositoryPlace
from mimikit.roles.worktree_place import folder_of
from tests.support.repositories import STATES, generated, git, own_refs, repository, users

NAME, BRANCH = "awake-one", f"{BRANCHES}20261201-lint-abc123"


class Killed(BaseException):
    """The process dies here."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a commit."""
    return repository(tmp_path / "repository")


@pytest.fixture
def trees(tmp_path: Path) -> GitWorktrees:
    return GitWorktrees(tmp_path / "worktrees", tmp_path / "state")


def improved(trees: GitWorktrees, place: RepositoryPlace, tmp_path: Path) -> str:
    """A whole run: made, changed, committed, tidied; gives the commit."""
    trees.make(place, NAME, BRANCH)
    work(tmp_path / "worktrees" / NAME)
    change = trees.change(place, NAME)
    made = trees.commit(place, NAME, BRANCH, change.tree, "neater\n\nbody")
    trees.remove(place, NAME, None)
    return made


def work(worktree: Path) -> None:
    """What a Worker does."""
    (worktree / "a.py").write_text("better\n")
    (worktree / "new.py").write_text("new\n")
    (worktree / ".git").write_text("gitdir: /elsewhere\n")  # it is ours no more: nobody reads it


@pytest.mark.parametrize("state", STATES)
def test_a_change_is_committed_on_its_branch_and_all_else_stays_byte_by_byte(
    folder: Path, trees: GitWorktrees, tmp_path: Path, state: str
) -> None:
    STATES[state](folder)
    before, head = users(folder), git(folder, "rev-parse", "HEAD").strip()
    place = trees.look(folder)
    made = improved(trees, place, tmp_path)
    assert users(folder) == before
    assert own_refs(folder) == {BRANCH: made}
    assert list((tmp_path / "worktrees").iterdir()) == []
    assert not (tmp_path / "repository-ran").exists(), "no hook and no filter was run"
    said = git(folder, "-c", "core.fsmonitor=false", "diff-tree", "-r", "--name-status", head, made)
    assert [line.split("\t")[-1] for line in said.splitlines()] == ["a.py", "new.py"]
    assert git(folder, "show", "-s", "--format=%an %s", made).strip() == "mimikit neater"


@pytest.mark.parametrize("state", STATES)
def test_what_is_removed_leaves_no_trace(
    folder: Path, trees: GitWorktrees, tmp_path: Path, state: str
) -> None:
    STATES[state](folder)
    before, objects = users(folder), git(folder, "count-objects")
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    work(tmp_path / "worktrees" / NAME)
    trees.change(place, NAME)
    trees.remove(place, NAME, BRANCH)
    trees.remove(place, NAME, BRANCH)
    assert (users(folder), own_refs(folder)) == (before, {})
    assert git(folder, "count-objects") == objects


def test_a_folder_of_a_repository_is_worked_in_alone(folder: Path, trees: GitWorktrees) -> None:
    place = trees.look(folder / "sub")
    assert (place.top, place.prefix) == (str(folder), "sub")
    trees.make(place, NAME, BRANCH)
    tree = trees._folder / NAME
    (tree / "a.py").write_text("not its to change\n")
    (tree / "sub" / "b.py").write_text("better\n")
    assert list(trees.change(place, NAME).files) == ["sub/b.py"]


def test_a_linked_worktree_of_the_user_s_is_built_on_where_it_stands(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    STATES["with a linked worktree"](folder)
    linked = tmp_path / "repository-wt"
    (linked / "a.py").write_text("further\n")
    git(linked, "commit", "--quiet", "--all", "--message", "further")
    before = users(folder), users(linked)
    place = trees.look(linked)
    assert place.head == git(linked, "rev-parse", "HEAD").strip()
    made = improved(trees, place, tmp_path)
    assert (users(folder), users(linked)) == before
    assert own_refs(folder) == {BRANCH: made}


def test_a_submodule_is_a_repository_of_its_own(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    STATES["with a submodule"](folder)
    before = users(folder)
    place = trees.look(folder / "lib")
    trees.make(place, NAME, BRANCH)
    (tmp_path / "worktrees" / NAME / "lib.py").write_text("better\n")
    change = trees.change(place, NAME)
    made = trees.commit(place, NAME, BRANCH, change.tree, "neater")
    trees.remove(place, NAME, None)
    assert list(change.files) == ["lib.py"]
    assert users(folder) == before
    assert own_refs(folder / "lib") == {BRANCH: made}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _path: None, "lies in no git repository"),
        (lambda path: git(path, "init", "--quiet"), "has no commit yet"),
        (lambda path: git(path, "init", "--quiet", "--bare"), "lies in no git repository"),
        (lambda path: (path / ".git").write_text("gitdir: /nowhere"), "lies in no git repository"),
    ],
    ids=["none", "no commit", "bare", "broken"],
)
def test_where_no_worktree_can_be_made_it_says_why(
    tmp_path: Path, trees: GitWorktrees, make: Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "place"
    path.mkdir()
    make(path)
    with pytest.raises(BadInput, match=said):
        trees.look(path)


def test_worktrees_inside_of_the_repository_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"set self_awake\.folder"):
        GitWorktrees(folder / "cache", tmp_path).look(folder)


def test_a_folder_that_is_not_committed_can_not_be_worked_in(
    folder: Path, trees: GitWorktrees
) -> None:
    (folder / "later").mkdir()
    with pytest.raises(BadInput, match="is not in the commit"):
        trees.look(folder / "later")


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_branch_of_the_user_s_in_the_way_is_told_before_anything_is_planned_and_left(
    folder: Path, trees: GitWorktrees, *, is_packed: bool
) -> None:
    place = trees.look(folder)
    git(folder, "branch", "mimikit")
    if is_packed:
        git(folder, "pack-refs", "--all")
    before = users(folder)
    with pytest.raises(BadInput, match=r"got a branch mimikit in .*rename it"):
        trees.look(folder)
    with pytest.raises(BadInput, match="git worktree"):  # it came since
        trees.make(place, NAME, BRANCH)
    trees.remove(place, NAME, BRANCH)
    assert users(folder) == before


def test_a_folder_for_worktrees_that_can_not_be_made_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way\n")
    with pytest.raises(BadInput, match=r"can be written, got .*set self_awake\.folder"):
        GitWorktrees(tmp_path / "file" / "worktrees", tmp_path).look(folder)


@pytest.mark.parametrize(
    ("do", "said"),
    [
        (lambda tree: (tree / "out").symlink_to("/etc/passwd"), "out is a link"),
        (lambda tree: [(tree / f"{n}").write_text("x") for n in range(201)], "201 files"),
        (lambda tree: (tree / "big").write_text("x\n" * 150_000), "its diff has"),
    ],
    ids=["link", "files", "size"],
)
def test_what_can_not_be_kept_is_told(
    folder: Path, trees: GitWorktrees, do: Callable[[Path], object], said: str
) -> None:
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    do(trees._folder / NAME)
    assert said in trees.change(place, NAME).odd


def with_program(submodule: Path, recorded: str, ran: Path) -> None:
    """What a Worker makes of a submodule's folder, so that who asks of it runs a program."""
    git(submodule, "init", "--quiet")
    (submodule / "f").write_text("x\n")
    (submodule / ".gitattributes").write_text("* filter=evil\n")
    git(submodule, "add", "--all")
    git(submodule, "config", "filter.evil.clean", f"touch {ran}; cat")
    (submodule / "f").write_text("y\n")
    (submodule / ".git" / "HEAD").write_text(recorded)


def test_a_submodule_that_a_worker_made_a_repository_is_refused_and_runs_nothing(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    STATES["with a submodule"](folder)
    before, ran = users(folder), tmp_path / "ran"
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    tree = trees._folder / NAME
    (tree / "a.py").write_text("better\n")
    change = trees.change(place, NAME)
    assert list(change.files) == ["a.py"], "a submodule that nobody touched is no hindrance"
    with_program(tree / "lib", git(folder, "rev-parse", "HEAD:lib"), ran)
    with pytest.raises(BadInput, match="lib was made a repository of its own"):
        trees.change(place, NAME)
    with pytest.raises(BadInput, match="lib was made a repository of its own"):
        trees.commit(place, NAME, BRANCH, change.tree, "neater")
    assert not ran.exists(), "a Worker's program was run outside of its sandbox"
    trees.remove(place, NAME, BRANCH)
    assert (users(folder), own_refs(folder)) == (before, {})


def test_a_submodule_whose_name_can_not_be_read_is_refused(
    folder: Path, trees: GitWorktrees
) -> None:
    head = git(folder, "rev-parse", "HEAD").strip()
    name = b"l\xe9b".decode(errors="surrogateescape")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{head},{name}")
    git(folder, "commit", "--quiet", "--message", "odd")
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    with pytest.raises(BadInput, match="l\ufffdb was made a repository of its own"):
        trees.change(place, NAME)


@pytest.mark.parametrize(
    "do",
    [
        lambda tree: repository(tree / "inner"),
        lambda tree: git(tree / "sub", "init", "--quiet"),
        lambda tree: (tree / "sub" / ".git").write_text("gitdir: /elsewhere\n"),
        lambda tree: (tree / "sub" / ".git").symlink_to("/nowhere"),
        lambda tree: (tree / "sub" / ".GIT").mkdir(),
    ],
    ids=["new folder", "known folder", "file", "link", "in capitals"],
)
def test_a_repository_within_is_refused(
    folder: Path, trees: GitWorktrees, do: Callable[[Path], object]
) -> None:
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    do(trees._folder / NAME)
    with pytest.raises(BadInput, match="was made a repository of its own"):
        trees.change(place, NAME)


def test_repositories_that_git_ignores_are_no_hindrance(folder: Path, trees: GitWorktrees) -> None:
    (folder / ".gitignore").write_text(".build/\ndeps/*\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "ignored")
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    tree = trees._folder / NAME
    (tree / "a.py").write_text("better\n")
    for name in (".build/checkouts/one", "deps/two", "deps/three/deeper"):
        repository(tree / name)
    assert list(trees.change(place, NAME).files) == ["a.py"]


def test_what_changes_after_it_was_judged_is_not_committed(
    folder: Path, trees: GitWorktrees
) -> None:
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    (trees._folder / NAME / "a.py").write_text("better\n")
    change = trees.change(place, NAME)
    (trees._folder / NAME / "a.py").write_text("evil\n")
    with pytest.raises(BadInput, match="after they had been judged"):
        trees.commit(place, NAME, BRANCH, change.tree, "neater")
    assert own_refs(folder) == {BRANCH: place.head}


def test_a_branch_that_somebody_moved_is_left_to_them(folder: Path, trees: GitWorktrees) -> None:
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    tree = trees._folder / NAME
    (tree / "a.py").write_text("better\n")
    change = trees.change(place, NAME)
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "mine")
    mine, before = git(tree, "rev-parse", "HEAD").strip(), git(tree, "reflog")
    with pytest.raises(BadInput, match="by somebody else"):
        trees.commit(place, NAME, BRANCH, change.tree, "neater")
    trees.remove(place, NAME, BRANCH)
    assert own_refs(folder) == {BRANCH: mine}
    assert git(folder, "reflog", "show", BRANCH).count("mine") == 1
    assert git(tree, "reflog") == before, "it can be worked on where it is"


def test_what_somebody_put_on_top_of_a_commit_is_left_to_them(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    place = trees.look(folder)
    made = improved(trees, place, tmp_path)
    mine = git(folder, "commit-tree", f"{made}^{{tree}}", "-p", made, "-m", "mine").strip()
    git(folder, "update-ref", f"refs/heads/{BRANCH}", mine)
    trees.remove(place, NAME, BRANCH)
    assert own_refs(folder) == {BRANCH: mine}


def test_a_commit_that_is_not_wanted_any_more_is_removed(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    place = trees.look(folder)
    improved(trees, place, tmp_path)
    trees.remove(place, NAME, BRANCH)
    assert own_refs(folder) == {}


def test_branches_wait_until_they_are_merged_or_removed(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    place = trees.look(folder)
    improved(trees, place, tmp_path)
    assert trees.branches(place) == [BRANCH]
    git(folder, "merge", "--quiet", BRANCH)
    assert trees.branches(trees.look(folder)) == []


def test_what_no_state_tells_of_is_swept_but_not_what_holds_a_commit(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    place = trees.look(folder)
    before = users(folder)
    trees.make(place, NAME, BRANCH)
    trees.make(place, "awake-two", f"{BRANCH}-two")
    (tmp_path / "worktrees" / "awake-two" / "a.py").write_text("better\n")
    change = trees.change(place, "awake-two")
    made = trees.commit(place, "awake-two", f"{BRANCH}-two", change.tree, "neater")
    assert trees.sweep(None) == ([NAME, "awake-two"], [])
    assert own_refs(folder) == {f"{BRANCH}-two": made}
    names = set(users(folder)) - set(before)
    assert names <= {".git/worktrees"}, "an empty folder, as git leaves one"
    assert list((tmp_path / "worktrees").iterdir()) == []


def commit_detached(tree: Path) -> None:
    git(tree, "checkout", "--quiet", "--detach")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "mine")


def commit_on_branch(tree: Path) -> None:
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "mine")


def stage_file(tree: Path) -> None:
    (tree / "sub/b.py").write_text("mine\n")
    git(tree, "add", "sub/b.py")


CONTINUED: dict[str, Callable[[Path], object]] = {
    "another branch": lambda tree: git(tree, "checkout", "--quiet", "-b", "mine"),
    "commits on no branch": commit_detached,
    "a commit on top": commit_on_branch,
    "something staged": stage_file,
    "an edit": lambda tree: (tree / "sub/b.py").write_text("mine\n"),
    "a new file": lambda tree: (tree / "mine.txt").write_text("mine\n"),
}


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("way", CONTINUED)
def test_a_worktree_somebody_goes_on_working_in_is_left_to_them(
    folder: Path, trees: GitWorktrees, tmp_path: Path, way: str, *, is_committed: bool
) -> None:
    place, tree = trees.look(folder), tmp_path / "worktrees" / NAME
    trees.make(place, NAME, BRANCH)
    (tree / "a.py").write_text("better\n")
    change = trees.change(place, NAME)
    if is_committed:
        trees.commit(place, NAME, BRANCH, change.tree, "neater", change.files)
    CONTINUED[way](tree)
    before, refs = contents(tree), own_refs(folder)
    git_side = users(folder)
    assert trees.remove(place, NAME, None if is_committed else BRANCH, change.whole) == str(tree)
    with pytest.raises(BadInput, match="somebody else works in"):
        if way in ("an edit", "a new file"):  # only by what may stand there it is known
            raise BadInput("somebody else works in it")
        trees.make(place, NAME, BRANCH)
    assert trees.sweep(None) == ([], [str(tree)])
    assert (contents(tree), own_refs(folder), users(folder)) == (before, refs, git_side)


def test_a_worktree_whose_repository_is_gone_is_swept_only_when_nothing_is_in_it(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    trees.make(trees.look(folder), NAME, BRANCH)
    (tmp_path / "worktrees" / "awake-empty").mkdir()
    folder.rename(tmp_path / "moved")
    kept = tmp_path / "worktrees" / NAME
    assert trees.sweep(None) == (["awake-empty"], [str(kept)])
    assert (kept / "a.py").read_text() == "one\n"


def test_half_a_removal_is_nobody_s_work(folder: Path, trees: GitWorktrees, tmp_path: Path) -> None:
    place = trees.look(folder)
    trees.make(place, NAME, BRANCH)
    (tmp_path / "worktrees" / NAME).rename(tmp_path / "worktrees" / f".gone-{NAME}")
    (tmp_path / "worktrees" / f".gone-{NAME}" / ".git").unlink()
    assert trees.sweep(None) == ([], [])
    trees.remove(place, NAME, BRANCH)
    assert list((tmp_path / "worktrees").iterdir()) == []
    assert own_refs(folder) == {}


def test_what_checks_leave_behind_is_no_part_of_the_change(
    folder: Path, trees: GitWorktrees, tmp_path: Path
) -> None:
    place, tree = trees.look(folder), tmp_path / "worktrees" / NAME
    trees.make(place, NAME, BRANCH)
    work(tree)
    known = trees.change(place, NAME).files
    (tree / "cache").mkdir()
    (tree / "cache" / "a.pyc").write_bytes(b"\0made by a check")
    (tree / "sub/b.py").write_text("formatted\n")  # of what is there, all counts
    change = trees.change(place, NAME, known)
    assert sorted(change.files) == ["a.py", "new.py", "sub/b.py"]
    objects = git(folder, "count-objects").split()[0]
    made = trees.commit(place, NAME, BRANCH, change.tree, "neater", change.files)
    assert "cache" not in git(folder, "ls-tree", "-r", made)
    assert int(git(folder, "count-objects").split()[0]) == int(objects) + 6, "and nothing of it"
    assert trees.remove(place, NAME, None, change.whole) == "", "they are nobody's work"


def test_the_same_change_is_known_again(folder: Path, trees: GitWorktrees, tmp_path: Path) -> None:
    place = trees.look(folder)
    improved(trees, place, tmp_path)
    trees.make(place, "awake-two", f"{BRANCH}-two")
    work(tmp_path / "worktrees" / "awake-two")
    assert trees.change(place, "awake-two").same == BRANCH
    (tmp_path / "worktrees" / "awake-two" / "a.py").write_text("another\n")
    assert trees.change(place, "awake-two").same == ""


def contents(tree: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}


def test_worktrees_lie_in_the_user_s_cache_apart_for_each_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one, two = folder_of(None, tmp_path / "one"), folder_of(None, tmp_path / "two")
    assert one != two
    assert one.parent == two.parent == tmp_path / "cache" / "mimikit" / "self-awake"
    assert folder_of(str(tmp_path / "own"), tmp_path).parent == tmp_path / "own"


# ---- kills


@contextlib.contextmanager
def survived() -> Generator[None]:
    with contextlib.suppress(Killed):
        yield


def killed_runs(folder: Path, tmp_path: Path, dice: Random) -> tuple[int, list[str]]:
    """Runs, each killed at every step and brought to its end; gives how many, and what is wrong."""
    before, wrong, number = users(folder), list[str](), 0
    kept: dict[str, str] = {}
    for at in range(1, 30):
        name, branch = f"awake-{at}", f"{BRANCH}-{at}"
        steps = 0

        def step(_what: str, at: int = at) -> None:
            nonlocal steps
            steps += 1
            if steps == at:
                raise Killed

        killed = GitWorktrees(tmp_path / "worktrees", tmp_path / "state", step)
        trees = GitWorktrees(tmp_path / "worktrees", tmp_path / "state")
        place = trees.look(folder)
        with survived():
            whole(killed, place, name, branch, tmp_path)
        number += 1
        if dice.random() < 0.5:
            trees.remove(place, name, branch)
        else:
            kept[branch] = whole(trees, place, name, branch, tmp_path)
        trees.sweep(None)
        after = users(folder)
        if after != before:
            odd = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            wrong.append(f"killed at step {at}: {sorted(odd)[:5]}")
        if own_refs(folder) != kept:
            wrong.append(f"killed at step {at}: branches {own_refs(folder)}, expected {kept}")
        if steps < at:
            return number, wrong
    return number, [*wrong, "it has no end"]


def whole(
    trees: GitWorktrees, place: RepositoryPlace, name: str, branch: str, tmp_path: Path
) -> str:
    """All that a run does, from wherever an earlier try has left it."""
    trees.make(place, name, branch)
    work(tmp_path / "worktrees" / name)
    change = trees.change(place, name)
    made = trees.commit(place, name, branch, change.tree, "neater")
    assert trees.commit(place, name, branch, change.tree, "neater") == made
    trees.remove(place, name, None)
    return made


def test_a_kill_at_any_step_changes_nothing_of_the_user_s(tmp_path: Path) -> None:
    dice = Random(7)
    number, wrong = killed_runs(generated(tmp_path / "repository", dice), tmp_path, dice)
    assert wrong == []
    assert number > 8


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_many_runs_on_generated_repositories_change_nothing_of_the_user_s(
    tmp_path: Path, size: int
) -> None:
    dice, runs, repositories = Random(size), 0, 0
    while runs < 200 * size:
        place = tmp_path / f"{repositories}"
        place.mkdir()
        number, wrong = killed_runs(generated(place / "repository", dice), place, dice)
        assert wrong == [], f"repository {repositories}"
        runs, repositories = runs + number, repositories + 1
    assert repositories > 10
