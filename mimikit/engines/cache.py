"""Writes rebuildable files of the state's `cache/`."""

from __future__ import annotations

import contextlib
from pathlib import Path

from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files


def write_cache(state: Path, name: str, data: bytes) -> None:
    with contextlib.closing(RealDisk(state)) as disk:
        files = Files(disk, durable=False)
        files.make_folders()
        files.write(name, data)
