"""Worktrees without git: one repository in memory, which no kill takes back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from mimikit.engines.worktrees import BRANCHES, SweptWorktrees, WorktreeChange
from mimikit.errors import BadInput
from mimikit.protocol.self_awake import RepositoryPlace

HEAD = "1" * 40


class FakeWorktrees:
    """Behaves as the real ones do; what it holds can be looked at."""

    def __init__(self, files: dict[str, str] | None = None) -> None:
        """`files`: what each Worker leaves changed, by path."""
        self.files = {"a.py": "better"} if files is None else files
        self.refs: dict[str, str] = {}
        """Branch → its commit."""
        self.folders: dict[str, str] = {}
        """Worktree → its branch."""
        self.compares = False
        """Whether it says that a branch holds the same: here all of a size are."""
        self.litter: dict[str, str] = {}
        """What the checks leave behind beside that."""
        self.taken: set[str] = set()
        """Worktrees that somebody else works in."""
        self.refusal = ""
        """Why there is no repository."""
        self.changed: Callable[[], None] = lambda: None
        """Called after each change of it."""

    def look(self, workspace: Path) -> RepositoryPlace:
        if self.refusal:
            raise BadInput(self.refusal)
        return RepositoryPlace(top="/repository", prefix="", git_dir="/repository/.git", head=HEAD)

    def branches(self, place: RepositoryPlace) -> list[str]:
        return [branch for branch, tip in self.refs.items() if tip != place.head]

    def make(self, place: RepositoryPlace, name: str, branch: str) -> None:
        if not branch.startswith(BRANCHES):
            raise BadInput(f"expected a branch of its own, got {branch}")
        if self.remove(place, name, branch):
            raise BadInput(f"somebody else works in /worktrees/{name}")
        self.refs[branch], self.folders[name] = place.head, branch
        self.changed()

    def change(
        self, place: RepositoryPlace, name: str, known: Collection[str] | None = None
    ) -> WorktreeChange:
        if name not in self.folders:
            raise BadInput(f"there is no worktree {name}")
        files = self.files if known is not None else self.files | self.litter
        diff = "".join(f"+++ {path}\n+{text}\n" for path, text in files.items())
        tree = f"tree-{len(files)}"
        same = next((ref for ref, tip in self.refs.items() if tip == f"commit-of-{tree}"), "")
        found = same if self.compares else ""
        return WorktreeChange(list(files), diff, tree, f"whole-{len(self.files)}", found)

    def commit(
        self,
        place: RepositoryPlace,
        name: str,
        branch: str,
        tree: str,
        message: str,
        known: Collection[str] | None = None,
    ) -> str:
        if tree != self.change(place, name, known).tree:
            raise BadInput("the files were changed after they had been judged")
        self.refs[branch] = f"commit-of-{tree}"
        self.changed()
        return self.refs[branch]

    def remove(self, place: RepositoryPlace, name: str, branch: str | None, whole: str = "") -> str:
        is_other = whole not in ("", f"whole-{len(self.files)}") and name in self.folders
        if name in self.taken or is_other:
            return f"/worktrees/{name}"
        self.folders.pop(name, None)
        if branch is not None:
            self.refs.pop(branch, None)
        self.changed()
        return ""

    def sweep(self, keep: str | None) -> SweptWorktrees:
        found = [name for name in self.folders if name != keep]
        swept = [name for name in found if name not in self.taken]
        for name in swept:
            branch = self.folders.pop(name)
            if self.refs.get(branch) == HEAD:
                del self.refs[branch]
        self.changed()
        kept = [f"/worktrees/{name}" for name in found if name in self.taken]
        return SweptWorktrees(swept, kept)
