"""The circuit breaker of one engine: cases that the registry's tests do not reach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mimikit.engines import circuit
from mimikit.engines.base import Failed
from mimikit.engines.circuit import Circuit

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def opened(before: Circuit | None = None, retry_in_s: float = 0, now: datetime = NOW) -> Circuit:
    retry_at = now + timedelta(seconds=retry_in_s)
    run_id = before.probing if before and before.probing else "t1"
    return circuit.opened(
        before, run_id, Failed.unavailable("broken", "500", retry_at=retry_at), now
    )


def rest_s(it: Circuit) -> float:
    return (it.probe_at - it.since).total_seconds()


def test_a_known_reset_time_is_respected_and_one_in_the_past_is_not() -> None:
    it = opened(retry_in_s=3600)
    assert (rest_s(it), it.until) == (3600, NOW + timedelta(hours=1))
    assert (rest_s(opened(retry_in_s=-1)), opened(retry_in_s=-1).until) == (5, None)


def test_a_run_that_started_before_it_was_opened_neither_closes_nor_prolongs_it() -> None:
    it = opened()
    assert not it.is_closed_by("t9")
    assert circuit.opened(it, "t9", Failed.unavailable("limited", "429"), NOW) == it


def test_a_clock_set_back_does_not_keep_the_circuit_open() -> None:
    assert opened().may_start(NOW - timedelta(days=300))
