"""The git of self-awake: a copy of the repository to work in, a branch of its own at the end.

Below the folder: `NAME/repo.git`, a local clone, and `NAME/tree`, a worktree of it. The user's
repository is only read, but for `publish` (one new branch), and `merge` and `discard` of the owner.
No hook, filter, monitor or signing program runs, but in `merge`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from mimikit.engines import process
from mimikit.errors import BadInput
from mimikit.protocol import paths
from mimikit.roles.scratch import remove_scratch

BRANCHES = "mimikit/self-awake-"
MAX_FILES, MAX_DIFF_CHARACTERS = 200, 100_000
"""Of one change; a larger one is refused."""
_TIMEOUT_S, _SHORT_S = 600.0, 20.0
"""The short one is for what the supervisor waits for."""
_REPO = ("--git-dir=repo.git", "--git-dir=repo.git/worktrees/tree", "--work-tree=tree")
_SETTINGS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"),
    *("submodule.recurse=false", "commit.gpgSign=false", "fetch.writeCommitGraph=false"),
    *("user.name=mimikit", "user.email=mimikit@localhost"),
)
_ENV = {"LC_ALL": "C.UTF-8", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_NO_CONFIG = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
}
_REFUSED_MODES = {"120000": "a symbolic link", "160000": "a repository of its own"}


class Worktrees:
    """Each method raises BadInput with git's reason, unless it says otherwise."""

    def __init__(self, state: Path, git: str | None) -> None:
        self._folder, self._program = state / paths.IMPROVEMENTS, git

    def create(self, workspace: Path, name: str) -> Path:
        """A fresh copy of the workspace at HEAD, the only one; its folder."""
        top, prefix = self._place(workspace)
        head = self._git(top, "rev-parse", "--verify", "HEAD^{commit}")
        if self._tip(workspace, BRANCHES.partition("/")[0]):
            raise BadInput("a branch called `mimikit` leaves no room for branches below it")
        self.remove()
        (home := self._folder / name).mkdir(parents=True)
        clone = ("--quiet", "--bare", "--local", "--template=", "--", str(top), "repo.git")
        self._git(home, "clone", *clone)
        self._git(home, _REPO[0], "worktree", "add", "--quiet", "--detach", "tree", head)
        if not (home / "tree" / prefix).is_dir():
            raise BadInput(f"{workspace} is not part of the last commit")
        return home / "tree" / prefix

    def commit(
        self, workspace: Path, name: str, title: str, protected: Sequence[Path]
    ) -> tuple[str, str]:
        """Commit what was changed, in the clone only; gives git's `--stat` and the diff.

        `protected`: paths of the user's repository that must not change.
        """
        top, _ = self._place(workspace)
        home, tree = self._folder / name, self._folder / name / "tree"
        for folder, folders, files in os.walk(tree):
            if folder != str(tree) and ".git" in map(str.lower, (*folders, *files)):
                raise BadInput(f"{Path(folder).relative_to(tree)} was made a repository of its own")
        git = partial(self._git, home, *_REPO[1:])
        base = git("rev-parse", "HEAD")
        git("add", "--all", "--", ":/")
        compare = partial(git, "diff-index", "--cached", "--no-renames", "--no-ext-diff")
        raw = compare("--raw", "-z", base).split("\0")
        changed = list(zip(raw[1::2], raw[::2], strict=False))
        if not changed:
            raise BadInput("nothing was changed")
        diff = compare("--patch", "--no-textconv", base)
        if len(changed) > MAX_FILES or len(diff) > MAX_DIFF_CHARACTERS:
            raise BadInput(f"the change is too large: {len(changed)} files, {len(diff)} characters")
        for path, about in changed:
            if (mode := about.split()[1]) in _REFUSED_MODES:
                raise BadInput(f"{path} became {_REFUSED_MODES[mode]}")
            if ".mimikit" in Path(path).parts or any(map((top / path).is_relative_to, protected)):
                raise BadInput(f"it changed {path}, which is not to be changed")
        made = git("commit-tree", git("write-tree"), "-p", base, "-m", title)
        git("update-ref", f"refs/heads/{BRANCHES}{name}", made)
        return compare("--stat", base), diff

    def publish(self, workspace: Path, name: str) -> None:
        """Bring the branch into the user's repository; its ref comes last, in one step."""
        ref, clone = f"refs/heads/{BRANCHES}{name}", str(self._folder / name / "repo.git")
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        top, _ = self._place(workspace)
        self._git(top, "fetch", *quiet, "--no-auto-maintenance", clone, f"{ref}:{ref}")

    def branches(self, workspace: Path, name: str = "*") -> list[str]:
        """Those of self-awake that are not merged into HEAD; none where there is no repository."""
        words = ("for-each-ref", "--format=%(refname:short)", "--no-merged=HEAD")
        try:
            pattern = f"refs/heads/{BRANCHES}{name}"
            return self._git(workspace, *words, pattern, timeout_s=_SHORT_S).split()
        except BadInput:
            return []

    def diff(self, workspace: Path, branch: str) -> str:
        tip, words = self._tip_of_own(workspace, branch), ("-c", "core.quotePath=false", "diff")
        plain = ("--no-color", "--no-prefix", "--no-ext-diff", "--no-textconv", "-M")
        return self._git(workspace, *words, *plain, f"HEAD...{tip}", timeout_s=_SHORT_S)

    def remove(self) -> None:
        """Remove all copies. What cannot be removed is left to the next time. Raises nothing."""
        if self._folder.exists():
            remove_scratch(self._folder)

    # ---- commands of the owner

    def merge(self, workspace: Path, branch: str) -> str:
        """Merge a branch into the one that is checked out, and delete it."""
        tip = self._tip_of_own(workspace, branch)
        changed = self._git(workspace, "status", "--porcelain", "--untracked-files=no").splitlines()
        if changed:
            got = f"{len(changed)} changed files, such as {changed[0].strip()}"
            raise BadInput(f"expected a clean working tree, got {got}; commit or stash them")
        self._git(workspace, "symbolic-ref", "--quiet", "HEAD")  # a detached HEAD would lose it
        try:
            self._git(workspace, "merge-tree", "--write-tree", "HEAD", tip)
        except BadInput:
            raise BadInput(f"it conflicts; merge it by hand: `git merge {branch}`") from None
        self._run(workspace, ["merge", "--no-edit", branch], _ENV)
        self._git(workspace, "branch", "--quiet", "-d", branch)
        return f"merged {branch}"

    def discard(self, workspace: Path, branch: str) -> str:
        tip = self._tip_of_own(workspace, branch)[:12]
        self._git(workspace, "branch", "--quiet", "-D", branch)
        return f"deleted {branch}; `git branch {branch} {tip}` brings it back"

    def _tip_of_own(self, workspace: Path, branch: str) -> str:
        tip = self._tip(workspace, branch) if branch.startswith(BRANCHES) else ""
        if not tip:
            known = ", ".join(self.branches(workspace)) or "there is none"
            raise BadInput(f"expected a branch of self-awake ({known}), got {branch[:100]!r}")
        return tip

    # ---- git

    def _place(self, workspace: Path) -> tuple[Path, str]:
        """The top of the working tree, and the workspace in it."""
        words = ("rev-parse", "--show-toplevel", "--show-prefix")
        top, _, prefix = self._git(workspace, *words).partition("\n")
        return Path(top), prefix

    def _tip(self, workspace: Path, branch: str) -> str:
        try:
            return self._git(workspace, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        except BadInput:
            return ""

    def _git(self, cwd: Path, *words: str, timeout_s: float = _TIMEOUT_S) -> str:
        """The output, without the user's configuration and hooks."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return self._run(cwd, [*settings, *words], _ENV | _NO_CONFIG, timeout_s)

    def _run(
        self, cwd: Path, words: Sequence[str], env: Mapping[str, str], timeout_s: float = _TIMEOUT_S
    ) -> str:
        if self._program is None:
            raise BadInput("git is not installed")
        own, argv = process.environment(more=env), [self._program, "--no-pager", *words]
        code, out, errors = process.output(argv, cwd=cwd, env=own, timeout_s=timeout_s)
        if code != 0:
            raise BadInput(f"git: {[*errors.strip().splitlines(), f'exit code {code}'][0][:500]}")
        return out.strip("\n")
