"""What docs/hueyfiles.md shows works as it stands there."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mimikit.hueyfiles.storage import ClaimStorage
from tests.hueyfiles.helpers import until

REPO = Path(__file__).parents[2]
PAGE = (REPO / "docs" / "hueyfiles.md").read_text(encoding="utf-8")
PROGRAM, CALLER = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CONSUME, LOOK = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f".{os.pathsep}{REPO}"}


def test_the_shown_program_is_served_by_the_shown_command(folder: Path) -> None:
    program, *words = shlex.split(CONSUME)
    consumer = subprocess.Popen(
        [Path(sys.executable).with_name(program), *words],
        cwd=folder,
        env=environment(),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        caller = subprocess.run(
            [sys.executable, "-c", CALLER],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert caller.stdout == "6\n"
    finally:
        consumer.send_signal(signal.SIGINT)
        consumer.wait(30)


def test_what_waits_can_be_read_with_the_shown_command(folder: Path) -> None:
    code = "from shop import total; total([1, 2, 3])"
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment(), check=True)
    until(lambda: list((folder / "queue" / "queue").glob("*.json")))
    shown = subprocess.run(["sh", "-c", LOOK], cwd=folder, capture_output=True, check=True)
    assert b"[1,2,3]" in shown.stdout


def test_each_option_shown_is_one_and_its_default_is_right() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", PAGE.split("## What")[0], re.MULTILINE)
    known = inspect.signature(ClaimStorage).parameters
    shown = {name: default for name, default in rows if name != "serializer"}
    assert set(shown) <= set(known)
    words = {"True": "yes", "False": "no", "None": "", "1.0": "1", "2.0": "2"}
    assert shown == {name: words[str(known[name].default)] for name in shown}


def test_the_folders_shown_are_those_that_are_made(tmp_path: Path) -> None:
    ClaimStorage(path=tmp_path).close()
    table = PAGE.split("## Layout")[1]
    shown = set(re.findall(r"`(\w+)/`", table))
    assert shown == {path.name for path in tmp_path.iterdir()}
