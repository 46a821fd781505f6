"""Failures of an engine: retry delay, probing, recovery."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mimikit.config import Settings
from mimikit.engines.base import Done, Failed, Outcome, stop_outcome
from mimikit.engines.registry import EngineRegistry
from mimikit.errors import BadInput
from mimikit.protocol.models import EngineProblem, EngineStatus, Role
from tests.support.product import START
from tests.support.twins import FakeClock, ScriptedEngine


class PulledAway(ScriptedEngine):
    """An engine whose availability can be probed."""

    is_there = False
    looks = 0

    def recheck(self) -> None:
        self.looks += 1

    def has_recovered(self, want: EngineProblem) -> bool:
        self.looks += 1
        return self.is_there


class Bench:
    def __init__(self, known: dict[str, EngineStatus] | None = None) -> None:
        self.clock = FakeClock(START)
        self.mind = PulledAway(name="codex")
        engines = [self.mind, ScriptedEngine(name="builtin"), ScriptedEngine(name="command")]
        self.registry = EngineRegistry(
            [*engines], Settings(), known or {"codex": EngineStatus(engine="codex")},
            clock=self.clock,
        )  # fmt: skip

    def run(self, outcome: Outcome, run_id: str = "t1", role: Role = "worker") -> bool:
        """Execute a run; False if the engine refused to start it."""
        if self.registry.begin("codex", role, run_id) is not None:
            return False
        self.registry.record_outcome("codex", role, run_id, outcome)
        self.registry.circuits.release("codex", run_id)
        return True

    def status(self) -> EngineStatus:
        return self.registry.engine_status()["codex"]

    def rest_s(self) -> float:
        at = self.status().next_try_at
        return (at - self.clock.now()).total_seconds() if at else 0


BROKEN = Failed.unavailable("broken", "500")
DONE = Done("hi")


def limited(after_s: float) -> Outcome:
    return Failed.unavailable("limited", "429", retry_at=START + timedelta(seconds=after_s))


@pytest.mark.parametrize(("after_s", "rest_s", "is_known"), [(3600, 3600, True), (-1, 5, False)])
def test_a_known_reset_time_is_respected_and_one_in_the_past_is_not(
    after_s: float, rest_s: float, *, is_known: bool
) -> None:
    bench = Bench()
    bench.run(limited(after_s))
    assert (bench.rest_s(), bench.status().until is not None) == (rest_s, is_known)
    bench.clock.advance(-300 * 86400)
    assert bench.registry.for_role("worker").waiting is None, "the clock was set back"


def test_a_run_that_began_before_it_was_opened_neither_closes_nor_prolongs_it() -> None:
    bench = Bench()
    assert bench.registry.begin("codex", "worker", "t9") is None
    bench.run(BROKEN)
    before = bench.status()
    for late in (limited(3600), DONE):
        bench.registry.record_outcome("codex", "worker", "t9", late)
        assert bench.status() == before


def test_the_retry_delay_doubles_and_no_run_starts_meanwhile() -> None:
    bench, rests = Bench(), list[float]()
    for _ in range(9):
        assert bench.run(BROKEN)
        rests.append(bench.rest_s())
        assert not bench.run(DONE)
        bench.clock.advance(rests[-1])
    assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert bench.run(DONE)
    assert bench.status() == EngineStatus(engine="codex")
    assert bench.run(BROKEN)
    assert bench.rest_s() == 5


def test_one_run_at_a_time_probes_an_engine_until_it_answers() -> None:
    bench = Bench()
    bench.run(BROKEN)
    bench.clock.advance(5)
    assert bench.registry.begin("codex", "worker", "t1") is None
    away = bench.registry.begin("codex", "teller", "turn1")
    assert isinstance(away, Failed)
    assert (away.want, away.reason) == ("broken", "engine_unavailable")
    bench.registry.circuits.answered("codex", "another")
    assert bench.registry.for_role("worker").waiting == "500"
    bench.registry.circuits.answered("codex", "t1")
    assert bench.registry.for_role("worker").waiting is None
    assert bench.registry.begin("codex", "teller", "turn1") is None
    assert bench.registry.circuits.is_tripped("codex")
    bench.registry.record_outcome("codex", "worker", "t1", DONE)
    assert not bench.registry.circuits.is_tripped("codex")


def test_a_canceled_probe_leaves_the_circuit_open() -> None:
    bench = Bench()
    bench.run(BROKEN)
    bench.clock.advance(5)
    assert bench.run(stop_outcome("canceled"))
    assert bench.status().state == "waiting"
    assert bench.run(DONE)
    assert bench.status().state == "ready"


def test_a_retry_on_request_does_not_extend_the_delay() -> None:
    bench = Bench()
    bench.run(limited(3600))
    for _ in range(3):
        assert bench.registry.try_now() == ["codex"]
        assert bench.run(BROKEN)
    assert bench.rest_s() == 10
    assert bench.mind.looks == 3
    with pytest.raises(BadInput, match="expected one of codex, builtin, command; got 'gemini'"):
        bench.registry.try_now("gemini")


def test_a_missing_sandbox_affects_one_role() -> None:
    bench = Bench()
    bench.run(Failed.unavailable("unready", "no sandbox"))
    assert bench.registry.for_role("worker").waiting == "no sandbox"
    assert bench.registry.for_role("teller").waiting is None
    assert bench.run(DONE, "turn1", "teller")
    assert bench.registry.for_role("worker").waiting == "no sandbox"


def test_a_reason_that_can_be_checked_needs_no_delay() -> None:
    bench = Bench()
    bench.mind.reason_unavailable = "logged out"
    bench.run(Failed("engine_unavailable", "logged out"))
    assert bench.registry.for_role("worker").waiting == "logged out"
    bench.mind.reason_unavailable = None
    assert bench.run(DONE)


def test_only_a_rate_limit_survives_a_restart() -> None:
    bench = Bench()
    bench.run(limited(3600))
    again = Bench({"codex": bench.status()})
    assert not again.run(DONE)
    again.clock.advance(3600)
    assert again.run(DONE)
    bench = Bench()
    bench.run(BROKEN)
    again = Bench({"codex": bench.status()})
    assert again.status().problem == "broken"
    assert again.run(DONE)


def looked(bench: Bench, times: int) -> None:
    """Probe the engine so many times."""
    for _ in range(times):
        bench.registry.check_if_back("codex")
        look = bench.registry._health_checks["codex"]
        if look._thread is not None:
            look._thread.join(20)
        bench.clock.advance(2)


def test_an_engine_that_is_back_is_tried_immediately() -> None:
    bench = Bench()
    bench.run(limited(3600))
    looked(bench, 3)
    assert bench.mind.looks == 3
    assert not bench.run(DONE)
    bench.mind.is_there = True
    looked(bench, 2)
    assert bench.run(DONE)


def test_an_engine_that_always_looks_available_is_not_retried_early() -> None:
    bench = Bench()
    bench.mind.is_there = True
    bench.run(limited(3600))
    looked(bench, 5)
    assert not bench.run(DONE)
