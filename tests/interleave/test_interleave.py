"""Whoever writes at the same time as others loses nothing, doubles nothing and stops nobody.

Every schedule with at most two preemptions, or one and a kill, is the work of a night (`--size`);
by day a part of them is run, the same in each run.
"""

from __future__ import annotations

import pytest

from tests.interleave.command_scenarios import COMMAND_SCENARIOS
from tests.interleave.explorer import Explorer, Report, Scenario
from tests.interleave.huey_scenarios import HUEY_SCENARIOS
from tests.interleave.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(0)
"""Work for a processor: how long it takes is the machine's business."""

ALL = (*SCENARIOS, *HUEY_SCENARIOS, *COMMAND_SCENARIOS)
LEAST_SCHEDULES = 50_000
AT_NIGHT, LEAST_AT_NIGHT = 20, 500_000
"""From this size on so many schedules are to be seen."""


@pytest.mark.fault(28, 62, "b", "claude-code#29217", "complaint 5", "complaint 6", "upstream 6")
@pytest.mark.slow
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_nothing_is_lost_doubled_or_stuck_whoever_goes_on_when(
    scenario: Scenario, size: int, tell: list[Report]
) -> None:
    report = Explorer(scenario, every=max(1, scenario.every // size)).run()
    tell.append(report)
    assert not report.violations, report.told()
    assert report.ran >= 5


@pytest.mark.slow
def test_the_schedules_that_were_seen_are_many(size: int, tell: list[Report]) -> None:
    if {report.scenario for report in tell} < {scenario.name for scenario in ALL}:
        return  # only some scenarios were asked for
    least = LEAST_SCHEDULES if size < AT_NIGHT else LEAST_AT_NIGHT
    seen = sum(report.covered for report in tell)
    assert seen >= least, f"{seen:,} schedules: lower `every` where those that are equal are many"
