"""Shows at the end what the tests of this folder counted and measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A state folder of its own; everything started over it is ended with the test."""
    made = World(tmp_path)
    yield made
    made.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up the figures of the kills, and list what was measured."""
    figures: Counter[str] = Counter()
    measured: list[str] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                properties = dict(report.user_properties)
                figures.update(properties.get("figures", {}))
                measured += [f"{name}: {value}" for name, value in properties.get("measured", [])]
    if figures or measured:
        terminalreporter.section("real processes")
        for line in [f"{name}: {n}" for name, n in sorted(figures.items())] + measured:
            terminalreporter.line(line)
