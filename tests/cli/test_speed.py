"""`--help` is fast and imports nothing heavy."""

from __future__ import annotations

import resource
import subprocess
import sys

from tests.cli.conftest import REPO, clean_environment

PROGRAM = """
import sys
from mimikit.__main__ import main
try:
    main(["--help"])
except SystemExit:
    heavy = [name for name in ("pydantic", "flask", "huey", "mimikit.app") if name in sys.modules]
    sys.exit(f"imported {heavy}" if heavy else 0)
"""


def cpu_s_of_help() -> float:
    """CPU time of one call, which does not depend on the load of the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-P", "-m", "mimikit", "--help"],
        env=clean_environment(),
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_imports_nothing_heavy() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_help_takes_at_most_a_quarter_of_a_second() -> None:
    assert min(cpu_s_of_help() for _ in range(5)) <= 0.25
