"""Searches for tests."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from mimikit.memory.search import MemorySearch
from mimikit.protocol.files import Files
from tests.support.twins import FakeClock


def plain_search(files: Files, zone: tzinfo = UTC) -> MemorySearch:
    """The product's search without its index: it scans what there is, on any disk."""
    clock = FakeClock(datetime(2026, 12, 1, 9, 0, tzinfo=UTC))
    return MemorySearch(files, workspace=None, index=None, zone=zone, clock=clock)
