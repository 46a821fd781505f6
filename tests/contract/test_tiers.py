"""The gate keeps out what starts processes, and retries nothing but a smoke."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import tiers

REPO = Path(__file__).parents[2]


def test_a_process_a_fork_and_a_long_sleep_are_named_with_where_they_belong() -> None:
    fault = tiers.fault_of_place({"subprocess.Popen git": 0.0, "time.sleep": 2.0})
    assert fault is not None
    assert "subprocess.Popen git, time.sleep of 2 s in all" in fault
    assert "tests/support/tiers.py" in fault


def test_short_polls_are_no_fault() -> None:
    assert tiers.fault_of_place({"time.sleep": tiers.MAX_SLEEP_S}) is None


def failed(*names: str) -> dict[str, list[Any]]:
    return {"failed": [SimpleNamespace(nodeid=name) for name in names], "passed": []}


def test_a_smoke_that_passes_alone_is_unsteady_and_no_failure() -> None:
    retry = tiers.SmokeRetry(lambda _name, _folder: True)
    stats = failed("tests/smoke/a.py::test_a")
    assert retry.settle(stats, REPO)
    assert retry.unsteady == ["tests/smoke/a.py::test_a"]
    assert "failed" not in stats


def test_a_smoke_that_fails_again_is_a_failure() -> None:
    retry = tiers.SmokeRetry(lambda _name, _folder: False)
    assert not retry.settle(failed("tests/smoke/a.py::test_a"), REPO)


def test_a_third_unsteady_smoke_fails_the_run() -> None:
    retry = tiers.SmokeRetry(lambda _name, _folder: True)
    assert not retry.settle(failed(*(f"tests/smoke/a.py::test_{n}" for n in range(3))), REPO)
    assert retry.unsteady == []


def test_nothing_but_a_smoke_is_retried() -> None:
    tried: list[str] = []
    retry = tiers.SmokeRetry(lambda name, _folder: not tried.append(name))
    stats = failed("tests/smoke/a.py::test_a", "tests/web/b.py::test_b")
    assert not retry.settle(stats, REPO)
    assert tried == ["tests/smoke/a.py::test_a"]
    assert [one.nodeid for one in stats["failed"]] == ["tests/web/b.py::test_b"]


@pytest.mark.parametrize("place", tiers.NIGHTLY)
def test_each_nightly_place_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert (REPO / path).exists()
    assert not name or f"def {name}(" in (REPO / path).read_text()
