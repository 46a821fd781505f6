"""A test that was left out is seen: listed everywhere, a failure in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

REPO = Path(__file__).parents[2]
CONFTEST = REPO / "tests" / "conftest.py"
CONFIG = "[pytest]\nmarkers =\n  needs_platform(*names): x\n  needs_program(*names): x\n"


def run(folder: Path, body: str, *, ci: bool) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text(CONFIG)
    (folder / "test_it.py").write_text("import pytest\n" + body)
    (folder / "test_passing.py").write_text("def test_passing(): pass\n")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CI", "PYTEST"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=folder,
        env=env
        | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(REPO)}
        | ({"CI": "true"} if ci else {}),
        capture_output=True,
        text=True,
        check=False,
    )


NO_PROGRAM = "@pytest.mark.needs_program('no-such-program')\ndef test_other(): assert 0\n"
NO_MODULE = "pytest.importorskip('no_such_module')\n"
ELSEWHERE = "@pytest.mark.needs_platform('elsewhere')\ndef test_other(): assert 0\n"
EXPECTED_FAILURE = "@pytest.mark.xfail\ndef test_other(): assert 0\n"


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        (NO_PROGRAM, "test_it.py::test_other: Skipped: no-such-program is not installed"),
        (NO_MODULE, "test_it.py: Skipped: could not import 'no_such_module'"),
    ],
    ids=["program", "module"],
)
def test_a_skip_fails_in_ci_and_is_listed(tmp_path: Path, body: str, listed: str) -> None:
    result = run(tmp_path, body, ci=True)
    assert result.returncode == 1
    assert listed in result.stdout
    assert "a failure, since CI is set" in result.stdout


def test_a_skip_passes_elsewhere_and_is_listed(tmp_path: Path) -> None:
    result = run(tmp_path, NO_PROGRAM, ci=False)
    assert result.returncode == 0
    assert "test_it.py::test_other: Skipped: no-such-program is not installed" in result.stdout


@pytest.mark.parametrize("body", [ELSEWHERE, EXPECTED_FAILURE], ids=["platform", "xfail"])
def test_ci_forgives_another_platform_and_an_expected_failure(tmp_path: Path, body: str) -> None:
    assert run(tmp_path, body, ci=True).returncode == 0
