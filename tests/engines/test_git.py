"""What makes git run programs stays shut to a Worker, wherever a repository keeps it.

The Worker here is a shell in the outer sandbox alone: what holds it holds one in two of them too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import pytest

from mimikit.engines import git, git_folders, git_mend, process, sandbox
from mimikit.engines.git_folders import GitFolders
from mimikit.errors import EngineError
from mimikit.protocol.disk import RealDisk
from tests.support.deep import nested_folders
from tests.support.ordinary_user import as_an_ordinary_user, folder_of_an_ordinary_user
from tests.support.runs import Ground, ground

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "git"),
]
WHO = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always")


def run_git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *WHO, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def repository(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    run_git(folder, "init", "-q")
    (folder / "file").write_text("one\n")
    run_git(folder, "add", "file")
    run_git(folder, "commit", "-qm", "first")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    made = ground(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (made.workspace / ".gitignore").write_text(".mimikit\n")
    filters = '[filter "owners"]\n\tclean = test ! -x tool || ./tool >&2; cat\n'
    (tmp_path / "home" / ".gitconfig").write_text(filters)
    return made


@contextlib.contextmanager
def worker(
    here: Ground, workspace: Path, known: Iterable[Path] = ()
) -> Generator[tuple[list[str], GitFolders]]:
    """The start of a command line in the sandbox, while a Worker's run has the workspace."""
    with git.held(workspace, here.state, known) as folders:
        inside = sandbox.masked(
            [],
            here.state,
            writable=[workspace],
            read_only=folders.shut,
            reopened=folders.opened,
            pinned=folders.pinned,
        )
        yield inside, folders


def attack(here: Ground, line: str, workspace: Path | None = None) -> str:
    workspace = workspace or here.workspace
    with worker(here, workspace) as (inside, _):
        _, said, complaints = process.output([*inside, "/bin/sh", "-c", line], cwd=workspace)
    return said + complaints


def what_the_owner_does(workspace: Path) -> None:
    for folder in (workspace, *(path.parent for path in workspace.rglob(".git"))):
        (folder / "more").write_text("more")
        for words in (["status"], ["add", "more"], ["commit", "-qm", "more"], ["log", "-1"]):
            run_git(folder, *words)


PLANT = """
plant() { mkdir -p "$(dirname $1)"; printf '#!/bin/sh\\ntouch %s\\n' $OWNED > $1; chmod +x $1; }
"""
FSMONITOR = 'printf "[core]\\n\\tfsmonitor = touch $OWNED; true\\n"'
IN_REPOSITORY = {
    "a hook": "plant {git}/hooks/post-commit",
    "hooks in place of hooks": (
        "mv {git}/hooks {git}/old; rm -rf {git}/hooks; plant {git}/hooks/post-commit"
    ),
    "its configuration": "{fsmonitor} >> {git}/config",
    "its configuration replaced": "{fsmonitor} > {git}/new; mv -f {git}/new {git}/config",
    "the configuration of a worktree": "{fsmonitor} > {git}/config.worktree",
    "another folder for all that": (
        "cp -r {git} evil; {fsmonitor} >> evil/config; "
        'rm -f {git}/commondir; echo "$(pwd)/evil" > {git}/commondir'
    ),
    "files that go through a filter": (
        "plant {git}/../tool; mkdir -p {git}/info; echo '* filter=owners' > {git}/info/attributes"
    ),
    "the same in place of info": (
        "plant {git}/../tool; mv {git}/info {git}/old; mkdir {git}/info; "
        "echo '* filter=owners' > {git}/info/attributes"
    ),
    "the whole folder replaced": (
        "cp -r {git} copy; {fsmonitor} >> copy/config; mv {git} away; mv copy {git}"
    ),
}


@pytest.mark.parametrize("attacked", ["the workspace's own", "one in it"])
@pytest.mark.parametrize("hooks", ["hooks are there", "no hooks"])
@pytest.mark.parametrize("name", IN_REPOSITORY)
def test_a_worker_makes_no_repository_run_programs(
    here: Ground, name: str, hooks: str, attacked: str
) -> None:
    folder = here.workspace if attacked == "the workspace's own" else here.workspace / "in" / "it"
    repository(folder)
    run_git(folder, "config", "extensions.worktreeConfig", "true")
    if hooks == "no hooks":
        for path in (folder / ".git" / "hooks").iterdir():
            path.unlink()
        (folder / ".git" / "hooks").rmdir()
    owned = here.root / "owned"
    line = IN_REPOSITORY[name].format(git=folder / ".git", fsmonitor=FSMONITOR)
    attack(here, f"OWNED={owned}\n{PLANT}\ncd {folder}\n{line}")
    what_the_owner_does(here.workspace)
    assert not owned.exists()
    assert "nothing to commit" in run_git(folder, "status", "--untracked-files=no")


