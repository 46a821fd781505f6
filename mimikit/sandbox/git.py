"""The Worker's access to `.git`; hooks and configuration stay read-only even with `write`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_MAX_BYTES = 4096
_FOLDERS = ("hooks", "info", "modules", "worktrees", "remotes", "branches")
_FILES = {"config": b"", "config.worktree": b"", "commondir": b".\n"}
"""Paths that can name programs, with their empty content: a mount needs an existing path."""


@dataclass(frozen=True, slots=True)
class GitAccess:
    shown: tuple[Path, ...] = ()
    """Read-only."""
    writable: Path | None = None
    """The git folder, if a Worker may commit."""


def git_access(workspace: Path, mode: Literal["read-only", "write"]) -> GitAccess:
    """Creates missing read-only paths."""
    git = workspace / ".git"
    if git.is_symlink() or not git.exists():
        return GitAccess()
    if git.is_file():
        return GitAccess((git, *_linked_worktree(git)))
    if mode != "write" or not (git / "HEAD").is_file():
        return GitAccess((git,))
    for name in _FOLDERS:
        (git / name).mkdir(exist_ok=True)
    for name, content in _FILES.items():
        if not os.path.lexists(git / name):
            (git / name).write_bytes(content)
    read_only = tuple(git / name for name in (*_FOLDERS, *_FILES))
    if any(path.is_symlink() for path in read_only):  # bubblewrap would mount at the link's target
        return GitAccess((git,))
    return GitAccess(read_only, git)


def _linked_worktree(file: Path) -> list[Path]:
    """The main repository, if it points back to this worktree."""
    try:
        own = Path(os.path.realpath(file.parent / _text(file).removeprefix("gitdir:").strip()))
        back = Path(os.path.realpath(own / _text(own / "gitdir")))
    except OSError:
        return []
    common = own.parent.parent
    is_ours = own.parent.name == "worktrees" and back == file and (common / "HEAD").is_file()
    return [common] if is_ours and not common.is_relative_to(file.parent) else []


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES).decode(errors="surrogateescape").strip()
