"""`mimikit usage`: token usage and caps."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def test_nothing_was_used_at_first(cli: Cli) -> None:
    cli("init")
    assert "Nothing was used." in cli("usage", "--by", "engine").stdout
    assert json.loads(cli("usage", "--json").stdout)["total"]["runs"] == 0


def test_a_cap_is_added_to_the_settings_and_removed(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    config = tmp_path / ".mimikit/config.toml"
    config.write_text("# mine\nmax_concurrency = 2\n")
    assert cli("usage", "--set-daily", "200,000", "--set-per-task", "9000").exit_code == 0
    assert config.read_text().startswith("# mine\n")
    assert tomllib.loads(config.read_text())["budget"] == {
        "daily_tokens": 200_000,
        "per_task_tokens": 9000,
    }
    assert "of 200,000 tokens today" in cli("usage").stdout
    cli("usage", "--set-daily", "none")
    assert tomllib.loads(config.read_text())["budget"] == {"per_task_tokens": 9000}


@pytest.mark.parametrize("tokens", ["0", "-1", "many", "1.5", "9" * 400])
def test_an_invalid_number_of_tokens_is_refused(cli: Cli, tokens: str) -> None:
    cli("init")
    result = cli("usage", f"--set-daily={tokens}")
    assert result.exit_code != 0
    assert "expected a number of tokens above 0" in result.stderr
