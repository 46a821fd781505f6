"""The gate's crash proof: every flow once, some with a crash and a power cut at each operation.

Nightly: every flow, crashes of the recovery (test_crash.py), a disk that refuses (test_faults.py).
"""

from __future__ import annotations

import pytest

from tests.crash.driver import Explorer, Flow, Report
from tests.crash.flows import FLOWS

GATE = (
    *("two messages", "task", "next attempt", "chain", "answer", "planned trigger", "files"),
    *("reminder told once", "cancel queued", "an endpoint comes and goes", "archive a day"),
    *("after its time", "an improvement"),
)


@pytest.mark.parametrize("name", GATE)
def test_nothing_is_lost_doubled_or_stuck_wherever_a_flow_dies(
    name: str, tell: list[Report]
) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    report = Explorer(flow, crashes=1).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])
    assert report.lives > 10


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_nothing_is_lost_doubled_or_stuck_in_a_flow_without_a_crash(flow: Flow) -> None:
    assert not Explorer(flow, crashes=0).run().violations
