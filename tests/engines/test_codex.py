"""The real codex program, against a model server that says what the test tells it to."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.engine_settings import CodexSettings
from mimikit.engines.base import UPSTREAM, CancelToken, Outcome
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import _ARTIFACTS
from mimikit.sandbox import programs
from tests.support.codex_ground import Here, codex_ground
from tests.support.engine_requests import Desk, task
from tests.support.fake_llm import FakeLLM, tool_names
from tests.support.runs import alive, tag, zombies

pytestmark = [pytest.mark.codex, pytest.mark.needs_platform("linux")]

MODELS = ["gpt-5.5", "gpt-6-luna"]
"""One that is offered functions, and one that writes programs that call them."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    made = codex_ground(tmp_path, monkeypatch)
    yield made
    made.close()


# ---- the Worker --------------------------------------------------------------------------------


def work(here: Here, line: str, desk: Desk | None = None, **fields: Any) -> tuple[Outcome, str]:
    """Let a Worker run a shell line; gives the outcome and what the model was told of it."""
    with FakeLLM([{"shell": line}, {"text": "it is done"}]) as llm:
        outcome = here.engine(llm).run(here.ask("do it", desk, **fields))
        return outcome, json.dumps(llm.requests[-1]["input"][-1])


def test_everyday_work_is_told_our_words_alone_and_a_specialists_codexs_too(here: Here) -> None:
    told = dict[str, str]()
    for profile in ("standard", "specialist"):
        own = replace(here.ask("do it").input, task=task("do it", profile=profile))
        with FakeLLM([{"text": "done"}]) as llm:
            here.engine(llm).run(here.ask("do it", input=own))
            told[profile] = json.dumps(llm.requests[0])
            assert ("request_user_input" in tool_names(llm.requests[0])) == (profile != "standard")
    assert all("You are the role." in text for text in told.values())
    assert ["You are Codex" in text for text in told.values()] == [False, True]
    assert len(told["standard"]) * 3 < len(told["specialist"])


def test_a_worker_reads_but_does_not_change_what_it_builds_on(here: Here) -> None:
    upstream = here.scratch / UPSTREAM
    upstream.mkdir()
    (upstream / "earlier.md").write_text("the earlier result")
    _, seen = work(here, f"cat {upstream}/earlier.md; echo x >> {upstream}/earlier.md")
    assert "the earlier result" in seen
    assert (upstream / "earlier.md").read_text() == "the earlier result"


def test_a_session_is_taken_up_again_and_only_the_new_is_counted(here: Here) -> None:
    with FakeLLM([{"text": "first"}]) as llm:
        first = here.engine(llm).run(here.ask("one"))
        again = here.engine(llm).run(here.ask("two", resume=first.session_id))
        assert "one" in json.dumps(llm.requests[-1]["input"])
    assert again.session_id == first.session_id
    assert again.usage == first.usage
    assert again.usage.input_tokens == 100


def test_a_session_that_is_gone_is_begun_anew(here: Here) -> None:
    desk = Desk()
    with FakeLLM([{"text": "first"}]) as llm:
        gone = "01a20072-b402-7fb1-b67e-6600c7cb653b"
        outcome = here.engine(llm).run(here.ask("one", desk, resume=gone))
    assert outcome.status == "done"
    assert outcome.session_id != gone
    assert "starts over" in desk.events[0][1]


# ---- a run that may only look ------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("sandbox_mode", ["workspace-write", "danger-full-access"])
def test_a_read_only_run_reads_the_workspace_and_writes_nowhere(
    here: Here, model: str, sandbox_mode: str
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=here.workspace, check=True)
    (here.workspace / "notes").write_text("what is noted")
    line = (
        "cat notes; cat .mimikit/secret; echo x >> notes; echo x > made; echo x > .mimikit/made; "
        f"echo x > .git/made; echo x > {here.root}/made; echo x > {here.scratch}/made; "
        "(exec 3<>/dev/tcp/127.0.0.1/80) 2>&1 | grep -q 'not permitted' && echo no-network; "
        "echo end"
    )
    config = {"sandbox_mode": '"danger-full-access"', "web_search": '"live"'}
    with FakeLLM([{"shell": line}, {"text": "it is so"}]) as llm:
        engine = here.engine(llm, sandbox=sandbox_mode, network=True, config=config)
        outcome = engine.run(here.ask("is it so?", model=model, read_only=True))
        seen = json.dumps(llm.requests[-1]["input"][-1])
        assert "web_search" not in tool_names(llm.requests[0])
    assert (outcome.status, outcome.text) == ("done", "it is so")
    for said in ("what is noted", "no-network", "end"):
        assert said in seen
    assert "canary" not in seen
    assert (here.workspace / "notes").read_text() == "what is noted"
    assert not list(here.root.rglob("made"))


