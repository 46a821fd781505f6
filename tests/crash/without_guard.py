"""A plugin of pytest: the tests run on the product without the guard that `LEFT_OUT` names."""

from __future__ import annotations

import contextlib
import os

import pytest

from tests.crash.mutants import left_out, mutant_named

LEFT_OUT = "LEFT_OUT"


def pytest_configure(config: pytest.Config) -> None:
    """Leave it out until the run ends."""
    stack = contextlib.ExitStack()
    stack.enter_context(left_out(mutant_named(os.environ[LEFT_OUT])))
    config.add_cleanup(stack.close)
