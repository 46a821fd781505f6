"""The crash tests draw repeating randomness, and tell at the end how much they have seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.crash.dice import loaded_dice
from tests.crash.driver import Report

_REPORTS: list[Report] = []
_LINES: list[str] = []


@pytest.fixture(autouse=True)
def repeating() -> Iterator[None]:
    """The same randomness in each run."""
    with loaded_dice():
        yield


@pytest.fixture
def tell() -> list[Report]:
    """Where a test puts its report for the summary at the end."""
    return _REPORTS


@pytest.fixture
def lines() -> list[str]:
    """Where a test puts a line for the summary at the end."""
    return _LINES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many distinct crash states were seen, and where."""
    if not _REPORTS and not _LINES:
        return
    terminalreporter.section("crash states")
    for line in [report.summary() for report in _REPORTS] + _LINES:
        terminalreporter.line(line)
    if not _REPORTS:
        return
    operations: Counter[tuple[str, str]] = Counter()
    for report in _REPORTS:
        operations.update(report.histogram)
    rooms: dict[str, Counter[str]] = {}
    for (site, operation), count in operations.items():
        rooms.setdefault(site, Counter())[operation] += count
    for site in sorted(rooms):
        shown = ", ".join(f"{operation} {n}" for operation, n in rooms[site].most_common())
        terminalreporter.line(f"  {site}: {shown}")
    total = sum(len(report.triples) for report in _REPORTS)
    lives = sum(report.lives for report in _REPORTS)
    seconds = sum(report.seconds for report in _REPORTS)
    terminalreporter.line(
        f"{total:,} distinct (disk, operation, place) states, {lives:,} recoveries, "
        f"{seconds:.0f} s of CPU, {total / max(seconds, 0.001) * 60:,.0f} states a minute"
    )
