"""The git folders that a Worker writes, and what in them makes git run programs.

Who chooses a git folder chooses what is writable, and whose hooks the owner's git runs: so no file
that a Worker can write does. What makes git run programs, or send the history elsewhere, is shut
also where it is not there yet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mimikit.engines.git_folders import (
    MARKS,
    SHUT,
    GitFolders,
    entries,
    is_half,
    named_by,
    shut_in,
    strange_in,
    targets_in,
    text_of,
)
from mimikit.engines.git_mend import (
    CLOSED,
    MOST_TOLD,
    committed,
    cut,
    opened,
    part_names,
    remove_links,
    set_indexes_aside,
)
from mimikit.engines.sandbox import folders_around
from mimikit.errors import EngineError

MOST_WRITABLE = 40
"""Each is eleven mounts, and each shell of an agent takes its time for each mount."""
SHUT_OF_WORKTREE = ("modules/", "config.worktree", "commondir", "gitdir")
"""What is shut in the folder that a linked worktree has of its own."""
_UNFINISHED = {
    "rebase-merge": "git rebase --continue",
    "rebase-apply": "git rebase --continue or git am --continue",
    "sequencer": "git cherry-pick --continue or git revert --continue",
}
"""What git goes on with as is written there, and by which command."""
_LOCK_TRIES = 100


@dataclass(frozen=True, slots=True)
class FolderShare:
    """What a Worker is given of one git folder of the workspace, or of a file that names some."""

    entry: Path
    folders: Mapping[Path, int] = field(default_factory=dict[Path, int])
    """Written, but for what makes git run programs: each with its inode, a shared one first."""
    shut: tuple[Path, ...] = ()
    note: str | None = None
    is_own: bool = False


@contextlib.contextmanager
def held(workspace: Path, state: Path, known: Iterable[Path] = ()) -> Generator[GitFolders]:
    """The git folders of a workspace for one run: found, and what has to be there made.

    `known`: what was met before; it comes first, so that nothing put in front of it hides it.
    A `commondir` that was made goes with the last run that holds it, whosever: to remove it is to
    open it in the sandboxes of the others. What else was made is empty and stays. Links that the
    run put where git writes files of its own are removed: git would follow them.

    Raises:
        EngineError: there is more in the workspace than can be looked at or shut.
    """
    workspace, state = (Path(os.path.realpath(path)) for path in (workspace, state))
    found, written, beyond = GitFolders(), dict[Path, int](), 0
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(opened(workspace))
        rights = stat.S_IMODE(os.fstat(top).st_mode)
        for entry in entries(workspace, state, known, found):
            share, given = judge(entry, workspace, found.met), dict[Path, int]()
            traps, beyond = list[Path](), max(0, len(found.met) - MOST_WRITABLE)
            try:
                for folder, inode in share.folders.items():
                    names = SHUT_OF_WORKTREE if given else SHUT
                    given[folder] = at = stack.enter_context(opened(folder, inode=inode))
                    traps += _traps(folder, at, stack, names)
            except (EngineError, OSError, ValueError) as error:
                share, traps, given = _closed(entry, workspace, error), [], {}
            written |= given
            folders = list(share.folders)
            found.pinned += [*folders_around([entry, *folders], workspace), *folders]
            found.shut += [*share.shut, *traps]
            found.writable += folders if share.is_own else []
            found.opened += folders if share.is_own else folders[1:]
            found.notes += [share.note] if share.note else []
            for folder in folders or [entry]:
                _look_behind(folder, workspace, found)
        found.shut += found.kin
        found.pinned += folders_around(found.kin, workspace)
        if beyond:
            said = f"{beyond} git folders beyond {MOST_WRITABLE} are read-only as a whole"
            found.notes.append(said)
        unfinished = _unfinished(written)
        found.left += set_indexes_aside(written)  # of a run that was killed
        shut = _shut_paths(found, workspace, state)
        before = _committed(found, shut, workspace, state)
        try:
            yield found
        finally:
            if rights & ~os.fstat(top).st_mode & stat.S_IRWXU:  # else nobody works there any more
                Path(f"/proc/self/fd/{top}").chmod(rights)
                found.left.append(f"gave {workspace} its permissions back, which it had taken away")
            elif stat.S_IMODE(os.fstat(top).st_mode) & ~rights:
                Path(f"/proc/self/fd/{top}").chmod(rights)
                found.left.append(f"took permissions of {workspace} away that had been added")
            found.left += remove_links(written)
            of_owner = {path for path, _ in before}
            untracked = [path for path in shut if path not in of_owner]
            found.left += set_indexes_aside(written, found.writable, untracked)
            now = _committed(found, shut, workspace, state)
            found.left += cut(
                [
                    f"{name} has {os.fsdecode(path)}: to check it out or to merge it writes there"
                    for (path, what), name in now.items()
                    if (path, what) not in before
                ]
            )
            found.left += [
                f"{path} came while it ran: `{_UNFINISHED[path.name]}` runs what it says"
                for path in _unfinished(written)
                if path not in unfinished
            ]
            found.left += _new_since(found, workspace, state)


def judge(entry: Path, workspace: Path, met: Sequence[Path]) -> FolderShare:
    """What a Worker is given of an entry, the last of those `met`. Looks, and changes nothing."""
    is_own = entry == workspace / ".git"
    if entry.is_symlink():  # no mount can hold it: it is no reason to give anything
        note = f"the git folder of {entry} is read-only: it is a link"
        return FolderShare(entry, note=note if is_own else None)
    if (not is_own and len(met) > MOST_WRITABLE) or (is_own and _is_empty(entry)):
        return FolderShare(entry, shut=(entry,))
    try:
        if entry.is_dir():
            folders = [entry]
        else:
            folders = _pointed_to(entry) if is_own else _worktree_in(met, entry)
        checked = {folder: _check(folder, workspace, folder != folders[0]) for folder in folders}
    except (EngineError, OSError, ValueError) as error:
        return _closed(entry, workspace, error)
    return FolderShare(entry, checked, () if entry in checked else (entry,), is_own=is_own)


def _shut_paths(found: GitFolders, workspace: Path, state: Path) -> list[bytes]:
    """What in the workspace no Worker writes, and git would if a commit or an index had it."""
    shut = [state, *found.kin, *(path for path in found.met if path.name != ".git")]
    inner = (path for path in shut if path != workspace and path.is_relative_to(workspace))
    return [os.fsencode(path.relative_to(workspace)) for path in inner]


def _committed(
    found: GitFolders, shut: list[bytes], workspace: Path, state: Path
) -> dict[tuple[bytes, str], str]:
    return committed(found.writable[-1], shut, workspace, state) if found.writable else {}


def _closed(entry: Path, workspace: Path, error: Exception) -> FolderShare:
    said = error.strerror if isinstance(error, OSError) else error
    # A Worker that makes its workspace half a git folder does not close it to others.
    shut = () if entry == workspace and is_half(entry) else (entry,)
    return FolderShare(entry, shut=shut, note=f"the git folder of {entry} is read-only: {said}")


def _look_behind(folder: Path, workspace: Path, found: GitFolders) -> None:
    """Shut what is reached by another name as well, or tell that it is open."""
    targets, rest = targets_in(folder, workspace)
    found.shut += targets
    found.pinned += folders_around(targets, workspace)
    for target, link in targets.items():
        found.notes.append(f"{target} is read-only: {link} leads there")
    said = [f"{path} leads where agents can write: {path.readlink()}" for path in rest]
    said += [
        f"{path} is the same file as another, and changed by who writes that: copy it, and move "
        "the copy to its place"
        for path, about in shut_in(folder)
        if stat.S_ISREG(about.st_mode) and about.st_nlink > 1
    ]
    found.notes += cut(said)


def _unfinished(folders: Iterable[Path]) -> list[Path]:
    places = (folder / name for folder in folders for name in _UNFINISHED)
    return [path for path in places if os.path.lexists(path)]


def _new_since(found: GitFolders, workspace: Path, state: Path) -> list[str]:
    """What makes the owner's programs run others, and was not there when the run began."""
    now, more = GitFolders(), list[str]()
    try:
        for _ in entries(workspace, state, (), now):
            pass
    except EngineError as error:
        more.append(str(error))
    closed = [f"{path} {CLOSED}" for path in now.closed if path not in found.closed]
    told = (
        (now.met, found.met, "git runs what it says as soon as you use it"),
        (now.kin, found.kin, "its program runs what it says as soon as you use that"),
        (now.states, found.states, "mimikit started there does as it says"),
    )
    new = [
        f"{path} came while it ran: {what}"
        for there, before, what in told
        for path in there
        if path not in before and not (path.name == ".git" and _is_empty(path))
    ]
    parted = part_names(path for path in now.met if path not in found.met)
    return [*more, *closed[:MOST_TOLD], *cut(new), *parted]


