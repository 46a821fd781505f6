"""`mimikit skills`, and what `mimikit doctor` says of skills and servers of tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

TEXT = "---\nname: report\ndescription: How a report is made.\n---\nBegin with the numbers.\n"


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    cli("init")
    made = tmp_path / "elsewhere"
    made.mkdir()
    (made / "SKILL.md").write_text(TEXT)
    (made / "count.sh").write_text("#!/bin/sh\n")
    return made


def test_a_skill_is_added_listed_shown_and_removed(cli: Cli, folder: Path) -> None:
    assert "No skills yet" in cli("skills", "list").stdout
    assert cli("skills", "add", str(folder)).stdout == "Added report: 2 files.\n"
    assert cli("skills", "list").stdout.split(maxsplit=1) == ["report", "How a report is made.\n"]
    listed = json.loads(cli("skills", "list", "--json").stdout)
    assert listed == {
        "skills": [{"name": "report", "description": "How a report is made."}],
        "broken": [],
    }
    assert cli("skills", "show", "report").stdout == f"{TEXT}\nfiles count.sh\n"
    shown = json.loads(cli("skills", "show", "report", "--json").stdout)
    assert (shown["text"], shown["files"]) == (TEXT, ["SKILL.md", "count.sh"])
    again = cli("skills", "add", str(folder))
    assert again.exit_code == 2
    assert "`mimikit skills remove report`" in again.stderr
    assert cli("skills", "remove", "report").stdout == "Removed report from skills/.\n"
    assert cli("skills", "show", "report").exit_code == 2


def test_what_is_no_skill_is_not_added(cli: Cli, folder: Path) -> None:
    (folder / "SKILL.md").write_text("just words")
    result = cli("skills", "add", str(folder))
    assert result.exit_code == 2
    assert "expected it to begin with `name` and `description` between `---`" in result.stderr


def test_the_doctor_tells_of_skills_and_what_is_wrong_with_one(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    cli("skills", "add", str(folder))
    (tmp_path / ".mimikit/skills/half").mkdir()
    found = json.loads(cli("doctor", "--json").stdout)["findings"]
    told = [(one["level"], one["text"]) for one in found if one["area"] == "skills"]
    assert told == [
        ("warning", "half: expected skills/half/SKILL.md, got none; add the skill again, or "
         "remove it"),
        ("ok", "report"),
    ]  # fmt: skip


def test_the_doctor_tries_servers_of_tools_and_hides_what_they_are_given(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    del folder
    (tmp_path / ".mimikit" / "config.toml").write_text(
        '[mcp.lost]\ncommand = ["no-such-program-at-all"]\nenv = {SOME = "canary-value"}\n'
        'env_from = ["MCP_TEST_NOT_SET"]\n'
    )
    said = cli("doctor", "--json")
    assert "canary-value" not in said.stdout
    found = json.loads(said.stdout)["findings"]
    told = [one["text"] for one in found if one["area"] == "mcp"]
    assert told[:2] == [
        "lost: its tools are offered to nobody",
        "lost: MCP_TEST_NOT_SET of its env_from is not set here",
    ]
    assert told[2].startswith("lost: ")
    assert [one["level"] for one in found if one["area"] == "mcp"] == ["note", *["warning"] * 2]
