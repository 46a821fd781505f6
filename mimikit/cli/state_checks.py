"""The doctor's look at the state folder: rights, folders, leftovers, what could not be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mimikit.cli.checks import Finding
from mimikit.cli.frame import GITIGNORE
from mimikit.protocol import paths
from mimikit.protocol.files import TEMP_PREFIX, Files
from mimikit.triggers import registry

_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_MOST_LOOKED_AT = 20_000
_SHOWN = 10
_OLD_TEMP_S = 60
_REASON = ".reason.txt"


def folder_itself(folder: Path) -> Iterator[Finding]:
    if folder.is_symlink() or not folder.is_dir():
        yield Finding("broken", "state", f"expected a folder that is no link, got {folder}")
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        yield Finding(
            "broken",
            "state",
            f"expected a folder of yours (user {os.getuid()}), {folder} is of user {found.st_uid}",
            f"give it to yourself: `sudo chown -R $(id -un) {folder}`",
        )
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode == _PRIVATE_FOLDER:
        yield Finding("ok", "state", str(folder))
        return
    wrong = f"expected mode 0700 on {folder}, got {mode:04o}"
    if mode & 0o077:
        wrong = f"others may look into {folder} (mode {mode:04o})"
    mend = f"`chmod 700 {folder}`"
    yield Finding("broken", "state", wrong, mend, lambda: folder.chmod(_PRIVATE_FOLDER))


def inside(folder: Path, files: Files) -> Iterator[Finding]:
    missing = [name for name in paths.FOLDERS if not (folder / name).is_dir()]
    if missing:
        yield Finding(
            "broken",
            "folders",
            f"expected {len(paths.FOLDERS)} folders, got none at {', '.join(missing[:_SHOWN])}",
            "make them",
            files.make_folders,
        )
    foreign, opened = _foreign_and_open(folder)
    if foreign:
        yield Finding(
            "broken",
            "owner",
            f"{len(foreign)} entries are not yours, such as {foreign[0]}",
            f"was mimikit run by somebody else once? `sudo chown -R $(id -un) {folder}`",
        )
    if opened:
        yield Finding(
            "warning",
            "rights",
            f"{len(opened)} files are open to others, such as {opened[0]}",
            "close them",
            lambda: _close(opened),
        )
    if not missing and not foreign and not opened:
        yield Finding("ok", "files", "all folders there, all yours, none open to others")


def _foreign_and_open(folder: Path) -> tuple[list[Path], list[Path]]:
    foreign: list[Path] = []
    opened: list[Path] = []
    looked = 0
    for place, _, names in os.walk(folder):
        for name in names:
            looked += 1
            path = Path(place, name)
            try:
                found = path.lstat()
            except OSError:
                continue  # gone meanwhile
            if found.st_uid != os.getuid():
                foreign.append(path)
            elif stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
                opened.append(path)
            if looked >= _MOST_LOOKED_AT:
                return foreign, opened
    return foreign, opened


def _close(opened: list[Path]) -> None:
    for path in opened:
        if path.exists() and not path.is_symlink():
            path.chmod(_PRIVATE_FILE)


def repository(folder: Path, workspace: Path, files: Files) -> Iterator[Finding]:
    """Whether git might take the state, secrets and all, into the repository around it."""
    in_git = any((above / ".git").exists() for above in (workspace, *workspace.parents))
    if in_git and folder.is_relative_to(workspace) and not (folder / ".gitignore").exists():
        yield Finding(
            "warning",
            "git",
            f"git would take {folder.name}, secrets and all, into the repository",
            f"put a .gitignore with a line `*` into {folder.name}",
            lambda: files.create(".gitignore", GITIGNORE.encode()),
        )


def leftovers(folder: Path, files: Files, now: datetime) -> Iterator[Finding]:
    places = [name for name in ("", *paths.FOLDERS) if (folder / name).is_dir()]
    old = [
        path
        for place in places
        for path in (folder / place).glob(f"{TEMP_PREFIX}*")
        if _age_s(path, now) > _OLD_TEMP_S
    ]
    if old:
        yield Finding(
            "note",
            "leftovers",
            f"{len(old)} half-made files, such as {old[0].relative_to(folder)}",
            "the next start of the consumer removes them",
            lambda: [files.sweep_temps(place) for place in places],
        )


def _age_s(path: Path, now: datetime) -> float:
    try:
        return now.timestamp() - path.lstat().st_mtime
    except OSError:
        return 0.0  # gone meanwhile


def unreadable(files: Files) -> Iterator[Finding]:
    """What was put aside because it could not be read, each with its reason."""
    reasons = files.names(paths.CORRUPT, suffix=_REASON)
    for name in reasons[:_SHOWN]:
        text = (files.read(f"{paths.CORRUPT}/{name}") or b"").decode(errors="replace")
        place, _, reason = text.strip().partition("\n")
        yield Finding(
            "warning",
            "corrupt",
            f"{place}: {reason}",
            f"kept as {paths.CORRUPT}/{name.removesuffix(_REASON)}: mend it and move it back, or "
            "remove both files",
        )
    if len(reasons) > _SHOWN:
        yield Finding("warning", "corrupt", f"and {len(reasons) - _SHOWN} more")
    for trigger_id in registry.ids(files):
        _, broken = registry.read(files, trigger_id)
        if broken:
            yield Finding(
                "warning",
                "trigger",
                f"{paths.trigger(trigger_id)}: {broken}",
                "mend the file; until then its last good definition stays in force",
            )


def newest_write(folder: Path) -> datetime | None:
    times: list[float] = []
    for name in (paths.LOG, paths.HEALTH, paths.EVENTS, paths.RUNTIME):
        try:
            times.append((folder / name).stat().st_mtime)
        except OSError:
            continue
    return datetime.fromtimestamp(max(times), UTC) if times else None
