"""The gate's crash proof: twelve flows, a crash and a power cut at each file-system operation.

Nightly: every flow, crashes of the recovery (test_crash.py), a disk that refuses (test_faults.py).
"""

from __future__ import annotations

import pytest

from tests.crash.driver import Explorer, Report
from tests.crash.flows import FLOWS

TWELVE = (
    "two messages",
    "task",
    "next attempt",
    "chain",
    "answer",
    "planned trigger",
    "files",
    "reminder told once",
    "cancel queued",
    "an endpoint comes and goes",
    "archive a day",
    "after its time",
)


@pytest.mark.parametrize("name", TWELVE)
def test_nothing_is_lost_doubled_or_stuck_wherever_a_flow_dies(
    name: str, tell: list[Report]
) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    report = Explorer(flow, crashes=1).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])
    assert report.lives > 10
