"""docs/settings.md names every setting, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from mimikit.config import known_keys

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
# One row speaks for the like-named settings of each role and profile.
ALIKE = re.compile(r"^(roles\.planner|profiles\.\w+)\.")


def documented() -> set[str]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {key for row in rows for key in re.findall(r"`([a-z_.]+)`", row.split("|")[1])}


def test_every_setting_is_documented() -> None:
    missing = {key for key in known_keys() if not ALIKE.match(key)} - documented()
    assert not missing


def test_no_setting_is_documented_that_does_not_exist() -> None:
    assert not documented() - set(known_keys())
