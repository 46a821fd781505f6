"""The one rule for a run's end: done, failed for good, or one more attempt, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.protocol.models import FailureReason, Task
from mimikit.tasks.retry import MAX_INTERRUPTIONS, WAITING, RunEnd, TaskEnd, after_run

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
LATER = NOW + timedelta(hours=5)


def task(**changes: Any) -> Task:
    return Task(id="t", prompt="x", created_at=NOW, trace_id="r").but(**changes)


def decide(given_task: Task, ended: RunEnd) -> TaskEnd | Task:
    return after_run(given_task, ended, NOW, retry_delay_s=60, engine_retry_s=15)


@pytest.mark.parametrize(
    ("changes", "ended", "expected"),
    [
        ({}, RunEnd("done"), ("done", None, 1)),
        ({"attempts": 2}, RunEnd("done"), ("done", None, 3)),
        ({}, RunEnd("canceled", "canceled"), ("canceled", "canceled", 1)),
        ({}, RunEnd("failed", "timeout"), ("failed", "timeout", 1)),
        ({"max_attempts": 3, "attempts": 2}, RunEnd("failed", "error"), ("failed", "error", 3)),
        ({"max_attempts": 9}, RunEnd("failed", "refused", final=True), ("failed", "refused", 1)),
        ({}, RunEnd("failed", "killed", interrupted=True), ("failed", "killed", 1)),
        (
            {"max_attempts": 9, "attempts": 2, "interruptions": 2},
            RunEnd("failed", "killed", interrupted=True),
            ("failed", "killed", 3),
        ),
        (
            {},
            RunEnd("failed", "engine_unavailable", final=True),
            ("failed", "engine_unavailable", 1),
        ),
    ],
)
def test_the_runs_that_were_the_last(
    changes: dict[str, Any], ended: RunEnd, expected: tuple[Any, ...]
) -> None:
    assert decide(task(**changes), ended) == TaskEnd(*expected)


@pytest.mark.parametrize(
    ("changes", "ended", "attempts", "interruptions", "wait_s"),
    [
        ({"max_attempts": 2}, RunEnd("failed", "error"), 1, 0, 60),
        ({"max_attempts": 4, "attempts": 2}, RunEnd("failed", "timeout"), 3, 0, 240),
        ({"max_attempts": 100, "attempts": 60}, RunEnd("failed", "error"), 61, 0, 86400),
        ({"max_attempts": 2}, RunEnd("failed", "killed", interrupted=True), 1, 1, 60),
        ({}, RunEnd("failed", "rate_limited"), 0, 0, 15),
        ({}, RunEnd("failed", "rate_limited", LATER), 0, 0, 5 * 3600),
        ({}, RunEnd("failed", "rate_limited", NOW - timedelta(hours=1)), 0, 0, 15),
        ({"attempts": 1, "max_attempts": 2}, RunEnd("failed", "budget"), 1, 0, 15),
        ({}, RunEnd("failed", "engine_unavailable"), 0, 0, 15),
    ],
)
def test_the_runs_that_are_followed_by_another(
    changes: dict[str, Any], ended: RunEnd, attempts: int, interruptions: int, wait_s: float
) -> None:
    decision = decide(task(**changes), ended)
    assert isinstance(decision, Task)
    assert decision.released
    assert decision.attempts == attempts
    assert decision.interruptions == interruptions
    assert decision.not_before == NOW + timedelta(seconds=wait_s)


ENDED = st.builds(
    RunEnd,
    st.sampled_from(["done", "failed", "canceled"]),
    st.sampled_from([None, *get_args(FailureReason)]),
    st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - naive by hypothesis' wish
    st.booleans(),
    st.booleans(),
)


@given(ENDED, st.integers(1, 100), st.integers(0, 120), st.integers(0, 5))
def test_a_run_is_either_over_or_on_its_way_to_a_next_attempt_that_may_be(
    ended: RunEnd, most: int, attempts: int, interruptions: int
) -> None:
    before = task(max_attempts=most, attempts=attempts, interruptions=interruptions)
    decision = decide(before, ended)
    if isinstance(decision, TaskEnd):
        assert decision.attempts == attempts + 1
        assert (decision.failure_reason is None) == (decision.status == "done")
        return
    after = decision
    assert ended.status == "failed"
    assert not ended.final
    assert after.not_before is not None
    assert after.not_before >= NOW
    waited = ended.failure_reason in WAITING
    assert after.attempts == attempts + (not waited)
    assert waited or after.attempts < most
    assert waited or after.interruptions < MAX_INTERRUPTIONS
    assert after.but(attempts=attempts, interruptions=interruptions, released=False,
                     not_before=None) == before  # fmt: skip


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 20))
def test_failing_again_and_again_comes_to_an_end(interrupted: list[bool], most: int) -> None:
    current = task(max_attempts=most)
    runs = 0
    for runs, crashed in enumerate([*interrupted, *[False] * most], start=1):
        decision = decide(current, RunEnd("failed", "error", interrupted=crashed))
        if isinstance(decision, TaskEnd):
            assert decision.attempts == runs <= most
            return
        current = decision
    raise AssertionError("expected an end within the attempts allowed")
