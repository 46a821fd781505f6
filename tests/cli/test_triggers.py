"""Triggers in the terminal: create by options, explain, edit, remove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mimikit.protocol.models import Command
from mimikit.protocol.triggers import Trigger
from tests.cli.conftest import Cli


def triggers_in(folder: Path) -> dict[str, Trigger]:
    return {
        path.stem: Trigger.model_validate_json(path.read_text())
        for path in (folder / ".mimikit" / "triggers").glob("*.json")
    }


def order_in(folder: Path) -> Command:
    (path,) = (folder / ".mimikit" / "commands").glob("*.json")
    return Command.model_validate_json(path.read_text())


def data(cli: Cli, *arguments: str) -> Any:
    result = cli(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def made(cli: Cli, *arguments: str) -> str:
    """The id of a trigger or task that `enqueue` makes."""
    result = cli("enqueue", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


# ---- made by options -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "schedule", "said"),
    [
        (
            ["--cron", "0 9 * * 1-5", "--tz", "Asia/Shanghai"],
            {"cron": "0 9 * * 1-5", "timezone": "Asia/Shanghai"},
            "Runs every weekday at 09:00 (Asia/Shanghai), first in ",
        ),
        (["--every", "2h"], {"interval": 7200}, "Runs every 2 hours, first in 2 hours."),
        (
            ["--at", "2091-01-02 09:00", "--tz", "Asia/Shanghai"],
            {"runAt": "2091-01-02T01:00:00.000Z", "timezone": "Asia/Shanghai"},
            "Runs once on Tuesday, 2091-01-02 at 09:00 (Asia/Shanghai), in ",
        ),
        (
            ["--every", "1h", "--times", "3", "--lateness", "10m"],
            {"interval": 3600, "times": 3, "lateness": 600},
            "Runs every hour, 3 times in all, not if more than 10 minutes late, first in 1 hour.",
        ),
        (
            [
                "--cron", "0 9 * * *", "--tz", "UTC", "--starting", "2091-01-02", "--until",
                "2091-02-03",
            ],
            {
                "cron": "0 9 * * *",
                "timezone": "UTC",
                "starting": "2091-01-02T00:00:00.000Z",
                "until": "2091-02-03T23:59:59.000Z",
            },
            "Runs every day at 09:00 (UTC), starting Tuesday, 2091-01-02 at 00:00 (UTC), until ",
        ),
    ],
)  # fmt: skip
def test_a_schedule_creates_a_trigger_and_is_described(
    cli: Cli, tmp_path: Path, options: list[str], schedule: dict[str, Any], said: str
) -> None:
    cli("init")
    result = cli("enqueue", "--command", "date", *options)
    assert result.exit_code == 0, result.output
    trigger = triggers_in(tmp_path)[result.stdout.strip()]
    assert trigger.schedule is not None
    found = trigger.schedule.to_dict()
    assert {name: value for name, value in found.items() if value is not None} == schedule
    assert said in result.stderr
    assert ("The next times: " in result.stderr) == ("runAt" not in schedule)
    assert (trigger.origin, trigger.profile, trigger.once) == ("cli", "command", False)


def test_a_duration_is_a_time_from_now(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    trigger_id = made(cli, "x", "--at", "10m")
    trigger = triggers_in(tmp_path)[trigger_id]
    assert trigger.schedule is not None
    assert trigger.schedule.run_at is not None
    assert (trigger.schedule.run_at - trigger.created_at).total_seconds() == 600
    assert trigger.type == "scheduled"


def file_changed(path: str) -> dict[str, Any]:
    return {"type": "file_changed", "params": {"path": path}}


def file_exists(path: str) -> dict[str, Any]:
    return {"type": "file_exists", "params": {"path": path}}


def task_done(id_: str) -> dict[str, Any]:
    return {"type": "task_done", "params": {"taskId": id_}}


@pytest.mark.parametrize(
    ("options", "condition", "more"),
    [
        (["--when-changed", "src/**/*.py"], file_changed("src/**/*.py"), {}),
        (["--when-changed", "~tilde.txt"], file_changed("~tilde.txt"), {}),
        (["--when-exists", "go"], file_exists("go"), {"once": False, "cooldown": None}),
        (["--when-exists", "go", "--cooldown", "10m"], file_exists("go"), {"cooldown": 600}),
        (["--when-exists", "go", "--once"], file_exists("go"), {"once": True}),
        (
            ["--when-exists", "go", "--when-changed", "a"],
            {"type": "and", "params": {"conditions": [file_changed("a"), file_exists("go")]}},
            {"once": False},
        ),
    ],
)
def test_events_make_a_trigger(
    cli: Cli, tmp_path: Path, options: list[str], condition: dict[str, Any], more: dict[str, Any]
) -> None:
    cli("init")
    result = cli("enqueue", "--command", "make", *options)
    assert result.exit_code == 0, result.output
    trigger = triggers_in(tmp_path)[result.stdout.strip()]
    assert trigger.condition is not None
    assert trigger.condition.to_dict() == condition
    assert {name: getattr(trigger, name) for name in more} == more
    assert "Runs when " in result.stderr


def test_steps_are_chained_by_the_end_of_an_id(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    first = made(cli, "build", "--title", "Build")
    second = made(cli, "test", "--after", first[-8:], "--title", "Test")
    result = cli("enqueue", "tell", "--after", second[-8:], "--after", first, "--after", first)
    assert "Runs when “Test” is done and “Build” is done, once." in result.stderr
    third = triggers_in(tmp_path)[result.stdout.strip()]
    assert third.condition is not None
    both = {"type": "and", "params": {"conditions": [task_done(second), task_done(first)]}}
    assert third.condition.to_dict() == both
    assert (third.once, third.trace_id) == (True, first)
    shown = data(cli, "tasks", "show", first)["chain"]
    assert [(step["title"], step["depth"]) for step in shown] == [
        ("Build", 0),
        ("Test", 1),
        ("tell", 2),
    ]
    said = cli("tasks", "show", first).stdout
    assert "    Test    after Build: when done\n" in said
    assert "      tell  after Test: when done; after Build: when done\n" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "1m", "--at", "9pm"], "expected one of --at, --every, --cron; got --at and"),
        (
            ["--cron", "* * * * *", "--after", "some-task"],
            "expected a time or a condition, got --cron and --after",
        ),
        (["--tz", "UTC"], "expected --cron or --at with --tz, got neither"),
        (["--cron", "0 9 * * *", "--tz", "Mars/X"], "--tz: expected an IANA time zone"),
        (["--once"], "expected --when-changed, --when-exists or --after with --once, got none"),
        (["--cooldown", "5m"], "with --cooldown, got none of them"),
        (["--cooldown", "5m", "--when-exists", "a", "--once"], "expected --once or --cooldown"),
        (["--wait", "--after", "some-task"], "expected --after or --wait, got both"),
        (["--at", "whenever"], "--at: expected a time such as `tomorrow 9:00`"),
        (["--at", "2020-01-01 09:00"], "--at: expected a time to come, got one on Wednesday"),
        (["--cron", "9 o'clock"], "--cron: expected minute hour day month weekday"),
        (["--when-changed", "../x"], "--when-changed: expected a path without `..`, got '../x'"),
        (["--after", "no-such-task"], "expected the id of a task or trigger, or its last 8"),
    ],
)
def test_conflicting_options_are_refused_in_one_line(
    cli: Cli, tmp_path: Path, options: list[str], said: str
) -> None:
    cli("init")
    (tmp_path / ".mimikit" / "worker" / "queue" / "some-task.json").write_text('{"prompt": "x"}')
    result = cli("enqueue", "x", *options)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("mimikit: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert triggers_in(tmp_path) == {}
    assert len(list((tmp_path / ".mimikit" / "worker" / "queue").iterdir())) == 1


# ---- looking ---------------------------------------------------------------------------------


def test_explain_reports_why_a_new_trigger_waits(cli: Cli) -> None:
    cli("init")
    task_id = made(cli, "x", "--title", "Build")
    trigger_id = made(cli, "y", "--after", task_id)
    text = cli("triggers", "explain", trigger_id[-8:]).stdout
    for piece in (
        trigger_id,
        "waits",
        "It has not been evaluated yet.",
        "It runs when “Build” is done, once.",
        "mimikit is not running",
        "? “Build” is done: not evaluated yet",
    ):
        assert piece in text
    whole = data(cli, "triggers", "explain", trigger_id)
    assert set(whole) == {"state", "headline", "lines", "nodes", "slots"}
    assert whole["nodes"][0]["words"]["zh"] == "「Build」完成"
    assert "now        It has not been evaluated yet." in cli("triggers", "show", trigger_id).stdout
    assert "when “Build” is done" in cli("triggers", "list").stdout


def test_slots_are_a_table_also_for_a_deleted_trigger(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    lines = [
        {"event": "trigger_created", "at": "2026-01-02T03:00:00.000Z", "id": "trig-gone"},
        {
            "event": "slot", "at": "2026-01-02T03:04:05.000Z", "id": "trig-gone", "slot": "a",
            "state": "skipped", "reason": "paused",
        },
        {
            "event": "slot", "at": "2026-01-02T04:04:05.000Z", "id": "trig-gone", "slot": "b",
            "state": "ran", "taskId": "my-run", "missed": 3,
            "plannedAt": "2026-01-02T04:00:00.000Z",
        },
    ]  # fmt: skip
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (tmp_path / ".mimikit" / "tasks" / "2026-01.jsonl").write_text(text)
    for name in ("trig-gone", "gone"):
        said = cli("triggers", "explain", name).stdout
        assert "and is gone." in said
        head, ran, missed, skipped = (line.split() for line in said.splitlines()[-4:])
        assert head == ["AT", "STATE", "TASK", "WHY"]
        assert ran[2:5] == ["ran", "my-run", "planned"]
        assert (missed[2:4], missed[-2:]) == (["missed", "-"], ["3", "later"])
        assert skipped[2:] == ["skipped", "-", "the", "trigger", "was", "paused"]
    slots = data(cli, "triggers", "explain", "gone")["slots"]
    assert [slot["state"] for slot in slots] == ["ran", "missed", "skipped"]
    unknown = cli("triggers", "explain", "trig-other")
    assert unknown.exit_code == 2
    assert "expected the id of a trigger" in unknown.stderr


# ---- changing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "args"),
    [
        (["--title", "New", "--priority", "9"], {"title": "New", "priority": 9}),
        (["--timeout", "2m", "--overlap", "queue"], {"timeout": 120, "overlap": "queue"}),
        (["--no-once"], {"once": False}),
        (["--when-changed", "b"], {"condition": file_changed("b")}),
        (
            ["--every", "5m"],
            {"schedule": {"interval": 300, "cron": None, "timezone": None, "runAt": None}},
        ),
    ],
)
def test_an_edit_is_a_command_with_the_new_fields(
    cli: Cli, tmp_path: Path, options: list[str], args: dict[str, Any]
) -> None:
    cli("init")
    trigger_id = made(cli, "x", "--when-changed", "a")
    result = cli("triggers", "edit", trigger_id[-8:], *options)
    assert result.exit_code == 1
    assert "it is kept until then" in result.stderr
    order = order_in(tmp_path)
    assert (order.action, order.target, order.args) == ("trigger_edit", trigger_id, args)


def test_a_new_file_condition_says_how_many_files_match(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    (tmp_path / "Invoice [2026].pdf").write_text("x")
    for name in ("a.ts", "b.tsx", "c.js"):
        (tmp_path / name).write_text("x")
    for path, count in (("*.{ts,tsx}", 2), ("Invoice [2026].pdf", 1), ("none/*", 0)):
        result = cli("enqueue", "x", "--when-changed", path)
        assert f"Files that match now: {count}." in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "expected an option that says what to change, got none"),
        (["--profile", "root"], "profile: expected one of deferred, standard"),
        (["--prompt", " "], "prompt: expected some text, got only blanks"),
        (["--tz", "UTC"], "--tz: expected a trigger with a time of day, got one without"),
        (["--after", "SELF"], "condition: expected no cycle, got "),
    ],
)
def test_an_invalid_edit_is_refused_without_a_command(
    cli: Cli, tmp_path: Path, options: list[str], said: str
) -> None:
    cli("init")
    trigger_id = made(cli, "x", "--when-changed", "a")
    meant = [trigger_id if option == "SELF" else option for option in options]
    result = cli("triggers", "edit", trigger_id, *meant)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert not list((tmp_path / ".mimikit" / "commands").glob("*.json"))


def test_a_broken_file_is_reported(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    (tmp_path / ".mimikit" / "triggers" / "bad.json").write_text("{")
    assert "bad" in cli("triggers", "list").stdout
    assert "it was never valid" in cli("triggers", "show", "bad").stdout
    assert "Its file is broken" in cli("triggers", "explain", "bad").stdout
    assert "its file" not in cli("triggers", "edit", "bad", "--title", "x").stdout
    outside = cli("triggers", "remove", "../config")
    assert outside.exit_code == 2


# ---- with a consumer -------------------------------------------------------------------------


# ---- reminders -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "2h"], "Reminds you every 2 hours, first in 2 hours."),
        (
            ["--at", "2091-01-02 09:00", "--tz", "Asia/Shanghai"],
            "Reminds you once on Tuesday, 2091-01-02 at 09:00 (Asia/Shanghai), in ",
        ),
    ],
)
def test_a_reminder_is_created_and_described(
    cli: Cli, tmp_path: Path, options: list[str], said: str
) -> None:
    cli("init")
    result = cli("remind", "5 - 3, **mum**", *options)
    assert result.exit_code == 0, result.output
    trigger = triggers_in(tmp_path)[result.stdout.strip()]
    assert (trigger.profile, trigger.prompt) == ("reminder", "5 - 3, **mum**")
    assert trigger.notify == "message"
    assert said in result.stderr
    assert "reminder: 5 - 3, **mum**" in cli("triggers", "list").stdout
    shown = cli("triggers", "show", trigger.id).stdout
    assert "reminds you" in shown
    assert "profile" not in shown
    assert "It reminds you" in cli("triggers", "explain", trigger.id).stdout
