"""What codex prints is understood, whatever it is; failures are known by their words."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.config import Settings
from mimikit.engine_settings import CodexSettings
from mimikit.engines import process
from mimikit.engines.base import Failed
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.codex.exec_events import TurnReader, usage_in_rollout
from mimikit.engines.codex.failures import failure_of
from mimikit.engines.limits import retry_at
from mimikit.protocol.models import Usage
from tests.support.engine_requests import Desk
from tests.support.runs import ground

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def read(*events: object) -> tuple[TurnReader, Desk]:
    desk = Desk()
    turn = TurnReader(desk.event)
    for event in events:
        turn.take_line(json.dumps(event).encode())
    return turn, desk


def item(kind: str, state: str = "completed", number: str = "item_0", **more: object) -> object:
    return {"type": f"item.{state}", "item": {"id": number, "type": kind, **more}}


def test_the_last_message_is_the_answer() -> None:
    turn, desk = read(
        {"type": "thread.started", "thread_id": "t-1"},
        item("agent_message", text="first"),
        item("agent_message", text="\x1b[31mlast\x1b[0m"),
        {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 2}},
    )
    assert (turn.session_id, turn.message, turn.completed) == ("t-1", "last", True)
    assert turn.usage == Usage(input_tokens=9, output_tokens=2)
    assert [text for _, text, _ in desk.events] == ["first", "last"]


def test_a_warning_and_a_retry_are_not_the_end() -> None:
    turn, desk = read(
        item("error", message="no metadata"), {"type": "error", "message": "Reconnecting... 1/2"}
    )
    assert turn.failed is None
    assert [kind for kind, _, _ in desk.events] == ["note", "note"]


def test_a_failure_is_told_once() -> None:
    turn, desk = read(
        {"type": "error", "message": "M"}, {"type": "turn.failed", "error": {"message": "M"}}
    )
    assert turn.failed == "M"
    assert desk.events == [("error", "M", {})]


def test_it_is_busy_while_a_command_or_a_tool_runs() -> None:
    turn, _ = read(item("command_execution", "started", command="ls"))
    assert turn.working
    turn.take_line(json.dumps(item("command_execution", command="ls", exit_code=0)).encode())
    assert (turn.working, turn.acted) == (set(), True)


def test_commands_tools_and_files_are_told_as_they_happen() -> None:
    failed: Any = {"status": "failed", "exit_code": 3, "aggregated_output": "x" * 9000}
    _, desk = read(
        item("command_execution", "started", command="ls", status="in_progress"),
        item("command_execution", command="ls", **failed),
        item("mcp_tool_call", tool="reply", status="failed", error={"message": "closed"}),
        item("file_change", changes=[{"path": "a.txt", "kind": "add"}, {"path": 7}, "x"]),
        item("reasoning", text="thinking"),
        item("web_search", query="weather"),
    )
    kinds = [kind for kind, _, _ in desk.events]
    assert kinds == ["command", "command", "tool", "file", "note", "tool"]
    assert desk.events[1][2]["exitCode"] == 3
    assert len(desk.events[1][2]["output"]) == 4000
    assert desk.events[2][2]["error"] == "closed"
    assert desk.events[3][1:] == ("a.txt", {"kind": "add"})


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "item", "id", "text", "changes", "usage", "error"]),
                inner | st.sampled_from(["item.completed", "turn.completed", "file_change"]),
                max_size=5,
            )
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode())
)
def test_garbage_is_passed_over(line: bytes) -> None:
    TurnReader(Desk().event).take_line(line)


def test_the_last_count_in_a_rollout_is_what_was_used() -> None:
    counts = [{"input_tokens": number, "output_tokens": 1} for number in (5, 9)]
    lines = [
        json.dumps({"payload": {"type": "token_count", "info": {"total_token_usage": count}}})
        for count in counts
    ]
    lines += ['{"payload": {"info": null, "x": "total_token_usage"}}', "total_token_usage {"]
    assert usage_in_rollout([line.encode() for line in lines]).input_tokens == 9
    assert usage_in_rollout([]) == Usage()


@pytest.mark.parametrize(
    ("said", "want"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", "limited"),
        ("You’ve hit your usage limit. Try again at 10:26 PM.", "limited"),
        ("unexpected status 401 Unauthorized: x, url: y", "logged_out"),
        ("Your access token could not be refreshed: refresh token was", "logged_out"),
        ("Connection failed: error sending request", "unreachable"),
        ("We’re currently experiencing high demand", "broken"),
        ("stream disconnected before completion: stream closed", "broken"),
        ("Codex ran out of room in the model's context window.", None),
        ("", None),
    ],
)
def test_the_kind_of_failure_is_read_from_its_words(said: str, want: str | None) -> None:
    assert failure_of(said, NOW).want == want


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("Please try again in 11.5s.", timedelta(seconds=11.5)),
        ("try again in 6m0s", timedelta(minutes=6)),
        ("Try again in 3 days 2 hours 1 minute.", timedelta(days=3, hours=2, minutes=1)),
        ("try again in 99999999 days", timedelta(days=366)),
    ],
)
def test_a_wait_is_counted_from_now(said: str, after: timedelta) -> None:
    assert retry_at(said, NOW, UTC) == NOW + after


@pytest.mark.parametrize(
    ("said", "zone", "at"),
    [
        ("or try again at 10:26 PM.", "UTC", datetime(2026, 11, 21, 22, 26, tzinfo=UTC)),
        ("Try again at 9:00 AM.", "UTC", datetime(2026, 11, 22, 9, 0, tzinfo=UTC)),
        ("Try again at 9:00 PM.", "Asia/Shanghai", datetime(2026, 11, 21, 13, 0, tzinfo=UTC)),
        (
            "Try again at Nov 25th, 2026 1:51 AM.",
            "America/New_York",
            datetime(2026, 11, 25, 6, 51, tzinfo=UTC),
        ),
    ],
)
def test_a_clock_time_is_read_in_the_machines_zone(said: str, zone: str, at: datetime) -> None:
    assert retry_at(said, NOW, ZoneInfo(zone)) == at


@pytest.mark.parametrize(
    "said", ["Try again later.", "try again at 99:99 PM", "try again at Foo 45th, 2026 1:00 AM", ""]
)
def test_a_time_that_can_not_be_read_is_none(said: str) -> None:
    assert retry_at(said, NOW, UTC) is None


# ---- its login


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodexSettings:
    """An installed codex with a home, and no login there."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.delenv("CODEX_API_KEY", raising=False)
    (program := tmp_path / "codex").touch(0o755)
    codex_cli.recheck_login()
    return CodexSettings(path=str(program), home=str(tmp_path))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ((0, "Logged in using ChatGPT"), None),
        ((1, "Not logged in"), "no /"),
        (
            (1, "Error: Platform secure storage failure"),
            "secure storage failure; run `codex login`",
        ),
        ((None, ""), "no answer within 5 s; unlock the keyring"),
    ],
)
def test_without_a_file_codex_says_whether_it_is_logged_in(
    settings: CodexSettings,
    monkeypatch: pytest.MonkeyPatch,
    status: tuple[int | None, str],
    words: str | None,
) -> None:
    asked: list[tuple[str, ...]] = []

    def output(argv: tuple[str, ...], **_: object) -> tuple[int | None, str, str]:
        if "--version" in argv:
            return 0, "codex-cli 0.169.0", ""
        asked.append(argv)
        return status[0], "", status[1]

    monkeypatch.setattr(process, "output", output)
    home = Path(settings.home or "")
    (home / "config.toml").write_text('cli_auth_credentials_store = "keyring"')
    engine = CodexEngine(Settings(codex=settings), home / "state")
    monkeypatch.setattr(engine._sandbox, "unavailable", lambda: None)
    monkeypatch.setattr(engine._talk, "unavailable", lambda: None)
    found = [engine.unavailable(role) for role in ("teller", "teller", "worker")]
    assert found[0] == found[1]
    assert words in (found[0] or "") if words else found[0] is None
    assert words is not None or "hides from Workers: set" in (found[2] or "")
    assert len(asked) == 1
    place = codex_cli.find(settings)
    assert place is not None
    key = 'cli_auth_credentials_store="keyring"'
    assert key in asked[0]
    assert key in codex_cli.server_argv(settings, place)
    engine.has_recovered("logged_out")
    assert len(asked) == 1, "it is kept"
    engine.recheck()
    engine.unavailable()
    assert len(asked) == 2
    (home / "auth.json").touch()
    engine.recheck()
    assert [engine.unavailable(role) for role in ("teller", "worker")] == [None, None]
    assert len(asked) == 2


