"""A queue of the product: its file is the message, its entry the order, its claim its user's."""

from __future__ import annotations

import errno
import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimikit.errors import BadRecord
from mimikit.hueyfiles.folder import QueueEntry
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Task
from mimikit.protocol.watch import FolderWatch
from mimikit.runner.queues import FileBytes, TaskHuey, TaskStorage
from tests.hueyfiles.helpers import START, memory_files, names, real_files, reasons, until
from tests.runner.helpers import by_rank, task_storage
from tests.support.memory_disk import DiskStep, MemoryDisk
from tests.support.twins import FakeClock


def drop(files: Files, name: str, rank: int = 5, at: float | None = None) -> bytes:
    data = json.dumps({"rank": rank, "at": at}).encode()
    files.write(f"worker/queue/{name}.json", data)
    return data


def claim_all(storage: TaskStorage) -> list[str]:
    found: list[str] = []
    while (message := storage.dequeue()) is not None:
        assert isinstance(message, FileBytes)
        found.append(message.name.removesuffix(".json"))
    return found


def test_a_claim_moves_the_file_as_it_is_and_leaves_it_there() -> None:
    files = memory_files()
    storage = task_storage(files)
    data = drop(files, "a")
    message = storage.dequeue()
    assert message == data
    assert isinstance(message, FileBytes)
    assert message.name == "a.json"
    assert files.read("worker/running/a.json") == data
    assert storage.dequeue() is None
    storage.close()
    assert names(files, "worker/running") == ["a.json"]
    assert names(files, "worker/queue") == []


# ---- time -----------------------------------------------------------------------------------


def test_nothing_is_claimed_before_its_time() -> None:
    files, clock = memory_files(), FakeClock(START)
    storage = task_storage(files, clock=clock)
    drop(files, "later", at=(START + timedelta(hours=1)).timestamp())
    drop(files, "now")
    assert claim_all(storage) == ["now"]
    clock.advance(3599)
    assert claim_all(storage) == []
    assert names(files, "worker/queue") == ["later.json"]
    clock.advance(1)
    assert claim_all(storage) == ["later"]


def test_a_clock_set_forward_is_noticed_while_waiting() -> None:
    files, clock = memory_files(), FakeClock(START)
    storage = task_storage(files, clock=clock, blocking=True, read_timeout=20)
    drop(files, "a", at=(START + timedelta(days=1)).timestamp())
    found: list[bytes | None] = []
    thread = threading.Thread(target=lambda: found.append(storage.dequeue()))
    thread.start()
    clock.jump(START + timedelta(days=2))
    thread.join(10)
    assert not thread.is_alive()
    assert found[0] is not None


# ---- changes by others --------------------------------------------------------------------------


def test_what_was_replaced_in_the_moment_of_the_claim_is_looked_at_anew() -> None:
    """The editor's new version counts: its order, and its content in running/."""
    files = memory_files()
    edits = [{"rank": 9, "new": True}]

    def inspect(name: str, data: bytes, seen_at: datetime) -> QueueEntry:
        entry = by_rank(name, data, seen_at)
        if name == "a.json" and storage.depth == 1 and edits:
            files.write("worker/queue/a.json", json.dumps(edits.pop()).encode())
        return entry

    storage = task_storage(files, inspect=inspect)
    drop(files, "a", 1)
    drop(files, "b", 2)
    assert claim_all(storage) == ["b", "a"]
    assert json.loads(files.read("worker/running/a.json") or b"") == {"rank": 9, "new": True}


def test_an_edit_that_is_told_changes_the_order_and_the_time() -> None:
    files, clock = memory_files(), FakeClock(START)
    storage = task_storage(files, clock=clock)
    for name, rank in (("a", 1), ("b", 2), ("c", 3)):
        drop(files, name, rank)
    storage.refresh(None)
    drop(files, "c", 0)
    drop(files, "a", at=START.timestamp() + 60)
    storage.refresh(["a.json", "c.json"])
    assert claim_all(storage) == ["c", "b"]


def test_very_many_files_are_taken_in_by_another_thread_and_hold_up_nobody() -> None:
    files = memory_files()
    for number in range(300):
        drop(files, f"t{number:03}", number)
    may_read, read = threading.Event(), list[str]()

    def inspect(name: str, data: bytes, seen_at: datetime) -> QueueEntry:
        if threading.current_thread() is not threading.main_thread():
            may_read.wait(20)
        read.append(name)
        return by_rank(name, data, seen_at)

    folder = task_storage(files, inspect=inspect).new_folder()
    folder.on_change([f"t{number:03}.json" for number in range(1, 300)])
    folder.on_change(["t000.json"])
    folder.on_change(None)
    assert read == ["t000.json"]
    assert folder.upcoming(5) == ["t000.json"]
    may_read.set()
    until(lambda: len(folder) == 300)
    assert folder.upcoming(3) == ["t000.json", "t001.json", "t002.json"]
    assert sorted(read) == [f"t{number:03}.json" for number in range(300)]  # each once
    folder.close()


