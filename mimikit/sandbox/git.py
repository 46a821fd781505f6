"""The Worker's access to `.git`; what names programs stays read-only even with `write`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_MOST_BYTES = 4096
_FOLDERS = ("hooks", "info", "modules", "worktrees", "remotes", "branches")
_FILES = {"config": b"", "config.worktree": b"", "commondir": b".\n"}
"""What names programs, or the folder in which those are looked for; with what each is made empty
of, where it is not there: a mount needs something to stand on."""


@dataclass(frozen=True, slots=True)
class GitAccess:
    shown: tuple[Path, ...] = ()
    """Read-only."""
    writable: Path | None = None
    """The git folder in which a Worker commits."""


def git_access(workspace: Path, mode: Literal["read-only", "write"]) -> GitAccess:
    """Creates missing read-only paths. `workspace` is a real path."""
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
    shut = tuple(git / name for name in (*_FOLDERS, *_FILES))
    if any(path.is_symlink() for path in shut):  # bubblewrap would mount at the link's target
        return GitAccess((git,))
    return GitAccess(shut, git)


def _linked_worktree(file: Path) -> list[Path]:
    """The repository of a linked worktree, if it confirms what its file says."""
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
        return file.read(_MOST_BYTES).decode(errors="surrogateescape").strip()
