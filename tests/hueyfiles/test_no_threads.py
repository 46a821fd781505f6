"""A folder whose helpers' threads can not be started: it is looked at later, not never."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mimikit.errors import BadRecord
from mimikit.hueyfiles.folder import QueueEntry, QueueFolder
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from tests.support.memory_disk import MemoryDisk
from tests.support.product import START
from tests.support.twins import FakeClock


@pytest.fixture
def folder() -> QueueFolder:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write("worker/queue/a.json", b"good")
    files.write("worker/queue/b.json", b"bad")

    def inspect(name: str, data: bytes, _seen_at: object) -> QueueEntry:
        if data == b"bad":
            raise BadRecord("expected something good")
        return QueueEntry(name)

    return QueueFolder(files, "worker/queue", FakeClock(START), inspect=inspect, settle_s=0.05)


def test_what_was_heard_while_no_thread_was_to_be_had_is_looked_at_later(
    folder: QueueFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> Any:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        folder.hear(None)
        folder.look(["b.json"])
        assert folder.take() is None
    folder.wait(10, folder.wakes)  # whoever waits next gets a thread for it
    taken = folder.take()
    assert taken is not None
    assert taken.name == "a.json"
    files = folder._files
    deadline = threading.Event()
    for _ in range(500):
        if files.names(paths.CORRUPT, suffix=paths.REASON):
            break
        deadline.wait(0.01)
    assert [name for name in files.names("worker/queue") if name == "b.json"] == []
    folder.close()
