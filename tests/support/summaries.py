"""What tests counted, told at the end by the process that reports, for all of them: one table.

A test hands its figures over by the fixture `proof`. How each flow, scenario and process fared is
told besides where pytest is asked to tell more (`-v`): `crash states` and `crash line` in
tests/crash, `schedules` in tests/interleave, `figures` and `measured` in tests/process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NIGHT = 20
"""From this `--size` on the figures of a night are wanted."""


class Proof(NamedTuple):
    """A row: what is proved, by the tests whose names begin so, and how much of it is wanted."""

    name: str
    what: str
    tests: tuple[str, ...]
    by_day: str
    at_night: str


PROOFS = (
    Proof("R1", "crashes", ("tests/crash/test_crash.py",), "200,000 states", "1,000,000 states"),
    Proof(
        "R2",
        "interleavings",
        ("tests/interleave/test_interleave.py",),
        "50,000 schedules",
        "500,000 schedules",
    ),
    Proof("R3", "a disk that refuses", ("tests/crash/test_faults.py",), "each flow", "each flow"),
    Proof("R4", "real kills", ("tests/process/test_kills.py",), "200, half mid-flow", "10,000"),
    Proof("R6", "mutants", ("tests/crash/test_mutants.py",), "100 % noticed", "100 % noticed"),
    Proof("R7", "simulated time", ("tests/soak/",), "72 h", "years"),
    Proof("R13", "HTTP fuzz", ("tests/web/test_fuzz.py",), "50,000 requests", "1,000,000 requests"),
    Proof("R16", "texts that give orders", ("tests/security/",), "0 obeyed", "0 obeyed"),
    Proof(
        "R17", "routes asked wrongly", ("tests/web/test_guard.py",), "all refused", "all refused"
    ),
    Proof("journeys", "any order", ("tests/properties/test_journeys.py",), "25", "25 × the scale"),
    Proof("ext4", "power cuts", ("tests/crash/test_power_cuts.py",), "by night", "each change"),
    Proof("load", "much of everything", ("tests/process/test_load.py",), "a third", "whole"),
)


@dataclass
class _Seen:
    """What the tests of a row came to."""

    counts: Counter[str] = field(default_factory=Counter[str])
    ends: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list[str])

    def take(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration
        if report.skipped:
            self.ends["skipped"] += 1
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
            self.reasons += [reason] if reason not in self.reasons else []
        elif report.failed:
            self.ends["failed"] += 1
        elif report.when == "call":
            self.ends["passed"] += 1
        if report.when == "teardown":  # the last one carries what all phases have told
            told: list[tuple[str, Any]] = [(name, value) for name, value in report.user_properties]
            for counts in [value for name, value in told if name == "proof"]:
                self.counts.update(counts)

    def told(self) -> str:
        """Figures; how many tests failed; why some, or all, were not run."""
        counts = [f"{_number(value)} {name}" for name, value in self.counts.items()]
        found = [", ".join(counts) or f"{self.ends['passed']:,} tests"]
        if not counts and not self.ends["passed"]:
            found = []
        if self.ends["skipped"]:
            why = "; ".join(reason.removeprefix("Skipped: ") for reason in self.reasons)
            found.append(f"{self.ends['skipped']} not run here: {why}")
        if self.ends["failed"]:
            found.append(f"{self.ends['failed']} FAILED")
        return "; ".join(found) or "not run"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def proof_of(nodeid: str) -> Proof | None:
    """The row to which a test belongs."""
    return next((proof for proof in PROOFS if nodeid.startswith(proof.tests)), None)


def table(reports: Iterable[pytest.TestReport], size: int) -> list[tuple[str, ...]]:
    """Head and rows: proof, what, wanted, seen, seconds. A night tells what was not run, too."""
    seen = {proof.name: _Seen() for proof in PROOFS}
    for report in reports:
        if (proof := proof_of(report.nodeid)) is not None:
            seen[proof.name].take(report)
    rows = [
        (
            proof.name,
            proof.what,
            proof.at_night if size >= NIGHT else proof.by_day,
            seen[proof.name].told(),
            f"{seen[proof.name].seconds:,.0f}",
        )
        for proof in PROOFS
        if seen[proof.name].ends or size > 1
    ]
    return [("", "proved by", "wanted", f"seen, at scale {size}", "s"), *rows] if rows else []


def as_markdown(rows: list[tuple[str, ...]]) -> str:
    """The same for a page."""
    head, *rest = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([head, "|--" * (len(rows[0]) - 1) + "|--:|", *rest]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up what the reports of each phase carry."""
    reports = [
        report
        for each in terminalreporter.stats.values()
        for report in each
        if isinstance(report, pytest.TestReport)
    ]
    if terminalreporter.verbosity > 0:
        _each(terminalreporter, reports)
    options = terminalreporter.config.option
    if not (rows := table(reports, options.size)):
        return
    terminalreporter.section("what was proved")
    widths = [max(len(row[n]) for row in rows) for n in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        terminalreporter.line("  ".join([*cells, row[3], f"({row[4]} s)" if row[0] else ""]))
    if options.table:
        place = Path(options.table)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(as_markdown(rows), encoding="utf-8")


def _each(reporter: pytest.TerminalReporter, reports: list[pytest.TestReport]) -> None:
    """How each flow, scenario and process fared."""
    told: list[tuple[str | None, str, Any]] = [
        (report.when, name, value) for report in reports for name, value in report.user_properties
    ]
    _crashes(
        reporter,
        [value for when, name, value in told if (when, name) == ("teardown", "crash states")],
        [value for when, name, value in told if (when, name) == ("teardown", "crash line")],
    )
    _schedules(
        reporter, [value for when, name, value in told if (when, name) == ("teardown", "schedules")]
    )
    _processes(
        reporter,
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


def _schedules(reporter: pytest.TerminalReporter, found: list[Any]) -> None:
    """How many interleavings were met."""
    if not found:
        return
    reporter.section("interleavings")
    for summary, *_ in found:
        reporter.line(summary)
    ran, equal, kills, seconds = (sum(one[n] for one in found) for n in (1, 2, 3, 4))
    reporter.line(
        f"{ran + equal:,} schedules: {ran:,} ran, {equal:,} equal to one that ran, {kills:,} with "
        f"a kill; {seconds:.0f} s of CPU, {ran / max(seconds, 0.001):,.0f} runs a second"
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
