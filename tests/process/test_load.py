"""Much of everything beside the user: what the processes take, by the program of `make bench`."""

from __future__ import annotations

from benchmarks.load import measure

MESSAGES, TASKS, QUEUED = 30_000, 6_000, 8_700
"""Of one day; ended; waiting: a third of what `make bench ARGS=load` has."""


def test_much_of_everything_takes_little_memory() -> None:
    """With so many messages that some are archived; the limits of docs/performance.md.

    The page's has some room: it is measured beside other work.
    """
    found = measure(60, 0.0, messages=MESSAGES, tasks=TASKS, queued=QUEUED)
    assert found["rss_mb"] <= 120
    assert found["peak_mb"] <= 120
    assert found["page_mb"] <= 84
