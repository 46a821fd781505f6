"""Every error is one line with a hint, and a matching exit code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mimikit.__main__ import SECTIONS
from mimikit.cli import client, status
from mimikit.cli.frame import CliContext
from tests.cli.conftest import Cli, Place, argv

NAMES = [name for part in SECTIONS.values() for name in part]


def check_line(line: str) -> None:
    assert line.startswith("mimikit: ")
    assert line.count("\n") == 1
    assert "Traceback" not in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["xyzzy"], "expected a command, got 'xyzzy'; `mimikit --help` lists them"),
        (["statsu"], "did you mean `mimikit status`?"),
        (["enqueue"], "enqueue: expected PROMPT, got nothing; `mimikit enqueue --help`"),
        (["enqueue", "x", "--titel", "t"], "got --titel; did you mean --title?"),
        (["enqueue", "x", "--every", "soon"], "--every: expected a duration such as 90s"),
        (["enqueue", "x", "--every", "1m", "--wait"], "expected --every or --wait, got both"),
        (["tasks", "list", "--only", "x"], "expected one of queued, running, asking, done, failed"),
        (["consumer", "--workers-only"], "--workers-only is not supported yet"),
        (["status"], "no state folder at"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    cli: Cli, arguments: list[str], said: str
) -> None:
    result = cli(*arguments)
    assert result.exit_code == 2
    check_line(result.stderr)
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", NAMES)
def test_every_command_tells_its_own_use(cli: Cli, name: str) -> None:
    result = cli(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: mimikit {name}")


def test_the_help_lists_every_command_once(cli: Cli) -> None:
    listed = [line.split()[0] for line in cli("--help").stdout.splitlines() if line[:2] == "  "]
    assert [name for name in listed if name in NAMES] == NAMES


def test_an_unexpected_error_is_one_line_with_a_traceback_in_the_log(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("init")

    def fail(*_: object, **__: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(status, "overview", fail)
    result = cli("status")
    assert result.exit_code == 1
    check_line(result.stderr)
    assert "unexpected KeyError: 'surprise' (at test_errors.py:" in result.stderr
    assert "details in .mimikit/log.jsonl" in result.stderr
    lines = (tmp_path / ".mimikit" / "log.jsonl").read_text().splitlines()
    logged = json.loads(lines[-1])
    assert (logged["type"], logged["event"]) == ("error", "cli_fault")
    assert "overview" in logged["traceback"]


def test_an_unexpected_error_without_a_state_folder_creates_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("surprise")

    monkeypatch.setattr(CliContext, "open", fail)
    result = cli("pause")
    assert result.exit_code == 1
    assert "please report it" in result.stderr
    assert not (tmp_path / ".mimikit").exists()


def test_bad_settings_name_the_key_and_fail_every_command(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    (tmp_path / ".mimikit" / "config.toml").write_text("[web]\nprot = 1\n")
    result = cli("status")
    assert result.exit_code == 1
    check_line(result.stderr)
    assert "web.prot is not a setting; did you mean web.port?" in result.stderr


def test_ctrl_c_ends_a_command_silently(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("init")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "submit_command", interrupt)
    result = cli("pause")
    assert result.exit_code == 130
    assert result.stderr.strip() == ""


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_global_options_may_stand_before_or_after_the_command(
    cli: Cli, tmp_path: Path, before: bool
) -> None:
    folder = tmp_path / "elsewhere"
    words = ["--state", str(folder), "init"] if before else ["init", "--state", str(folder)]
    assert cli(*words).exit_code == 0
    assert (folder / "inbox").is_dir()
    assert not (tmp_path / ".mimikit").exists()


def test_colour_is_for_terminals_and_not_where_it_is_unwanted(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("init")
    assert "\x1b[" in cli("status", color=True).stdout
    assert "\x1b[" not in cli("status").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in cli("status", color=True).stdout


def test_a_reader_that_leaves_early_is_no_error(place: Place) -> None:
    place.run("init")
    process = place.start("doctor")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(30) in (0, 1)


def test_a_closed_output_is_no_error(place: Place) -> None:
    place.run("init")
    ended = subprocess.run(
        ["bash", "-c", '"$@" >&-', "-", *argv("status")],
        capture_output=True, check=False, cwd=place.workspace, env=place.environment,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")
