"""Much of everything beside the user: what the processes take, by the program of `make bench`."""

from __future__ import annotations

from benchmarks.load import measure

MESSAGES, TASKS, QUEUED = 30_000, 6_000, 8_700
"""Of one day; ended; waiting: a third of what `make bench ARGS=load` has."""


def test_much_of_everything_takes_little_memory() -> None:
    """So many messages that some are archived, and all that is known of the day is needed."""
    found = measure(60, 0.0, messages=MESSAGES, tasks=TASKS, queued=QUEUED)
    assert found["rss_mb"] <= 94
    assert found["peak_mb"] <= 106
    assert found["page_mb"] <= 84
