"""The git folders of a workspace: which a Worker writes, and what in them makes git run programs.

They are found outside the sandbox, by what stands where and never on the word of a file that a
Worker can write: who chooses a git folder chooses what is writable, and whose hooks the owner's
git runs. What makes git run programs is shut also where it is not there yet.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mimikit.engines.sandbox import folders_around
from mimikit.errors import EngineError
from mimikit.protocol.paths import STATE_FOLDER

MOST_FOLDERS = 200_000
"""Folders of the workspace that are looked into for git folders, the outer ones first."""
MOST_SHUT = 200
"""Folders that are read-only because nobody looked into them."""
MOST_WRITABLE = 40
"""Each is nine mounts, and each shell of an agent takes its time for each mount."""
MOST_GIT_FOLDERS = 400
"""Those beyond `MOST_WRITABLE` are read-only as a whole: two mounts."""
_FOLDERS = ("hooks", "info", "modules", "worktrees")
_FILES = ("config", "config.worktree", "commondir")
_OF_WORKTREE = ("modules",), ("config.worktree", "commondir", "gitdir")
"""What is shut in a git folder, and in the one that a linked worktree has of its own."""
_MARKS = {"HEAD", "objects", "refs"}
"""By these git knows a folder of its own, whatever it is called."""
_KIN = (".hg", ".jj", ".sl", ".pijul", "_darcs")
"""Where git's kin keep a repository, and what makes them run programs."""
_MOST_BYTES = 65_536
_LOCK_TRIES = 100


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
    """Each `.git` that was looked at, and each git folder of another name."""
    notes: list[str] = field(default_factory=list[str])
    """What could not be made safe and is shut as a whole, or was not looked at."""
    left: list[str] = field(default_factory=list[str])
    """Once it is over: what the run left there that the owner has to know."""


@contextlib.contextmanager
def held(workspace: Path, state: Path, known: Iterable[Path] = ()) -> Generator[GitFolders]:
    """The git folders of a workspace for one run: found, and what has to be there made.

    `known`: what was met before; it comes first, so that nothing put in front of it hides it.
    A `commondir` that was made goes with the last run that holds it, whosever: to remove it is to
    open it in the sandboxes of the others. What else was made is empty and stays. Links that the
    run put where git writes files of its own are removed: git would follow them.

    Raises:
        OSError: there is more in the workspace than can be looked at or shut.
    """
    workspace, state = (Path(os.path.realpath(path)) for path in (workspace, state))
    found, written = GitFolders(), list[Path]()
    with contextlib.ExitStack() as stack:
        for entry in _entries(workspace, state, known, found):
            own, folders, shut = entry == workspace / ".git", list[Path](), list[Path]()
            found.pinned += folders_around([entry], workspace)
            if entry.is_symlink():  # no mount can hold it: it is no reason to give anything
                said = f"the git folder of {entry} is read-only: it is a link"
                found.notes += [said] if own else []
                continue
            if not own and len(found.met) > MOST_WRITABLE:
                found.shut.append(entry)
                continue
            try:
                if not entry.is_dir():
                    shut.append(entry)
                    folders = _pointed_to(entry) if own else _worktree_in(found, entry)
                else:
                    folders = [entry]
                for folder in folders:
                    shut += _traps(folder, workspace, stack, linked=folder != folders[0])
            except (EngineError, OSError, ValueError) as error:
                said = error.strerror if isinstance(error, OSError) else error
                found.notes.append(f"the git folder of {entry} is read-only: {said}")
                folders, shut = [], [entry]
            found.pinned += [*folders_around(folders, workspace), *folders]
            found.shut += shut
            found.writable += folders if own else []
            found.opened += folders if own else folders[1:]
            written += folders
        found.shut += found.kin
        found.pinned += folders_around(found.kin, workspace)
        if (more := len(found.met) - MOST_WRITABLE) > 0:
            said = f"{more} git folders beyond {MOST_WRITABLE} are read-only as a whole"
            found.notes.append(said)
        try:
            yield found
        finally:
            for link in (link for folder in written for link in _links(folder)):
                with contextlib.suppress(OSError):
                    to = link.readlink()
                    link.unlink()
                    said = f"removed {link}, a link to {to} that git would have written through"
                    found.left.append(said)
            found.left += _new_since(found, workspace, state)


