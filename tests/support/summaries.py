"""What tests counted and measured, told at the end by the process that reports, for all of them.

A test hands its figures over as properties: `crash states` and `crash line` in tests/crash,
`figures` and `measured` in tests/process.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up what the reports of each phase carry."""
    told = [
        (report.when, name, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
    ]
    _crashes(
        terminalreporter,
        [value for when, name, value in told if (when, name) == ("teardown", "crash states")],
        [value for when, name, value in told if (when, name) == ("teardown", "crash line")],
    )
    _processes(
        terminalreporter,
        [value for when, name, value in told if (when, name) == ("call", "figures")],
        [value for when, name, value in told if (when, name) == ("call", "measured")],
    )


def _crashes(reporter: pytest.TerminalReporter, states: list[Any], lines: list[str]) -> None:
    """How many distinct crash states were seen, and where."""
    if not states and not lines:
        return
    reporter.section("crash states")
    for line in [summary for summary, *_ in states] + lines:
        reporter.line(line)
    if not states:
        return
    rooms: dict[str, Counter[str]] = {}
    for *_, operations in states:
        for site, operation, count in operations:
            rooms.setdefault(site, Counter())[operation] += count
    for site in sorted(rooms):
        shown = ", ".join(f"{operation} {n}" for operation, n in rooms[site].most_common())
        reporter.line(f"  {site}: {shown}")
    total, lives, seconds = (sum(state[n] for state in states) for n in (1, 2, 3))
    reporter.line(
        f"{total:,} distinct (disk, operation, place) states, {lives:,} recoveries, "
        f"{seconds:.0f} s of CPU, {total / max(seconds, 0.001) * 60:,.0f} states a minute"
    )


def _processes(
    reporter: pytest.TerminalReporter, figures: list[dict[str, int]], measured: list[Any]
) -> None:
    """What the kills came to, and what was measured beside."""
    if not figures and not measured:
        return
    sums: Counter[str] = Counter()
    for found in figures:
        sums.update(found)
    reporter.section("real processes")
    for name, number in sorted(sums.items()):
        reporter.line(f"{name}: {number}")
    for rows in measured:
        for name, value in rows:
            reporter.line(f"{name}: {value}")
