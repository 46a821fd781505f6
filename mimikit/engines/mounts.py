"""What file systems are mounted where: at which other places the same files are seen.

As a program it is what a sandbox begins with: it looks whether all is mounted as it was meant, and
goes on as another. It needs the standard library alone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Sequence
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


def strange_mounts(
    inside: Sequence[Mount],
    outside: Sequence[Mount],
    masked: Collection[Path],
    shown: Collection[Path],
) -> list[str]:
    """What a sandbox shows that it must not, or does not mask, in words.

    Mounts are made by name, and who goes on beside may exchange what has the name for a link. So
    whatever is mounted has to show what stands there anyway.

    outside: the mounts as they are without it.
    masked: what is there and empty; below that nothing is mounted but at `shown`.
    """
    known, said = set(outside), list[str]()
    for mount in inside:
        point = mount.point
        is_mask = mount.kind == "tmpfs" or mount.root.name == "null"
        if mount in known or (point in masked and is_mask):
            continue
        if mount.kind == "proc" and point == Path("/proc", *mount.root.parts[1:]):
            continue  # the sandbox's own
        around, is_hidden = mount_holding(point, outside), any(map(point.is_relative_to, masked))
        same = around and (around.device, around.root / point.relative_to(around.point))
        if same != (mount.device, mount.root) or (is_hidden and point not in shown):
            said.append(f"{point} shows {mount.root}")
    last = {mount.point: mount for mount in inside}
    for path in masked:
        there = last.get(path)
        if there is None or not (there.kind == "tmpfs" or there.root.name == "null"):
            said.append(f"{path} is not masked")
    return said


def _enter(handle: str, masked: str, shown: str, *words: str) -> None:
    """Go on as another program, if nothing strange is mounted.

    handle: a file with what was mounted outside. masked, shown: how many words are such paths.
    """
    with os.fdopen(int(handle), "rb") as file:
        file.seek(0)
        outside = parsed_mounts(os.fsdecode(file.read()))
    first, second = int(masked), int(masked) + int(shown)
    paths = [Path(word) for word in words[:second]]
    if said := strange_mounts(mounts_here(), outside, paths[:first], paths[first:]):
        sys.exit(f"bwrap: exchanged meanwhile: {'; '.join(said[:5])}")
    os.execvp(words[second], words[second:])  # noqa: S606 - it becomes what it was given


if __name__ == "__main__":
    _enter(*sys.argv[1:])
