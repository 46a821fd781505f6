"""A state folder in memory for tests of the conversation."""

from __future__ import annotations

import pytest

from mimikit.protocol.files import Files
from tests.support.memory_disk import MemoryDisk


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def files(disk: MemoryDisk) -> Files:
    made = Files(disk)
    made.make_folders()
    return made
