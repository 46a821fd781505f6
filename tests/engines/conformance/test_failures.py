"""What every engine makes of a model server that fails, and of its own death."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from mimikit.engines.base import Failed, Outcome
from mimikit.protocol.models import EngineProblem
from tests.engines.conformance.drivers import NOWHERE, EngineDriver
from tests.support.engine_requests import Desk
from tests.support.fake_llm import Body

LIMIT = {"code": "rate_limit_exceeded", "message": "Limit reached. Please try again in 90s."}
TOO_LONG = {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}


@dataclass(frozen=True)
class Failure:
    """What the server does each time, and what the engine is known to lack then."""

    step: Body
    want: EngineProblem
    words: str = ""
    resets: bool = False
    idle_timeout_s: float = 30


FAILURES = {
    "401": Failure({"status": 401}, "logged_out", "401"),
    "403": Failure({"status": 403}, "logged_out", "403"),
    "429": Failure({"status": 429}, "limited", "429"),
    "429 with its end": Failure({"failed": LIMIT}, "limited", resets=True),
    "500": Failure({"status": 500}, "broken"),
    "503": Failure({"status": 503}, "broken"),
    "a cut stream": Failure({"text": "half of it", "drop": True}, "broken"),
    "silence": Failure({"hang": 60}, "broken", "silent", idle_timeout_s=1.5),
}


@pytest.mark.put_to(by_server=True, cases=FAILURES)
def test_a_failure_is_known_by_its_kind(driver: EngineDriver, case: Failure) -> None:
    outcome = driver.play(case.step, idle_timeout_s=case.idle_timeout_s).outcome
    want = driver.takes_503_for if case.step.get("status") == 503 else case.want
    reason = "rate_limited" if want == "limited" else "engine_unavailable"
    assert isinstance(outcome, Failed)
    assert (outcome.status, outcome.want, outcome.reason) == ("failed", want, reason)
    assert case.words in told(outcome)
    assert not case.resets or outcome.retry_at


def told(outcome: Outcome) -> str:
    assert outcome.error
    assert len(outcome.error) < 3000
    assert "canary" not in outcome.error
    return outcome.error


@pytest.mark.put_to(by_server=True)
def test_nobody_there_is_no_engine(driver: EngineDriver) -> None:
    outcome = driver.play({"text": "hello"}, engine=driver.engine(NOWHERE)).outcome
    assert (outcome.status, outcome.reason) == ("failed", "engine_unavailable")
    assert isinstance(outcome, Failed)
    assert outcome.want == "unreachable"
    assert told(outcome)


@pytest.mark.put_to(by_server=True)
def test_more_than_the_model_takes_is_told_as_that(driver: EngineDriver) -> None:
    outcome = driver.play({"failed": TOO_LONG}).outcome
    assert (outcome.status, outcome.reason) == ("failed", "error")
    assert isinstance(outcome, Failed)
    assert outcome.too_long
    assert told(outcome)


@pytest.mark.put_to(by_server=True)
def test_a_first_byte_may_be_slow(driver: EngineDriver) -> None:
    outcome = driver.play({"text": "hello", "delay": 1.0}, idle_timeout_s=20.0).outcome
    assert (outcome.status, outcome.text) == ("done", "hello")


@pytest.mark.put_to(by_process=True)
def test_killed_in_its_turn_it_has_failed_and_says_so(driver: EngineDriver) -> None:
    desk = Desk()
    killed = threading.Event()

    def answer(_body: Body) -> Body:
        for process in driver.programs():
            process.kill()
        killed.set()
        return {"hang": 60}

    outcome = driver.play(answer, desk=desk, timeout_s=60.0).outcome
    assert killed.is_set()
    assert outcome.status == "failed"
    assert outcome.reason in ("error", "engine_unavailable")
    assert told(outcome)
    assert driver.play({"text": "hello"}).outcome.text == "hello"
