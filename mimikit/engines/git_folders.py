"""The git folders of a workspace, and where nobody could look for them.

They are found outside the sandbox, by what stands where and never on the word of a file that a
Worker can write. Such a file only leads to more that is shut.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mimikit.engines.sandbox import folders_around
from mimikit.errors import EngineError
from mimikit.protocol.paths import STATE_FOLDER

MOST_FOLDERS = 200_000
"""Folders of the workspace that are looked into for git folders, the outer ones first."""
MOST_SHUT = 200
"""Folders that are read-only because nobody looked into them."""
MOST_GIT_FOLDERS = 400
"""Those beyond what a Worker may write are read-only as a whole: two mounts."""
MARKS = frozenset({"HEAD", "objects", "refs"})
"""By these git knows a folder of its own, whatever it is called."""
SPLIT = frozenset({"HEAD", "commondir"})
"""By these as well: then the rest is where `commondir` says."""
SHUT = {
    "hooks/": "programs that git runs",
    "config": "names programs (core.fsmonitor, core.pager, filters) and where a push goes",
    "config.worktree": "the same, of one worktree",
    "info/": "says which files go through a filter",
    "remotes/": "where a push goes, in a form older than the configuration",
    "branches/": "the same, older still",
    "modules/": "the git folders of submodules, each with all of this",
    "worktrees/": "those of linked worktrees",
    "commondir": "the folder in which all of this is looked for",
}
"""What is shut in a git folder, made where it is not there, and why. A name with a slash is a
folder's. What git writes when a Worker commits, merges or rebases can not be among it."""
_SHUT_FOLDERS = frozenset(name[:-1] for name in SHUT if name.endswith("/"))
_TELLING = frozenset({".git", *MARKS, *SPLIT})
KIN = (".hg", ".jj", ".sl", ".pijul", "_darcs")
"""Where git's kin keep a repository, and what makes them run programs."""
_MOST_CLOSED = 2000
_MOST_LOOKED = 20_000
_MOST_TARGETS = 20
_MOST_BYTES = 65_536


@dataclass
class GitFolders:
    """What a Worker is given of the git folders of one workspace."""

    writable: list[Path] = field(default_factory=list[Path])
    """Where its commits go, in the workspace or beside it."""
    opened: list[Path] = field(default_factory=list[Path])
    """Written though what is around it is shut: what linked worktrees have of their own."""
    pinned: list[Path] = field(default_factory=list[Path])
    """Neither moved nor replaced, else written as the Worker likes."""
    shut: list[Path] = field(default_factory=list[Path])
    """Read, never changed."""
    states: list[Path] = field(default_factory=list[Path])
    """State folders that are not this consumer's: none of the Worker's business either."""
    kin: list[Path] = field(default_factory=list[Path])
    """Repositories that are not git's, shut as a whole."""
    met: list[Path] = field(default_factory=list[Path])
    """Each `.git` that was looked at, each git folder of another name, and what was met before
    where nobody can look now."""
    closed: list[Path] = field(default_factory=list[Path])
    """Folders whose permissions let nobody look into them, shut as a whole."""
    notes: list[str] = field(default_factory=list[str])
    """What could not be made safe and is shut as a whole, or was not looked at."""
    left: list[str] = field(default_factory=list[str])
    """Once it is over: what the run left there that the owner has to know."""


def entries(
    workspace: Path, state: Path, known: Iterable[Path], found: GitFolders
) -> Iterator[Path]:
    """Every `.git` and git folder in a workspace: its own, those known, those nearest.

    What nobody looked into, since there is too much or there is no way in, is shut.

    Raises:
        EngineError: that is too much to be shut.
    """
    known = [path for path in known if path.is_relative_to(workspace)]
    out_of_sight = {path: folder for path in known if (folder := _closed_on(path, workspace))}
    own = [workspace / ".git"] if os.path.lexists(workspace / ".git") else []
    for path in (*own, *(path for path in known if path not in out_of_sight and _is_kept(path))):
        yield from _meet(path, workspace, state, found)
    todo, looked = deque([workspace]), 0
    kinds = found.met, found.states, found.kin
    while todo and looked < MOST_FOLDERS and sum(map(len, kinds)) < MOST_GIT_FOLDERS:
        folder, looked = todo.popleft(), looked + 1
        told, inner = _look(folder, state, found)
        if ".git" in told:
            yield from _meet(folder / ".git", workspace, state, found)
        if told >= MARKS:
            # What is shut, and hundreds of folders of objects.
            inner = [path for path in inner if path.name not in {"objects", *_SHUT_FOLDERS}]
        if told >= MARKS or (told >= SPLIT and is_half(folder)):
            yield from _meet(folder, workspace, state, found)
        todo.extend(inner)
    found.closed += {folder for folder in out_of_sight.values() if folder not in found.closed}
    found.met += [path for path in list(out_of_sight)[:_MOST_CLOSED] if path not in found.met]
    why = f"{looked} folders with {len(found.met)} git folders were looked into and these were not"
    _shut_unseen(found.closed, "their permissions let nobody look into these", workspace, found)
    _shut_unseen(todo, why, workspace, found)


