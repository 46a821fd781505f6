"""The doctor's look at the state folder: what is wrong with it, and what a program mends safely."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from mimikit.cli.checks import Finding, broken, note, ok, warning
from mimikit.cli.frame import GITIGNORE
from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.memory.search import index_damage
from mimikit.protocol import ids, paths
from mimikit.protocol.files import TEMP_PREFIX, Files
from mimikit.protocol.models import Record
from mimikit.protocol.records import decode, most_bytes
from mimikit.protocol.results import StatusCheckpoint
from mimikit.protocol.runtime import Health, LockHolder, RuntimeState
from mimikit.protocol.schema import StateSchema
from mimikit.protocol.state_import import UNFINISHED_PREFIX
from mimikit.state import State, make_search
from mimikit.tasks.ledger import Ledger
from mimikit.triggers import registry

_MOST_LOOKED_AT = 20_000
_SHOWN = 10
_QUIET_S = 60
"""What has not been touched for so long nobody is at."""
_REMADE: dict[str, type[Record]] = {
    paths.HEALTH: Health,
    paths.CONSUMER_HOLDER: LockHolder,
    paths.RUNTIME: RuntimeState,
    paths.SCHEMA: StateSchema,
}
"""What the consumer makes anew where it is missing."""


def folder_itself(folder: Path) -> Iterator[Finding]:
    if folder.is_symlink() or not folder.is_dir():
        yield broken("state", f"expected a folder that is no link, got {folder}")
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        yield broken(
            "state",
            f"expected a folder of yours (user {os.getuid()}), {folder} is of user {found.st_uid}",
            f"give it to yourself: `sudo chown -R $(id -un) {folder}`",
        )
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode == 0o700:
        yield ok("state", str(folder))
        return
    wrong = f"expected mode 0700 on {folder}, got {mode:04o}"
    if mode & 0o077:
        wrong = f"others may look into {folder} (mode {mode:04o})"
    yield broken("state", wrong, f"`chmod 700 {folder}`", lambda: folder.chmod(0o700))


def inside(folder: Path, files: Files) -> Iterator[Finding]:
    missing = [name for name in paths.FOLDERS if not os.path.lexists(folder / name)]
    if missing:
        yield broken(
            "folders",
            f"expected {len(paths.FOLDERS)} folders, got none at {', '.join(missing[:_SHOWN])}",
            "make them",
            files.make_folders,
        )
    odd = list(_in_the_way(folder, files))
    yield from odd
    foreign: list[Path] = []
    opened: list[Path] = []
    every = (Path(top, name) for top, below, names in os.walk(folder) for name in (*below, *names))
    for path in itertools.islice(every, _MOST_LOOKED_AT):
        with contextlib.suppress(OSError):  # gone meanwhile
            found = path.lstat()
            is_ours = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
            if found.st_uid != os.getuid():
                foreign.append(path)
            elif is_ours and found.st_mode & 0o077:
                opened.append(path)

    def close() -> None:
        for path in opened:  # a script of a skill stays one that can be run
            if path.exists() and not path.is_symlink():
                path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~0o077)

    if foreign:
        yield broken(
            "owner",
            f"{len(foreign)} entries are not yours, such as {foreign[0]}",
            f"was mimikit run by somebody else once? `sudo chown -R $(id -un) {folder}`",
        )
    if opened:
        what = "files and folders" if any(path.is_dir() for path in opened) else "files"
        yield warning(
            "rights",
            f"{len(opened)} {what} are open to others, such as {opened[0]}",
            "close them",
            close,
        )
    if not missing and not odd and not foreign and not opened:
        yield ok("files", "all folders there, all yours, none open to others")


def _in_the_way(folder: Path, files: Files) -> Iterator[Finding]:
    """What stands in a folder's place: a plain file is set aside, all else is its user's matter."""
    for name in paths.FOLDERS:
        path = folder / name
        if not os.path.lexists(path) or (path.is_dir() and not path.is_symlink()):
            continue
        is_file = path.is_file() and not path.is_symlink() and name != paths.CORRUPT

        def mend(at: str = name) -> None:
            files.quarantine(at, "expected a folder, got a file")
            files.make_folders()

        got = "a file" if is_file else "something else"
        yield broken(
            "folders",
            f"expected a folder at {name}, got {got}",
            f"set it aside in {paths.CORRUPT}/" if is_file else "put the folder back",
            mend if is_file else None,
        )


def repository(folder: Path, workspace: Path, files: Files) -> Iterator[Finding]:
    """Whether git might take the state, secrets and all, into the repository around it."""
    if not folder.is_relative_to(workspace) or (folder / ".gitignore").exists():
        return
    in_git = any((above / ".git").exists() for above in (workspace, *workspace.parents))
    finding, where = (warning, "the") if in_git else (note, "any")
    yield finding(
        "git",
        f"git would take {folder.name}, secrets and all, into {where} repository around it",
        f"put a .gitignore with a line `*` into {folder.name}",
        lambda: files.create(".gitignore", GITIGNORE.encode()),
    )


def leftovers(folder: Path, files: Files, now: datetime) -> Iterator[Finding]:
    """What writers have left half made that live no more."""
    old: dict[str, list[Path]] = {}
    for top, _, names in os.walk(folder):
        for name in names:
            if name.startswith(TEMP_PREFIX) and _is_left(Path(top, name), now):
                place = os.path.relpath(top, folder).removeprefix(".").removeprefix("/")
                old.setdefault(place, []).append(Path(top, name))
    if left := list(itertools.chain(*old.values())):
        yield note(
            "leftovers",
            f"{len(left)} half-made files, such as {left[0].relative_to(folder)}",
            "the next start of the consumer removes most of them",
            lambda: [files.sweep_temps(place) for place in old],
        )
    with contextlib.suppress(OSError):
        beside = [(one.name, "folder") for one in folder.parent.iterdir() if one.is_dir()]
        imports = ids.abandoned(beside, "folder", UNFINISHED_PREFIX)
        if imports:
            yield note(
                "leftovers",
                f"{len(imports)} imports that were cut short, such as {folder.parent / imports[0]}",
                "the next import beside them removes them",
                lambda: [shutil.rmtree(folder.parent / name) for name in imports],
            )


def _is_left(path: Path, now: datetime) -> bool:
    with contextlib.suppress(OSError):  # gone meanwhile
        is_quiet = now.timestamp() - path.lstat().st_mtime > _QUIET_S
        return is_quiet and not ids.writer_lives(path.name.removeprefix(TEMP_PREFIX))
    return False


def unreadable(folder: Path, files: Files, now: datetime) -> Iterator[Finding]:
    """What was put aside because it could not be read, each with its reason."""
    reasons = files.names(paths.CORRUPT, suffix=paths.REASON)
    kept = [name for name in reasons if _lies_in_corrupt(folder, name)]
    for name in kept[:_SHOWN]:
        text = (files.read(f"{paths.CORRUPT}/{name}") or b"").decode(errors="replace")
        place, _, reason = text.strip().partition("\n")
        aside = f"{paths.CORRUPT}/{name.removesuffix(paths.REASON)}"
        back = f"mv {shlex.quote(str(folder / aside))} {shlex.quote(str(folder / place))}"
        yield warning(
            "corrupt",
            f"{place}: {reason}",
            f"kept as {aside}: mend it and put it back (`{back}`), or remove both files",
        )
    if len(kept) > _SHOWN:
        yield warning("corrupt", f"and {len(kept) - _SHOWN} more")
    # Of what is being set aside just now the reason is there first.
    alone = [name for name in reasons if name not in kept and _is_quiet(folder, name, now)]
    if alone:
        yield note(
            "corrupt",
            f"{len(alone)} reasons without what they are of, such as {paths.CORRUPT}/{alone[0]}",
            "it was put back or removed: remove them, too",
            lambda: [files.remove(f"{paths.CORRUPT}/{name}") for name in alone],
        )
    for trigger_id in registry.ids(files):
        _, error = registry.read(files, trigger_id)
        if error:
            yield warning(
                "trigger",
                f"{paths.trigger(trigger_id)}: {error}",
                "mend the file; until then its last good definition stays in force",
            )


def _lies_in_corrupt(folder: Path, reason: str) -> bool:
    return os.path.lexists(folder / paths.CORRUPT / reason.removesuffix(paths.REASON))


def _is_quiet(folder: Path, reason: str, now: datetime) -> bool:
    with contextlib.suppress(OSError):
        written = (folder / paths.CORRUPT / reason).stat().st_mtime
        return now.timestamp() - written > _QUIET_S
    return False


def remade(state: State) -> Iterator[Finding]:
    """Files of the consumer's own that it does without: hints, and indexes of what is elsewhere."""
    files = state.files
    for path, model in _REMADE.items():
        if reason := _damage(files, path, model):
            yield warning(
                "records",
                f"{path}: {reason}",
                f"set it aside in {paths.CORRUPT}/: the next start makes it anew",
                _quarantining(files, path, reason),
                alone=True,
            )
    if reason := _damage_of_status(files):
        set_aside = _quarantining(files, paths.TASK_STATUS, reason)

        def index_ledger() -> None:
            set_aside()
            made = Ledger(files, state.clock)
            made.load()
            made.checkpoint()

        yield warning(
            "ledger",
            f"{paths.TASK_STATUS}: {reason}",
            f"make the index anew from {paths.LEDGER}/",
            index_ledger,
            alone=True,
        )
    if reason := index_damage(files, state.path):

        def index_memory() -> None:
            search = make_search(state)
            with contextlib.closing(search):
                search.refresh(rebuild=True)

        yield warning(
            "search",
            f"the index of memory {reason}",
            "make it anew from the files",
            index_memory,
            alone=True,
        )


