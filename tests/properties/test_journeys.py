"""Whatever is done in whatever order, and wherever it dies: all that was accepted is done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from mimikit.testing.memory_disk import MemoryDisk
from tests.properties.journeys import Journeys

JOURNEYS, STEPS = 25, 16
"""By day, the same in each run; at night so many times the size, at random, and longer."""


@pytest.mark.fault(1, 2, 4, 6, 8, 9)
@pytest.mark.slow
@pytest.mark.timeout(0)
def test_no_journey_loses_doubles_or_holds_up_anything(
    size: int, proof: Callable[[dict[str, float]], None]
) -> None:
    is_day = size == 1
    chosen = _settings(
        max_examples=JOURNEYS * size,
        stateful_step_count=STEPS if is_day else 3 * STEPS,
        derandomize=is_day,
        phases=[Phase.generate, Phase.shrink],
    )
    Journeys.happened.clear()
    run_state_machine_as_test(Journeys, settings=chosen)
    proof(dict(Journeys.happened))
    assert Journeys.happened["kills"] >= JOURNEYS
    assert Journeys.happened["power cuts"] >= 5


def test_a_disk_that_only_says_it_has_flushed_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was broken on purpose: no name is durable, whoever asks for it."""
    monkeypatch.setattr(MemoryDisk, "sync_dir", lambda _disk, _path: None)
    chosen = _settings(
        max_examples=JOURNEYS,
        stateful_step_count=STEPS,
        derandomize=True,
        phases=[Phase.generate],
    )
    with pytest.raises(Exception, match=r"is lost|expected"):
        run_state_machine_as_test(Journeys, settings=chosen)


def _settings(**more: Any) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(database=None, deadline=None, suppress_health_check=slow, **more)