# ---- no sandbox --------------------------------------------------------------------------------


def test_without_a_sandbox_there_is_no_worker_but_a_teller(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find_bwrap", lambda: None)
    with FakeLLM([{"text": "done"}]) as llm:
        engine = here.engine(llm)
        assert engine.unavailable() is None
        assert "install bubblewrap" in (engine.unavailable("worker") or "")
        refused = engine.run(here.ask("do it"))
        assert llm.requests == []
        told = engine.run(here.ask("hello", role="teller"))
    assert (refused.status, refused.reason) == ("failed", "engine_unavailable")
    assert told.status == "done"


def test_the_owner_may_do_without_the_box_and_is_told_so(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find_bwrap", lambda: None)
    monkeypatch.setenv("MIMIKIT_SANDBOX__MODE", "off")
    desk = Desk()
    with FakeLLM([{"text": "done"}]) as llm:
        engine = here.engine(llm)
        assert engine.unavailable("worker") is None
        outcome = engine.run(here.ask("do it", desk))
    assert outcome.status == "done"
    assert "without the sandbox" in desk.events[0][1]


# ---- what goes wrong ---------------------------------------------------------------------------


def test_a_setting_codex_does_not_know_fails_loudly(here: Here) -> None:
    engine = here.engine(None, config={"nonsense": "1"})
    outcome = engine.run(here.ask("hello"))
    assert outcome.status == "failed"
    assert "unknown configuration field `nonsense`" in (outcome.error or "")


@pytest.mark.parametrize("how", ["cancel", "deadline", "kill"])
def test_however_a_worker_ends_nothing_stays(here: Here, how: str) -> None:
    name = tag()
    line = (
        f"sleep {name} & setsid sleep {name} & (setsid nohup sleep {name} >/dev/null 2>&1 &) ; "
        f"echo up > up; sleep {name}"
    )
    cancel, running = CancelToken(), threading.Event()
    desk = Desk()
    desk.event = lambda kind, *_: running.set() if kind == "command" else None  # type: ignore[method-assign]
    result: list[Outcome] = []
    with FakeLLM([{"shell": line}, {"text": "done"}]) as llm:
        request = here.ask("do it", desk, cancel=cancel, timeout_s=8 if how == "deadline" else 60)
        thread = threading.Thread(target=lambda: result.append(here.engine(llm).run(request)))
        thread.start()
        assert running.wait(30)
        until_exists(here.workspace / "up")
        assert alive(name)
        if how == "cancel":
            cancel.cancel("canceled")
        elif how == "kill":
            kill_codex()
        thread.join(30)
        if how == "kill":
            session = result[0].session_id
            again = here.engine(llm).run(here.ask("do it", resume=session))
            assert (again.status, again.session_id) == ("done", session)
    assert not thread.is_alive()
    reasons = {"cancel": "canceled", "deadline": "timeout", "kill": "engine_unavailable"}
    assert result[0].reason == reasons[how]
    assert how != "kill" or "SIGKILL" in (result[0].error or "")
    assert alive(name) == []
    assert zombies() == []
    assert not any((here.workspace / name).exists() for name in _ARTIFACTS)


def until_exists(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        threading.Event().wait(0.05)
    pytest.fail(f"{path} did not come up")


def kill_codex() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # the first one takes the others with it
            if process.name() == "codex":
                process.kill()


# ---- whether it can serve ----------------------------------------------------------------------


def program(folder: Path, line: str) -> str:
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo codex-cli 0.162.9", "expected codex 0.163.0 or newer, got 0.162.9; update it"),
        ("echo hello", "expected a version from"),
        ("exit 1", "expected a version from"),
    ],
)
def test_another_version_is_said(here: Here, tmp_path: Path, line: str, said: str) -> None:
    engine = here.engine(None, path=program(tmp_path, line))
    assert said in (engine.unavailable() or "")
    outcome = engine.run(here.ask("hello", role="teller"))
    assert (outcome.status, outcome.reason) == ("failed", "engine_unavailable")


def test_a_login_is_a_file_a_key_or_a_provider_of_ones_own(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(**settings: Any) -> str | None:
        return codex_cli.unavailable(CodexSettings.model_validate(settings))

    home = tmp_path / "home" / ".codex"
    assert said() == f"codex is not logged in: no {home}/auth.json; run `codex login`"
    assert said(config={"model_provider": '"x"'}) is None
    (odd := tmp_path / "own[x]").mkdir()  # a rule that keeps the login from shells is a pattern
    assert "expected a home without '['" in str(said(home=str(odd)))
    monkeypatch.setenv("CODEX_API_KEY", "x")
    assert said() is None
