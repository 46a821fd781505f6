"""Git for self-awake without git: a branch is a file of the state folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.roles.worktree import WorktreeChange, Worktrees


class FakeWorktrees(Worktrees):
    def __init__(self, files: Files) -> None:
        self._files = files

    def create(self, workspace: Path, name: str) -> Path:
        return workspace

    def commit(
        self, workspace: Path, name: str, title: str, protected: Sequence[Path]
    ) -> WorktreeChange:
        return WorktreeChange("1 file changed", "+better")

    def publish(self, workspace: Path, name: str) -> None:
        self._files.write(f"{paths.CACHE}/branch-{name}.json", b"a branch")

    def branches(self, workspace: Path, name: str = "*") -> list[str]:
        found = self._files.names(paths.CACHE)
        return [one for one in found if one == f"branch-{name}.json" or name == "*"]

    def remove(self) -> None: ...
