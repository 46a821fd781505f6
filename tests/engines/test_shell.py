"""Command lines: run as their owner, with output streamed and limited."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.config import LimitSettings, Settings
from mimikit.engine_settings import CommandSettings
from mimikit.engines.base import Outcome
from mimikit.engines.shell import ShellEngine, left_note
from mimikit.sandbox import programs
from tests.support.engine_requests import Desk
from tests.support.runs import Ground, alive, ground, tag


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return ground(tmp_path)


def engine(command: str = "auto", **limits: float) -> ShellEngine:
    settings = CommandSettings.model_validate({"sandbox": command})
    return ShellEngine(Settings(limits=LimitSettings.model_validate(limits), command=settings))


def run(here: Ground, line: str, desk: Desk | None = None, **limits: float) -> Outcome:
    return engine("auto", **limits).run(here.request(line, desk=desk))


def test_the_output_is_the_result(here: Ground) -> None:
    outcome = run(here, "pwd; echo to stderr >&2")
    assert outcome.status == "done"
    assert sorted(outcome.text.splitlines()) == sorted([str(here.workspace), "to stderr"])
    assert (outcome.exit_code, outcome.error, outcome.reason) == (0, None, None)


def test_a_failing_command_has_its_exit_code_and_last_errors(here: Ground) -> None:
    complaints = "; ".join(f"echo complaint {number} >&2" for number in range(9))
    outcome = run(here, f"echo out; {complaints}; exit 3")
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("failed", "error", 3)
    told = [f"complaint {number}" for number in range(4, 9)]
    assert outcome.error == "\n".join(["exit code 3", *told])
    assert "out\n" in outcome.text


def test_output_is_streamed_in_batches(here: Ground) -> None:
    desk = Desk()
    run(here, "for i in $(seq 60); do echo $i; echo e$i >&2; sleep 0.01; done", desk)
    assert {kind for kind, _, _ in desk.events} == {"output"}
    shown = dict.fromkeys(("stdout", "stderr"), "")
    for _, text, data in desk.events:
        shown[data["stream"]] += text
    assert shown["stdout"].split() == [str(number) for number in range(1, 61)]
    assert shown["stderr"].split() == [f"e{number}" for number in range(1, 61)]
    assert 4 <= len(desk.events) < 120


def test_a_long_result_keeps_its_end(here: Ground) -> None:
    desk = Desk()
    outcome = run(here, "seq 200000", desk, result_bytes=5000, output_bytes=200_000)
    assert outcome.text.endswith("\n199999\n200000\n")
    assert outcome.text.startswith("[the first ")
    assert 4900 < len(outcome.text) < 5100
    assert sum(len(text) for _, text, _ in desk.events) <= 200_000
    assert outcome.data["unshownCharacters"] > 1_000_000


def test_an_endless_line_is_ended(here: Ground) -> None:
    outcome = run(here, "yes", output_bytes=500_000, result_bytes=1000)
    assert (outcome.status, outcome.reason) == ("failed", "error")
    assert outcome.error == "ended: it printed more than 5000000 bytes"


@pytest.mark.parametrize(
    ("locale", "words"),
    [("en", "left it running: `top`"), ("zh-CN", "一起结束：`top`"), ("fr", "by `s")],
)
def test_what_is_left_running_is_told_in_the_users_language(
    tmp_path: Path, locale: str, words: str
) -> None:
    (tmp_path / "left").write_text("top\n")
    assert words in left_note(tmp_path / "left", locale)
    assert left_note(tmp_path / "none", locale) == ""


@pytest.mark.parametrize("command", ["auto", "off"])
def test_background_processes_end_with_the_command(here: Ground, command: str) -> None:
    name = tag()
    outcome = engine(command).run(here.request(f"sleep {name} & echo started"))
    assert outcome.status == "done"
    printed, _, told = outcome.text.partition("[")
    assert printed == "started\n"
    assert f"which left it running: `sleep {name}`" in told
    assert f"`systemd-run --user sleep {name}`" in told
    assert alive(name) == []


@pytest.mark.parametrize("command", ["auto", "off"])
@pytest.mark.parametrize("line", ["echo hi | tee >(cat >/dev/null)", "sleep 0.05 & echo hi"])
def test_what_ends_by_itself_is_not_called_left(here: Ground, line: str, command: str) -> None:
    assert engine(command).run(here.request(line)).text == "hi\n"


def test_the_line_is_for_bash(here: Ground) -> None:
    (here.workspace / "x.sh").write_text("name=it")
    line = "source x.sh; [[ $name == it ]] && echo {1..3}"
    assert run(here, line).text == "1 2 3\n"


def test_without_bash_a_line_for_it_is_explained(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = programs.find
    monkeypatch.setattr(programs, "find", lambda name: None if name == "bash" else find(name))
    outcome = run(here, "source x.sh")
    assert "which this machine lacks" in (outcome.error or "")
    assert run(here, "echo hi").text == "hi\n"


@pytest.mark.parametrize("command", ["auto", "off"])
@pytest.mark.parametrize(
    ("line", "said", "code"),
    [
        ("exit 1", "exit code 1", 1),
        ("exit 128", "exit code 128", 128),
        ("kill $$", "ended by SIGTERM", 143),
        ("kill -INT $$", "ended by SIGINT", 130),
    ],
)
def test_the_exit_status_is_the_same_with_and_without_the_sandbox(
    here: Ground, line: str, said: str, code: int, command: str
) -> None:
    outcome = engine(command).run(here.request(line))
    assert (outcome.error, outcome.exit_code) == (said, code)


def test_silence_is_no_reason_to_end_a_line(here: Ground) -> None:
    outcome = engine().run(here.request("sleep 0.5; echo x", idle_timeout_s=0.1))
    assert outcome.status == "done"


@pytest.mark.parametrize(
    ("line", "said"),
    [("echo \0", "null byte"), ("x" * 140_000, "at most 131000 bytes, got 140000; put it into")],
    ids=["null byte", "too long"],
)
def test_a_line_that_cannot_be_run_is_refused_in_words(here: Ground, line: str, said: str) -> None:
    outcome = run(here, line)
    assert (outcome.status, outcome.reason) == ("failed", "error")
    assert outcome.error
    assert said in outcome.error


def test_a_missing_workspace_is_reported(here: Ground) -> None:
    here.state.rmdir()
    here.workspace.rmdir()
    outcome = run(here, "true")
    assert outcome.error == f"expected a folder to work in, got none at {here.workspace}; make it"


def test_where_there_is_no_bubblewrap_a_line_runs_all_the_same(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find_bwrap", lambda: None)
    assert engine().unavailable("worker") is None
    assert run(here, "echo hi").text == "hi\n"


def test_the_line_has_its_owners_environment_without_our_keys(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MIMIKIT_TOKEN", "CODEX_API_KEY", "DEEPSEEK"):
        monkeypatch.setenv(name, "canary")
    owners = ("MY_TOKEN", "JAVA_HOME", "SSH_AUTH_SOCK", "HTTPS_PROXY", "no_proxy", "MIMIKIT_RUN")
    for name in owners:
        monkeypatch.setenv(name, "the owner's")
    endpoint = {"base_url": "http://127.0.0.1:1", "model": "m", "api_key_env": "DEEPSEEK"}
    settings = {"engines": {"deep": endpoint}, "codex": {"env": ["HTTPS_PROXY"]}}
    lines = ShellEngine(Settings.model_validate(settings))
    outcome = lines.run(here.request("cat; env"))
    assert "canary" not in outcome.text
    for name in owners:
        assert f"{name}=the owner's" in outcome.text


def test_a_command_can_read_what_its_owner_can(here: Ground) -> None:
    (here.state / "note").write_text("seen")
    assert run(here, f"cat {here.state}/note").text == "seen"
