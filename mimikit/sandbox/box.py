"""Builds the bubblewrap command line: an allowlist of mounts. All paths are real paths."""

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
_READ_ONLY, _WRITABLE, _MASKED = "--ro-bind", "--bind", "--tmpfs"


@dataclass(frozen=True, slots=True)
class Box:
    """The mounts besides the system's programs. Missing paths are skipped."""

    cwd: Path
    home: Path
    """Empty in the box."""
    writable: Sequence[Path] = ()
    shown: Sequence[Path] = ()
    """Read-only, also below `writable`."""
    pinned: Sequence[Path] = ()
    """Mount points, so that they cannot be moved or replaced."""
    hidden: Sequence[Path] = ()
    """Masked by an empty read-only folder, except for other mounts below."""
    network: bool = False
    nests: bool = False
    """Whether a program in it creates its own box, as codex does."""
    covers: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    """Read-only files that replace others."""


def box_argv(bwrap: str, argv: Sequence[str], box: Box, root: Path = Path("/")) -> list[str]:
    """`argv` in the box; `root`: where to find the system folders, for tests."""
    line = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    line += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
    line += ["--cap-drop", "ALL"]  # root could unmount everything otherwise
    if box.nests and os.geteuid() == 0:  # needed by root to map itself in the inner box
        line += ["--cap-add", "CAP_SETFCAP"]
    line += [] if box.network else ["--unshare-net"]
    line += [_READ_ONLY, "/usr", "/usr", *_system(root)]
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
    """`argv` in a process namespace; masks `hidden` folders, except for `writable` ones below."""
    line = [bwrap, "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"]
    hidden = list(hidden)
    exposed = [path for path in writable if any(map(path.is_relative_to, hidden))]
    box = Box(Path("/"), Path("/"), exposed, hidden=hidden, covers=covers or {})
    return [*line, *_mounts(box, root_is_mounted=True), "--", *argv]


def _system(root: Path) -> list[str]:
    line = list[str]()
    for name in _SYSTEM:
        path = root / name
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), f"/{name}"]
        elif path.is_dir():
            line += [_READ_ONLY, str(path), f"/{name}"]
    for name in _ETC:
        if (path := root / "etc" / name).exists():
            line += [_READ_ONLY, str(path), f"/etc/{name}"]
    return line


def _mounts(box: Box, *, root_is_mounted: bool = False) -> list[str]:
    """Outer mounts first."""
    mounts = dict.fromkeys(box.writable, _WRITABLE)
    mounts |= {path: mounts.get(path, _WRITABLE) for path in box.pinned}
    mounts |= dict.fromkeys(box.shown, _READ_ONLY)
    mounts = {path: how for path, how in mounts.items() if path.exists()}
    for path in box.hidden:
        visible = root_is_mounted or any(map(path.is_relative_to, [*mounts, Path("/usr")]))
        if visible and path.exists():
            mounts[path] = _MASKED
    line, closed = list[str](), list[str]()
    for path, how in sorted(mounts.items(), key=lambda mount: len(mount[0].parts)):
        if how != _MASKED:
            line += [how, str(path), str(path)]
        elif path.is_dir():
            line += [_MASKED, str(path)]
            closed += ["--remount-ro", str(path)]
        else:
            line += [_READ_ONLY, "/dev/null", str(path)]
    for path, source in box.covers.items():
        line += [_READ_ONLY, str(source), str(path)]
    return [*line, *closed]