def test_the_same_attacks_succeed_where_nothing_is_shut(here: Ground) -> None:
    """Else the tests above would pass whatever is done."""
    for number, (name, attempt) in enumerate(IN_REPOSITORY.items()):
        folder = here.root / f"open-{number}"
        repository(folder)
        run_git(folder, "config", "extensions.worktreeConfig", "true")
        owned = here.root / f"owned-{number}"
        line = attempt.format(git=folder / ".git", fsmonitor=FSMONITOR)
        process.output(["/bin/sh", "-c", f"OWNED={owned}\n{PLANT}\n{line}"], cwd=folder)
        what_the_owner_does(folder)
        assert owned.exists(), name


def of_another_name(kind: str, top: Path, seed: Path) -> tuple[Path, Path]:
    """A repository below `top` whose git folder is not called `.git`.

    Gives where one works with it, and the git folder.
    """
    top.mkdir(parents=True)
    if kind == "bare, its worktree beside it":
        folder, tree = top / ".bare", top / "main"
        run_git(top, "clone", "-q", "--bare", str(seed), str(folder))
        (top / ".git").write_text("gitdir: ./.bare\n")
        run_git(folder, "worktree", "add", "-q", str(tree))
    elif kind == "bare, its worktree elsewhere":
        folder, tree = top / "x" / "project.git", top / "wt"
        run_git(top, "clone", "-q", "--bare", str(seed), str(folder))
        run_git(folder, "worktree", "add", "-q", str(tree))
    elif kind == "bare, and nothing more":
        folder = tree = top / "only.git"
        run_git(top, "clone", "-q", "--bare", str(seed), str(folder))
    else:
        folder, tree = top / "away" / "folder", top / "tree"
        repository(tree)
        folder.parent.mkdir()
        if kind == "kept elsewhere":
            run_git(tree, "init", "-q", f"--separate-git-dir={folder}")
        else:
            (tree / ".git").rename(folder)
            (tree / ".git").symlink_to(folder)
    return tree, folder


@pytest.mark.parametrize("in_front", ["", "in"])
@pytest.mark.parametrize(
    "kind",
    [
        *("bare, its worktree beside it", "bare, its worktree elsewhere"),
        *("bare, and nothing more", "kept elsewhere", "linked"),
    ],
)
def test_a_git_folder_of_another_name_is_shut_as_well(
    here: Ground, kind: str, in_front: str
) -> None:
    seed = here.root / "seed"
    repository(seed)
    for top in (here.workspace / in_front / "proj", here.root / "open"):
        tree, folder = of_another_name(kind, top, seed)
        shutil.rmtree(folder / "hooks")
        owned = here.root / f"owned-{top.name}"
        line = (
            f"OWNED={owned}\n{PLANT}\nplant {folder}/hooks/post-commit; "
            f"plant {folder}/hooks/post-receive; "
            f"{FSMONITOR} >> {folder}/config; {FSMONITOR} > {folder}/config.worktree; "
            f"mv {folder} {folder}-old && mv {folder}-old {folder} && echo moved; "
            f"P={folder.parent}; mv $P $P-old && mv $P-old $P && echo moved; "
            f"cd {tree} && echo two >> file; git {' '.join(WHO)} commit -qam two; echo end"
        )
        if top.name == "open":  # else all this would prove nothing
            process.output(["/bin/sh", "-c", line], cwd=here.workspace)
        else:
            before = (folder / "config").read_bytes()
            said = attack(here, line)
            assert "end" in said
            assert "moved" not in said
            assert (folder / "config").read_bytes() == before
            assert kind == "bare, and nothing more" or "two" in run_git(tree, "log", "-1")
        what_the_owner_does(tree)
        run_git(seed, "push", "-q", str(folder), "HEAD:refs/heads/pushed")
        assert owned.exists() == (top.name == "open")