def _links(folder: Path) -> list[Path]:
    """Links where git writes files of its own: whoever put one there has it write elsewhere."""
    links, todo = list[Path](), [folder]
    while todo:
        with contextlib.suppress(OSError), os.scandir(at := todo.pop()) as entries:
            for entry in entries:
                is_shut = at == folder and entry.name in ("objects", *_FOLDERS)
                if entry.is_symlink():
                    links.append(Path(entry.path))
                elif not is_shut and entry.is_dir(follow_symlinks=False):
                    todo.append(Path(entry.path))
    return links


def _new_since(found: GitFolders, workspace: Path, state: Path) -> list[str]:
    """What makes the owner's programs run others, and was not there when the run began."""
    now = GitFolders()
    with contextlib.suppress(OSError):  # more than can be looked at: the next run says so
        for _ in _entries(workspace, state, (), now):
            pass
    told = (
        (now.met, found.met, "git runs what it says as soon as you use it"),
        (now.kin, found.kin, "its program runs what it says as soon as you use that"),
        (now.states, found.states, "mimikit started there does as it says"),
    )
    return [
        f"{path} came while it ran: {what}"
        for there, before, what in told
        for path in there
        if path not in before
    ]


@contextlib.contextmanager
def _kept(path: Path) -> Generator[None]:
    """A `commondir` that is there, made if need be, until the last who keeps it is done.

    Raises:
        EngineError: it stays locked, as by a Worker that made this git folder just now.
    """
    handle = _locked(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, EngineError):  # another run keeps it
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _text(path) == ".":
                path.unlink()
        os.close(handle)


def _locked(path: Path) -> int:
    """A descriptor of a `commondir` that stays there while it is open."""
    for _ in range(_LOCK_TRIES):
        _make(path, b".\n")  # that changes nothing; an empty one is an error to git
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            stack.callback(os.close, handle)
            with contextlib.suppress(BlockingIOError):  # the last who kept it removes it just now
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if os.fstat(handle).st_nlink:
                    stack.pop_all()
                    return handle
        time.sleep(0.02)
    raise EngineError(f"{path} is locked by another program")


def _entries(
    workspace: Path, state: Path, known: Iterable[Path], found: GitFolders
) -> Iterator[Path]:
    """Every `.git` and git folder in a workspace: its own, those known, those nearest.

    What nobody looked into, since there is too much, is shut.
    """
    kept = [path for path in known if path.is_relative_to(workspace) and _is_kept(path)]
    own = [workspace / ".git"] if os.path.lexists(workspace / ".git") else []
    for path in (*own, *kept):
        yield from _meet(path, workspace, state, found)
    todo, looked = deque([workspace]), 0
    kinds = found.met, found.states, found.kin
    while todo and looked < MOST_FOLDERS and sum(map(len, kinds)) < MOST_GIT_FOLDERS:
        folder, looked = todo.popleft(), looked + 1
        told, inner = set[str](), list[Path]()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in (".git", *_MARKS):
                    told.add(entry.name)
                if entry.name == ".git" or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name in _KIN:
                    found.kin.append(Path(entry.path))
                elif entry.name == STATE_FOLDER and entry.path != str(state):
                    found.states.append(Path(entry.path))
                elif entry.path != str(state):
                    inner.append(Path(entry.path))
        if ".git" in told:
            yield from _meet(folder / ".git", workspace, state, found)
        if told >= _MARKS:
            inner = [path for path in inner if path.name != "objects"]  # hundreds, of objects
            yield from _meet(folder, workspace, state, found)
        todo.extend(inner)
    if todo:
        shut = _around(todo, workspace)
        found.shut += shut
        found.pinned += folders_around(shut, workspace)
        names = ", ".join(map(str, shut[:5])) + (" …" if len(shut) > 5 else "")
        found.notes.append(
            f"read-only, as {looked} folders with {len(found.met)} git folders were looked into "
            f"and these were not: {names}"
        )


