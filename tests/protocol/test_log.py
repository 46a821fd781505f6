"""The log: a file a day and by size, and the old ones are read all the same."""

from __future__ import annotations

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


def told(files: Files) -> list[list[object]]:
    """The numbers of the lines in each file, newest file first."""
    return [[line.get("n") for line in lines] for lines in log_tails(ReadOnlyFiles(files), 2**20)]


def test_a_new_day_begins_a_new_file(files: Files) -> None:
    clock = FakeClock(NOON)
    log = EventLog(files, clock)
    for number in range(6):
        log.write("audit", "said", n=number)
        clock.advance(8 * 3600)
    assert told(files) == [[5], [2, 3, 4], [0, 1]]
    assert rotated_logs(files) == ["log.2026-12-01.jsonl", "log.2026-12-02.jsonl"]


def test_a_file_that_is_full_is_followed_by_another_of_the_day(files: Files) -> None:
    log = EventLog(files, FakeClock(NOON), rotate_bytes=100)
    for number in range(36):
        log.write("audit", "said", n=number, text="x" * 40)
    numbers = [number for lines in reversed(told(files)) for number in lines]
    assert numbers == list(range(36))
    names = rotated_logs(files)
    assert names[0] == "log.2026-12-01.jsonl"
    assert names[-1] == f"log.2026-12-01.{len(names) - 1}.jsonl"
    assert len(names) > 11


def test_several_writers_begin_one_file_a_day_between_them(files: Files) -> None:
    clock = FakeClock(NOON)
    logs = [EventLog(Files(RealDisk(Path(files.fs.root))), clock) for _ in range(4)]
    for number in range(40):
        logs[number % 4].write("audit", "said", n=number)
        clock.advance(3 * 3600)
    days = told(files)
    assert [number for lines in reversed(days) for number in lines] == list(range(40))
    assert [len(lines) for lines in days] == [4, 8, 8, 8, 8, 4]


def test_a_clock_that_goes_back_begins_no_file(files: Files) -> None:
    clock = FakeClock(NOON)
    log = EventLog(files, clock)
    log.write("audit", "said", n=0)
    clock.jump(NOON - timedelta(days=3))
    log.write("audit", "said", n=1)
    clock.jump(NOON)
    log.write("audit", "said", n=2)
    assert told(files) == [[0, 1, 2]]


@pytest.mark.parametrize("time", ["../../elsewhere", "1 December", None])
def test_a_first_line_of_somebody_else_s_does_not_let_the_file_grow(
    files: Files, time: str | None
) -> None:
    files.append(paths.LOG, {"timestamp": time, "text": "x" * 200})
    log = EventLog(files, FakeClock(NOON), rotate_bytes=100)
    log.write("audit", "said", n=1)
    assert rotated_logs(files) == ["log.2026-12-01.jsonl"]
    assert told(files)[0] == [1]