def _quarantining(files: Files, path: str, reason: str) -> Callable[[], None]:
    def set_aside() -> None:
        if files.exists(path):
            files.quarantine(path, reason)

    return set_aside


def _damage(files: Files, path: str, model: type[Record]) -> str | None:
    """Why a record can not be used; None: it can, or there is none."""
    try:
        data = files.read(path, most=most_bytes(model))
        if data is not None:
            decode(data, model)
    except (BadRecord, UnsafeFile) as error:
        return str(error)
    return None


def _damage_of_status(files: Files) -> str | None:
    """Why the index of ends can not be used; that it is behind is in order."""
    if reason := _damage(files, paths.TASK_STATUS, StatusCheckpoint):
        return reason
    known = files.peek(paths.TASK_STATUS, StatusCheckpoint)
    if known is None or not known.ledger_file:
        return None
    path = f"{paths.LEDGER}/{known.ledger_file}"
    try:
        found = files.stat(path)
    except StorageError:
        return None  # that folder is another finding
    if found is not None and found.size < known.ledger_offset:
        return f"it tells of {known.ledger_offset:,} bytes of {path}, which has {found.size:,}"
    return None


def newest_write(folder: Path) -> datetime | None:
    times: list[float] = []
    for name in (paths.LOG, paths.HEALTH, paths.EVENTS, paths.RUNTIME):
        with contextlib.suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC) if times else None
