"""The folder of a run goes with it, whatever the run has made of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from mimikit.engines.process_marks import scratch_prefix
from mimikit.roles import scratch
from tests.support.deep import nested_folders


def test_what_is_very_deep_or_shut_goes_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / ".mimikit"
    state.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = [tmp_path / f"{scratch_prefix(state)}{name}" for name in ("deep", "shut")]
    for folder in left:
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "file").touch()
    (left[1] / "inner").chmod(0o000)
    with nested_folders(left[0]):
        scratch.sweep_scratch(state)
        assert not any(map(os.path.lexists, left))
