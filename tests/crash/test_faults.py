"""A failing disk loses no accepted message, doubles nothing, and work goes on after it."""

from __future__ import annotations

import errno

import pytest

from tests.crash.driver import Flow
from tests.crash.faults import LONGEST_WAIT_S, explore
from tests.crash.flows import FLOWS
from tests.crash.test_twelve_flows import GATE

pytestmark = pytest.mark.timeout(0)
"""CPU-bound: no timeout."""

CODES = (errno.ENOSPC, errno.EIO, errno.EROFS)
BURSTS = (1, 5)
"""Operations that are refused; for EACCES, fifths of a second for which a folder is closed."""
WHOLE = ("task",)
"""Flows whose every operation is refused at any size; of the others every few."""
WAITS = ("turned away",)
"""Flows that wait by themselves: how soon they go on proves nothing."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "flow", [flow for flow in FLOWS if flow.name not in WAITS], ids=lambda flow: flow.name
)
def test_a_refusing_disk_loses_nothing_and_all_goes_on_soon_after(
    flow: Flow, size: int, lines: list[str]
) -> None:
    every = (
        1
        if flow.name in WHOLE or size >= 10
        else max(9 if flow.name == "message" else 30 - 3 * size, 1)
    )
    # Where memory or a far time is waited for, how soon it goes on after a closed folder says
    # nothing: the flows of the gate stand for the others.
    codes = (*CODES, errno.EACCES) if flow.name in GATE else CODES
    report = explore(flow, codes, BURSTS, every=every)
    lines.append(
        f"{flow.name}: {report.runs} runs on a disk that refuses "
        f"({', '.join(errno.errorcode[code] for code in codes)} × {BURSTS}, every "
        f"{every}. operation), went on after at most {report.slowest_s} s"
    )
    assert not report.violations, "\n".join(report.violations[:10])
    assert report.runs > 10
    assert report.slowest_s <= LONGEST_WAIT_S
