"""The interleavings tell at the end how many there were."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.interleave.explorer import Report

_REPORTS: list[Report] = []


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Iterator[list[Report]]:
    """Where a test puts its report: those of this process, for the summary at the end."""
    known = len(_REPORTS)
    yield _REPORTS
    for report in _REPORTS[known:]:
        told = report.summary(), report.ran, report.equal, report.kills, report.seconds
        record_property("schedules", told)
        record_property("proof", {"schedules": report.covered, "really run": report.ran})
