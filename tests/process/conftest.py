"""Real processes over a state folder, ended with their test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A state folder of its own; everything started over it is ended with the test."""
    made = World(tmp_path)
    yield made
    made.close()
