"""Changes of the state folder that end the consumer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.roles.run import LiveRuns
from mimikit.supervisor.consumer_lock import StateGuard
from mimikit.supervisor.store import Store
from tests.support.product import START
from tests.support.twins import FakeClock


@pytest.mark.parametrize("folder", ["history", "inbox", "triggers/state"])
@pytest.mark.parametrize("how", ["removed", "replaced", "a file in its place"])
def test_a_removed_or_replaced_folder_ends_the_consumer(
    tmp_path: Path, folder: str, how: str
) -> None:
    guard, ends, clock = guarded(tmp_path)
    guard.step(START)
    assert ends == []
    place = tmp_path / folder
    place.rename(tmp_path.parent / "away")
    if how == "replaced":
        place.mkdir()
    elif how != "removed":
        place.write_text("x")
    clock.advance(1)
    guard.step(START + timedelta(seconds=1))
    assert len(ends) == 1
    assert f"{folder}/" in ends[0]
    assert "was removed or replaced" in ends[0]


def test_a_replaced_lock_file_ends_the_consumer(tmp_path: Path) -> None:
    guard, ends, _ = guarded(tmp_path)
    (tmp_path / paths.CONSUMER_LOCK).unlink()
    guard.step(START)
    assert ends == [f"{tmp_path}: {paths.CONSUMER_LOCK} was removed or replaced"]


def guarded(root: Path) -> tuple[StateGuard, list[str], FakeClock]:
    files, clock = Files(RealDisk(root)), FakeClock(START)
    files.make_folders()
    lock = files.lock(paths.CONSUMER_LOCK)
    assert lock is not None
    ends: list[str] = []
    log = EventLog(files, clock)
    store = Store(files, Settings(), clock, live=LiveRuns(), log=log)
    return StateGuard(store, lock, ends.append), ends, clock
