"""The table at the end of a run says of each proof what was seen, failed, or could not be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.summaries import PROOFS, as_markdown, proof_of, table

ROOT = Path(__file__).parents[2]
KILLS, CUTS = "tests/process/test_kills.py::test_x", "tests/crash/test_power_cuts.py::test_x"
FUZZ = "tests/web/test_fuzz.py::test_x"


def report(
    nodeid: str, outcome: Literal["passed", "failed", "skipped"], *, why: str = "", **counts: int
) -> pytest.TestReport:
    told: list[tuple[str, object]] = [("proof", counts), ("figures", {"else": 1})]
    shown: Any = (nodeid, 1, f"Skipped: {why}") if outcome == "skipped" else why or None
    return pytest.TestReport(
        nodeid, (nodeid, 1, ""), {}, outcome, shown, "call", user_properties=told, duration=1.4
    )


def teardown(nodeid: str, **counts: int) -> pytest.TestReport:
    told: list[tuple[str, object]] = [("proof", counts)]
    return pytest.TestReport(
        nodeid, (nodeid, 1, ""), {}, "passed", None, "teardown", user_properties=told, duration=0.1
    )


def rows(*reports: pytest.TestReport, size: int = 1) -> dict[str, tuple[str, ...]]:
    return {row[0]: row for row in table(reports, size)}


def test_counts_are_summed_and_each_is_taken_once() -> None:
    found = rows(
        report(KILLS, "passed", kills=20),
        teardown(KILLS, kills=20),
        report(KILLS, "passed", kills=1000),
        teardown(KILLS, kills=1000),
    )
    assert found["R4"] == ("R4", "real kills", "200, half mid-flow", "1,020 kills", "3")
    assert set(found) == {"", "R4"}


def test_what_failed_and_what_could_not_run_is_told() -> None:
    found = rows(
        report(KILLS, "failed", why="lost"),
        teardown(KILLS, kills=20),
        report(CUTS, "skipped", why="only root can mount a disk"),
        report(FUZZ, "passed"),
        size=20,
    )
    assert found["R4"][2:4] == ("10,000", "20 kills; 1 FAILED")
    assert found["ext4"][3] == "1 not run here: only root can mount a disk"
    assert found["R13"][3] == "1 tests"
    assert found["R2"][3] == "not run"


def test_a_run_without_any_of_them_has_no_table() -> None:
    assert table([report("tests/cli/test_x.py::test_x", "passed")], 1) == []


def test_a_page_can_show_it() -> None:
    text = as_markdown(table([report(KILLS, "failed", why="a|b")], 1))
    assert [line.count(" | ") for line in text.splitlines()] == [4, 0, 4]
    assert text.splitlines()[1] == "|--|--|--|--|--:|"


def test_each_row_has_tests() -> None:
    missing = [
        f"{proof.name}: {start}"
        for proof in PROOFS
        for start in proof.tests
        if not (ROOT / start).exists()
    ]
    assert missing == []
    assert proof_of("tests/soak/test_soak.py::test_x") is not None
    assert proof_of("tests/cli/test_up.py::test_x") is None
