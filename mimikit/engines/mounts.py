"""What file systems are mounted where: at which other places the same files are seen."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r"^[^ \n]+ [^ \n]+ ([^ \n]+) ([^ \n]+) ([^ \n]+) .*? - ([^ \n]+)", re.MULTILINE)
_ESCAPED = re.compile(r"\\([0-7]{3})")
"""How a space, a tab, a newline and a backslash stand there."""


class Mount(NamedTuple):
    """A folder or file of a file system, and where that is seen: what the kernel says."""

    device: str
    root: Path
    """What of the file system it is, from the file system's own top."""
    point: Path
    kind: str


def mounts_here() -> list[Mount]:
    """The mounts that this process sees."""
    return parsed_mounts(os.fsdecode(Path("/proc/self/mountinfo").read_bytes()))


def parsed_mounts(mountinfo: str) -> list[Mount]:
    def path(text: str) -> Path:
        return Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), text))

    found = _LINE.findall(mountinfo)
    return [Mount(device, path(root), path(point), kind) for device, root, point, kind in found]


def mount_holding(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    """The mount in which a real path lies: the nearest around it, of two at one point the later."""
    around = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(around), key=lambda mount: len(mount.point.parts), default=None)


def other_places(path: Path, mounts: Sequence[Mount]) -> list[Path]:
    """Where else the files at and below a real path are seen, or some of them."""
    parts = [(mount.device, mount.root) for mount in mounts if mount.point.is_relative_to(path)]
    if mount := mount_holding(path, mounts):
        parts.append((mount.device, mount.root / path.relative_to(mount.point)))
    places = [
        # Of a mount of a part of it, that part; of one around it, what it is there.
        mount.point / (part.relative_to(mount.root) if part.is_relative_to(mount.root) else "")
        for device, part in parts
        for mount in mounts
        if mount.device == device
        if part.is_relative_to(mount.root) or mount.root.is_relative_to(part)
    ]
    apart = (at for at in places if not (at.is_relative_to(path) or path.is_relative_to(at)))
    return list(dict.fromkeys(apart))
