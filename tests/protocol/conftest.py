"""The disks that every test of the seam runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mimikit.protocol import disk as real
from mimikit.protocol.disk import FileSystem, RealDisk
from tests.support.memory_disk import MemoryDisk


@pytest.fixture(params=["real", "real without renameat2", "memory"])
def disk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FileSystem]:
    """An empty disk of each kind."""
    if request.param == "memory":
        yield MemoryDisk()
        return
    if request.param != "real":
        monkeypatch.setattr(real, "_renameat2", None)
    found = RealDisk(tmp_path)
    yield found
    found.close()


@pytest.fixture
def real_disk(tmp_path: Path) -> Iterator[RealDisk]:
    """The real one, over `tmp_path`."""
    found = RealDisk(tmp_path)
    yield found
    found.close()
