"""What a run has used is written down once, and a day that was summed up is left alone."""

from __future__ import annotations

from datetime import UTC, date, datetime

from mimikit.config import Settings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task, Usage
from mimikit.tasks.budget import BudgetHold
from mimikit.tasks.usage import RunMeter, UsageBook, roll_up
from mimikit.testing.twins import FakeClock

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
DAY, NEXT_DAY = "2026-12-01", date(2026, 12, 2)


def book(files: Files) -> UsageBook:
    return UsageBook(files, Settings(timezone="UTC"), FakeClock(NOW))


def begun(of: UsageBook) -> RunMeter:
    meter = of.begin("t1", 1, "worker", "scripted", "m", None)
    assert isinstance(meter, RunMeter)
    return meter


def states(files: Files) -> list[object]:
    return [line["state"] for _, line in files.lines(paths.usage_day(DAY))]


def test_what_a_run_has_used_is_written_down_once(files: Files) -> None:
    usage = book(files)
    meter = begun(usage)
    for _ in range(2):
        usage.settle(meter, Usage(input_tokens=5))
    assert states(files) == ["began", "used"]


def test_a_day_is_summed_up_once(files: Files) -> None:
    usage = book(files)
    usage.settle(begun(usage), Usage(input_tokens=5))
    assert roll_up(files, NEXT_DAY) == [DAY]
    made = files.stat(paths.usage_month(DAY[:7]))
    assert roll_up(files, NEXT_DAY) == []
    assert files.stat(paths.usage_month(DAY[:7])) == made


def test_to_a_day_that_was_summed_up_nothing_is_added(files: Files) -> None:
    """The lines and their sum say the same as long as both are there."""
    begun(book(files))
    assert roll_up(files, NEXT_DAY) == [DAY]
    book(files).recover()
    assert states(files) == ["began"]


def test_what_a_task_used_before_it_was_turned_away_counts(files: Files) -> None:
    """Nothing in its file tells that it ran once the wait for its engine is over."""
    budget = {"per_task_tokens": 100}
    usage = UsageBook(
        files, Settings.model_validate({"timezone": "UTC", "budget": budget}), FakeClock(NOW)
    )
    task = Task(id="t1", prompt="x", created_at=NOW, trace_id="t")
    meter = usage.begin("t1", 1, "worker", "scripted", "m", task)
    assert isinstance(meter, RunMeter)
    usage.settle(meter, Usage(input_tokens=200))
    assert isinstance(usage.begin("t1", 1, "worker", "scripted", "m", task), BudgetHold)