def _is_empty(path: Path) -> bool:
    """As is what codex leaves where it looked for a git folder: nothing to git."""
    with contextlib.suppress(OSError):
        return not any(path.iterdir())
    return False


@contextlib.contextmanager
def _kept(path: Path, at: int) -> Generator[None]:
    """A `commondir` that is there, made if need be, until the last who keeps it is done.

    Raises:
        EngineError: it stays locked, as by a Worker that made this git folder just now.
    """
    handle = _locked(path, at)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, EngineError):  # another run keeps it
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.pread(handle, 3, 0) == b".\n":
                os.unlink(path.name, dir_fd=at)
        os.close(handle)


def _locked(path: Path, at: int) -> int:
    """A descriptor of a `commondir` that stays there while it is open."""
    for _ in range(_LOCK_TRIES):
        _make(path.name, at, b".\n")  # that changes nothing; an empty one is an error to git
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(path.name, flags, dir_fd=at)
            stack.callback(os.close, handle)
            with contextlib.suppress(BlockingIOError):  # the last who kept it removes it just now
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if os.fstat(handle).st_nlink:
                    stack.pop_all()
                    return handle
        time.sleep(0.02)
    raise EngineError(f"{path} is locked by another program")


def _worktree_in(met: Sequence[Path], entry: Path) -> list[Path]:
    """The git folders of a linked worktree, if the shared one is of the workspace as well."""
    with contextlib.suppress(EngineError, OSError, ValueError):
        folders = _pointed_to(entry)
        if len(folders) > 1 and folders[0] in met:
            return folders
    return []


