"""One consumer of a folder, whatever stands in the place of its lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.app import take_consumer_lock
from mimikit.errors import AlreadyRunning
from mimikit.protocol import paths
from mimikit.state import open_state


@pytest.mark.parametrize("in_place", ["nothing", "a folder", "a removed file"])
def test_a_second_consumer_is_refused(tmp_path: Path, in_place: str) -> None:
    state = open_state(tmp_path / ".mimikit", tmp_path)
    if in_place == "a folder":
        state.files.make_folders([paths.CONSUMER_LOCK])
    lock = take_consumer_lock(state)
    assert state.files.lock(paths.CONSUMER_LOCK) is None
    if in_place == "a removed file":
        state.files.remove(paths.CONSUMER_LOCK)
    with pytest.raises(AlreadyRunning):
        take_consumer_lock(open_state(tmp_path / ".mimikit", tmp_path))
    lock.release()
