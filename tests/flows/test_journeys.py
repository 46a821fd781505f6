"""The journeys of a message, from the inbox to the last word about it."""

from __future__ import annotations

import pytest

from mimikit.engines.base import RunSpec
from mimikit.protocol import paths
from tests.crash.driver import Client
from tests.support.reading import loaded, result, results, transcript


def said(client: Client) -> list[tuple[str, str]]:
    return transcript(client.files)


def test_messages_that_wait_together_are_answered_in_one_turn(judged: Client) -> None:
    judged.say("m1", "hello")
    judged.say("m2", "and good morning")
    judged.product.idle()
    assert said(judged)[2:] == [("agent", "heard hello\nheard and good morning")]
    assert len(judged.oracle.runs) == 1


def test_what_was_made_follows_from_the_message_and_is_linked_to_it(judged: Client) -> None:
    judged.say("m1", "plan: one")
    judged.product.idle()
    (worker,) = results(judged.files)
    task = loaded(judged.files, paths.ended("worker", worker))
    plan = loaded(judged.files, paths.ended("planner", task["parentTaskId"]))
    assert task["traceId"] == plan["traceId"]
    assert (plan["origin"], task["origin"], task["notify"]) == ("teller", "planner", "teller")


def test_plain_tasks_cost_no_turn_however_many_there_are(judged: Client) -> None:
    for number in range(50):
        judged.submit(f"t{number:02}", f"job {number}")
    judged.product.idle()
    assert len(judged.oracle.runs) == 50
    assert {role for role, _ in said(judged)} == {"system"}


def test_results_that_wait_together_are_told_in_one_message(judged: Client) -> None:
    judged.order("o1", "pause")
    for number in range(3):
        judged.submit(f"t{number}", f"job {number}")
    judged.product.idle()
    judged.order("o2", "resume")
    judged.product.tick()
    for _ in range(3):
        judged.product.pool("worker")
    judged.product.idle()
    ((role, text),) = said(judged)
    assert role == "system"
    assert all(f"job {number}" in text for number in range(3))


# ---- questions ---------------------------------------------------------------------------


def test_a_plan_asks_and_goes_on_with_the_answer(judged: Client) -> None:
    judged.say("m1", "ask: colour?")
    judged.product.idle()
    question = loaded(judged.files, paths.PENDING_QUESTION)
    assert (question["question"], question["default"]) == ("colour?", None)
    judged.answer("a1", "blue")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION) is None
    (paint,) = results(judged.files)
    assert result(judged.files, paint).text == "did paint blue"
    assert ("agent", "colour?") in said(judged)
    assert ("user", "blue") in said(judged)
    turns = [id_ for id_, _ in judged.oracle.runs if id_.startswith("turn-")]
    assert len(turns) == 2, "the answer is routed by code: only m1 and the result cost a turn"


# ---- attempts ----------------------------------------------------------------------------


def test_a_next_attempt_and_a_retry_go_on_with_the_session(judged: Client) -> None:
    judged.submit("t1", "flaky session", max_attempts=2)
    judged.submit("t2", "bad session")
    judged.product.idle()
    judged.order("o1", "retry", "t2")
    judged.order("o2", "retry", "t1")
    judged.product.idle()
    by_run = dict[str, list[str | None]]()
    for (run_id, _), session in zip(judged.oracle.runs, judged.product.mind.resumed, strict=True):
        by_run.setdefault(run_id, []).append(session)
    again, anew = (sessions for run_id, sessions in by_run.items() if run_id[:5] == "task-")
    assert by_run["t1"] == [None, "session-1"]
    assert again == ["session-1"]
    assert anew[0] is None, "what was done is not gone on with"


def test_a_long_result_is_cut_and_kept_whole_beside(judged: Client) -> None:
    judged.submit("t1", "long")
    judged.product.idle()
    found = result(judged.files, "t1").result
    assert found["truncated"] is True
    assert len(found["text"]) == 1000
    assert judged.files.read(found["whole"]) == b"a long story " * 100


def test_a_fault_of_an_engine_is_that_runs_failure(judged: Client) -> None:
    def burst(_request: RunSpec) -> None:
        raise RuntimeError("pop")

    judged.product.mind.hook = burst
    judged.submit("t1", "x ~")
    judged.submit("t2", "y")
    judged.product.idle()
    assert results(judged.files) == {"t1": "failed", "t2": "done"}
    assert "pop" in (result(judged.files, "t1").error or "")


@pytest.mark.parametrize("run", ["run_planner", "run_worker"])
def test_a_fault_of_our_own_is_that_tasks_failure_and_is_told(
    judged: Client, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mimikit.roles import dispatcher

    def burst(*_args: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(dispatcher, run, burst)
    judged.say("m1", "plan: one")
    judged.product.idle()
    assert said(judged)[-1][1].endswith("is failed")
    assert [error["event"] for error in judged.product.log.errors] == ["run_fault"]
