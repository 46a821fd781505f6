"""Huey on our storage: when a message is done, when it goes back, and when to quarantine."""

from __future__ import annotations

import datetime
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from huey.exceptions import HueyException

from mimikit.hueyfiles.storage import ClaimHuey
from tests.hueyfiles.helpers import names, real_files, reasons


@pytest.fixture
def huey(tmp_path: Path) -> Any:
    made = ClaimHuey("test", path=tmp_path, blocking=False)
    yield made
    made.storage.close()


def running(tmp_path: Path) -> list[str]:
    return names(real_files(tmp_path), "running")


def test_a_message_is_done_when_it_was_executed(huey: Any, tmp_path: Path) -> None:
    seen: list[int] = []

    @huey.task()
    def look() -> int:
        seen.append(len(running(tmp_path)))
        return 7

    result = look()
    huey.execute(huey.dequeue())
    assert seen == [1]
    assert running(tmp_path) == []
    assert result.get() == 7


def test_what_follows_from_a_task_is_written_before_it_is_done(huey: Any, tmp_path: Path) -> None:
    claims: list[int] = []

    @huey.task(retries=1)
    def fail() -> None:
        raise ValueError

    fail()
    task = huey.dequeue()
    put = huey.storage.enqueue

    def watched(data: bytes, priority: float | None = None) -> None:
        claims.append(len(running(tmp_path)))
        put(data, priority)

    huey.storage.enqueue = watched  # pyright: ignore[reportAttributeAccessIssue]
    huey.execute(task)
    assert claims == [1]
    assert running(tmp_path) == []
    assert len(huey) == 1


def test_a_message_of_an_unknown_function_is_kept_with_its_reason(
    huey: Any, tmp_path: Path
) -> None:
    @huey.task(name="gone")
    def gone() -> None: ...

    gone()
    gone.unregister()
    with pytest.raises(HueyException):
        huey.dequeue()
    assert running(tmp_path) == []
    (reason,) = reasons(real_files(tmp_path))
    assert "gone not found in TaskRegistry" in reason
    assert huey.dequeue() is None


def test_an_interrupted_task_goes_back_to_the_queue(huey: Any, tmp_path: Path) -> None:
    broken_off = [True]

    @huey.task()
    def task() -> None:
        if broken_off.pop():
            raise KeyboardInterrupt

    task()
    huey.execute(huey.dequeue())
    assert running(tmp_path) == []
    assert len(huey) == 1
    broken_off.append(False)
    huey.execute(huey.dequeue())
    assert len(huey) == 0


def test_a_task_that_ends_its_thread_is_not_done(huey: Any, tmp_path: Path) -> None:
    huey.task(name="leave")(sys.exit)()

    def work() -> None:
        with pytest.raises(SystemExit):
            huey.execute(huey.dequeue())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(running(tmp_path)) == 1
    huey.storage.close()
    other = ClaimHuey("test", path=tmp_path, blocking=False)
    assert other.storage.dequeue() is not None
    other.storage.close()


def test_the_whole_of_huey_works_on_it(huey: Any) -> None:
    @huey.task()
    def add(a: int, b: int) -> int:
        return a + b

    results = huey.enqueue(add.s(1, 2).then(add, 3).then(add, 4))
    for _ in range(3):
        huey.execute(huey.dequeue())
    assert results() == [3, 6, 10]
    later = add.schedule((1, 1), delay=60)
    huey.execute(huey.dequeue())
    assert huey.scheduled_count() == 1
    (due,) = huey.read_schedule(datetime.datetime(2100, 1, 1))  # noqa: DTZ001
    huey.enqueue(due)
    assert huey.scheduled_count() == 0
    later.revoke()
    assert huey.execute(huey.dequeue()) is None
