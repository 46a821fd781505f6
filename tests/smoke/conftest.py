"""The few tests of the gate that start real processes: they borrow from the nightly suites."""

from __future__ import annotations

from tests.browser.conftest import (
    browser_context_args,
    browser_type_launch_args,
    complaints,
    fresh,
    open_chat,
    pytest_runtest_makereport,
)
from tests.process.conftest import world

__all__ = [
    "browser_context_args", "browser_type_launch_args", "complaints", "fresh", "open_chat",
    "pytest_runtest_makereport", "world",
]  # fmt: skip