def test_who_pushes_to_a_bare_repository_meanwhile_can(here: Ground) -> None:
    seed = here.root / "seed"
    repository(seed)
    _, folder = of_another_name("bare, and nothing more", here.workspace / "proj", seed)
    with worker(here, here.workspace):
        (seed / "file").write_text("two\n")
        run_git(seed, "commit", "-qam", "two")
        assert "fatal" not in run_git(seed, "push", "-q", str(folder), "HEAD")
        assert "two" in run_git(folder, "log", "-1")
    assert "two" in run_git(folder, "log", "-1")
    assert not (folder / "commondir").exists()


def test_a_git_folder_of_another_name_robbed_of_its_head_stays_shut(here: Ground) -> None:
    seed = here.root / "seed"
    repository(seed)
    _, folder = of_another_name("bare, and nothing more", here.workspace / "proj", seed)
    known = folders_of(here, here.workspace).met
    assert known == [folder]
    (folder / "HEAD").rename(here.workspace / "head")
    with git.held(here.workspace, here.state, known) as found:
        assert found.shut == [folder]
        assert "it has no HEAD" in found.notes[0]
    shutil.rmtree(folder)
    folder.mkdir()  # by its owner, for something else
    with git.held(here.workspace, here.state, known) as found:
        assert (found.shut, found.notes) == ([], [])


IN_SUBMODULE = {
    "a hook": "plant .git/modules/sub/hooks/post-commit",
    "its configuration": "{fsmonitor} >> .git/modules/sub/config",
    "another folder for all that": (
        "cp -r .git/modules/sub evil; sed -i /worktree/d evil/config; {fsmonitor} >> evil/config; "
        'echo "$(pwd)/evil" > .git/modules/sub/commondir'
    ),
    "another git folder": (
        "cp -r .git/modules/sub evil; sed -i /worktree/d evil/config; "
        "{fsmonitor} >> evil/config; echo gitdir: ../evil > sub/.git"
    ),
    "its file replaced": (
        "cp -r .git/modules/sub evil; sed -i /worktree/d evil/config; {fsmonitor} >> evil/config; "
        "rm -f sub/.git; echo gitdir: ../evil > sub/.git"
    ),
    "its folder replaced": (
        "cp -r .git/modules/sub evil; sed -i /worktree/d evil/config; {fsmonitor} >> evil/config; "
        "mv sub old; mkdir sub; cp old/file sub; echo gitdir: ../evil > sub/.git"
    ),
}


@pytest.mark.parametrize("name", IN_SUBMODULE)
def test_a_worker_makes_no_submodule_run_programs(here: Ground, name: str) -> None:
    library, owned = here.root / "library", here.root / "owned"
    repository(library)
    for folder in (here.workspace, here.root / "open"):
        repository(folder)
        run_git(folder, "submodule", "add", "-q", str(library), "sub")
        run_git(folder, "commit", "-qm", "sub")
        assert (folder / ".git" / "modules" / "sub" / "HEAD").exists()
    line = f"OWNED={owned}\n{PLANT}\n" + IN_SUBMODULE[name].format(fsmonitor=FSMONITOR)
    attack(here, line)
    what_the_owner_does(here.workspace)
    assert not owned.exists()
    process.output(["/bin/sh", "-c", line], cwd=here.root / "open")
    what_the_owner_does(here.root / "open")
    assert owned.exists()


def linked(here: Ground) -> tuple[Path, Path, Path]:
    """A worktree with its state folder; gives it, its repository, and another worktree of that."""
    repo, tree, other = (here.root / name for name in ("repo", "tree", "other"))
    repository(repo)
    for folder in (tree, other):
        run_git(repo, "worktree", "add", "-q", str(folder))
    return tree, repo, other


def folders_of(here: Ground, workspace: Path) -> GitFolders:
    with git.held(workspace, here.state) as found:
        return found


def test_a_linked_worktree_has_two_folders(here: Ground) -> None:
    tree, repo, _ = linked(here)
    found = folders_of(here, tree)
    assert found.writable == [repo / ".git", repo / ".git" / "worktrees" / "tree"]
    assert found.notes == []


def test_a_worker_commits_in_a_linked_worktree_and_leaves_it_as_it_is(here: Ground) -> None:
    tree, repo, other = linked(here)
    own, owned = repo / ".git" / "worktrees" / "tree", here.root / "owned"
    line = (
        f"OWNED={owned}\n{PLANT}\necho two >> file; git {' '.join(WHO)} commit -qam two; "
        f"echo / > {own}/commondir; echo / > {own}/gitdir; rm -f {own}/commondir; "
        f"{FSMONITOR} > {own}/config.worktree; {FSMONITOR} > {own}/../other/config.worktree; "
        f"echo / > {own}/../other/commondir; plant {repo}/.git/hooks/post-commit; "
        f"mv {own} {own}2; mv {repo}/.git {repo}/old; echo gitdir: / > .git; echo end"
    )
    run_git(repo, "config", "extensions.worktreeConfig", "true")
    assert "end" in attack(here, line, tree)
    assert "two" in run_git(tree, "log", "-1")
    for folder in (tree, repo, other):
        what_the_owner_does(folder)
    assert not owned.exists()
    assert (own / "commondir").read_text() == "../..\n"
    assert folders_of(here, tree).notes == []


