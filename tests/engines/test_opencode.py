"""The engine `opencode` with the real program: turns, work, troubles, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.engines.base import Failed, Outcome, ToolReply
from tests.support.engine_requests import Desk
from tests.support.fake_llm import Body, FakeLLM, tool_names
from tests.support.opencode_ground import KEY, OpencodeGround, opencode_ground

pytestmark = [pytest.mark.needs_program("opencode"), pytest.mark.needs_program("bwrap")]

Turn = Callable[..., tuple[Outcome, Desk]]


@pytest.fixture(scope="module")
def llm() -> Iterator[FakeLLM]:
    with FakeLLM([{"text": "hello"}]) as server:
        yield server


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, llm: FakeLLM) -> Iterator[OpencodeGround]:
    """One server for all tests of this file: its start is most of what a turn costs."""
    with opencode_ground(tmp_path_factory.mktemp("opencode"), llm) as made:
        yield made


@pytest.fixture
def turn(here: OpencodeGround, llm: FakeLLM) -> Turn:
    def carry_out(*steps: Any, **fields: Any) -> tuple[Outcome, Desk]:
        llm.steps = list(steps)
        llm.requests.clear()
        llm.asked.clear()
        desk = Desk()
        return here.engine.run(here.ask(desk=desk, **fields)), desk

    return carry_out


def say(text: str) -> Body:
    return {"mcp": ["mimikit", "say", {"text": text}]}


def servers(state: Path) -> list[psutil.Process]:
    """What lives of the servers of a state."""
    known = ((one, one.info["environ"] or {}) for one in psutil.process_iter(["environ"]))
    return [one for one, env in known if env.get("XDG_STATE_HOME", "").startswith(str(state))]


# ---- what it is for


def test_a_turn_talks_and_calls_with_nothing_but_our_tools(turn: Turn, llm: FakeLLM) -> None:
    outcome, desk = turn(say("hi"), {"text": "all is said"}, prompt="greet them")
    assert (outcome.status, outcome.text) == ("done", "all is said")
    assert desk.calls == [("say", {"text": "hi"})]
    assert "".join(text for kind, text, _ in desk.events if kind == "delta") == "all is said"
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (200, 20)
    first = llm.requests[0]
    assert [tool_names(body) for body in llm.requests] == [["mimikit_say"]] * 2
    assert first["messages"][0]["content"].endswith("You are the role.")
    assert first["messages"][1]["content"] == "greet them"
    assert llm.headers[-1]["Authorization"] == f"Bearer {KEY}", "the owner's provider is asked"


def test_a_call_that_ends_the_turn_is_the_last_request(here: OpencodeGround, llm: FakeLLM) -> None:
    def answer(_name: str, given: dict[str, Any]) -> ToolReply:
        ok = given.get("text") != "wrong"
        return ToolReply(ok, "sent" if ok else "say it better", final=given.get("text") == "bye")

    calls = [{"name": "mimikit_say", "arguments": {"text": text}} for text in ("hi", "hi", "bye")]
    wrong = [{"name": "mimikit_say", "arguments": {"text": text}} for text in ("wrong", "bye")]
    llm.steps[:] = {"call": wrong}, {"call": calls}, {"text": "too much"}
    desk = Desk(answer)
    llm.requests.clear()
    outcome = here.engine.run(here.ask(desk=desk))
    assert (outcome.status, outcome.text) == ("done", "")
    assert [given["text"] for _, given in desk.calls] == ["wrong", "bye", "hi", "hi", "bye"]
    assert len(llm.requests) == 2
    assert outcome.usage.input_tokens == 200
    told = [m["content"] for m in llm.requests[1]["messages"] if m["role"] == "tool"]
    assert told == ["say it better", "sent"]
    states = [facts["status"] for kind, _, facts in desk.events if kind == "tool"]
    assert states == ["failed", *["completed"] * 4]


@pytest.mark.parametrize("role", ["teller", "worker"])
def test_its_own_tools_are_shut_in_every_role(
    turn: Turn, llm: FakeLLM, here: OpencodeGround, role: str
) -> None:
    own = {"bash": {"command": "echo x > pwned", "description": "x"}}
    own |= {"write": {"filePath": str(here.workspace / "pwned"), "content": "x"}}
    own |= {"task": {"description": "x", "prompt": "x", "subagent_type": "general"}}
    calls = [{"name": name, "arguments": given} for name, given in own.items()]
    outcome, desk = turn({"call": calls}, {"text": "I could not"}, role=role)
    assert outcome.status == "done"
    assert not (here.workspace / "pwned").exists()
    failed = [facts["tool"] for kind, _, facts in desk.events if kind == "tool"]
    assert sorted(failed) == sorted(own)
    assert all(name.startswith("mimikit_") for body in llm.requests for name in tool_names(body))


# ---- what goes wrong


def test_a_limit_is_told_at_once_with_its_end(turn: Turn, llm: FakeLLM) -> None:
    outcome, _ = turn({"status": 429, "headers": {"retry-after": "3600"}})
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("rate_limited", "limited")
    assert outcome.retry_at is not None
    left = outcome.retry_at - SystemClock().now()
    assert timedelta(minutes=55) < left <= timedelta(minutes=60)
    assert len(llm.requests) == 1, "it would wait for an hour by itself"


def test_a_cut_answer_is_not_asked_for_again_without_end(turn: Turn) -> None:
    outcome, _ = turn({"text": "one two three", "drop": True})
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "broken")
    assert outcome.retry_now


@pytest.mark.parametrize("model", ["nowhere/m", "m"])
def test_a_model_that_is_none_is_told(turn: Turn, model: str) -> None:
    outcome, _ = turn({"text": "x"}, model=model)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "unready")


CONSUMER = """
import sys
from pathlib import Path
from tests.support.fake_llm import FakeLLM
from tests.support.opencode_ground import opencode_ground
with FakeLLM([{"text": "hello"}]) as llm, opencode_ground(Path(sys.argv[1]), llm) as here:
    print(here.engine.run(here.ask()).text, flush=True)
    sys.stdin.read()
"""


@pytest.mark.nightly
def test_it_ends_with_its_consumer_even_when_that_is_killed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CONSUMER, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == b"hello\n"
        mine = servers(tmp_path / "workspace/.mimikit")
        assert mine
        consumer.send_signal(signal.SIGKILL)
        consumer.wait()
    _, alive = psutil.wait_procs(mine, timeout=5)
    assert alive == []
