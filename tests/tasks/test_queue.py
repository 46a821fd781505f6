"""A task's way: each step once, whatever is repeated."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.tasks import queue

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