def test_no_file_of_a_worktree_makes_another_folder_writable(here: Ground) -> None:
    tree, repo, _ = linked(here)
    own = repo / ".git" / "worktrees" / "tree"
    for name, said in (
        ("commondir", "/"),
        ("commondir", str(here.root)),
        ("commondir", "\0"),
        ("gitdir", str(here.root / "other" / ".git")),
        ("HEAD", None),
    ):
        before = (own / name).read_text()
        (own / name).unlink() if said is None else (own / name).write_text(said)
        found = folders_of(here, tree)
        assert found.writable == []
        assert len(found.notes) == 1
        assert found.shut == [tree / ".git"]
        (own / name).write_text(before)
    assert folders_of(here, tree).writable


def test_a_git_file_that_names_what_is_not_its_own_is_refused(here: Ground) -> None:
    tree, repo, _ = linked(here)
    elsewhere = here.root / "elsewhere"
    repository(elsewhere)
    (here.root / "home" / "worktrees" / "x").mkdir(parents=True)
    own = repo / ".git" / "worktrees" / "other"
    home = here.root / "home" / "worktrees" / "x"
    for name, text in (("gitdir", f"{tree}/.git"), ("commondir", "../.."), ("HEAD", "ref: x")):
        (home / name).write_text(text)
    for place in (elsewhere / ".git", own, home, Path("/"), here.state, Path("nowhere")):
        (tree / ".git").write_text(f"gitdir: {place}\n")
        found = folders_of(here, tree)
        assert (found.writable, found.shut) == ([], [tree / ".git"]), place
        assert "is read-only" in found.notes[0]
    (tree / ".git").unlink()
    os.mkfifo(tree / ".git")
    assert folders_of(here, tree).writable == []
    (tree / ".git").unlink()
    (tree / ".git").symlink_to(elsewhere / ".git")
    assert folders_of(here, tree).notes == [
        f"the git folder of {tree}/.git is read-only: it is a link"
    ]


def test_a_submodule_may_be_a_workspace(here: Ground) -> None:
    library, above = here.root / "library", here.root / "above"
    repository(library)
    repository(above)
    run_git(above, "submodule", "add", "-q", str(library), "sub")
    found = folders_of(here, above / "sub")
    assert (found.writable, found.notes) == ([above / ".git" / "modules" / "sub"], [])
    commit = f"git {' '.join(WHO)} commit -qam two"
    attack(here, f"echo two >> file; {commit}; echo x > ../.git/modules/sub/config", above / "sub")
    assert "two" in run_git(above / "sub", "log", "-1")


def test_what_is_made_to_be_shut_is_no_trouble_to_git_and_goes(here: Ground) -> None:
    repository(here.workspace)
    place = here.workspace / ".git" / "commondir"
    with worker(here, here.workspace), worker(here, here.workspace):
        assert place.read_text() == ".\n"
        for words in (["status"], ["commit", "-q", "--allow-empty", "-m", "x"], ["gc", "-q"]):
            assert "fatal" not in run_git(here.workspace, *words)
    assert not place.exists()
    assert "nothing to commit" in run_git(here.workspace, "status", "--untracked-files=no")


def test_what_a_run_holds_stays_when_another_ends(here: Ground) -> None:
    repository(here.workspace)
    place = here.workspace / ".git" / "commondir"
    with git.held(here.workspace, here.state):
        inode = place.stat().st_ino
        with git.held(here.workspace, here.state):
            pass
        assert place.stat().st_ino == inode
    assert not place.exists()


@pytest.mark.slow
def test_what_one_run_holds_is_not_removed_by_another(here: Ground, size: int) -> None:
    """Nor does it open for a moment when runs begin and end all the time."""
    repository(here.workspace)
    place, stop = here.workspace / ".git" / "commondir", threading.Event()

    def begin_and_end() -> None:
        while not stop.is_set():
            folders_of(here, here.workspace)

    threads = [threading.Thread(target=begin_and_end) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10 * size):
            with git.held(here.workspace, here.state):
                inode = place.stat().st_ino
                for _ in range(20):
                    assert place.stat().st_ino == inode
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not place.exists()


