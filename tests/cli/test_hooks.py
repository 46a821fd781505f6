"""`mimikit hooks`: webhooks are set up with a secret of their own, shown once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mimikit import config
from mimikit.protocol import paths
from tests.cli.conftest import Cli


def listed(cli: Cli) -> list[dict[str, Any]]:
    result = cli("hooks", "list", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["hooks"]


def secret_of(tmp_path: Path, name: str) -> str:
    return (tmp_path / ".mimikit" / paths.SECRETS / f"hook-{name}").read_text().strip()


def test_a_webhook_is_added_listed_and_removed_and_its_secret_shown_once(
    cli: Cli, tmp_path: Path
) -> None:
    cli("init")
    own = tmp_path / ".mimikit" / "config.toml"
    own.write_text("# mine\ntimezone = 'UTC'\n")
    made = cli("hooks", "add", "deploy", "--does", "input", "--prompt", "Tell me: {body}")
    assert made.exit_code == 0, made.output
    secret = secret_of(tmp_path, "deploy")
    assert f"Secret, shown only now: {secret}" in made.stdout
    assert 'curl -H "Authorization: Bearer $SECRET"' in made.stdout
    assert "/hooks/deploy" in made.stdout
    assert own.read_text().startswith("# mine\ntimezone = 'UTC'\n")
    (one,) = listed(cli)
    assert (one["name"], one["kind"], one["does"]) == ("deploy", "token", "input")
    assert (one["hasSecret"], one["deliveries"], one["lastAt"]) == (True, 0, None)
    for text in (cli("hooks", "list").stdout, cli("doctor").stdout, own.read_text()):
        assert secret not in text
    removed = cli("hooks", "remove", "deploy")
    assert removed.stdout == "Removed deploy.\n"
    assert listed(cli) == []
    assert not (tmp_path / ".mimikit" / paths.SECRETS / "hook-deploy").exists()
    assert "hooks" not in own.read_text()


def test_each_way_of_proof_says_how_it_is_called(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    generic = cli("hooks", "add", "build", "--hmac", "generic").stdout
    assert "X-Mimikit-Signature: t=$t,v1=$v1" in generic
    github = cli("hooks", "add", "repo", "--hmac", "github").stdout
    assert "application/json" in github
    hooks = config.load(tmp_path / ".mimikit").hooks
    assert [(it.kind, it.signature) for it in hooks.values()] == [
        ("hmac", "generic"),
        ("hmac", "github"),
    ]


def test_a_command_is_kept_word_for_word_and_may_hold_no_data(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    line = 'jq .ref "$MIMIKIT_FILES"/* && echo ${HOME}'
    assert cli("hooks", "add", "deploy", "--command", line).exit_code == 0
    hook = config.load(tmp_path / ".mimikit").hooks["deploy"]
    assert (hook.does, hook.profile, hook.prompt) == ("task", "command", line)
    refused = cli("hooks", "add", "other", "--command", "echo {body}")
    assert refused.exit_code == 2
    assert "never put into one" in refused.output
    assert list(config.load(tmp_path / ".mimikit").hooks) == ["deploy"]
    assert not (tmp_path / ".mimikit" / paths.SECRETS / "hook-other").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Deploy",), "lower-case letters"),
        (("../x",), "lower-case letters"),
        (("deploy", "--does", "task"), "expected a prompt"),
        (("deploy", "--does", "input", "--prompt", " "), "expected a prompt"),
        (("deploy", "--does", "input", "--prompt", "x", "--profile", "reminder"), "no profile"),
        (("deploy", "--command", "x", "--prompt", "y"), "got both"),
        (("deploy", "--max-bytes", "0"), "max_bytes"),
        (("deploy", "--per-minute", "0"), "per_minute"),
    ],
    ids=str,
)
def test_what_can_not_be_a_webhook_is_refused_and_leaves_nothing(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    cli("init")
    result = cli("hooks", "add", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert listed(cli) == []
    assert not list((tmp_path / ".mimikit" / paths.SECRETS).glob("hook-*"))


def test_one_that_is_not_there_is_named_beside_those_that_are(cli: Cli) -> None:
    cli("init")
    cli("hooks", "add", "deploy")
    for command in ("remove", "test"):
        result = cli("hooks", command, "deploi")
        assert result.exit_code == 2
        assert "deploy" in result.output
    nobody = cli("hooks", "test", "deploy")
    assert "`mimikit up` starts it" in nobody.output


def test_a_task_waits_for_a_webhook(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    made = cli("enqueue", "date", "--command", "--when-hook", "deploy", "--json")
    assert made.exit_code == 0, made.output
    (path,) = (tmp_path / ".mimikit" / paths.TRIGGERS).glob("*.json")
    trigger = json.loads(path.read_text())
    assert trigger["condition"] == {"type": "webhook", "params": {"name": "deploy"}}
    assert "when webhook deploy comes" in cli("triggers", "list").stdout
    refused = cli("enqueue", "date", "--command", "--when-hook", "No Name")
    assert refused.exit_code == 2
    assert "--when-hook" in refused.output
