"""The crash tests draw repeating randomness, and tell at the end how much they have seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.crash.dice import loaded_dice
from tests.crash.driver import Report

_REPORTS: list[Report] = []


@pytest.fixture(autouse=True)
def repeating() -> Iterator[None]:
    """The same randomness in each run."""
    with loaded_dice(temps_apart=True):
        yield


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Iterator[list[Report]]:
    """Where a test puts its report: those of this process, for the summary at the end."""
    known = len(_REPORTS)
    yield _REPORTS
    for report in _REPORTS[known:]:
        operations = [(*place, n) for place, n in report.histogram.items()]
        told = report.summary(), len(report.triples), report.lives, report.seconds, operations
        record_property("crash states", told)
        record_property("proof", {"recoveries": report.lives})


@pytest.fixture
def lines(record_property: Callable[[str, object], None]) -> Iterator[list[str]]:
    """Where a test puts a line for the summary at the end."""
    told: list[str] = []
    yield told
    for line in told:
        record_property("crash line", line)