@pytest.mark.timeout(300)
def test_a_worker_that_locks_a_repository_it_made_holds_up_no_other(here: Ground) -> None:
    repository(here.workspace)
    repository(here.workspace / "new")
    place = here.workspace / "new" / ".git" / "commondir"
    place.write_text(".\n")
    with place.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = folders_of(here, here.workspace)
    assert found.writable == [here.workspace / ".git"]
    assert place.parent in found.shut
    assert "locked by another program" in found.notes[0]


def test_a_planted_commondir_is_told_and_the_folder_given_to_nobody(here: Ground) -> None:
    repository(here.workspace)
    (here.workspace / ".git" / "commondir").write_text("/")
    found = folders_of(here, here.workspace)
    assert found.writable == []
    assert "leads elsewhere" in found.notes[0]
    assert "Read-only" in attack(here, "echo x > .git/made")


def test_a_link_in_the_place_of_hooks_is_not_followed(here: Ground) -> None:
    repository(here.workspace)
    hooks = here.workspace / ".git" / "hooks"
    hooks.rename(here.workspace / "hooks")
    hooks.symlink_to("../hooks")
    found = folders_of(here, here.workspace)
    both = [here.workspace / ".git", here.workspace / "hooks"]
    assert (found.writable, found.shut) == ([], both)


def test_a_link_that_a_worker_made_closes_nothing(here: Ground) -> None:
    (here.workspace / "x").mkdir()
    (here.workspace / "x" / ".git").symlink_to(here.workspace)
    attack(here, "echo hi > made")
    assert (here.workspace / "made").exists()


def test_what_nobody_looked_into_is_shut(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_folders, "MOST_FOLDERS", 3)
    repository(here.workspace / "a" / "b" / "c")
    (here.workspace / "d").mkdir()
    found = folders_of(here, here.workspace)
    assert found.shut == [here.workspace / "a" / "b"]
    assert f"these were not: {here.workspace}/a/b" in found.notes[0]
    attack(here, f"{FSMONITOR} >> a/b/c/.git/config; mv a/b away; mkdir -p a/b; echo hi > d/made")
    assert "fsmonitor" not in (here.workspace / "a/b/c/.git/config").read_text()
    assert (here.workspace / "d" / "made").exists()


def test_too_many_folders_to_shut_are_shut_by_those_around_them(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_folders, "MOST_FOLDERS", 3)
    monkeypatch.setattr(git_folders, "MOST_SHUT", 2)
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (here.workspace / name).mkdir(parents=True)
    assert folders_of(here, here.workspace).shut == [here.workspace / "a", here.workspace / "b"]
    (here.workspace / "c" / "1").mkdir(parents=True)
    with pytest.raises(EngineError, match="or take a smaller workspace"):
        folders_of(here, here.workspace)


def test_who_makes_more_than_can_be_kept_safe_says_so(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_folders, "MOST_GIT_FOLDERS", 30)
    monkeypatch.setattr(git_folders, "MOST_SHUT", 10)
    with git.held(here.workspace, here.state) as found:
        for number in range(60):
            for name in ("HEAD", "objects", "refs"):
                (here.workspace / f"x{number}" / name).mkdir(parents=True)
    said = f"{here.workspace} has more than 200000 folders or 30 git folders"
    assert found.left[0].startswith(said)
    assert found.left[-1] == "… and 10 more"
    assert len(found.left) == 22
    with pytest.raises(EngineError, match="none works there until you remove some"):
        folders_of(here, here.workspace)


def test_decoys_open_no_repository(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "MOST_WRITABLE", 2)
    monkeypatch.setattr(git_folders, "MOST_GIT_FOLDERS", 5)
    attack(
        here, "for i in 0 1 2; do mkdir -p a$i/objects a$i/refs; touch a$i/HEAD a$i/config; done"
    )
    repository(here.workspace / "proj")
    attack(here, f"{FSMONITOR} >> proj/.git/config; mv proj gone")
    assert "fsmonitor" not in (here.workspace / "proj/.git/config").read_text()
    assert "2 git folders beyond 2" in folders_of(here, here.workspace).notes[-1]
    for number in range(3):
        repository(here.workspace / f"b{number}")
    attack(here, f"for it in proj b0 b1 b2; do {FSMONITOR} >> $it/.git/config; done")
    assert not [
        path
        for path in here.workspace.rglob(".git")
        if "fsmonitor" in (path / "config").read_text()
    ]


