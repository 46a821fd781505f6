"""Days of kills, suspends, clock jumps and hundreds of triggers: nothing lost, nothing doubled."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.soak.judge import judge
from tests.soak.world import World

DST_ENDS = datetime(2026, 10, 24, 6, tzinfo=UTC)
DST_BEGINS = datetime(2027, 3, 13, 6, tzinfo=UTC)
YEAR_ENDS = datetime(2026, 12, 30, 6, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_seventy_two_hours_lose_nothing_and_double_nothing(size: int) -> None:
    """`make soak DAYS=730` lives two years; the default are three days over the end of DST."""
    triggers = 500 if size > 1 else 160
    world = World(seed=size, start=DST_ENDS, hours=72 * size, triggers=triggers)
    world.live()
    assert not judge(world)
    assert len(world.runs) > 6 * triggers
    assert world.happened["_kill_soon"] >= 10
    assert world.happened["_suspend"] + world.happened["_off_for_hours"] >= 2


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("start", [DST_BEGINS, YEAR_ENDS], ids=["DST begins", "a year ends"])
def test_a_clock_that_is_set_back_again_and_again_doubles_nothing(
    start: datetime, size: int
) -> None:
    triggers = 80 if size > 1 else 40
    world = World(seed=start.day, start=start, hours=72, triggers=triggers, set_back=True)
    world.live()
    assert not judge(world)
    assert world.happened["_set_back"] >= 2
