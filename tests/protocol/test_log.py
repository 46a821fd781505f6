"""The log: a file a day and by size, the old ones packed and read all the same."""

from __future__ import annotations

import gzip
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimikit.log import ChangeFeed, EventLog, log_segments, log_tails, rotated_logs
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.testing.memory_disk import Crash, MemoryDisk
from mimikit.testing.twins import FakeClock

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(RealDisk(tmp_path))
    made.make_folders()
    return made


def settled() -> None:
    """Wait for what packs."""
    for thread in threading.enumerate():
        if thread.name == "log-pack":
            thread.join()


def told(files: Files) -> list[list[object]]:
    """The numbers of the lines in each file, newest file first."""
    settled()
    return [[line.get("n") for line in lines] for lines in log_tails(ReadOnlyFiles(files), 2**20)]


def test_a_new_day_begins_a_new_file_and_the_old_one_is_packed(
    files: Files, tmp_path: Path
) -> None:
    clock = FakeClock(NOON)
    log = EventLog(files, clock, packs=True)
    for number in range(6):
        log.write("audit", "said", n=number)
        clock.advance(8 * 3600)
    assert told(files) == [[5], [2, 3, 4], [0, 1]]
    log.pack()
    assert rotated_logs(files) == ["log.2026-12-01.jsonl.gz", "log.2026-12-02.jsonl.gz"]
    packed = gzip.decompress((tmp_path / "log.2026-12-01.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line)["n"] for line in packed] == [0, 1]


@pytest.mark.fault(59)
def test_a_file_that_is_full_is_followed_by_another_of_the_day(files: Files) -> None:
    log = EventLog(files, FakeClock(NOON), rotate_bytes=100, packs=True)
    for number in range(36):
        log.write("audit", "said", n=number, text="x" * 40)
    settled()
    log.pack()  # what came while it was being done waits for the next time
    numbers = [number for lines in reversed(told(files)) for number in lines]
    assert numbers == list(range(36))
    names = rotated_logs(files)
    assert names[0] == "log.2026-12-01.jsonl.gz"
    assert names[-1] == f"log.2026-12-01.{len(names) - 1}.jsonl.gz"
    assert len(names) > 11


def test_the_name_of_a_file_that_was_removed_is_not_taken_again(files: Files) -> None:
    log = EventLog(files, FakeClock(NOON), rotate_bytes=100)
    for number in range(4):
        log.write("audit", "said", n=number, text="x" * 80)
    assert rotated_logs(files)[0] == "log.2026-12-01.jsonl"
    held = {name: path for name, path in log_segments(files, "2026-12-01").items() if path != name}
    assert held == {"log.2026-12-01.3.jsonl": paths.LOG}
    files.remove("log.2026-12-01.jsonl")
    files.remove("log.2026-12-01.1.jsonl")
    assert [*log_segments(files, "2026-12-01")] == [
        "log.2026-12-01.2.jsonl",
        "log.2026-12-01.3.jsonl",
    ]
    log.write("audit", "said", n=4)
    assert rotated_logs(files) == ["log.2026-12-01.2.jsonl", "log.2026-12-01.3.jsonl"]


@pytest.mark.fault(59)
def test_several_writers_begin_one_file_a_day_between_them(files: Files) -> None:
    clock = FakeClock(NOON)
    logs = [EventLog(Files(RealDisk(Path(files.fs.root))), clock, packs=True) for _ in range(4)]
    for number in range(40):
        logs[number % 4].write("audit", "said", n=number)
        clock.advance(3 * 3600)
    days = told(files)
    assert [number for lines in reversed(days) for number in lines] == list(range(40))
    assert [len(lines) for lines in days] == [4, 8, 8, 8, 8, 4]


def test_a_kill_as_a_file_is_begun_loses_no_line() -> None:
    for at in range(20):
        disk = MemoryDisk()
        files, clock = Files(disk), FakeClock(NOON)
        log = EventLog(files, clock)
        log.write("audit", "said", n=0)
        clock.advance(86_400)
        disk.crash_at = len(disk.log) + at
        try:
            log.write("audit", "said", n=1)
        except Crash:
            assert told(Files(disk.after_kill()))[-1] == [0]
        else:
            return
    raise AssertionError("expected a new file within 20 changes")


def test_a_process_that_was_idle_over_midnight_takes_up_the_new_file(files: Files) -> None:
    clock = FakeClock(NOON)
    idle, busy = EventLog(files, clock), EventLog(files, clock)
    idle.write("audit", "said", n=0)
    clock.advance(86_400)
    busy.write("audit", "said", n=1)
    idle.write("audit", "said", n=2)
    assert told(files) == [[1, 2], [0]]


def test_a_clock_that_goes_back_begins_no_file(files: Files) -> None:
    clock = FakeClock(NOON)
    log = EventLog(files, clock)
    log.write("audit", "said", n=0)
    clock.jump(NOON - timedelta(days=3))
    log.write("audit", "said", n=1)
    clock.jump(NOON)
    log.write("audit", "said", n=2)
    assert told(files) == [[0, 1, 2]]


def test_what_an_end_left_unpacked_is_packed_and_foreign_files_stay(files: Files) -> None:
    files.append("log.2026-11-30.jsonl", {"n": 1})
    files.write("log.2026-11-30.jsonl.gz", b"half of it")
    files.append("log.2026-11-29.120000000000.jsonl", {"n": 0})
    files.write("log.2026-11-28.jsonl.gz", b"no gzip at all")
    files.write("log.old.jsonl", b"mine\n")
    EventLog(files, FakeClock(NOON)).pack()
    assert told(files) == [[], [1], [0]]
    assert files.read("log.old.jsonl") == b"mine\n"
    assert not files.exists("log.2026-11-30.jsonl")
    assert files.exists(paths.PACK_LOCK)


def test_one_begins_a_file_at_a_time(files: Files) -> None:
    clock = FakeClock(NOON)
    log = EventLog(files, clock)
    log.write("audit", "said", n=0)
    clock.advance(86_400)
    other = files.lock(paths.LOG_LOCK)
    assert other is not None
    log.write("audit", "said", n=1)
    assert told(files) == [[0, 1]]
    other.release()
    log.write("audit", "said", n=2)
    assert told(files) == [[2], [0, 1]]


def test_one_packs_at_a_time(files: Files) -> None:
    files.append("log.2026-11-30.jsonl", {"n": 1})
    other = files.lock(paths.PACK_LOCK)
    assert other is not None
    log = EventLog(files, FakeClock(NOON))
    log.pack()
    assert rotated_logs(files) == ["log.2026-11-30.jsonl"]
    other.release()
    log.pack()
    assert rotated_logs(files) == ["log.2026-11-30.jsonl.gz"]


class LateWriter(MemoryDisk):
    """Somebody who has a file of the log open writes to it just after it was packed."""

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        if target.endswith(".gz"):
            self.append_line(target.removesuffix(".gz"), b'{"n":2}\n', sync=False)


def test_a_line_that_comes_while_its_file_is_packed_is_not_lost() -> None:
    files = Files(LateWriter())
    files.make_folders()
    files.append("log.2026-11-30.jsonl", {"n": 1})
    EventLog(files, FakeClock(NOON)).pack()
    assert (files.read("log.2026-11-30.jsonl") or b"").splitlines()[1:] == [b'{"n":2}']


def test_who_starts_goes_on_with_the_feed_that_is_there() -> None:
    """A page that was there before has missed nothing."""
    files = Files(MemoryDisk())
    for number in range(3):
        ChangeFeed(files, FakeClock(NOON)).tell("task", id=str(number))
    lines = [line for _, line in files.lines(paths.EVENTS)]
    assert [line.get("id") for line in lines] == [None, "0", "1", "2"]


@pytest.mark.parametrize("time", ["../../elsewhere", "1 December", None])
def test_a_first_line_of_somebody_else_s_does_not_let_the_file_grow(
    files: Files, time: str | None
) -> None:
    files.append(paths.LOG, {"timestamp": time, "text": "x" * 200})
    log = EventLog(files, FakeClock(NOON), rotate_bytes=100)
    log.write("audit", "said", n=1)
    assert rotated_logs(files) == ["log.2026-12-01.jsonl"]
    assert told(files)[0] == [1]