def test_links_that_git_would_write_through_are_removed_and_told(here: Ground) -> None:
    repository(here.workspace)
    mine = here.root / "mine"
    mine.write_text("mine\n")
    with git.held(here.workspace, here.state) as found:
        inside = sandbox.masked(
            [], here.state, writable=[here.workspace], read_only=found.shut, pinned=found.pinned
        )
        line = f"ln -sf {mine} .git/COMMIT_EDITMSG; ln -sf {mine} .git/logs/HEAD"
        process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
        assert (here.workspace / ".git" / "COMMIT_EDITMSG").is_symlink()
    what_the_owner_does(here.workspace)
    assert mine.read_text() == "mine\n"
    assert [f"a link to {mine}" in said for said in found.left] == [True, True]
    # As it stays when the consumer is killed meanwhile.
    (here.workspace / ".git" / "FETCH_HEAD").symlink_to(mine)
    assert folders_of(here, here.workspace).shut == [here.workspace / ".git"]


def test_what_comes_while_a_run_goes_on_is_told(here: Ground) -> None:
    with git.held(here.workspace, here.state) as found:
        repository(here.workspace / "proj")
        (here.workspace / "proj" / ".mimikit").mkdir()
    git_folder, state = found.left
    assert git_folder.startswith(f"{here.workspace}/proj/.git came while it ran")
    assert state.startswith(f"{here.workspace}/proj/.mimikit came while it ran")
    assert folders_of(here, here.workspace).states == [here.workspace / "proj" / ".mimikit"]


@pytest.mark.parametrize("name", [".hg", ".jj", ".sl", ".pijul", "_darcs"])
def test_a_repository_that_is_not_gits_is_read_and_never_written(here: Ground, name: str) -> None:
    for folder in (here.workspace, here.workspace / "in" / "it"):
        (folder / name / "store" / ".git").mkdir(parents=True)
        (folder / name / "hgrc").write_text("[hooks]\n")
    line = (
        f"for it in . in/it; do echo x >> $it/{name}/hgrc; echo x > $it/{name}/made; "
        f"mv $it/{name} $it/away; done; mv in away; cat in/it/{name}/hgrc; echo hi > in/it/made"
    )
    assert "[hooks]" in attack(here, line)
    for folder in (here.workspace, here.workspace / "in" / "it"):
        assert sorted(path.name for path in (folder / name).iterdir()) == ["hgrc", "store"]
        assert (folder / name / "hgrc").read_text() == "[hooks]\n"
    assert (here.workspace / "in" / "it" / "made").exists()
    assert folders_of(here, here.workspace).met == []
    with git.held(here.workspace, here.state) as found:
        (here.workspace / "new" / name).mkdir(parents=True)
    assert found.left[0].startswith(f"{here.workspace}/new/{name} came while it ran: its program")


def test_many_decoys_of_them_open_nothing(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_folders, "MOST_GIT_FOLDERS", 5)
    for name in ("a1/.hg", "a2/.hg", "a3/.hg", "a4/.hg", "a5/.hg", "b/c/.hg"):
        (here.workspace / name).mkdir(parents=True)
    attack(here, "echo x > b/c/.hg/hgrc; mv b away")
    assert list((here.workspace / "b" / "c" / ".hg").iterdir()) == []


def test_a_git_folder_robbed_of_its_head_is_shut_until_it_is_one_again(here: Ground) -> None:
    """Else one run would take it away, and the next write what the third gives back."""
    inner = here.workspace / "in" / "it"
    repository(inner)
    attack(here, "mv in/it/.git/HEAD head")
    assert not (inner / ".git" / "HEAD").exists()
    attack(
        here, f"{FSMONITOR} >> in/it/.git/config; mkdir in/it/.git/made; mv head in/it/.git/HEAD"
    )
    assert "fsmonitor" not in (inner / ".git" / "config").read_text()
    assert not (inner / ".git" / "made").exists()
    assert "it has no HEAD" in folders_of(here, here.workspace).notes[0]


