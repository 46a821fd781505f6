"""Sums up the figures of tests at the end of a run, in the reporting process.

A test hands its figures over as properties: `crash states` and `crash line` in tests/crash,
`figures` in tests/process. `--table FILE` writes one row per suite as Markdown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class _Suite:
    """One row: a folder of tests."""

    tests: set[str] = field(default_factory=set[str])
    failed: set[str] = field(default_factory=set[str])
    skipped: set[str] = field(default_factory=set[str])
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])


def suite_of(nodeid: str) -> str:
    """The folder of tests that a node id lies in: `tests/engines/conformance`."""
    return nodeid.split("::", 1)[0].rpartition("/")[0]


def suites(reports: list[pytest.TestReport]) -> dict[str, _Suite]:
    """The suites by name, from the reports of each phase."""
    found: dict[str, _Suite] = {}
    for report in reports:
        suite = found.setdefault(suite_of(report.nodeid), _Suite())
        suite.tests.add(report.nodeid)
        suite.seconds += report.duration
        if report.failed:
            suite.failed.add(report.nodeid)
        elif report.skipped:
            suite.skipped.add(report.nodeid)
        for name, value in report.user_properties:
            counted: Any = value
            if (report.when, name) == ("teardown", "crash states"):
                suite.counts["states"] += counted[1]
                suite.counts["recoveries"] += counted[2]
            elif (report.when, name) == ("call", "figures"):
                suite.counts.update(counted)
    return found


def table(found: dict[str, _Suite]) -> str:
    """Suite, states or runs, failures, minutes; below it the tests that failed."""
    lines = ["| suite | states or runs | failures | minutes |", "|---|---|--:|--:|"]
    for name, suite in sorted(found.items()):
        counts = [f"{len(suite.tests):,} tests"]
        counts += [f"{number:,} {what}" for what, number in sorted(suite.counts.items())]
        if suite.skipped:
            counts.append(f"{len(suite.skipped):,} skipped")
        minutes = f"{suite.seconds / 60:.1f}"
        lines.append(f"| {name} | {', '.join(counts)} | {len(suite.failed)} | {minutes} |")
    failed = sorted(nodeid for suite in found.values() for nodeid in suite.failed)
    return "\n".join([*lines, "", *(f"- failed: `{nodeid}`" for nodeid in failed), ""])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up what the reports of each phase carry."""
    reports = [
        report
        for several in terminalreporter.stats.values()
        for report in several
        if isinstance(report, pytest.TestReport)
    ]
    told = [
        (report.when, name, value) for report in reports for name, value in report.user_properties
    ]
    states: list[Any] = [
        v for when, name, v in told if (when, name) == ("teardown", "crash states")
    ]
    if states:
        total, lives, seconds = (sum(state[n] for state in states) for n in (1, 2, 3))
        terminalreporter.section("crash states")
        terminalreporter.line(
            f"{total:,} distinct (disk, operation, place) states, {lives:,} recoveries, "
            f"{seconds:.0f} s of CPU"
        )
    lines = [str(v) for when, name, v in told if (when, name) == ("teardown", "crash line")]
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.line(line)
    if path := terminalreporter.config.option.table:
        text = table(suites(reports))
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
        terminalreporter.section("suites")
        terminalreporter.write(text)
