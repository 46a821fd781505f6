"""Commands change the settings one after another, and none is lost."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimikit.errors import BadInput, Refused
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command
from mimikit.supervisor import settings_writer
from mimikit.tasks import queue
from tests.support.memory_disk import MemoryDisk

NOW = datetime(2026, 11, 28, tzinfo=UTC)
ENDPOINT: dict[str, Any] = {"base_url": "http://127.0.0.1:11434/v1", "model": "m1"}


@pytest.fixture
def files() -> Files:
    made = Files(MemoryDisk())
    made.make_folders()
    return made


def command(action: str, target: str = "", number: int = 1, **args: Any) -> Command:
    given = {"action": action, "target": target, "args": args}
    return Command.model_validate({"id": f"cmd-{number}", "created_at": NOW, **given})


def written(files: Files) -> dict[str, Any]:
    return tomllib.loads((files.read(paths.CONFIG) or b"").decode())


def test_changes_are_applied_one_after_another(files: Files) -> None:
    settings_writer.apply(files, command("engine_set", "deep", **ENDPOINT))
    settings_writer.apply(files, command("engine_use", "deep", first=True))
    settings_writer.apply(files, command("budget_set", daily_tokens=9000))
    settings_writer.apply(files, command("engine_use", "codex deep", seat="teller"))
    found = written(files)
    assert found["engines"]["deep"] == ENDPOINT
    assert found["engine"] == ["deep", "auto"]
    assert found["budget"] == {"daily_tokens": 9000}
    assert found["roles"]["teller"] == {"engines": ["codex", "deep"]}


def test_comments_and_other_settings_are_kept(files: Files) -> None:
    files.write(paths.CONFIG, b"# mine\nmax_concurrency = 5 # five\n")
    settings_writer.apply(files, command("budget_set", daily_tokens=1))
    assert (files.read(paths.CONFIG) or b"").startswith(b"# mine\nmax_concurrency = 5 # five\n")


@pytest.mark.parametrize(
    "given",
    [
        command("engine_set", "deep", **ENDPOINT),
        command("engine_use", "builtin"),
        command("engine_remove", "deep"),
        command("budget_set", daily_tokens=5),
        command("notify_set", quiet="22:00-08:00"),
        command("retention_set", days=7),
    ],
    ids=lambda given: given.action,
)
def test_a_command_that_is_applied_again_changes_nothing_more(files: Files, given: Command) -> None:
    settings_writer.apply(files, command("engine_set", "deep", **ENDPOINT))
    settings_writer.apply(files, given)
    before = files.read(paths.CONFIG)
    settings_writer.apply(files, given)
    assert files.read(paths.CONFIG) == before


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (command("engine_set", "Bad Name", **ENDPOINT), BadInput, "expected a free name"),
        (command("engine_set", "deep", base_url="ftp://x", model="m"), BadInput, "base_url"),
        (command("engine_use", "nobody"), BadInput, "engine: expected one of"),
        (command("engine_use", "codex", seat="nobody"), BadInput, "expected one of teller"),
        (command("budget_set", daily_tokens=-1), BadInput, "budget.daily_tokens"),
        (command("retention_set", days=0), BadInput, "retention.days"),
        (command("notify_set", quiet="at night"), BadInput, "notify.quiet"),
        (command("self_awake_set", checks=["rm x"]), BadInput, "expected some of enabled"),
        (
            command("engine_set", "d", api_key_env="K", **ENDPOINT).but(remote=True),
            Refused,
            "variable",
        ),
    ],
)
def test_an_invalid_setting_is_refused_and_nothing_is_written(
    files: Files, given: Command, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        settings_writer.apply(files, given)
    assert files.read(paths.CONFIG) is None


def test_removing_an_endpoint_removes_its_key(files: Files) -> None:
    settings_writer.apply(
        files, command("engine_set", "deep", api_key_file="engine-deep.key", **ENDPOINT)
    )
    files.write(f"{paths.SECRETS}/engine-deep.key", b"k\n")
    settings_writer.apply(files, command("engine_remove", "deep"))
    assert not files.exists(f"{paths.SECRETS}/engine-deep.key")


def test_waiting_commands_are_settled_in_their_order_and_a_bad_one_stops_no_other(
    files: Files,
) -> None:
    def later(seconds: int) -> datetime:
        return NOW + timedelta(seconds=seconds)

    given = [
        command("engine_use", "nobody", 2).but(created_at=later(1)),
        command("engine_set", "deep", 3, **ENDPOINT).but(created_at=later(0)),
        command("pause", "", 4),
        command("engine_use", "deep", 1).but(created_at=later(2)),
    ]
    for one in given:
        queue.submit_command(files, one)
    settings_writer.apply_waiting(files, later(3))
    assert written(files)["engine"] == "deep"
    outcomes = {number: queue.command_result(files, f"cmd-{number}") for number in (1, 2, 3, 4)}
    assert {n: found and found.ok for n, found in outcomes.items()} == {
        1: True,
        2: False,
        3: True,
        4: None,
    }
    assert [one.action for one in queue.waiting_commands(files)] == ["pause"]
