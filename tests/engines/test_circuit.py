"""The circuit breaker of one engine: how long it rests, who probes it, and how it closes."""

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


def probed(it: Circuit, run_id: str = "t1") -> Circuit:
    assert it.may_start(it.probe_at)
    return it.started(run_id)


def test_an_open_one_is_half_open_after_its_rest() -> None:
    it = opened()
    rested = NOW + timedelta(seconds=5)
    assert it.open_until(NOW + timedelta(seconds=4)) == rested
    assert it.open_until(rested) is None
    assert it.may_start(rested)


def test_each_failed_probe_doubles_the_rest_up_to_five_minutes() -> None:
    it, rests = opened(), list[float]()
    for _ in range(9):
        rests.append(rest_s(it))
        it = opened(probed(it), now=it.probe_at)
    assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_known_reset_time_is_respected_and_one_in_the_past_is_not() -> None:
    it = opened(retry_in_s=3600)
    assert (rest_s(it), it.until) == (3600, NOW + timedelta(hours=1))
    assert (rest_s(opened(retry_in_s=-1)), opened(retry_in_s=-1).until) == (5, None)


def test_one_run_at_a_time_probes_it_until_it_has_answered() -> None:
    it = probed(opened())
    assert not it.may_start(it.probe_at)
    assert it.answered("another") == it
    it = it.answered("t1")
    assert it.may_start(NOW)
    assert it.is_closed_by("t2")


def test_a_run_that_started_before_it_was_opened_neither_closes_nor_prolongs_it() -> None:
    it = opened()
    assert not it.is_closed_by("t9")
    assert circuit.opened(it, "t9", Failed.unavailable("limited", "429"), NOW) == it


def test_a_probe_that_ends_without_a_word_makes_room_for_the_next() -> None:
    it = probed(opened()).released("t1")
    assert it.may_start(it.probe_at)


def test_a_probe_that_somebody_asked_for_starts_at_once_and_does_not_double_the_rest() -> None:
    it = opened(retry_in_s=3600).probe_now(NOW, manual=True)
    assert it.may_start(NOW)
    again = opened(it.started("t1"))
    assert again.failures == it.failures


def test_a_clock_that_was_set_back_holds_nothing_for_ever() -> None:
    assert opened().may_start(NOW - timedelta(days=300))