def _around(rest: Iterable[Path], workspace: Path) -> list[Path]:
    """The folders that hold all the rest and nothing else, or little else if they are too many.

    Raises:
        OSError: that would be the workspace.
    """
    found = set(rest)
    while len(found) > MOST_SHUT:
        deepest = max(len(path.parts) for path in found)
        found = {path.parent if len(path.parts) == deepest else path for path in found}
        if workspace in found:
            break
    if workspace in found:
        said = (
            f"more than {MOST_FOLDERS} folders or {MOST_GIT_FOLDERS} git folders, which is more "
            "than can be kept safe from a Worker; take a smaller workspace, or remove some"
        )
        raise OSError(errno.E2BIG, said, str(workspace))
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
            target = _named_by(target)
        led_to = [target.parent.parent if target.parent.name == "worktrees" else target]
    led_to = [
        other
        for other in led_to
        if other.is_relative_to(workspace) and not other.is_relative_to(state)
        # A submodule's is shut with all of `modules/`.
        if other.parent.name != "modules" and all(os.path.lexists(other / at) for at in _MARKS)
    ]
    for each in (*led_to, path):  # a worktree after the one it belongs to
        if each not in found.met:
            found.met.append(each)
            yield each


def _named_by(file: Path) -> Path:
    """The folder that a `.git` file names."""
    return Path(os.path.realpath(file.parent / _text(file).removeprefix("gitdir:").strip()))


def _worktree_in(found: GitFolders, entry: Path) -> list[Path]:
    """The git folders of a linked worktree, if the shared one is of the workspace as well."""
    with contextlib.suppress(EngineError, OSError, ValueError):
        folders = _pointed_to(entry)
        if len(folders) > 1 and folders[0] in found.met:
            return folders
    return []


def _pointed_to(entry: Path) -> list[Path]:
    """The git folders that the `.git` file of a workspace names: the shared one, then its own.

    Raises:
        EngineError: they do not belong to it.
    """
    own = _named_by(entry)
    if own.parent.name == "worktrees":
        common, back = own.parent.parent, own / _text(own / "gitdir")
        told = os.path.realpath(own / _text(own / "commondir"))
        if told != str(common):
            raise EngineError(f"{own / 'commondir'} names {told}, and it belongs to {common}")
        folders = [common, own]
    else:
        place = re.search(r"^\s*worktree\s*=\s*(.+)$", _text(own / "config"), re.MULTILINE)
        if place is None or "modules" not in own.parts:
            raise EngineError(f"{own} is neither a worktree's nor a submodule's")
        back, folders = own / place[1].strip('" ') / ".git", [own]
    if os.path.realpath(back) != str(entry):
        raise EngineError(f"{own} belongs to {back}")
    return folders


def _traps(
    folder: Path, workspace: Path, stack: contextlib.ExitStack, *, linked: bool
) -> list[Path]:
    """What makes git run programs from a folder of its own; made where it is not there.

    Raises:
        EngineError: it is no git folder of ours, or can not be made safe.
    """
    _check(folder, workspace, linked=linked)
    folders, files = _OF_WORKTREE if linked else (_FOLDERS, _FILES)
    for name in folders:
        (folder / name).mkdir(exist_ok=True)
    for name in files:
        if name == "commondir" and not linked:
            stack.enter_context(_kept(folder / name))
            if _text(folder / name) != ".":
                raise EngineError(f"{folder / name} leads elsewhere")
        _make(folder / name, b"")
    shut = [folder / name for name in (*folders, *files)]
    for path in shut:
        if path.is_symlink() or not (path.is_file() if path.name in files else path.is_dir()):
            raise EngineError(f"{path} is a link, or of another kind than it has to be")
    return shut


def _check(folder: Path, workspace: Path, *, linked: bool) -> None:
    """See that a folder is a git folder of ours, with no way out of it."""
    for inside in (workspace, Path(os.path.realpath(Path.home()))):
        if inside.is_relative_to(folder) and folder != workspace:
            raise EngineError(f"{inside} lies in {folder}")
    if folder.stat().st_uid not in (os.geteuid(), workspace.stat().st_uid):
        raise EngineError(f"{folder} is somebody else's")
    if links := _links(folder):
        raise EngineError(f"{links[0]} is a link")
    for name in ("HEAD",) if linked else ("HEAD", "objects", "refs"):
        if not (folder / name).exists():
            raise EngineError(f"{folder} is no git folder: it has no {name}")


def _text(path: Path) -> str:
    """The text of a small file; nothing that stands in its place is waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise EngineError(f"{path} is no file")
        return file.read(_MOST_BYTES).decode(errors="surrogateescape").strip()


def _make(path: Path, data: bytes) -> None:
    with contextlib.suppress(FileExistsError), path.open("xb") as file:
        file.write(data)
