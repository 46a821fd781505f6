"""Tasks, triggers and queues in the terminal, with and without a consumer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.results import DiffHunk, FileDiff, TaskDiff
from mimikit.tasks.ledger import Ledger
from tests.cli.conftest import Cli, Place, read_line


def task_file(folder: Path, task_id: str) -> Task:
    path = folder / ".mimikit" / "worker" / "queue" / f"{task_id}.json"
    return Task.model_validate_json(path.read_text())


def data(cli: Cli, *arguments: str) -> Any:
    result = cli(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# ---- with nobody at work ---------------------------------------------------------------------


def test_a_queued_task_is_on_disk_as_it_was_asked_for(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    asked = ["--priority", "8", "--timeout", "2m", "--max-attempts", "3", "--title", "T"]
    result = cli("enqueue", "do it", "--profile", "specialist", *asked)
    assert result.exit_code == 0
    task = task_file(tmp_path, result.stdout.strip())
    assert task.prompt == "do it"
    assert (task.profile, task.priority, task.timeout) == ("specialist", 8, 120)
    assert (task.max_attempts, task.title) == (3, "T")
    assert (task.origin, task.notify, task.trace_id) == ("cli", "message", task.id)
    assert "mimikit is not running; `mimikit up` starts it" in result.stderr


def test_show_has_a_summary_of_changes_and_the_diff_on_request(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    task_id = cli("enqueue", "do it").stdout.strip()
    assert "changed no file" in cli("tasks", "show", task_id, "--diff").stdout
    lines = [f"+line {n}" for n in range(200)]
    hunk = DiffHunk(old_start=0, old_lines=0, new_start=1, new_lines=200, lines=lines)
    file = FileDiff(path="new\x1b[31m.txt", action="added", added=200, hunks=[hunk])
    path = tmp_path / ".mimikit" / paths.diff(task_id)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(TaskDiff(id=task_id, files=[file]).to_json())
    shown = cli("tasks", "show", task_id).stdout
    assert "+200 −0" in shown
    assert "+line 9" in shown
    assert "+line 150" not in shown
    assert "all 203 lines" in shown
    assert "\x1b" not in shown
    whole = cli("tasks", "show", task_id, "--diff").stdout.splitlines()
    assert whole[:3] == ["--- /dev/null", "+++ b/new‹U+001B›[31m.txt", "@@ -0,0 +1,200 @@"]
    assert whole[3:] == lines
    told = data(cli, "tasks", "show", task_id, "--diff")
    assert told["files"][0]["added"] == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "--profile", "bogus"], "expected one of deferred, standard, specialist, command"),
        (["x", "--timeout", "9d"], "timeout: Input should be less than or equal to 604800"),
        (["x", "--command", "--profile", "standard"], "expected --command or --profile standard"),
    ],
)
def test_an_invalid_task_is_refused_and_not_stored(
    cli: Cli, tmp_path: Path, arguments: list[str], said: str
) -> None:
    cli("init")
    result = cli("enqueue", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list((tmp_path / ".mimikit" / "worker" / "queue").iterdir())
    assert not list((tmp_path / ".mimikit" / "triggers").glob("*.json"))


def test_waiting_without_a_consumer_fails_and_keeps_the_task(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    result = cli("enqueue", "x", "--wait")
    assert result.exit_code == 1
    assert "expected mimikit to be running" in result.stderr
    assert len(list((tmp_path / ".mimikit" / "worker" / "queue").iterdir())) == 1


@pytest.mark.parametrize(
    "order", [["pause"], ["tasks", "cancel", "my-task"], ["engine", "try", "codex"]]
)
def test_a_command_without_a_consumer_fails_and_is_kept(
    cli: Cli, tmp_path: Path, order: list[str]
) -> None:
    cli("init")
    (tmp_path / ".mimikit" / "worker" / "queue" / "my-task.json").write_text('{"prompt": "x"}')
    result = cli(*order)
    assert result.exit_code == 1
    assert "it is kept until then" in result.stderr
    assert len(list((tmp_path / ".mimikit" / "commands").glob("*.json"))) == 1


def test_reading_commands_quarantine_nothing(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    state = tmp_path / ".mimikit"
    broken = [
        state / "worker" / "queue" / "bad.json",
        state / "inbox" / "bad.json",
        state / "triggers" / "bad.json",
        state / "commands" / "bad.json",
        state / "pending_question.json",
        state / "health.json",
        state / "runtime.json",
    ]
    for path in broken:
        path.write_text("{")
    for command in (["status"], ["tasks", "list"], ["triggers", "list"], ["doctor"], ["logs"]):
        result = cli(*command)
        assert result.exit_code == 0, result.output
        assert not isinstance(result.exception, OSError)
    assert all(path.exists() for path in broken)
    assert not list((state / "corrupt").iterdir())


LONG_AGO = datetime(2026, 3, 1, tzinfo=UTC)


def test_runs_of_a_trigger_are_one_line_and_a_plan_is_none(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    ledger = Ledger(Files(RealDisk(tmp_path / ".mimikit")))
    facts: dict[str, Any] = {"traceId": "t", "title": "date"}
    ledger.write("ended", "p", LONG_AGO, **facts, seat="planner", status="done")
    for number in range(30):
        ledger.write("slot", "g", LONG_AGO, slot=f"{number}", taskId=f"r{number}", title="date")
        ledger.write("ended", f"r{number}", LONG_AGO, **facts, status="done", sourceTriggerId="g")
    ledger.write("ended", "a", LONG_AGO, **facts, status="failed")
    failed, trigger, totals = cli("tasks", "list").stdout.splitlines()[1:]
    assert "date · 30 runs · last " in trigger
    assert "failed" in failed
    assert totals == "2 jobs: 1 done, 1 failed."
    assert "jobs       1 done, 1 failed" in cli("status").stdout


HIDDEN = "\U000e0074\U000e0061\u200b\u200f\u202e\u2066\u2060\x84"


def test_invisible_characters_do_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    name = f"te{HIDDEN}a"
    task_id = cli("enqueue", f"drink {name}", "--title", f"{name} می\u200cخواهم").stdout.strip()
    cli("enqueue", "look", "--title", name, "--every", "2h")
    trigger = next((tmp_path / ".mimikit" / "triggers").glob("*.json")).stem
    (tmp_path / ".mimikit" / "memory" / "tea.md").write_text(f"# {name}\n{name}\n")
    (tmp_path / ".mimikit" / "backlog.md").write_text(f"- [ ] {name}\n")
    shown = ["status"], ["tasks", "list"], ["tasks", "show", task_id], ["triggers", "list"]
    looks = ["triggers", "explain", trigger], ["memory", "show", "memory/tea.md"], ["backlog"]
    for command in (*shown, *looks, ["memory", "search", "tea"], ["tasks", "show", name], [name]):
        for how in ([], ["--json"]):
            result = cli(*command, *how)
            assert not set(HIDDEN) & set(result.output), (command, result.output)
    assert "tea می\u200cخواهم" in cli("tasks", "list").output


# ---- with a consumer -------------------------------------------------------------------------


def test_waiting_prints_the_result_and_nothing_else(on_busy: Cli) -> None:
    result = on_busy("enqueue", "--command", "echo out; echo err >&2", "--wait")
    assert result.exit_code == 0
    assert "out" in result.stdout.split()
    assert result.stderr == ""


def test_a_failed_task_fails_the_wait_and_says_why(on_busy: Cli) -> None:
    result = on_busy("enqueue", "--command", "echo partly; exit 3", "--wait")
    assert result.exit_code == 1
    assert "partly" in result.stdout
    assert "failed: exit code 3" in result.stderr


def test_the_life_of_a_task_can_be_followed(on_busy: Cli, busy: Place) -> None:
    gate = busy.workspace / "gate"
    command = f"echo first; until [ -e {gate} ]; do sleep 0.05; done; echo second"
    task_id = on_busy("enqueue", "--command", command, "--title", "gated").stdout.strip()
    busy.until(lambda: "first" in on_busy("tasks", "output", task_id).stdout, "no output", "runs")
    (listed,) = data(on_busy, "tasks", "list", "--only", "running")["tasks"]
    assert (listed["id"], listed["title"]) == (task_id, "gated")
    busy.until(lambda: "1 running" in on_busy("status").stdout, "expected a running job")
    follower = busy.start("tasks", "output", "-f", task_id)
    gate.touch()
    said, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert said.split() == ["first", "second", "Ended:", "done"]
    text = on_busy("tasks", "show", task_id[-8:]).stdout
    for piece in (task_id, "done", "command, priority 5", "exit code  0", "second", "gated"):
        assert piece in text
    whole = data(on_busy, "tasks", "show", task_id)
    assert (whole["task"]["state"], whole["result"]["exitCode"]) == ("done", 0)


def test_a_running_task_is_canceled_and_done_again(on_busy: Cli, busy: Place) -> None:
    task_id = on_busy("enqueue", "--command", "sleep 600").stdout.strip()
    running = busy.state / "worker" / "running" / f"{task_id}.json"
    busy.until(running.exists, "expected it to run", "worker/running")
    assert on_busy("tasks", "cancel", task_id).exit_code == 0
    busy.until(lambda: not running.exists(), "expected it to end", "worker/running")
    assert data(on_busy, "tasks", "show", task_id)["task"]["state"] == "canceled"
    again = data(on_busy, "tasks", "retry", task_id)
    assert again["ok"]
    new_id = again["resultId"]
    assert data(on_busy, "tasks", "show", new_id)["task"]["retryOf"] == task_id
    assert on_busy("tasks", "cancel", new_id).exit_code == 0


@pytest.fixture
def paused(on_busy: Cli) -> Iterator[None]:
    assert on_busy("pause").stdout == "The queues are paused.\n"
    yield
    assert on_busy("resume").stdout == "The queues go on.\n"


@pytest.mark.usefixtures("paused")
def test_paused_queues_are_seen_everywhere_and_nothing_starts(on_busy: Cli, busy: Place) -> None:
    task_id = on_busy("enqueue", "--command", "true").stdout.strip()
    busy.until(
        lambda: "paused: `mimikit resume` lets them go on" in on_busy("status").stdout,
        "expected the heartbeat to say paused",
    )
    waiter = busy.start("enqueue", "--command", "true", "--wait")
    read_line(waiter, "The queues are paused; `mimikit resume` lets them go on.")
    assert data(on_busy, "tasks", "show", task_id)["task"]["state"] == "queued"
    waiter.kill()


def test_an_engine_is_used_from_now_on_and_after_each_start(on_busy: Cli, busy: Place) -> None:
    config = busy.state / "config.toml"
    assert on_busy("engine", "use", "none").stdout.startswith("No model is used from now on")
    assert config.read_text() == 'engine = "builtin"\n'
    assert on_busy("engine", "use", "auto").exit_code == 0
    assert config.read_text() == 'engine = "auto"\n'
    odd = on_busy("engine", "use", "gemini")
    assert (odd.exit_code, "auto, codex, opencode, local, builtin" in odd.stderr) == (2, True)


def test_a_trigger_is_run_paused_resumed_and_removed(on_busy: Cli, busy: Place) -> None:
    command = ["enqueue", "--command", "echo tick", "--every", "1h", "--title", "ticker: no."]
    trigger_id = on_busy(*command).stdout.strip()
    started = data(on_busy, "triggers", "run", trigger_id)["resultId"]
    result = busy.state / "worker" / "results" / f"{started}.json"
    busy.until(result.exists, "expected a run", "worker/results")
    short = trigger_id[-8:]
    assert on_busy("triggers", "pause", short).stdout == "Paused “ticker: no.”.\n"
    assert "paused" in on_busy("triggers", "list").stdout
    assert on_busy("triggers", "resume", short).exit_code == 0
    text = on_busy("triggers", "show", short).stdout
    for piece in (trigger_id, "active", "every hour", "echo tick"):
        assert piece in text
    assert on_busy("triggers", "remove", short).exit_code == 0
    gone = on_busy("triggers", "show", short)
    assert gone.exit_code == 2
    assert "`mimikit triggers list` shows them" in gone.stderr


@pytest.mark.parametrize("given", ["nosuchtask", "abc", "../../etc/passwd", "x" * 300])
def test_an_unknown_task_is_reported_in_one_line(on_busy: Cli, given: str) -> None:
    result = on_busy("tasks", "show", given)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "expected" in result.stderr


def test_an_ambiguous_id_suffix_is_refused_with_candidates(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    for name in ("one-same", "two-same"):
        path = tmp_path / ".mimikit" / "worker" / "queue" / f"{name}.json"
        path.write_text('{"prompt": "x"}')
    result = cli("tasks", "show", "same")
    assert result.exit_code == 2
    assert "which fits one-same, two-same" in result.stderr


def test_logs_are_shown_by_type_and_followed(on_busy: Cli, busy: Place) -> None:
    on_busy("enqueue", "--command", "true", "--wait")
    lines = [json.loads(line) for line in on_busy("logs", "--json").stdout.splitlines()]
    assert {"task", "audit"} & {line["type"] for line in lines}
    printed = on_busy("logs", "--type", "task", "--json").stdout
    only = [json.loads(line) for line in printed.splitlines()]
    assert {line["type"] for line in only} == {"task"}
    assert len(on_busy("logs", "-n", "2").stdout.splitlines()) == 2
    follower = busy.start("logs", "-f", "-n", "1")
    read_line(follower, "")
    on_busy("pause")
    assert "action=pause" in read_line(follower, "order")
    on_busy("resume")
    assert "action=resume" in read_line(follower, "order")
    follower.kill()
