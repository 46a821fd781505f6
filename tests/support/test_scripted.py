"""The scripted twin: it plays what it was given, and stops when told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mimikit.engines.base import CancelToken, Failed, Outcome, RunSpec, TurnInput
from tests.support.engine_requests import NOW, Desk, make_request
from tests.support.twins import ScriptedEngine

INPUT = TurnInput(now=NOW)


def play(
    engine: ScriptedEngine, desk: Desk | None = None, role: Any = "worker", **fields: Any
) -> Outcome:
    return engine.run(make_request(role, INPUT, desk, **fields))


def in_thread(run: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """Start a run; gives what waits for its outcome."""
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(run()))
    thread.start()

    def wait() -> Outcome:
        thread.join(10)
        assert outcomes, "the run did not end"
        return outcomes[0]

    return wait


def test_the_steps_are_played_in_order() -> None:
    desk = Desk()
    script = [
        {"event": "note", "text": "thinking"},
        {"call": "delegate", "args": {"prompt": "ls"}},
        {"say": "Hello, "},
        {"say": "world."},
        {"usage": {"inputTokens": 7, "outputTokens": 3}},
    ]
    outcome = play(ScriptedEngine(script), desk)
    assert (outcome.status, outcome.text) == ("done", "Hello, world.")
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (7, 3)
    assert desk.calls == [("delegate", {"prompt": "ls"})]
    assert [kind for kind, _, _ in desk.events] == ["note", "tool", "delta", "delta", "usage"]


def test_each_role_has_its_own_script_and_each_run_its_own_steps() -> None:
    engine = ScriptedEngine(
        {"teller": [[{"say": "first"}], [{"say": "then"}]], "planner": [{"say": "plan"}]}
    )
    told = [play(engine, role="teller").text for _ in range(3)]
    assert told == ["first", "then", "then"]
    assert play(engine, role="planner").text == "plan"
    assert play(engine, role="worker").text == ""


def test_a_callable_makes_the_steps_of_each_request() -> None:
    def answer(request: RunSpec) -> list[dict[str, str]]:
        return [{"say": request.prompt.upper()}]

    assert play(ScriptedEngine(answer), prompt="echo").text == "ECHO"


def test_a_failure_ends_the_run_with_its_reason_and_time() -> None:
    desk = Desk()
    script = [
        {"say": "so far"},
        {"fail": "rate_limited", "error": "slow down", "retryAfter": 60},
        {"call": "never"},
    ]
    outcome = play(ScriptedEngine(script), desk)
    assert (outcome.status, outcome.reason) == ("failed", "rate_limited")
    assert (outcome.text, outcome.error) == ("so far", "slow down")
    assert isinstance(outcome, Failed)
    assert outcome.retry_at == NOW + timedelta(seconds=60)
    assert desk.calls == []


def test_it_raises_when_the_script_says_so() -> None:
    with pytest.raises(RuntimeError, match="broken engine"):
        play(ScriptedEngine([{"raise": "broken engine"}]))


@pytest.mark.parametrize("script", [[{"hang": True}], [{"wait": 1000}]])
@pytest.mark.parametrize(("reason", "status"), [("canceled", "canceled"), ("killed", "failed")])
def test_a_waiting_run_ends_when_it_is_told_to(script: Any, reason: str, status: str) -> None:
    cancel = CancelToken()
    wait = in_thread(lambda: play(ScriptedEngine(script), cancel=cancel))
    cancel.cancel(reason)
    outcome = wait()
    assert (outcome.status, outcome.reason) == (status, reason)


@pytest.mark.parametrize("script", [[{"hang": True}], [{"wait": 1000}]])
def test_a_waiting_run_ends_at_its_deadline(script: Any) -> None:
    outcome = play(ScriptedEngine(script), timeout_s=0.02)
    assert (outcome.status, outcome.reason) == ("failed", "timeout")


def test_a_short_wait_is_only_a_pause() -> None:
    assert play(ScriptedEngine([{"wait": 0.01}, {"say": "on"}])).text == "on"


def test_a_run_that_was_stopped_before_plays_nothing() -> None:
    cancel, desk = CancelToken(), Desk()
    cancel.cancel("canceled")
    assert play(ScriptedEngine([{"call": "x"}]), desk, cancel=cancel).status == "canceled"
    assert desk.calls == []


def test_it_can_be_made_unavailable() -> None:
    engine = ScriptedEngine(name="codex")
    assert (engine.name, engine.unavailable()) == ("codex", None)
    engine.reason_unavailable = "not logged in"
    assert engine.unavailable() == "not logged in"


def test_a_step_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"got \{'shout': 'a'\}"):
        play(ScriptedEngine([{"shout": "a"}]))