def _pointed_to(entry: Path) -> list[Path]:
    """The git folders that the `.git` file of a workspace names: the shared one, then its own.

    Raises:
        EngineError: they do not belong to it.
    """
    own = named_by(entry)
    if own.parent.name == "worktrees":
        common, back = own.parent.parent, own / text_of(own / "gitdir")
        told = os.path.realpath(own / text_of(own / "commondir"))
        if told != str(common):
            raise EngineError(f"{own / 'commondir'} names {told}, and it belongs to {common}")
        folders = [common, own]
    else:
        place = re.search(r"^\s*worktree\s*=\s*(.+)$", text_of(own / "config"), re.MULTILINE)
        if place is None or "modules" not in own.parts:
            raise EngineError(f"{own} is neither a worktree's nor a submodule's")
        back, folders = own / place[1].strip('" ') / ".git", [own]
    if os.path.realpath(back) != str(entry):
        raise EngineError(f"{own} belongs to {back}")
    return folders


def _traps(
    folder: Path, at: int, stack: contextlib.ExitStack, names: Iterable[str]
) -> Generator[Path]:
    """What makes git run programs from a folder of its own; made where it is not there.

    Raises:
        EngineError: it can not be made safe.
    """
    for name in names:
        path, is_folder = folder / name, name.endswith("/")
        if is_folder:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.name, dir_fd=at)
        elif name == "commondir" and names is SHUT:
            stack.enter_context(_kept(path, at))
            if text_of(path) != ".":
                raise EngineError(f"{path} leads elsewhere")
        else:
            _make(name, at, b"")
        mode = os.stat(path.name, dir_fd=at, follow_symlinks=False).st_mode
        if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
            raise EngineError(f"{path} is a link, or of another kind than it has to be")
        yield path


def _check(folder: Path, workspace: Path, is_linked: bool) -> int:
    """See that a folder is a git folder of ours, with no way out of it; gives its inode.

    Raises:
        EngineError: it is not.
    """
    found = folder.lstat()
    for inside in (workspace, Path(os.path.realpath(Path.home()))):
        if inside.is_relative_to(folder) and folder != workspace:
            raise EngineError(f"{inside} lies in {folder}")
    if found.st_uid not in (os.geteuid(), workspace.stat().st_uid):
        raise EngineError(f"{folder} is somebody else's")
    if strange := strange_in(folder):
        what = "is a link" if strange[0].is_symlink() else "can not be looked into"
        raise EngineError(f"{strange[0]} {what}")
    for name in ("HEAD",) if is_linked else sorted(MARKS):
        if not (folder / name).exists():
            raise EngineError(f"{folder} is no git folder: it has no {name}")
    return found.st_ino


def _make(name: str, at: int, data: bytes) -> None:
    with contextlib.suppress(FileExistsError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(name, flags, 0o666, dir_fd=at), "wb") as file:
            file.write(data)
