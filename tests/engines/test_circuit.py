"""The circuit breaker of one engine: how long it rests, who probes it, and how it closes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mimikit.engines import circuit
from mimikit.engines.circuit import Circuit

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def opened(before: Circuit | None = None, retry_in_s: float = 0, now: datetime = NOW) -> Circuit:
    retry_at = now + timedelta(seconds=retry_in_s)
    run_id = before.probing if before and before.probing else "t1"
    return circuit.turned_away(before, run_id, "broken", "500", retry_at, now)


def rest_s(it: Circuit) -> float:
    return (it.probe_at - it.since).total_seconds()


def probed(it: Circuit, run_id: str = "t1") -> Circuit:
    assert circuit.may_start(it, it.probe_at)
    return circuit.started(it, run_id)


def test_none_is_closed() -> None:
    assert circuit.state(None, NOW) == "closed"


def test_an_open_one_is_half_open_after_its_rest() -> None:
    it = opened()
    assert circuit.state(it, NOW + timedelta(seconds=4)) == "open"
    assert circuit.state(it, NOW + timedelta(seconds=5)) == "half_open"


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
    assert not circuit.may_start(it, it.probe_at)
    assert circuit.answered(it, "another") == it
    it = circuit.answered(it, "t1")
    assert circuit.state(it, NOW) == "closed"
    assert circuit.done(it, "t2") is None


def test_a_run_that_started_before_it_was_opened_neither_closes_nor_prolongs_it() -> None:
    it = opened()
    assert circuit.done(it, "t9") == it
    assert circuit.turned_away(it, "t9", "limited", "429", None, NOW) == it


def test_a_probe_that_ends_without_a_word_makes_room_for_the_next() -> None:
    it = circuit.left(probed(opened()), "t1")
    assert circuit.may_start(it, it.probe_at)


def test_a_probe_that_somebody_asked_for_starts_at_once_and_does_not_double_the_rest() -> None:
    it = circuit.probe_now(opened(retry_in_s=3600), NOW, asked=True)
    assert circuit.may_start(it, NOW)
    again = opened(circuit.started(it, "t1"))
    assert again.failures == it.failures


def test_a_clock_that_was_set_back_holds_nothing_for_ever() -> None:
    assert circuit.state(opened(), NOW - timedelta(days=300)) == "half_open"
