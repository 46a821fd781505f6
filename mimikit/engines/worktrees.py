"""Worktrees of the user's repository for self-awake: made, read, committed, removed by our git.

Nothing here looks at what a Worker may have written in order to find git's folders: each command is
told them. Hooks, filters, monitors and whatever else makes git run programs are off, so that
nothing a repository says is run by this process. The user's working tree, index, HEAD, stash and
branches are only read; what is written are objects, `worktrees/NAME` and `refs/heads/mimikit/…`.

Each step may be repeated from any state in which a kill leaves it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from mimikit.engines import process
from mimikit.engines.worktree_git import AUTHOR, LINKS, WorktreeGit, add
from mimikit.errors import BadInput
from mimikit.protocol.self_awake import RepositoryPlace

BRANCHES = "mimikit/self-awake-"
"""How the names of its branches begin."""
MOST_FILES, MOST_DIFF_BYTES = 200, 200_000
_GONE = ".gone-"
"""How the names of worktrees begin that are being removed."""


@dataclass(frozen=True, slots=True)
class WorktreeChange:
    """What stands in a worktree that was not in the commit it came from."""

    files: Sequence[str]
    """Paths in the repository, with `/`."""
    diff: str
    """Cut where it is very long."""
    tree: str
    """The id of it, as git calls it."""
    whole: str = ""
    """That of all that stands there, also of what is not part of the change."""
    same: str = ""
    """The branch of its own that holds just this already; empty: none."""
    odd: str = ""
    """Why it can not be kept; empty: it can."""


class SweptWorktrees(NamedTuple):
    """What became of worktrees that no state tells of."""

    removed: list[str]
    """Their names."""
    kept: list[str]
    """Paths of those that hold work, which may be somebody's."""


class Worktrees(Protocol):
    """What self-awake asks of git. A BadInput says why something can not be."""

    def look(self, workspace: Path) -> RepositoryPlace: ...

    def branches(self, place: RepositoryPlace) -> list[str]:
        """Those of its own that no other branch of the user's holds."""
        ...

    def make(self, place: RepositoryPlace, name: str, branch: str) -> None: ...

    def change(
        self, place: RepositoryPlace, name: str, known: Collection[str] | None = None
    ) -> WorktreeChange:
        """`known`: new files that are part of it; others are not. None: all are."""
        ...

    def commit(
        self,
        place: RepositoryPlace,
        name: str,
        branch: str,
        tree: str,
        message: str,
        known: Collection[str] | None = None,
    ) -> str: ...

    def remove(self, place: RepositoryPlace, name: str, branch: str | None, whole: str = "") -> str:
        """`branch`: to be removed with it. `whole`: what may stand there; empty: anything.

        Gives the path of a worktree that stays as somebody else works there; empty: it is gone.
        """
        ...

    def sweep(self, keep: str | None) -> SweptWorktrees:
        """Remove the worktrees of this state but one, unless there is work in them."""
        ...


