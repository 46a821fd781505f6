"""Repeatable randomness for the crash tests, and a summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.crash.dice import loaded_dice
from tests.crash.driver import Report

_REPORTS: list[Report] = []


@pytest.fixture(autouse=True)
def repeating() -> Iterator[None]:
    with loaded_dice():
        yield


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Iterator[list[Report]]:
    """The reports of this process, for the summary at the end."""
    known = len(_REPORTS)
    yield _REPORTS
    for report in _REPORTS[known:]:
        operations = [(*place, n) for place, n in report.histogram.items()]
        told = report.summary(), len(report.triples), report.lives, report.seconds, operations
        record_property("crash states", told)


@pytest.fixture
def lines(record_property: Callable[[str, object], None]) -> Iterator[list[str]]:
    """Lines for the summary at the end."""
    told: list[str] = []
    yield told
    for line in told:
        record_property("crash line", line)