def _look(folder: Path, state: Path, found: GitFolders) -> tuple[set[str], list[Path]]:
    """What in a folder tells of git, and the folders in it to look into next."""
    told, inner = set[str](), list[Path]()
    try:
        with os.scandir(folder) as inside:
            for entry in inside:
                if entry.name in _TELLING:
                    told.add(entry.name)
                if entry.name == ".git" or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name in KIN:
                    found.kin.append(Path(entry.path))
                elif entry.name == STATE_FOLDER and entry.path != str(state):
                    found.states.append(Path(entry.path))
                elif entry.path != str(state):
                    inner.append(Path(entry.path))
        if is_open(folder):
            return told, inner
    except PermissionError:
        pass
    except OSError:  # gone meanwhile, or deeper than any path leads
        return set(), []
    # What the kernel says nothing of (a mount of somebody else's) can not be shut either.
    found.closed += [folder] if os.path.lexists(folder) else []
    return set(), []


def is_open(folder: Path) -> bool:
    """Whether what lies in a folder can be looked at. Whoever owns it can change that."""
    return os.access(folder, os.R_OK | os.X_OK)


def is_half(folder: Path) -> bool:
    """Whether the rest of a git folder is kept in another one."""
    with contextlib.suppress(EngineError, OSError, ValueError):
        there = all(os.path.lexists(folder / name) for name in MARKS)
        rest = os.path.realpath(folder / text_of(folder / "commondir"))
        return not there and rest != str(folder)
    return False


def _closed_on(path: Path, workspace: Path) -> Path | None:
    """The first folder on the way to a path that can not be looked into."""
    for at in (at for at in reversed(path.parents) if at.is_relative_to(workspace)):
        if at.is_symlink() or not at.is_dir():
            return None
        if not is_open(at):
            return at
    return None


def _shut_unseen(rest: Iterable[Path], why: str, workspace: Path, found: GitFolders) -> None:
    if shut := _around(rest, workspace):
        found.shut += shut
        found.pinned += folders_around(shut, workspace)
        names = ", ".join(map(str, shut[:5])) + (" …" if len(shut) > 5 else "")
        found.notes.append(f"read-only, as {why}: {names}")


def _around(rest: Iterable[Path], workspace: Path) -> list[Path]:
    """The folders that hold all the rest and nothing else, or little else if they are too many.

    Raises:
        EngineError: that would be the workspace.
    """
    found = set(rest)
    while len(found) > MOST_SHUT:
        deepest = max(len(path.parts) for path in found)
        found = {path.parent if len(path.parts) == deepest else path for path in found}
        if workspace in found:
            break
    if workspace in found:
        said = (
            f"{workspace} has more than {MOST_FOLDERS} folders or {MOST_GIT_FOLDERS} git "
            "folders, or folders without permission to look into them, which is more than can be "
            "kept safe from an agent: none works there until you remove some, mend their "
            "permissions or take a smaller workspace"
        )
        raise EngineError(said)
    return sorted(path for path in found if not any(folder in found for folder in path.parents))


def _is_kept(path: Path) -> bool:
    """Whether what was met once is still there.

    A folder of another name than `.git` may have lost what makes it one: a Worker can take that
    away for a while, but never its configuration.
    """
    there = path if path.name == ".git" else path / "config"
    return os.path.lexists(there) and os.path.realpath(path.parent) == str(path.parent)


