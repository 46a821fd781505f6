"""A task's way: each step once, whatever is repeated."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta

import pytest

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import REMINDER, Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.tasks import queue, reminders
from mimikit.tasks.ledger import Ledger
from mimikit.testing.memory_disk import MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
TASK = Task(id="t1", prompt="x", created_at=NOW, trace_id="r")
RESULT = TaskResult(id="t1", status="done", trace_id="r", started_at=NOW, completed_at=NOW)
PLAN = PlanResult(
    id="p1", status="done", turn_id="p1", trace_id="r", started_at=NOW, completed_at=NOW
)


def claim(files: Files, task: Task = TASK) -> None:
    assert files.move(paths.queued(task.role, task.id), paths.running(task.role, task.id))


def test_a_task_is_submitted_once(files: Files) -> None:
    assert queue.submit(files, TASK)
    assert not queue.submit(files, TASK.but(prompt="other"))
    assert files.load(paths.queued("worker", "t1"), Task) == TASK


@pytest.mark.parametrize("part", ["queue", "running", "results", "ended"])
def test_an_id_that_was_used_on_any_part_of_the_way_is_taken(files: Files, part: str) -> None:
    files.save(f"worker/{part}/t1.json", RESULT if part == "results" else TASK)
    assert not queue.submit(files, TASK)
    assert files.exists("worker/queue/t1.json") == (part == "queue")


def test_where_a_task_is(files: Files) -> None:
    assert queue.where(files, "worker", "t1") is None
    queue.submit(files, TASK)
    assert queue.where(files, "worker", "t1") == "queued"
    claim(files)
    assert queue.where(files, "worker", "t1") == "running"
    queue.finish(files, RESULT)
    queue.leave_running(files, "worker", "t1")
    assert queue.where(files, "worker", "t1") == "ended"
    assert queue.where(files, "planner", "t1") is None


@pytest.mark.fault(5)
def test_a_result_is_written_once_and_the_first_counts(files: Files) -> None:
    assert queue.finish(files, RESULT)
    assert not queue.finish(files, RESULT.but(status="failed"))
    assert files.load(paths.result("worker", "t1"), TaskResult) == RESULT
    assert queue.finish(files, PLAN)
    assert not queue.finish(files, PLAN.but(status="failed"))


def test_a_released_task_is_back_in_its_queue_as_the_rule_left_it(files: Files) -> None:
    queue.submit(files, TASK)
    claim(files)
    released = TASK.but(attempts=1, released=True, not_before=NOW)
    queue.release(files, released)
    assert not files.exists(paths.running("worker", "t1"))
    assert files.load(paths.queued("worker", "t1"), Task) == released


def test_a_release_that_is_repeated_makes_no_second_task(files: Files) -> None:
    queue.submit(files, TASK)
    claim(files)
    released = TASK.but(attempts=1, released=True)
    queue.release(files, released)
    queue.release(files, released)
    assert not files.exists(paths.running("worker", "t1"))


def test_a_release_that_is_repeated_brings_back_nothing_that_has_gone_on(files: Files) -> None:
    queue.submit(files, TASK)
    claim(files)
    released = TASK.but(attempts=1, released=True)
    queue.release(files, released)
    files.move(paths.queued("worker", "t1"), paths.ended("worker", "t1"))
    queue.release(files, released)
    assert not files.exists(paths.queued("worker", "t1"))


WAITS = TASK.but(released=True, waits_for="codex", not_before=NOW + timedelta(hours=1))


def test_what_waits_for_nothing_is_not_claimed_when_waits_end(files: Files) -> None:
    held: dict[str, Task] = {}
    queue.submit(files, TASK)
    queue.submit(files, WAITS.but(id="t2"))
    before = files.stat(paths.queued("worker", "t1"))
    queue.end_waits(files, held)
    assert files.stat(paths.queued("worker", "t1")) == before
    assert files.load(paths.queued("worker", "t2"), Task) == WAITS.but(id="t2", not_before=None)
    assert held == {}


class FastPool(MemoryDisk):
    """Whoever claims finds that a pool was faster by a moment."""

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        if "/queue/" in source and "/running/" in target:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)


def test_what_a_pool_has_claimed_meanwhile_is_not_put_back_under_its_run() -> None:
    files = Files(FastPool())
    files.make_folders()
    queue.submit(files, WAITS)
    queue.end_waits(files, {})
    assert files.load(paths.running("worker", "t1"), Task) == WAITS
    assert not files.exists(paths.queued("worker", "t1"))


def test_a_reminder_that_was_told_is_not_told_again(files: Files) -> None:
    tea = TASK.but(profile=REMINDER)
    assert reminders.tell(files, tea, None)
    queue.leave_running(files, "worker", "t1")
    assert not reminders.tell(files, tea, None)
    assert not files.exists(paths.running("worker", "t1"))


def test_leaving_twice_is_no_error(files: Files) -> None:
    queue.submit(files, TASK)
    claim(files)
    queue.leave_running(files, "worker", "t1")
    queue.leave_running(files, "worker", "t1")
    assert files.load(paths.ended("worker", "t1"), Task) == TASK


def test_a_task_is_found_in_any_seat_and_part(files: Files) -> None:
    assert queue.find(files, "t1") is None
    planned = TASK.but(id="p1", role="planner")
    queue.submit(files, planned)
    found = queue.find(files, "p1")
    assert found == queue.TaskLocation(planned, "queued")
    assert queue.find(files, "p1", seats=("worker",)) is None


def test_a_hand_made_task_is_found_with_what_it_left_out(files: Files) -> None:
    files.write("worker/running/mine.json", b'{"prompt": "date"}')
    found = queue.find(files, "mine")
    assert found is not None
    assert (found.task.id, found.task.prompt, found.where) == ("mine", "date", "running")


def test_a_file_that_is_no_task_is_no_task(files: Files) -> None:
    files.write("worker/running/mine.json", b'{"prompt": ')
    assert queue.find(files, "mine") is None


# ---- how tasks are shown -----------------------------------------------------------------


def by_name(files: Files) -> queue.Upcoming:
    return lambda seat, most: files.names(f"{seat}/queue")[:most]


def test_live_tasks_are_shown_in_the_order_they_are_taken(files: Files) -> None:
    for name, priority in (("a", 1), ("b", 9), ("c", 5)):
        queue.submit(files, TASK.but(id=name, priority=priority))
    queue.submit(files, TASK.but(id="d", priority=5, internal=True))
    claim(files, TASK.but(id="a"))
    shown = [(view.task.id, view.state) for view in queue.live(files, by_name(files), 9)]
    assert shown == [("a", "running"), ("b", "queued"), ("d", "queued"), ("c", "queued")]


def test_an_ended_task_is_shown_with_its_outcome(files: Files) -> None:
    queue.submit(files, TASK)
    claim(files)
    queue.finish(files, RESULT.but(status="failed", error="it broke"))
    queue.leave_running(files, "worker", "t1")
    view = queue.show(files, "t1")
    assert view is not None
    assert (view.state, view.error, view.completed_at) == ("failed", "it broke", NOW)
    assert queue.live(files, by_name(files), 9) == []


@pytest.mark.fault(38)
def test_of_a_long_queue_only_what_is_shown_is_read(files: Files) -> None:
    for number in range(300):
        queue.submit(files, TASK.but(id=f"t{number:03}"))
    asked: list[str] = []
    plain_read, plain_list = files.fs.read, files.fs.list_dir
    files.fs.read = lambda path, **where: (asked.append(path), plain_read(path, **where))[1]  # pyright: ignore[reportAttributeAccessIssue]
    files.fs.list_dir = lambda path: (asked.append(path), plain_list(path))[1]  # pyright: ignore[reportAttributeAccessIssue]
    next_ones = {"worker": ["t250.json", "t017.json", "gone.json"], "planner": []}
    shown = queue.live(files, lambda seat, most: next_ones[seat][:most], 20)
    assert [view.task.id for view in shown] == ["t017", "t250"]
    assert len(asked) <= 5
    assert "worker/queue" not in asked


def test_a_plan_that_asks_says_so_until_it_is_settled(files: Files) -> None:
    planned = TASK.but(id="p1", role="planner")
    queue.submit(files, planned)
    claim(files, planned)
    queue.finish(files, PLAN.but(status="needs_input", question="colour?"))
    queue.leave_running(files, "planner", "p1")
    assert [v.state for v in [queue.show(files, "p1")] if v] == ["asking"]
    files.move(paths.result("planner", "p1"), paths.plan_done("p1"))
    assert [v.state for v in [queue.show(files, "p1")] if v] == ["done"]


def test_the_tasks_that_ended_last_come_first(files: Files) -> None:
    ledger = Ledger(files)
    for name in ("a", "b", "c"):
        task = TASK.but(id=name)
        queue.submit(files, task)
        claim(files, task)
        queue.finish(files, RESULT.but(id=name))
        ledger.write("ended", name, NOW, status="done", seat="worker", traceId="r")
        queue.leave_running(files, "worker", name)
    assert [view.task.id for view in queue.recent(files, limit=2)] == ["c", "b"]
    assert queue.show(files, "nobody") is None
