"""Where codex keeps its things, and what of a workspace it takes up first and stumbles over.

A Worker, a clone or a backup may leave any thing in the place of a workspace's files: it must not
end all that is done there later.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

LITTER = (".git", ".codex", ".agents", ".aws")
"""Empty folders that codex leaves in a workspace when it is stopped in the midst of a command."""
_DOCUMENTS = ("AGENTS.override.md", "AGENTS.md")
_SETTINGS = ".codex/config.toml"
_MOST_BYTES = 2**20
"""Codex uses the first 32 KiB, and refuses to start where there are 512 MiB."""
_LOGINS = ("auth.json", ".credentials.json")
"""Where codex keeps its own login, and those to servers of tools."""
_LOCKED = ("installation_id", "thread-writer-locks")
"""What each codex waits for in its home, and is always there. Its databases are not among it: they
come and go, and what goes while a shell is started fails that."""


@dataclass(frozen=True, slots=True)
class CodexLocation:
    """An installed codex, and where it keeps its login."""

    program: str
    home: Path
    own_home: bool
    """Whether the settings name its home; else it is the user's."""

    def logins(self) -> list[str]:
        """The real files of its logins, as far as they are there."""
        return [os.path.realpath(path) for path in self.login_paths() if os.access(path, os.F_OK)]

    def login_paths(self) -> list[Path]:
        """Where they are, there or not."""
        return [self.home / name for name in _LOGINS]

    def closed(self) -> list[str]:
        """What codex opens and its shells must not: who may read a file can lock it.

        Then each other codex waits, or loses what it writes. Shells need `tmp`, where codex puts
        what starts them, their snapshots, and the owner's skills.
        """
        home = Path(os.path.realpath(self.home))
        closed = [home / name for name in _LOCKED]
        return [*self.logins(), *map(str, closed)]


def odd_documents(workspace: Path, closed: Collection[str]) -> list[str]:
    """What is wrong with instructions in a workspace; `closed` are files no Worker reads."""
    paths = [workspace / name for name in _DOCUMENTS]
    return [
        f"{path} {odd}: this run goes without AGENTS.md; mend or remove it"
        for path in paths
        if (odd := _oddity(path, closed))
    ]


def odd_settings(workspace: Path) -> str | None:
    """Why codex would not start in a workspace, and what to do about it."""
    path = workspace / _SETTINGS
    odd = _oddity(path)
    if odd is None and path.exists() and not path.is_file():
        odd = "is no file"
    return f"{path} {odd}, and codex starts with no such; mend or remove it" if odd else None


def _oddity(path: Path, closed: Collection[str] = ()) -> str | None:
    """What is wrong with a file. What is no file at all codex passes over."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"can not be read ({error.strerror})"
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_size > _MOST_BYTES:
        return f"has more than {_MOST_BYTES // 2**20} MiB"
    if not os.access(path, os.R_OK) or os.path.realpath(path) in closed:
        return "leads to a file that is closed to agents" if path.is_symlink() else "is closed"
    return None
