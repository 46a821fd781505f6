"""A disk that turns read-only, or can hold no more files: said, waited for, and nothing is lost."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.own_disk import remount, world_on_disk
from tests.process.world import World, until

pytestmark = [pytest.mark.needs_platform("linux"), pytest.mark.needs_program("mount", "umount")]

FILES = 2000
"""So many files the disk can hold."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[World]:
    """A world whose state lies on a disk of few files."""
    with world_on_disk(tmp_path, f"size=64m,nr_inodes={FILES}") as world:
        yield world


def use_up_files(world: World) -> Path:
    """Make files until the disk holds no more."""
    heap = world.state.parent / "heap"
    heap.mkdir(exist_ok=True)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        for number in range(FILES + 1):
            (heap / str(number)).touch()
    return heap


def accept(world: World, count: int) -> list[str]:
    """Messages that lie in the inbox, as the consumer stands still."""
    assert world.consumer is not None
    world.consumer.send_signal(signal.SIGSTOP)
    ids = [f"msg-{number}" for number in range(count)]
    for id_ in ids:
        assert world.post("/api/input", {"id": id_, "text": "hello"}).status == 202
    return ids


def answered_once(world: World, ids: list[str]) -> None:
    until(lambda: all(world.replies(id_) for id_ in ids), "all are answered", facts=world.facts)
    until(world.is_idle, "nothing is left to do")
    assert all(len(world.replies(id_)) == 1 for id_ in ids)
    said = [message["id"] for message in world.transcript() if message["role"] == "user"]
    assert sorted(said) == sorted(ids)
    assert world.names("corrupt", "") == []


@pytest.mark.fault(16)
def test_a_disk_that_can_hold_no_more_files_is_said_and_nothing_accepted_is_lost(
    small: World,
) -> None:
    consumer = small.start_consumer()
    web = small.start_web()
    accepted = accept(small, 3)
    heap = use_up_files(small)
    refused = small.post("/api/input", {"id": "msg-late", "text": "hello"})
    assert refused.status == 507
    assert "can hold no more files" in refused.body["error"]["message"]
    consumer.send_signal(signal.SIGCONT)
    for _ in range(3):
        use_up_files(small)  # what it was writing as it was stopped may have left room for one
        assert small.post("/api/input", {"id": "msg-late", "text": "hello"}).status == 507
    assert small.ask("GET", "/api/snapshot").status == 200
    for path in list(heap.iterdir()):
        path.unlink()
    heap.rmdir()
    until(lambda: small.post("/api/input", {"id": "msg-late", "text": "hello"}).status == 202,
          "messages are taken again")  # fmt: skip
    answered_once(small, [*accepted, "msg-late"])
    assert (consumer.poll(), web.poll()) == (None, None)
    assert "Traceback" not in small.said("consumer") + small.said("web")


@pytest.mark.fault(18)
def test_on_a_read_only_disk_neither_begins_and_each_says_why_in_a_sentence(small: World) -> None:
    """None turns read-only while somebody has a file open: this is at the start, not meanwhile."""
    consumer, web = small.start_consumer(), small.start_web()
    assert small.post("/api/input", {"id": "msg-first", "text": "hello"}).status == 202
    until(lambda: small.replies("msg-first"), "the first is answered", facts=small.facts)
    consumer.terminate()
    assert consumer.wait(120) == 0
    assert small.post("/api/input", {"id": "msg-second", "text": "hello"}).status == 202
    web.terminate()
    assert web.wait(120) == 0
    remount(small, "ro")
    for arguments in (("consumer",), ("web", "--port", str(small.port))):
        ended = small.run(*arguments)
        assert ended.returncode == 1
        assert "the disk is read-only; make it writable" in ended.stderr
        assert "Traceback" not in ended.stderr
    shown = small.run("tasks", "list", "--json")
    assert (shown.returncode, shown.stderr) == (0, "")
    remount(small, "rw")
    small.start_consumer()
    answered_once(small, ["msg-first", "msg-second"])