def test_what_a_file_lacks_is_filled_in_running() -> None:
    files = memory_files()

    def inspect(name: str, data: bytes, seen_at: datetime) -> QueueEntry:
        return QueueEntry((1, name), None, data.replace(b"?", str(seen_at.year).encode()))

    storage = task_storage(files, inspect=inspect, clock=FakeClock(START))
    files.write("worker/queue/a.json", b'{"year":"?"}')
    made = files.stat("worker/queue/a.json")
    assert made is not None
    year = min(datetime.fromtimestamp(made.mtime_ns / 1e9, UTC), START).year
    message = storage.dequeue()
    assert message == files.read("worker/running/a.json") == b'{"year":"%d"}' % year


# ---- poison -------------------------------------------------------------------------------------


def test_a_thousand_bad_files_do_not_stand_before_a_good_one(tmp_path: Path) -> None:
    files = real_files(tmp_path, product=True)
    for i in range(1000):
        files.write(f"worker/queue/a{i}.json", b"{")
    drop(files, "z")
    storage = task_storage(files, settle_s=0.5)
    assert claim_all(storage) == ["z"]
    assert reasons(files) == []  # not one of them was dealt with before it
    until(lambda: len(names(files, "corrupt")) == 2000)
    assert names(files, "worker/queue") == []
    storage.close()


def test_a_half_written_file_is_used_once_it_is_whole(tmp_path: Path) -> None:
    files = real_files(tmp_path, product=True)
    watch = FolderWatch(tmp_path)
    storage = task_storage(files, watch=watch, blocking=True, read_timeout=20, settle_s=0.5)
    with (tmp_path / "worker/queue/a.json").open("wb", buffering=0) as slow:
        slow.write(b'{"rank"')
        storage.refresh(["a.json"])
        slow.write(b":1}")
    assert storage.dequeue() == b'{"rank":1}'
    assert reasons(files) == []
    storage.close()
    watch.close()


def test_links_and_fifos_are_quarantined_unread(tmp_path: Path) -> None:
    files = real_files(tmp_path, product=True)
    (tmp_path / "worker/queue/link.json").symlink_to(tmp_path / "worker/queue/z.json")
    os.mkfifo(tmp_path / "worker/queue/fifo.json")
    drop(files, "z")
    storage = task_storage(files)
    assert claim_all(storage) == ["z"]
    until(lambda: len(reasons(files)) == 2)
    assert all("expected a plain file" in reason for reason in reasons(files))
    storage.close()


def test_what_an_editor_leaves_beside_a_file_is_left_alone(tmp_path: Path) -> None:
    files = real_files(tmp_path, product=True)
    for name in ("a.json~", ".a.json.swp", "4913", "a.txt"):
        (tmp_path / "worker/queue" / name).write_bytes(b"x")
    storage = task_storage(files)
    storage.refresh(["a.json~", ".a.json.swp", "4913"])
    assert storage.dequeue() is None
    assert len(list((tmp_path / "worker/queue").iterdir())) == 4
    storage.close()


def test_a_reason_given_at_the_claim_quarantines_too() -> None:
    files = memory_files()
    known: set[str] = set()

    def inspect(name: str, data: bytes, seen_at: datetime) -> QueueEntry:
        if name in known:
            raise BadRecord("id already used")
        return by_rank(name, data, seen_at)

    storage = task_storage(files, inspect=inspect)
    drop(files, "a")
    storage.refresh(None)
    known.add("a.json")
    assert storage.dequeue() is None
    until(lambda: reasons(files) == ["worker/queue/a.json\nid already used\n"])
    assert names(files, "worker/running") == []


# ---- a failing disk -----------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["rename", "sync_dir"])
def test_a_disk_that_fails_once_delays_a_task_and_loses_nothing(operation: str) -> None:
    disk = MemoryDisk()
    files = memory_files(disk)
    storage = task_storage(files)
    data = drop(files, "a")
    failed: list[DiskStep] = []

    def fail(_number: int, step: DiskStep) -> OSError | None:
        if failed or step.operation != operation or "worker/queue" not in step.path:
            return None
        failed.append(step)
        return OSError(errno.EIO, "failing")

    disk.fail = fail
    assert storage.dequeue() is None
    assert len(failed) == 1
    assert names(files, "worker/queue") == ["a.json"]
    until(lambda: storage.dequeue() == data)
    assert reasons(files) == []


# ---- as a Huey ------------------------------------------------------------------------------


def test_running_a_task_leaves_nothing_of_huey_s_behind() -> None:
    ran: list[tuple[QueueName, Task]] = []
    files = memory_files()
    storage = task_storage(files)
    huey = TaskHuey("worker", storage, lambda at, task: ran.append((at, task)))
    task = Task(id="task-1", prompt="x", created_at=START, trace_id="trace-1")
    huey.execute(huey.task_of(task))
    assert ran == [("worker", task)]
    assert storage.result_store_size() == storage.schedule_size() == storage.queue_size() == 0