# ---- a Worker's program is killed


@pytest.mark.parametrize(
    ("code", "session"), [(-9, "t-1"), (137, "t-1"), (-9, None)], ids=["itself", "its box", "early"]
)
def test_a_killed_worker_is_resumed_where_its_session_is_known(
    settings: CodexSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    session: str | None,
) -> None:
    here, argvs, prompts = ground(tmp_path / "root"), list[list[str]](), list[bytes]()
    begun = [{"type": "thread.started", "thread_id": session}, item("command_execution")]
    ended = [item("agent_message", text="done"), {"type": "turn.completed"}]

    def run(program: process.Program, take: process.OnOutput, *_: object, **__: object) -> Any:
        argvs.append([*program.argv])
        prompts.append(program.stdin)
        is_first = len(argvs) == 1
        for event in begun[: 2 if session else 0] + ([] if is_first else ended):
            take("stdout", json.dumps(event).encode() + b"\n")
        return process.ProgramOutcome(code if is_first else 0, None)

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(process, "output", lambda *_, **__: (0, "codex-cli 0.169.0", ""))
    engine = CodexEngine(Settings(codex=settings), here.state)
    (tmp_path / "auth.json").touch()
    for name, answer in {"unavailable": None, "why_unsafe": None, "commits_in": []}.items():
        monkeypatch.setattr(engine._sandbox, name, lambda *_, _answer=answer, **__: _answer)
    monkeypatch.setattr(engine._sandbox, "argv", lambda argv, _box: argv)
    sessions: list[str] = []
    request = here.request("go")
    request = replace(request, callbacks=replace(request.callbacks, on_session=sessions.append))
    killed = engine.run(request)
    assert isinstance(killed, Failed)
    assert (killed.want, killed.session_id) == ("broken", session)
    assert killed.acted == (session is not None)
    resume = sessions[-1] if sessions else None
    again = engine.run(replace(request, resume=resume))
    assert (again.status, again.session_id, resume) == ("done", session, session)
    assert argvs[1][-3:] == ["resume", "t-1", "-"] if session else "resume" not in argvs[1]
    assert (b"You worked on the task" in prompts[1]) == (session is not None)
