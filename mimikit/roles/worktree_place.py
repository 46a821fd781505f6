"""Where a step of self-awake works: as the state says, never the task, which anybody may write."""

from __future__ import annotations

import os
from pathlib import Path

from mimikit.engines import process_tree
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.self_awake import Improvement, RepositoryPlace, SelfAwakeState
from mimikit.roles.run import RunContext


def folder_of(folder: str | None, state: Path) -> Path:
    """Where the worktrees of a state folder are made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = cache if cache.is_absolute() else Path.home() / ".cache"
    own = Path(folder).expanduser() if folder else base / "mimikit" / "self-awake"
    return Path(os.path.realpath(own)) / process_tree.state_id(state)


def placed(context: RunContext, task: Task) -> RunContext:
    """The context in which a task is carried out.

    Of a step of self-awake that of its worktree, outside of which all of the repository is only
    looked at, and all that is git's.
    """
    run = _improvement(context.files, task) if task.worktree is not None else None
    if run is None or run.place is None:
        return context
    top = folder_of(context.settings.self_awake.folder, context.state) / run.id
    return context.in_worktree(top / run.place.prefix, kept_of(run.place, top))


def kept_of(place: RepositoryPlace, worktree: Path) -> tuple[Path, ...]:
    """What is only looked at from a worktree: the repository, and what it is a part of.

    A linked worktree has its git folder in the main one, a submodule in what it is a submodule of.
    """
    git_dir = Path(place.git_dir)
    around = [folder.parent for folder in (git_dir, *git_dir.parents) if folder.name == ".git"]
    return (Path(place.top), *around[-1:], git_dir, worktree / ".git")


def step_refusal(files: Files, task: Task) -> str | None:
    """Why a step of self-awake may not run; None when it may.

    Only while that is in progress, and a command of it only as the settings had it when it began.
    """
    run = _improvement(files, task)
    if run is None or run.place is None:
        return f"expected a step of an improvement in progress; {task.worktree} is none"
    if task.profile == "command" and task.prompt not in run.checks[run.check : run.check + 1]:
        return "expected the check that is next, got another command"
    return None


def _improvement(files: Files, task: Task) -> Improvement | None:
    """The improvement in progress, if a task is a step of it."""
    state = files.peek(paths.SELF_AWAKE, SelfAwakeState)
    run = state.run if state else None
    return run if run is not None and run.id == task.worktree else None