def test_what_was_met_once_is_not_hidden_by_what_is_put_before_it(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "MOST_WRITABLE", 2)
    inner = here.workspace / "in" / "it" / ".git"
    repository(inner.parent)
    known = folders_of(here, here.workspace).met
    assert known == [inner]
    for number in range(3):
        repository(here.workspace / f"decoy-{number}")
    assert inner / "config" not in folders_of(here, here.workspace).shut
    with git.held(here.workspace, here.state, known) as found:
        assert found.met[0] == inner
        assert inner / "config" in found.shut
        assert "read-only as a whole" in found.notes[-1]
    (here.root / "elsewhere").mkdir()
    shutil.move(here.workspace / "in", here.root / "elsewhere")
    (here.workspace / "in").symlink_to(here.root / "elsewhere" / "in")
    with git.held(here.workspace, here.state, known) as found:
        assert inner not in found.met


def test_folders_that_lie_very_deep_hinder_no_run(here: Ground) -> None:
    repository(here.workspace)
    with nested_folders(here.workspace / ".git" / "refs"):
        assert folders_of(here, here.workspace).writable == [here.workspace / ".git"]


@pytest.mark.parametrize("mode", ["000", "400", "600", "300"])
def test_a_folder_that_nobody_can_look_into_is_shut_and_told(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def test() -> None:
        here = ground(root / "ground")
        monkeypatch.setenv("HOME", str(root))
        if not os.access(sys.executable, os.X_OK):  # root's own
            monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        inner, seen = here.workspace / "a" / "in" / "it", here.workspace / "seen"
        seed = here.root / "seed"
        repository(seed)
        repository(inner)
        repository(seen)
        run_git(here.workspace, "clone", "-q", "--bare", str(seed), "a/bare")
        met, said = list[Path](), list[list[str]]()
        spoil = f"for it in a/in/it/.git a/bare; do {FSMONITOR} >> $it/config; done"
        for line in (
            f"mv a/bare/HEAD head; chmod {mode} a",
            f"chmod 755 a; {spoil}; mv a away; mv head a/bare/HEAD; echo hi > made; chmod {mode} a",
            f"chmod 755 a; {spoil}; chmod {mode} a/in/it/.git/logs seen/.git/refs",
            f"chmod 755 seen/.git/refs; {FSMONITOR} >> seen/.git/config",
        ):
            with worker(here, here.workspace, met) as (inside, found):
                process.output([*inside, "/bin/sh", "-c", line], cwd=here.workspace)
            met = found.met
            said.append(found.left)
            if len(said) == 2:
                assert found.closed == [here.workspace / "a"]
                assert here.workspace / "a" in found.shut
                assert found.notes == [
                    "read-only, as their permissions let nobody look into these: "
                    f"{here.workspace}/a"
                ]
                assert (here.workspace / "made").exists()
                (here.workspace / "a").chmod(0o755)  # by its owner
        for folder in (inner / ".git", here.workspace / "a" / "bare", seen / ".git"):
            assert "fsmonitor" not in (folder / "config").read_text(), folder
        assert [len(told) for told in said] == [1, 0, 2, 0]
        assert said[0][0].startswith(f"{here.workspace}/a can not be looked into since it ran")
        assert set(said[2]) == {
            f"gave {path} its permissions back, which had been taken away"
            for path in (f"{inner}/.git/logs", f"{seen}/.git/refs")
        }

    with folder_of_an_ordinary_user() as root:
        as_an_ordinary_user(test)


@pytest.mark.parametrize("mode", ["000", "400", "600", "300"])
def test_the_top_of_the_workspace_is_opened_again(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else none works there any more, nor is the state found by who starts meanwhile."""

    def test() -> None:
        here = ground(root / "ground")
        monkeypatch.setenv("HOME", str(root))
        if not os.access(sys.executable, os.X_OK):  # root's own
            monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        repository(here.workspace)
        here.workspace.chmod(0o750)
        with contextlib.closing(RealDisk(here.state)) as disk:
            with worker(here, here.workspace) as (inside, found):
                process.output([*inside, "/bin/sh", "-c", f"chmod {mode} ."], cwd=here.workspace)
                assert stat.S_IMODE(here.workspace.stat().st_mode) == int(mode, 8)
                assert disk.is_in_place()
            assert disk.is_in_place()
        assert stat.S_IMODE(here.workspace.stat().st_mode) == 0o750
        assert found.left == [
            f"gave {here.workspace} its permissions back, which it had taken away"
        ]
        assert folders_of(here, here.workspace).writable == [here.workspace / ".git"]

    with folder_of_an_ordinary_user() as root:
        as_an_ordinary_user(test)


@pytest.mark.parametrize("place", ["remotes", "branches"])
def test_a_push_goes_where_the_owner_said(here: Ground, place: str) -> None:
    """By files in these folders git knew its remotes once, and still does."""
    for open_one in (False, True):
        folder = here.root / "open" if open_one else here.workspace
        repository(folder)
        shutil.rmtree(folder / ".git" / place, ignore_errors=True)
        away, branch = here.root / f"away-{open_one}", run_git(folder, "branch", "--show-current")
        run_git(here.root, "init", "-q", "--bare", str(away))
        said = f"URL: {away}\nPush: refs/heads/*:refs/heads/*" if place == "remotes" else away
        line = f"mkdir -p .git/{place}; printf '{said}\n' > .git/{place}/origin; echo end"
        if open_one:
            process.output(["/bin/sh", "-c", line], cwd=folder)
        else:
            assert "end" in attack(here, line)
        # A push that finds nobody there ends before the shell it began: only a run ends that, too.
        process.output(["git", "push", "origin", branch.strip()], cwd=folder)
        assert bool(run_git(away, "branch", "--list").strip()) == open_one


@pytest.mark.parametrize("top", ["", "in"])
def test_a_repository_in_two_parts_is_told(here: Ground, top: str) -> None:
    folder = here.workspace / top
    folder.mkdir(exist_ok=True)
    line = (
        "git init -q --bare store; mv store/HEAD .; echo store > commondir; "
        f"{FSMONITOR} >> store/config"
    )
    with worker(here, here.workspace) as (inside, found):
        process.output([*inside, "/bin/sh", "-c", line], cwd=folder)
    assert "true" in run_git(folder, "rev-parse", "--is-bare-repository")  # git takes it for one
    assert [said.split(" came")[0] for said in found.left] == [f"{folder}/store", str(folder)]
    with worker(here, here.workspace) as (inside, found):
        assert found.left == []
        assert folder / "store" in found.shut
        assert (folder in found.shut) == bool(top)
        assert str(folder) in "".join(found.notes)
        process.output([*inside, "/bin/sh", "-c", "echo hi > made"], cwd=here.workspace)
    assert (here.workspace / "made").exists()  # it closed no workspace to others


def test_what_git_goes_on_with_is_told(here: Ground) -> None:
    repository(here.workspace)
    for words in (["checkout", "-qb", "other"], ["checkout", "-q", "-"]):
        run_git(here.workspace, *words)
    line = f"git {' '.join(WHO)} rebase -q --exec false HEAD~0 2>&1; mkdir -p .git/sequencer"
    with worker(here, here.workspace) as (inside, found):
        process.output(
            [*inside, "/bin/sh", "-c", f"mkdir .git/rebase-merge; {line}"], cwd=here.workspace
        )
    assert [said.partition(" came while it ran: ")[::2] for said in found.left] == [
        (f"{here.workspace}/.git/rebase-merge", "`git rebase --continue` runs what it says"),
        (
            f"{here.workspace}/.git/sequencer",
            "`git cherry-pick --continue or git revert --continue` runs what it says",
        ),
    ]
    with worker(here, here.workspace) as (_, found):
        pass
    assert found.left == []


def test_nothing_is_made_or_removed_through_a_link_that_takes_a_folders_place(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on may exchange folders of its own while another begins or ends."""
    home, proj = here.root / "home", here.workspace / "proj"
    (home / ".bashrc").symlink_to(here.root / "dotfiles")
    for name in ("HEAD", "objects", "refs"):
        (home / name).mkdir()
    repository(proj)
    before = sorted(home.iterdir())
    look, away = git_folders.strange_in, proj / "away"

    def exchange(folder: Path, *more: Callable[[Path], bool]) -> list[Path]:
        """Just after the look, and just before it."""
        seen = look(folder, *more) if moment == "begin" else []
        (proj / ".git").rename(away)
        (proj / ".git").symlink_to(home)
        return look(folder, *more) if moment == "end" else seen

    for moment in ("begin", "end"):
        with contextlib.ExitStack() as stack:
            if moment == "begin":
                monkeypatch.setattr(git, "strange_in", exchange)
            found = stack.enter_context(git.held(here.workspace, here.state))
            monkeypatch.setattr(git, "strange_in", look)
            if moment == "end":
                monkeypatch.setattr(git_mend, "strange_in", exchange)
        assert sorted(home.iterdir()) == before
        assert not any(".bashrc" in said for said in found.left)
        (proj / ".git").unlink()
        away.rename(proj / ".git")
        monkeypatch.setattr(git_mend, "strange_in", look)
    assert not (proj / ".git" / "commondir").exists()
