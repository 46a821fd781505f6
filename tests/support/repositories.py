"""Real repositories in every state that users leave them in, and all of one that is theirs."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

from mimikit.engines.worktrees import BRANCHES

_ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (
            ("NAME", "u"), ("EMAIL", "u@example.org"), ("DATE", "2026-01-01T00:00:00Z"),
        )
    },
}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    """Git as the user would run it."""
    argv = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(argv, cwd=folder, env=_ENV, capture_output=True, text=True, check=True)
    return done.stdout


def repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    """One with a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    for name, text in (files or {"a.py": "one\n", "sub/b.py": "two\n"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def dirty(folder: Path) -> None:
    """Changes that are staged, that are not, and what git does not know."""
    (folder / "a.py").write_text("staged\n")
    git(folder, "add", "a.py")
    (folder / "a.py").write_text("and more\n")
    (folder / "unknown.txt").write_text("mine\n")
    (folder / "sub" / "b.py").unlink()


def stashed(folder: Path) -> None:
    (folder / "a.py").write_text("for later\n")
    git(folder, "stash", "push", "--quiet")


def detached(folder: Path) -> None:
    git(folder, "checkout", "--quiet", "--detach")


def with_submodule(folder: Path) -> None:
    other = repository(folder.parent / f"{folder.name}-other", {"lib.py": "x\n"})
    git(folder, "submodule", "--quiet", "add", str(other), "lib")
    git(folder, "commit", "--quiet", "--message", "lib")


def with_worktree(folder: Path) -> None:
    git(
        folder,
        "worktree",
        "add",
        "--quiet",
        "-b",
        "other",
        str(folder.parent / f"{folder.name}-wt"),
    )


def conflicted(folder: Path) -> None:
    """In the midst of a merge that does not go well."""
    git(folder, "checkout", "--quiet", "-b", "theirs")
    (folder / "a.py").write_text("theirs\n")
    git(folder, "commit", "--quiet", "--all", "--message", "theirs")
    git(folder, "checkout", "--quiet", "-")
    (folder / "a.py").write_text("ours\n")
    git(folder, "commit", "--quiet", "--all", "--message", "ours")
    subprocess.run(
        ["git", "merge", "theirs"], cwd=folder, env=_ENV, capture_output=True, check=False
    )


def with_programs(folder: Path) -> None:
    """With hooks, filters and monitors that say that they were run."""
    ran = folder.parent / f"{folder.name}-ran"
    program = folder.parent / f"{folder.name}-program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\ncat\n')
    program.chmod(0o755)
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    names = (
        "post-checkout",
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
    )
    for name in names:
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(program)
    git(folder, "config", "core.fsmonitor", str(program))
    for key in ("clean", "smudge"):
        git(folder, "config", f"filter.own=odd.{key}", str(program))
    git(folder, "config", "diff.own.textconv", str(program))
    git(folder, "config", "diff.external", str(program))
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("*.py filter=own=odd diff=own\n")
    ran.unlink(missing_ok=True)


def packed(folder: Path) -> None:
    git(folder, "tag", "v1")
    git(folder, "pack-refs", "--all")


STATES: dict[str, Callable[[Path], None]] = {
    "clean": lambda _folder: None,
    "dirty": dirty,
    "stashed": stashed,
    "detached": detached,
    "with a submodule": with_submodule,
    "with a linked worktree": with_worktree,
    "in a merge": conflicted,
    "with hooks and filters": with_programs,
    "with packed refs": packed,
}


def generated(folder: Path, dice: Random) -> Path:
    """One in several of these states together."""
    made = repository(folder)
    names = dice.sample(sorted(STATES), dice.randint(1, 4))
    for name in sorted(names, key=["in a merge", "dirty", "with hooks and filters"].count):
        STATES[name](made)
    return made


def users(folder: Path) -> dict[str, str]:
    """All of a repository that is the user's, byte by byte: what self-awake may not change.

    Left out are objects, which only come, and what belongs to the branches of its own.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "/objects/" in f"/{name}/" or f"heads/{BRANCHES}" in name:
            continue
        if name.rpartition("/")[2] == "mimikit" and ("refs/heads" in name):
            continue
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
        elif path.is_file():
            about = path.stat()
            found[name] = f"{about.st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        else:
            found[name] = f"folder {path.stat().st_mode:o}"
    return found


def own_refs(folder: Path) -> dict[str, str]:
    """The branches of its own."""
    said = git(
        folder, "for-each-ref", "--format=%(refname:short) %(objectname)", f"refs/heads/{BRANCHES}*"
    )
    return dict(line.split() for line in said.splitlines())
