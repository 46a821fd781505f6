"""Doctor and the servers of tools that the settings name: what each offers, and what is amiss."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from mimikit.protocol import paths
from tests.cli.conftest import Cli
from tests.cli.test_doctor import NOW, findings, write_health

pytestmark = pytest.mark.needs_program("bwrap")
SERVER = Path(__file__).parents[1] / "support" / "mcp_sdk_server.py"
CHANGED = "config.toml was changed after the consumer began, which reads `[mcp]` only then"


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    assert cli("init").exit_code == 0
    return tmp_path / paths.STATE_FOLDER


def test_each_server_is_started_and_what_it_offers_or_lacks_is_told(cli: Cli, state: Path) -> None:
    (state / paths.CONFIG).write_text(
        f"""
        [mcp.small]
        command = ["{sys.executable}", "{SERVER}", "stdio"]
        env_from = ["MIMIKIT_TEST_UNSET"]
        [mcp.idle]
        command = ["{sys.executable}", "{SERVER}", "stdio"]
        roles = []
        profiles = []
        [mcp.gone]
        command = ["{state}/no-such-program"]
        """
    )
    found = [(one["level"], one["text"]) for one in findings(cli, "mcp")]
    said = {level: [text for at, text in found if at == level] for level, _ in found}
    assert any("small, for " in text and "add, " in text for text in said["ok"])
    assert "small: MIMIKIT_TEST_UNSET of its env_from is not set here" in said["warning"]
    assert any(text.startswith("gone: ") and "no-such-program" in text for text in said["warning"])
    assert "idle: its tools are offered to nobody" in said["note"]
    assert CHANGED not in said["note"], "no consumer runs"


@pytest.mark.parametrize("began_before", [True, False])
def test_settings_that_the_running_consumer_has_not_read_are_told(
    cli: Cli, state: Path, began_before: bool
) -> None:
    server = f'command = ["{sys.executable}", "{SERVER}", "stdio"]'
    (state / paths.CONFIG).write_text(f"[mcp.small]\n{server}\n")
    write_health(state)  # of a consumer that began two hours ago
    if not began_before:
        long_ago = (NOW - timedelta(hours=3)).timestamp()
        os.utime(state / paths.CONFIG, (long_ago, long_ago))
    found = {one["text"] for one in findings(cli, "mcp") if one["level"] == "note"}
    assert (CHANGED in found) == began_before
