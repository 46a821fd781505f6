"""Recovery at start, case by case."""

from __future__ import annotations

from typing import Any

from mimikit.conversation import turns
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Task
from mimikit.protocol.results import TaskResult
from mimikit.supervisor import recovery
from mimikit.tasks import ledger, queue
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, result, transcript
from tests.support.twins import FakeClock

TASK = Task(id="t1", prompt="one", created_at=START, trace_id="r", origin="cli")
RESULT = TaskResult(
    id="t1", status="done", trace_id="r", started_at=START, completed_at=START,
    result={"text": "did it"},
)  # fmt: skip


def start(files: Files, **more: Any) -> tuple[Product, list[tuple[str, int]]]:
    """The next process, after its recovery; and what its engine runs from now on."""
    runs = Oracle().runs
    product = Product(files, FakeClock(START), Mind(runs), **more)
    product.start()
    return product, runs


def running(files: Files, **changes: Any) -> None:
    files.save(paths.running("worker", "t1"), TASK.but(**changes))


def test_a_run_whose_consumer_died_is_shown_as_killed_and_not_repeated(files: Files) -> None:
    running(files)
    product, runs = start(files)
    product.idle()
    found = result(files, "t1")
    assert (found.status, found.failure_reason, found.attempts) == ("failed", "killed", 1)
    assert runs == []
    assert "one" in transcript(files)[-1][1]


def test_a_run_that_may_be_repeated_is_repeated_under_the_next_number(files: Files) -> None:
    running(files, max_attempts=2)
    product, runs = start(files)
    (line,) = [line for line in ledger.events_of(files, "t1") if line["event"] == "interrupted"]
    assert (line["attempt"], line["next"]) == (1, True)
    product.idle()
    assert runs == [("t1", 2)]
    assert result(files, "t1").status == "done"


def test_three_crashes_of_the_consumer_end_a_task_for_good(files: Files) -> None:
    running(files, max_attempts=50, attempts=2, interruptions=2)
    product, runs = start(files)
    product.idle()
    assert result(files, "t1").failure_reason == "killed"
    assert runs == []


def test_a_release_that_was_cut_short_counts_no_attempt(files: Files) -> None:
    running(files, max_attempts=3, attempts=1, released=True)
    product, runs = start(files)
    assert loaded(files, paths.queued("worker", "t1"))["attempts"] == 1
    product.idle()
    assert runs == [("t1", 2)]


def test_a_task_whose_cancel_was_accepted_is_canceled_not_killed(files: Files) -> None:
    running(files, max_attempts=5)
    queue.submit_command(files, Command(id="o1", action="cancel", target="t1", created_at=START))
    product, runs = start(files)
    product.idle()
    assert result(files, "t1").status == "canceled"
    assert loaded(files, paths.command_done("o1"))["ok"] is True
    assert runs == []


def test_a_turn_interrupted_twice_is_reported_and_not_retried(files: Files) -> None:
    files.save_new(paths.inbox("m1"), InboxItem(id="m1", text="hello", created_at=START))
    for attempt in (1, 2):
        turns.start(files, turns.turn_id(["m1"]), attempt, ["m1"], START)
    product, runs = start(files)
    product.idle()
    assert runs == []
    assert [role for role, _ in transcript(files)] == ["user", "system"]
    assert files.names("turns", suffix=".started") == []


def test_an_invalid_file_in_running_is_quarantined(files: Files) -> None:
    running(files)
    files.write("worker/running/bad.json", b"{")
    product, _ = start(files)
    product.idle()
    assert files.names("worker/running") == []
    assert files.names("corrupt", suffix="bad.json")
    assert result(files, "t1").status == "failed"


def test_an_ended_task_put_into_running_is_quarantined(files: Files) -> None:
    product, runs = start(files)
    files.save(paths.queued("worker", "t1"), TASK)
    product.idle()
    files.save(paths.running("worker", "t1"), TASK)
    for _ in range(4):
        product.clock.advance(2)
        product.idle()
    assert (runs, files.names("worker/running")) == ([("t1", 1)], [])
    assert any(name.endswith("t1.json") for name in files.names(paths.CORRUPT, suffix=""))
    assert len(transcript(files)) == 1


def test_a_claimed_task_is_never_a_stray(files: Files) -> None:
    product, runs = start(files)
    claimed = {"t1.json"}
    strays = recovery.StrayTasks(product.store, lambda _seat, name: name in claimed)
    files.save(paths.running("worker", "t1"), TASK)
    for _ in range(10):
        product.clock.advance(2)
        strays.step(product.clock.now())
    assert files.names("worker/running") == ["t1.json"]
    files.save(paths.result("worker", "t1"), RESULT)
    claimed.clear()
    for _ in range(10):
        product.clock.advance(2)
        strays.step(product.clock.now())
    assert files.names("worker/running") == ["t1.json"]  # its end is the applier's
    assert runs == []
