"""Imports go down only, and each library stays in its room: the contracts of pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

REPO = Path(__file__).parents[2]


def test_every_import_contract_is_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [program, "--no-cache", "--no-logo"], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_guide_shows_the_layers_as_they_are() -> None:
    held = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [each["layers"] for each in held["contracts"] if each["type"] == "layers"]
    guide = (REPO / "docs" / "contributing.md").read_text()
    assert guide.partition("```text\n__main__\n")[2].partition("\n```")[0].split("\n") == layers[1:]