class GitWorktrees:
    """The real ones. One step at a time, by whatever thread."""

    def __init__(
        self, folder: Path, state: Path, step: Callable[[str], None] = lambda _what: None
    ) -> None:
        """`folder`: where they are made. `step` hears of each change before it; for tests."""
        self._folder, self._step = folder, step
        self._git = WorktreeGit(folder, state)

    def look(self, workspace: Path) -> RepositoryPlace:
        """The repository of the workspace.

        Raises:
            BadInput: there is none in which a worktree can be made.
        """
        if shutil.which("git") is None:
            raise BadInput("expected git, got none; install it")
        workspace = Path(os.path.realpath(workspace))
        asked = ("--show-toplevel", "--show-prefix", "--git-common-dir")
        said = self._git.attempt(["rev-parse", "--path-format=absolute", *asked], workspace)
        if said is None:
            raise BadInput(f"{workspace} lies in no git repository")
        top, prefix, git_dir = (Path(line) for line in (said.split("\n") + [""] * 3)[:3])
        prefix = Path(os.path.relpath(workspace, top)) if top != workspace else Path()
        head = self._git.attempt(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], workspace)
        if head is None:
            raise BadInput(f"{top} has no commit yet to build on")
        place = RepositoryPlace(
            top=str(top),
            prefix="" if prefix == Path() else prefix.as_posix(),
            git_dir=os.path.realpath(git_dir),
            head=head.strip(),
            is_first=not (git_dir / "worktrees").exists(),
        )
        if self._folder.is_relative_to(os.path.realpath(top)):
            said = f"expected a place for worktrees outside of {top}, got {self._folder}"
            raise BadInput(f"{said}; set self_awake.folder")
        if (
            place.prefix
            and self._git.attempt(["cat-file", "-e", f"{place.head}:{place.prefix}"], top) is None
        ):
            raise BadInput(f"{workspace} is not in the commit {place.head[:12]}")
        self._see_that_it_can_be_made(place)
        return place

    def _see_that_it_can_be_made(self, place: RepositoryPlace) -> None:
        """Find what would stop `make`, before anybody thinks of what to do there.

        Raises:
            BadInput: what stands in the way.
        """
        around = BRANCHES.partition("/")[0]
        if self._git.attempt(
            ["show-ref", "--verify", f"refs/heads/{around}"], Path(place.top), place
        ):
            said = f"expected room for branches {BRANCHES}…, got a branch {around}"
            raise BadInput(f"{said} in {place.top}; rename it")
        self._make_folder()

    def _make_folder(self) -> None:
        """Make the folder of worktrees.

        Raises:
            BadInput: it can not be made, or nothing can be made in it.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self._folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._folder))
        except OSError as error:
            said = f"expected a folder for worktrees that can be written, got {error}"
            raise BadInput(f"{said}; set self_awake.folder") from error

    def branches(self, place: RepositoryPlace) -> list[str]:
        said = self._git.run(
            place, ["for-each-ref", "--format=%(refname:short)", f"--no-merged={place.head}",
                    f"refs/heads/{BRANCHES}*"],
        )  # fmt: skip
        return said.split()

    def make(self, place: RepositoryPlace, name: str, branch: str) -> None:
        """Make a worktree on a branch of its own; what an earlier try left goes first.

        Raises:
            BadInput: git does not make it.
        """
        if left := self.remove(place, name, branch):
            raise BadInput(f"somebody else works in {left}")
        self._make_folder()
        path = self._folder / name
        self._step("make")
        words = ["worktree", "add", "--quiet", "--no-track", "-b", branch, str(path), place.head]
        self._git.run(place, words, self._git.filters_off(Path(place.git_dir)))

    def change(
        self, place: RepositoryPlace, name: str, known: Collection[str] | None = None
    ) -> WorktreeChange:
        """What stands there now; nothing is written into the repository.

        known: of what is new only this counts: the rest is what checks have left behind.

        Raises:
            BadInput: it can not be read.
        """
        with self._git.staged(place, name) as stage:
            tree = whole = stage(["write-tree"]).strip()
            if known is not None:
                add(stage, place, self._folder / name, known)
                tree = stage(["write-tree"]).strip()
            raw = stage(["diff-tree", "-r", "-z", "--no-renames", "--raw", place.head, tree])
            files, odd = _told(raw)
            shown = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"]
            diff = stage(["diff-tree", "-r", "-p", *shown, place.head, tree])
        if len(files) > MOST_FILES:
            odd = f"it changes {len(files)} files, more than {MOST_FILES}"
        if len(diff) > MOST_DIFF_BYTES:
            odd = odd or f"its diff has {len(diff):,} characters, more than {MOST_DIFF_BYTES:,}"
        return WorktreeChange(
            files, diff[:MOST_DIFF_BYTES], tree, whole, self._same(place, tree), odd
        )

    def _same(self, place: RepositoryPlace, tree: str) -> str:
        words = ["for-each-ref", "--format=%(tree) %(refname:short)", f"refs/heads/{BRANCHES}*"]
        found = (line.partition(" ") for line in self._git.run(place, words).splitlines())
        return next((branch for one, _, branch in found if one == tree), "")

    def commit(
        self,
        place: RepositoryPlace,
        name: str,
        branch: str,
        tree: str,
        message: str,
        known: Collection[str] | None = None,
    ) -> str:
        """Commit what was judged on its branch; gives the commit, the same when it is repeated.

        Raises:
            BadInput: what stands there is another than was judged, or somebody moved the branch.
        """
        ref = f"refs/heads/{branch}"
        tip = self._git.run(place, ["rev-parse", "--verify", ref]).strip()
        if tip != place.head:
            known = self._git.run(place, ["rev-parse", f"{tip}^{{tree}}", f"{tip}^@"]).split()
            if known == [tree, place.head]:
                return tip
            raise BadInput(f"{branch} was changed by somebody else")
        with self._git.staged(place, name, known, kept=True) as stage:
            self._step("objects")
            found = stage(["write-tree"]).strip()
        if found != tree:
            raise BadInput("the files were changed after they had been judged")
        made = self._git.run(place, ["commit-tree", tree, "-p", place.head, "-m", message]).strip()
        self._step("ref")
        why = "self-awake: commit"
        self._git.run(place, ["update-ref", "-m", why, "--create-reflog", ref, made, place.head])
        return made

    def remove(self, place: RepositoryPlace, name: str, branch: str | None, whole: str = "") -> str:
        """Remove a worktree, and its branch; what is gone already is no matter.

        By hand: git removes none that a kill has left half made, and prunes those of others. All of
        it stays where somebody else has put something on the branch, or works in the folder: it is
        theirs. Gives the path of a folder that stays.
        """
        git_dir, tip, path = Path(place.git_dir), None, self._folder / name
        if git_dir.is_dir():
            left = str(path) if os.path.lexists(path) else ""
            tip = self._tip(place, branch) if branch is not None else None
            if tip is not None and not self._is_ours(place, tip):
                return left
            if left and self._is_taken(place, name, whole):
                return left
        self._erase(place, name, branch, tip)
        return ""

    def _erase(
        self, place: RepositoryPlace, name: str, branch: str | None, tip: str | None
    ) -> None:
        """Remove all of it, whatever it holds; the branch if it is where it was seen: at `tip`."""
        git_dir = Path(place.git_dir)
        self._step("folder")
        _remove_worktree(self._folder / name)
        self._step("record")
        _remove(git_dir / "worktrees" / name)
        if place.is_first:
            _remove_empty(git_dir / "worktrees")
        if branch is None or not git_dir.is_dir():
            return
        ref = f"refs/heads/{branch}"
        self._step("branch")
        # Of a git that was killed.
        for left in (f"{ref}.lock", f"logs/{ref}.lock"):
            with contextlib.suppress(OSError):
                (git_dir / left).unlink()
        if tip is not None:  # moved since then it stays
            self._git.run(place, ["update-ref", "--no-deref", "-d", ref, tip])
        for kept in (git_dir / "logs" / ref, git_dir / ref):  # where git was killed
            with contextlib.suppress(OSError):
                kept.unlink(missing_ok=True)
            _remove_empty(kept.parent)

    def _tip(self, place: RepositoryPlace, branch: str) -> str | None:
        words = ["rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"]
        found = self._git.attempt(words, Path(place.git_dir), place)
        return found.strip() if found else None

    def _is_ours(self, place: RepositoryPlace, tip: str) -> bool:
        """Whether nothing is on a branch but what it was made on, and the one commit made here."""
        return tip == place.head or self._made_here_on(place, tip) == place.head

    def _made_here_on(self, place: RepositoryPlace, commit: str) -> str | None:
        """What a commit is built on, if it was made here."""
        head = (
            self._git.run(place, ["cat-file", "commit", commit]).partition("\n\n")[0].splitlines()
        )
        parents = [line.removeprefix("parent ") for line in head if line.startswith("parent ")]
        own = f" <{AUTHOR['GIT_COMMITTER_EMAIL']}> "
        is_own = any(line.startswith("committer ") and own in line for line in head)
        return parents[0] if is_own and len(parents) == 1 else None

    def _is_taken(self, place: RepositoryPlace, name: str, whole: str) -> bool:
        """Whether somebody else works in a worktree: nothing we start can do what is seen here.

        They have moved its HEAD or its branch, or put something into its index, which we never do;
        or something else stands there than `whole`, as long as nothing of ours may write there.
        """
        own = Path(place.git_dir) / "worktrees" / name
        try:
            head = (own / "HEAD").read_text().strip()
        except (OSError, ValueError):
            return False  # half made, or half gone
        is_at_start = head in ("0" * len(head), place.head)  # as git makes it, for a moment
        branch = head.removeprefix("ref: refs/heads/")
        if not branch.startswith(BRANCHES) and not is_at_start:
            return True
        tip = None if is_at_start else self._tip(place, branch)
        if tip is not None and not self._is_ours(place, tip):
            return True
        # An index that is not written yet lacks everything.
        words = [f"--git-dir={own}", "diff-index", "--cached", "--name-only", "--diff-filter=d"]
        if (self._git.attempt([*words, place.head], Path(place.git_dir)) or "").strip():
            return True
        try:
            return bool(whole) and self.change(place, name).whole != whole
        except BadInput:
            return True

    def sweep(self, keep: str | None) -> SweptWorktrees:
        """Remove what no state file tells of any more; a branch with a commit of its own stays.

        So does all of a worktree in which something stands that is in no commit: whose it is nobody
        knows any more.
        """
        swept = SweptWorktrees([], [])
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.iterdir()):
                if path.name == keep:
                    continue
                if path.name.startswith(_GONE):
                    _remove(path)
                    continue
                place, branch = self._belongs_to(path)
                if self._holds_work(path, place, branch):
                    swept.kept.append(str(path))
                    continue
                if place is not None:
                    self._erase(place, path.name, branch, place.head)
                _remove_worktree(path)
                swept.removed.append(path.name)
        return swept

    def _holds_work(self, path: Path, place: RepositoryPlace | None, branch: str | None) -> bool:
        """Whether there is work in a worktree, found without its state, that is not ours.

        `place` holds the tip of its branch, `branch` is None where a commit is on that.
        """
        if place is None:  # its repository is gone, or knows nothing of it
            return path.is_dir() and any(entry.name != ".git" for entry in path.iterdir())
        base, is_begun = place.head, bool(place.head.strip("0"))
        try:
            if is_begun and branch is None:
                if (before := self._made_here_on(place, place.head)) is None:
                    return True
                base = before  # our commits leave the index as it is
            if self._is_taken(place.but(head=base), path.name, ""):
                return True
            if not is_begun:
                return False
            with self._git.staged(place, path.name) as stage:
                tree = stage(["write-tree"]).strip()
                words = ["diff-tree", "-r", "--name-only", "--diff-filter=d"]  # half made it lacks
                return bool(stage([*words, place.head, tree]).strip())
        except BadInput:
            return True

    def _belongs_to(self, path: Path) -> tuple[RepositoryPlace | None, str | None]:
        """The repository of a worktree that nobody knows, and its branch if nothing is on it."""
        with contextlib.suppress(OSError, ValueError, BadInput):
            named = Path((path / ".git").read_text().removeprefix("gitdir:").strip())
            git_dir = named.parent.parent
            # It may be a Worker's word: only what lies there by its name, and says so back.
            told = (named / "gitdir").read_text().strip()
            if named.parts[-2:] != ("worktrees", path.name) or told != str(path / ".git"):
                return None, None
            ref = (named / "HEAD").read_text().removeprefix("ref:").strip()
            place = RepositoryPlace(top="", prefix="", git_dir=str(git_dir), head="0" * 40)
            if not ref.startswith(f"refs/heads/{BRANCHES}"):
                return place, None
            branch = ref.removeprefix("refs/heads/")
            others = [f"--exclude={branch}", "--branches", "HEAD"]
            own = self._git.run(place, ["rev-list", "--max-count=1", ref, "--not", *others])
            tip = self._git.run(place, ["rev-parse", "--verify", ref]).strip()
            return place.but(head=tip), None if own.strip() else branch
        return None, None


def _told(raw: str) -> tuple[list[str], str]:
    """The changed paths of a raw diff, and why it can not be kept."""
    parts, files, odd = raw.split("\0"), list[str](), ""
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        old, new, *_ = head.removeprefix(":").split(" ")
        files.append(path)
        if new in LINKS and new != old:
            what = "a link" if new == LINKS[0] else "a repository of its own"
            odd = f"{path} is {what}"
    return files, odd


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _remove_worktree(path: Path) -> None:
    """Remove one, which is a worktree no more from the first moment: half of it is nobody's work.

    Raises:
        BadInput: something of it stays.
    """
    gone = path.with_name(f"{_GONE}{path.name}")
    _remove(gone)
    with contextlib.suppress(OSError):
        path.rename(gone)
    _remove(gone)
    _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder of ours, whatever a run has made of it.

    Raises:
        BadInput: something of it stays.
    """
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    if not os.path.lexists(path):
        return
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):  # folders that a run has shut
        line = 'chmod -R u+rwx -- "$1"; rm -rf -- "$1"'
        process.output(["/bin/sh", "-c", line, "sh", str(path)], timeout_s=60)
    if os.path.lexists(path):
        raise BadInput(f"{path} can not be removed")
