"""A state folder on a disk of its own, which can be full or read-only: only root mounts one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.process.world import World


@contextmanager
def world_on_disk(root: Path, options: str) -> Generator[World]:
    """A world whose state lies on a disk in memory, mounted with these options."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    world = World(root)
    disk = root / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"{options},mode=0700", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    world.state = disk / "state"
    try:
        yield world
    finally:
        world.close()
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def remount(world: World, options: str) -> None:
    """Mount its disk anew, as an administrator or the kernel does."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(world.state.parent)], check=True)
