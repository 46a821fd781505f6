"""What takes long is done beside the supervisor, and told once when it asks."""

from __future__ import annotations

import threading

import pytest

from mimikit.errors import BadInput
from mimikit.supervisor.background_jobs import BackgroundJobs, JobOutcome, JobsInPlace


def test_a_job_is_begun_once_and_its_outcome_told_once() -> None:
    rung, go, begun = threading.Event(), threading.Event(), list[int]()

    def work() -> str:
        begun.append(1)
        go.wait(60)
        return "done"

    jobs = BackgroundJobs(rung.set)
    assert jobs.ask("a", work) is None
    assert jobs.ask("a", work) is None
    go.set()
    assert rung.wait(60)
    assert jobs.ask("a", work) == JobOutcome("done")
    assert begun == [1]


def test_while_one_goes_on_no_other_begins() -> None:
    rung, go = threading.Event(), threading.Event()
    jobs = BackgroundJobs(rung.set)
    jobs.ask("a", lambda: go.wait(60))
    assert jobs.ask("b", lambda: 2) is None
    go.set()
    assert rung.wait(60)
    rung.clear()
    assert jobs.ask("b", lambda: 2) is None, "what nobody asks for any more is forgotten"
    assert rung.wait(60)
    assert jobs.ask("b", lambda: 2) == JobOutcome(2)


def test_why_nothing_came_is_told_and_a_fault_is_raised() -> None:
    def refuse() -> None:
        raise BadInput("no repository")

    def fail() -> None:
        raise OSError("gone")

    rung = threading.Event()
    jobs = BackgroundJobs(rung.set)
    jobs.ask("a", refuse)
    assert rung.wait(60)
    outcome = jobs.ask("a", refuse)
    assert outcome is not None
    assert str(outcome.error) == "no repository"
    rung.clear()
    jobs.ask("b", fail)
    assert rung.wait(60)
    with pytest.raises(OSError, match="gone"):
        jobs.ask("b", fail)
    with pytest.raises(OSError, match="gone"):
        JobsInPlace().ask("b", fail)
