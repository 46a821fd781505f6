"""The command line of the box, an allowlist. All paths are real ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SYSTEM = ("bin", "sbin", "lib", "lib64", "lib32", "nix/store")
_ETC = (
    *("alternatives", "ssl", "ca-certificates", "ca-certificates.conf", "pki", "crypto-policies"),
    *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "resolv.conf", "services"),
    *("protocols", "localtime", "timezone", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("profile", "bash.bashrc", "gitconfig", "os-release", "mime.types", "java", "python3"),
)
_PRIVATE = ("/tmp", "/run", "/var")  # noqa: S108 - each box has its own
_SHOWN, _WRITTEN, _HIDDEN = "--ro-bind", "--bind", "--tmpfs"


@dataclass(frozen=True, slots=True)
class Box:
    """What a box shows beside the system's programs. Missing paths are left out."""

    cwd: Path
    home: Path
    """Empty in the box."""
    writable: Sequence[Path] = ()
    shown: Sequence[Path] = ()
    """Read-only, also within what is writable."""
    pinned: Sequence[Path] = ()
    """Cannot be moved or replaced."""
    hidden: Sequence[Path] = ()
    """Masked: empty and read-only, but for what is named within."""
    network: bool = False
    nests: bool = False
    """Whether a program in it makes its own box, as codex does."""
    covers: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    """Files shown, read-only, in the place of others."""


def box_argv(bwrap: str, argv: Sequence[str], box: Box, root: Path = Path("/")) -> list[str]:
    """`argv` in the box; `root`: where system folders are looked up."""
    line = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    line += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
    line += ["--cap-drop", "ALL"]  # root could unmount everything otherwise
    if box.nests and os.geteuid() == 0:  # needed by root to map itself in the inner box
        line += ["--cap-add", "CAP_SETFCAP"]
    line += [] if box.network else ["--unshare-net"]
    line += [_SHOWN, "/usr", "/usr", *_system(root)]
    line += ["--proc", "/proc", "--dev", "/dev"]
    private = [*_PRIVATE, str(box.home)] if len(box.home.parts) > 1 else _PRIVATE
    line += [word for path in private for word in ("--tmpfs", path)]
    line += _mounts(box)
    return [*line, "--chdir", str(box.cwd), "--", *argv]


def namespace_argv(
    bwrap: str,
    argv: Sequence[str],
    *,
    hidden: Iterable[Path] = (),
    writable: Iterable[Path] = (),
    covers: Mapping[Path, Path] | None = None,
) -> list[str]:
    """`argv` in a process namespace; `hidden` folders are masked but for `writable`."""
    line = [bwrap, "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"]
    hidden = list(hidden)
    opened = [path for path in writable if any(map(path.is_relative_to, hidden))]
    seen = Box(Path("/"), Path("/"), opened, hidden=hidden, covers=covers or {})
    line += _mounts(seen, all_is_seen=True)
    return [*line, "--", *argv]


def _system(root: Path) -> list[str]:
    line = list[str]()
    for name in _SYSTEM:
        path = root / name
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), f"/{name}"]
        elif path.is_dir():
            line += [_SHOWN, str(path), f"/{name}"]
    for name in _ETC:
        if (path := root / "etc" / name).exists():
            line += [_SHOWN, str(path), f"/etc/{name}"]
    return line


def _mounts(box: Box, *, all_is_seen: bool = False) -> list[str]:
    """Outer mounts first; `all_is_seen`: everything is mounted below them."""
    made = dict.fromkeys(box.writable, _WRITTEN)
    made |= {path: made.get(path, _WRITTEN) for path in box.pinned}
    made |= dict.fromkeys(box.shown, _SHOWN)
    there = {path: how for path, how in made.items() if path.exists()}
    for path in box.hidden:
        if path.exists() and (all_is_seen or path in there or _is_within(path, there)):
            there[path] = _HIDDEN
    line, closed = list[str](), list[str]()
    for path, how in sorted(there.items(), key=lambda mount: len(mount[0].parts)):
        if how != _HIDDEN:
            line += [how, str(path), str(path)]
        elif path.is_dir():
            line += [_HIDDEN, str(path)]
            closed += ["--remount-ro", str(path)]
        else:
            line += [_SHOWN, "/dev/null", str(path)]
    for path, source in box.covers.items():
        line += [_SHOWN, str(source), str(path)]
    return [*line, *closed]


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in (*folders, Path("/usr")))
