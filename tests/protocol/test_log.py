"""The log: a file a day and by size, the old ones packed and read all the same."""

from __future__ import annotations

import gzip
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimikit.log import EventLog, log_tails, rotated_logs
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files, ReadOnlyFiles
from tests.support.twins import FakeClock

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


def test_several_writers_begin_one_file_a_day_between_them(files: Files) -> None:
    clock = FakeClock(NOON)
    logs = [EventLog(Files(RealDisk(Path(files.fs.root))), clock, packs=True) for _ in range(4)]
    for number in range(40):
        logs[number % 4].write("audit", "said", n=number)
        clock.advance(3 * 3600)
    days = told(files)
    assert [number for lines in reversed(days) for number in lines] == list(range(40))
    assert [len(lines) for lines in days] == [4, 8, 8, 8, 8, 4]


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


@pytest.mark.parametrize("time", ["../../elsewhere", "1 December", None])
def test_a_first_line_of_somebody_else_s_does_not_let_the_file_grow(
    files: Files, time: str | None
) -> None:
    files.append(paths.LOG, {"timestamp": time, "text": "x" * 200})
    log = EventLog(files, FakeClock(NOON), rotate_bytes=100)
    log.write("audit", "said", n=1)
    assert rotated_logs(files) == ["log.2026-12-01.jsonl"]
    assert told(files)[0] == [1]
