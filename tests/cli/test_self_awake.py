"""Self-awake from the terminal, with a consumer at work and with none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from mimikit.protocol.self_awake import Improvement, PastImprovement, SelfAwakeState
from tests.cli.conftest import Cli

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
RUN = Improvement(
    id="awake-1",
    kind="lint",
    stage="check",
    title="remove unused imports",
    prompt="do",
    started_at=NOW,
    branch="mimikit/self-awake-20261201-lint-aaaaaa",
)


def test_off_it_says_how_to_switch_it_on(cli: Cli) -> None:
    cli("init")
    result = cli("self-awake", "status")
    assert result.exit_code == 0
    assert "off; `mimikit self-awake on`" in result.stdout
    assert "make check" in result.stdout


def test_what_it_does_and_did_is_shown_with_its_branches(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    kept = RUN.but(commit="1" * 40, end="committed", files=["a.py"])
    dropped = RUN.but(title="", prompt="", end="dropped", why="make check: exit code 2")
    past = [PastImprovement.of(one, "task-1", NOW) for one in (kept, dropped)]
    state = SelfAwakeState(run=RUN, past=past, blocked="no repository", blocked_at=NOW)
    (tmp_path / ".mimikit" / "self_awake.json").write_bytes(state.to_json())
    said = cli("self-awake", "status").stdout
    assert "now: remove unused imports (lint) – runs the checks" in said
    assert "mimikit/self-awake-20261201-lint-aaaaaa" in said
    assert "dropped" in said
    assert "exit code 2" in said
    assert "no repository" in said
    told = json.loads(cli("self-awake", "status", "--json").stdout)
    assert told["run"]["stage"] == "check"
    assert [one["end"] for one in told["past"]] == ["dropped", "committed"]
    assert told["past"][1]["branch"] == RUN.branch


def test_with_nobody_at_work_what_is_asked_is_kept(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    result = cli("self-awake", "on")
    assert result.exit_code == 1
    assert "it is kept until then" in result.output
    [order] = (tmp_path / ".mimikit" / "commands").glob("*.json")
    assert json.loads(order.read_text())["action"] == "self_awake_on"


def test_only_items_of_the_list_can_be_asked_for(cli: Cli) -> None:
    cli("init")
    result = cli("self-awake", "run", "everything")
    assert result.exit_code == 2
    assert "lint" in result.output


def test_a_consumer_switches_it_in_the_settings(on_busy: Cli) -> None:
    assert "self-awake is on from now on" in on_busy("self-awake", "on").stdout.lower()
    assert on_busy("self-awake", "status").stdout.startswith("on: after 5 minutes")
    assert "off from now on" in on_busy("self-awake", "off").stdout
