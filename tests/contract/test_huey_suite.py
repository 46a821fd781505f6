"""Huey's own tests, of the very version installed, run on our storage and serializer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import huey
import pytest

PROGRAM = Path(__file__).with_name("huey_suite.py")
ROOT = Path(__file__).parents[2]

_AN_EXCEPTION = (
    "an exception that is an argument comes back as what it said (RecordedError), not as its type: "
    "to make an object of any type from a file is what pickle does"
)
EXEMPT = {
    "test_api.TestChordPrimitive.test_chord_callback_err": _AN_EXCEPTION,
    "test_api.TestQueue.test_retrying_exceptions_not_surfaced": _AN_EXCEPTION,
    "test_api.TestTaskChaining.test_chain_errors": _AN_EXCEPTION,
    "test_api.TestTaskChaining.test_error_callback": _AN_EXCEPTION,
    "test_api.TestTaskChaining.test_error_callback_retries": _AN_EXCEPTION,
    "test_api.TestChordPrimitive.test_chord_bookkeeping_cleared": (
        "it looks into a private dictionary of Huey's memory storage"
    ),
}
NEEDS = ("requires redis", "requires gevent")


@pytest.fixture(scope="module")
def sdist(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Huey's source of the installed version, fetched once and kept in pytest's cache."""
    cache = getattr(request.config, "cache", None)
    folder = cache.mkdir("huey") if cache else tmp_path_factory.mktemp("huey")
    name = f"huey-{huey.__version__}"
    if not (folder / name).is_dir():
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        done = subprocess.run(
            [*fetch, "--no-binary", ":all:", "--dest", folder, f"huey=={huey.__version__}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        if done.returncode:
            pytest.skip(f"the source of {name} can not be had: {done.stderr.strip()[-200:]}")
        with tarfile.open(folder / f"{name}.tar.gz") as packed:
            packed.extractall(folder, filter="data")
    return folder / name


def test_huey_s_own_tests_pass_on_our_storage(sdist: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, sdist, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["version"] == huey.__version__
    assert outcome["ran"] > 200
    unexpected = {name: text for name, text in outcome["failed"].items() if name not in EXEMPT}
    assert unexpected == {}
    assert set(EXEMPT) == set(outcome["failed"]), "an exemption is no longer needed"
    assert all(reason.startswith(NEEDS) for reason in outcome["skipped"].values())