def _meet(path: Path, workspace: Path, state: Path, found: GitFolders) -> Iterator[Path]:
    """What is met for the first time: a path and the git folders in the workspace it leads to."""
    led_to: list[Path] = []
    with contextlib.suppress(EngineError, OSError, ValueError):
        target = Path(os.path.realpath(path))
        if target.is_file():
            target = named_by(target)
        led_to = [target.parent.parent if target.parent.name == "worktrees" else target]
        led_to.append(Path(os.path.realpath(target / text_of(target / "commondir"))))
    led_to = [
        other
        for other in led_to
        if other.is_relative_to(workspace) and not other.is_relative_to(state)
        if other != workspace or all(os.path.lexists(other / at) for at in MARKS)
        # A submodule's is shut with all of `modules/`.
        if other.parent.name != "modules"
        and all(os.path.lexists(other / at) for at in MARKS - SPLIT)
    ]
    for each in (*led_to, path):  # a worktree after the one it belongs to
        if each not in found.met:
            found.met.append(each)
            yield each


def strange_in(folder: Path, reopen: Callable[[Path], bool] = lambda _: False) -> list[Path]:
    """What may not stand in a git folder: links, and folders that can not be looked into.

    Whoever put a link where git writes files of its own has it write elsewhere. `reopen` may mend
    the permissions of a folder, and tells whether it did.
    """
    strange, todo = list[Path](), [folder]
    while todo:
        at, inner, links = todo.pop(), list[Path](), list[Path]()
        with contextlib.suppress(OSError):  # gone meanwhile, or deeper than any path leads
            if not is_open(at) and os.path.lexists(at) and not (reopen(at) and is_open(at)):
                strange.append(at)
                continue
            with os.scandir(at) as inside:
                for entry in inside:
                    if _is_editors_lock(entry):
                        continue
                    if entry.is_symlink():
                        links.append(Path(entry.path))
                    elif at == folder and entry.name in _SHUT_FOLDERS:
                        continue
                    elif entry.is_dir(follow_symlinks=False):
                        inner.append(Path(entry.path))
        strange += links
        todo += inner
    return strange


def shut_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Each file and link among what is shut in a git folder, but for the objects of submodules."""
    todo, looked = deque(folder / name for name in SHUT), 0
    while todo and looked < _MOST_LOOKED:
        at, looked = todo.popleft(), looked + 1
        with contextlib.suppress(OSError):
            found = at.lstat()
            if not stat.S_ISDIR(found.st_mode):
                yield at, found
                continue
            is_one = os.path.lexists(at / "HEAD")
            inner = sorted(at.iterdir())
            todo.extend(path for path in inner if path.name != "objects" or not is_one)


def targets_in(folder: Path, workspace: Path) -> tuple[dict[Path, Path], list[Path]]:
    """Where in the workspace links lead that stand among what is shut, each with its link.

    Second, the links whose targets can not be shut: not there yet, too many, or behind a link.
    """
    shut, rest = dict[Path, Path](), list[Path]()
    for path, found in shut_in(folder):
        if not stat.S_ISLNK(found.st_mode):
            continue
        with contextlib.suppress(OSError):
            named = Path(os.path.normpath(path.parent / path.readlink()))
            real = Path(os.path.realpath(path))
            if STATE_FOLDER in real.parts or not any(
                each.is_relative_to(workspace) for each in (named, real)
            ):
                continue
            is_far = not workspace.is_relative_to(real) and not folder.is_relative_to(real)
            if named == real and is_far and real.exists() and len(shut) < _MOST_TARGETS:
                shut.setdefault(real, path)
            else:
                rest.append(path)
    return shut, rest


def _is_editors_lock(entry: os.DirEntry[str]) -> bool:
    """Whether it is the link by which Emacs locks a file: git goes by no such name."""
    with contextlib.suppress(OSError):
        to = Path(entry.path).readlink() if entry.name.startswith(".#") else Path("/")
        return len(to.parts) == 1 and not os.path.lexists(Path(entry.path).parent / to)
    return False


def named_by(file: Path) -> Path:
    """The folder that a `.git` file names."""
    return Path(os.path.realpath(file.parent / text_of(file).removeprefix("gitdir:").strip()))


def text_of(path: Path) -> str:
    """The text of a small file; nothing that stands in its place is waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise EngineError(f"{path} is no file")
        return file.read(_MOST_BYTES).decode(errors="surrogateescape").strip()
