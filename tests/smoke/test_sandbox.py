"""The canary of the box: the state folder cannot be reached in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.engine_settings import SandboxSettings
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox
from tests.support.runs import ground

pytestmark = [pytest.mark.needs_platform("linux"), pytest.mark.needs_program("bwrap")]


def test_nothing_in_the_box_reaches_the_state(tmp_path: Path) -> None:
    here = ground(tmp_path)
    box = WorkerSandbox(SandboxSettings(), here.state)
    assert box.unavailable() is None
    assert box.why_unsafe(BoxSpec(here.workspace, here.scratch)) is None
