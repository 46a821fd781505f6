"""Days of kills, suspends, clock jumps and hundreds of triggers: nothing lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.soak.judge import judge
from tests.soak.world import World

BEFORE_DST_ENDS = datetime(2026, 10, 24, 6, tzinfo=UTC)
DST_BEGINS = datetime(2027, 3, 14, 7, tzinfo=UTC)
"""In New York."""
YEAR_ENDS = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.fault(13, 51, "openclaw#6460", "openclaw#37605")
@pytest.mark.slow
@pytest.mark.timeout(0)
def test_seventy_two_hours_lose_nothing_and_double_nothing(
    size: int, proof: Callable[[dict[str, float]], None]
) -> None:
    """`make soak DAYS=730` lives two years; the default are three days over the end of DST."""
    triggers = 500 if size > 1 else 100
    world = World(seed=size, start=BEFORE_DST_ENDS, hours=72 * size, triggers=triggers)
    world.live()
    assert not judge(world)
    proof({"simulated hours": 72 * size})
    assert len(world.runs) > 6 * triggers
    assert world.happened["_kill_soon"] >= 10
    assert world.happened["_suspend"] + world.happened["_off_for_hours"] >= 2


@pytest.mark.fault(34)
@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("at", [DST_BEGINS, YEAR_ENDS], ids=["DST begins", "a year ends"])
def test_a_clock_that_is_set_back_again_and_again_doubles_nothing(
    at: datetime, size: int, proof: Callable[[dict[str, float]], None]
) -> None:
    """The hours around a moment: half of them before it."""
    hours, triggers = (72, 80) if size > 1 else (12, 40)
    start = at - timedelta(hours=hours / 2)
    world = World(seed=at.day, start=start, hours=hours, triggers=triggers, set_back=True)
    world.live()
    assert not judge(world)
    proof({"simulated hours": hours})
    assert world.happened["_set_back"] >= 2
