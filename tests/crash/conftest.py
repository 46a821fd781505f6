"""The crash tests draw repeating randomness, and tell at the end how much they have seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.crash.dice import loaded_dice
from tests.crash.driver import Report

_REPORTS: list[Report] = []


@pytest.fixture(autouse=True)
def repeating() -> Iterator[None]:
    """The same randomness in each run."""
    with loaded_dice():
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


@pytest.fixture
def lines(record_property: Callable[[str, object], None]) -> Iterator[list[str]]:
    """Where a test puts a line for the summary at the end."""
    told: list[str] = []
    yield told
    for line in told:
        record_property("crash line", line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many distinct crash states were seen, and where, by all processes of the run."""
    found = [
        (name, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for name, value in report.user_properties
    ]
    states = [value for name, value in found if name == "crash states"]
    more = [value for name, value in found if name == "crash line"]
    if not states and not more:
        return
    terminalreporter.section("crash states")
    for line in [summary for summary, *_ in states] + more:
        terminalreporter.line(line)
    if not states:
        return
    rooms: dict[str, Counter[str]] = {}
    for *_, operations in states:
        for site, operation, count in operations:
            rooms.setdefault(site, Counter())[operation] += count
    for site in sorted(rooms):
        shown = ", ".join(f"{operation} {n}" for operation, n in rooms[site].most_common())
        terminalreporter.line(f"  {site}: {shown}")
    total, lives, seconds = (sum(state[n] for state in states) for n in (1, 2, 3))
    terminalreporter.line(
        f"{total:,} distinct (disk, operation, place) states, {lives:,} recoveries, "
        f"{seconds:.0f} s of CPU, {total / max(seconds, 0.001) * 60:,.0f} states a minute"
    )
