"""The folder of a run goes with it, whatever the run has made of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from mimikit.engines.process_marks import scratch_prefix
from mimikit.roles import scratch


def test_what_is_shut_goes_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / ".mimikit"
    state.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"{scratch_prefix(state)}shut"
    (left / "inner").mkdir(parents=True)
    (left / "inner" / "file").touch()
    (left / "inner").chmod(0o000)
    scratch.sweep_scratch(state)
    assert not os.path.lexists(left)
