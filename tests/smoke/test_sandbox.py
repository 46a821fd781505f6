"""The sandbox's canary: the state folder is masked in it, and an open mask is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.engines import sandbox
from tests.support.runs import ground

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap"),
]


def test_the_canary_finds_the_state_masked(tmp_path: Path) -> None:
    here = ground(tmp_path)
    assert sandbox.canary(here.state, here.workspace) is None
