"""The journeys of a message, from the inbox to the last word about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mimikit.engines.base import EngineRequest
from mimikit.protocol import paths
from mimikit.protocol.models import InboxItem
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import loaded, result, results, transcript


def said(client: Client) -> list[tuple[str, str]]:
    return transcript(client.files)


def test_a_message_is_answered(judged: Client) -> None:
    judged.say("m1", "hello")
    judged.product.idle()
    assert said(judged) == [("user", "hello"), ("agent", "heard hello")]
    assert len(judged.oracle.runs) == 1


def test_messages_that_wait_together_are_answered_in_one_turn(judged: Client) -> None:
    judged.say("m1", "hello")
    judged.say("m2", "and good morning")
    judged.product.idle()
    assert said(judged)[2:] == [("agent", "heard hello\nheard and good morning")]
    assert len(judged.oracle.runs) == 1


def test_a_request_goes_through_plan_and_tasks_and_is_told_in_the_end(judged: Client) -> None:
    judged.say("m1", "plan: one; two")
    judged.product.idle()
    texts = [text for _, text in said(judged)]
    assert texts[1].startswith("delegated as task-")
    assert sorted(results(judged.files).values()) == ["done", "done"]
    told = " ".join(texts[2:])
    assert all(f"{task_id} is done" in told for task_id in results(judged.files))
    roles = [id_.partition("-")[0] for id_, _ in judged.oracle.runs]
    assert roles.count("turn") == 1 + len(texts[2:])
    assert roles.count("task") == 3


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


def test_a_turn_that_fails_twice_says_so_and_the_next_message_goes_on(judged: Client) -> None:
    judged.say("m1", "fail please")
    judged.product.idle()
    judged.say("m2", "hello")
    judged.product.idle()
    (_, (role, text), *rest) = said(judged)
    assert role == "system"
    assert "the mind fails" in text
    assert rest == [("user", "hello"), ("agent", "heard hello")]
    assert [attempt for _, attempt in judged.oracle.runs] == [1, 2, 1]
    failed = loaded(judged.files, paths.HISTORY)["messages"][1]
    assert (failed["failed"], failed["inReplyTo"]) == (True, ["m1"])


def test_a_message_waits_for_its_engine_and_costs_no_attempt(judged: Client) -> None:
    judged.product.mind.waiting = "logged out; run `codex login`"
    judged.say("m1", "hello")
    judged.product.tick()
    waits = judged.product.teller.waiting
    assert waits is not None
    assert waits.reason == "logged out; run `codex login`"
    assert waits.since == judged.product.clock.now()
    assert judged.oracle.runs == []
    assert judged.files.exists(paths.inbox("m1"))
    judged.product.clock.advance(60)
    judged.product.tick()
    judged.product.mind.waiting = None
    judged.product.idle()
    assert said(judged)[-1] == ("agent", "heard hello")
    assert judged.product.teller.waiting is None
    assert [attempt for _, attempt in judged.oracle.runs] == [1]


def test_a_limit_is_waited_for_and_costs_no_attempt(client: Client) -> None:
    client.say("m1", "limited")
    client.product.idle()
    assert said(client)[-1] == ("agent", "heard limited")
    assert [attempt for _, attempt in client.oracle.runs] == [1, 1]


def test_a_message_repeated_by_its_client_is_answered_once(judged: Client) -> None:
    judged.say("m1", "hello")
    judged.product.idle()
    judged.say("m1", "hello")
    judged.product.idle()
    judged.say("m2", "more")
    judged.say("m1", "hello")
    judged.product.idle()
    assert [text for role, text in said(judged) if role == "agent"] == ["heard hello", "heard more"]
    assert len(judged.oracle.runs) == 2


def test_a_message_that_comes_during_a_run_is_answered_during_it(judged: Client) -> None:
    def talk(request: EngineRequest) -> None:
        judged.say("m1", "how is it going")
        judged.product.tick()
        assert said(judged)[-1] == ("agent", "heard how is it going")

    judged.product.mind.hook = talk
    judged.submit("t1", "long ~")
    judged.product.idle()
    assert result(judged.files, "t1").status == "done"


def test_a_turn_takes_what_was_there_when_it_began(judged: Client) -> None:
    late = InboxItem(id="m2", text="late", created_at=START)
    teller = judged.product.mind._teller

    def slow(request: EngineRequest):
        judged.files.save_new(paths.inbox("m2"), late)
        return teller(request)

    judged.product.mind._teller = slow
    judged.say("m1", "early")
    judged.product.idle()
    assert said(judged) == [
        ("user", "early"), ("agent", "heard early"), ("user", "late"), ("agent", "heard late"),
    ]  # fmt: skip


def test_a_plan_that_finds_something_is_told_by_the_teller(judged: Client) -> None:
    judged.say("m1", "find: the cat")
    judged.product.idle()
    assert said(judged)[-1][1].endswith("is done")
    assert results(judged.files) == {}


def test_a_plan_that_fails_is_told(judged: Client) -> None:
    judged.say("m1", "find: bad")
    judged.product.idle()
    assert said(judged)[-1][1].endswith("is failed")


def test_things_to_remember_are_kept_once(judged: Client) -> None:
    judged.say("m1", "remember tea")
    judged.say("m2", "remember the long way")
    judged.say("m3", "backlog sweep")
    judged.product.idle()
    assert "tea" in (judged.files.read("memory/2026-12-01.md") or b"").decode()
    assert "the long way" in (judged.files.read(paths.MEMORY) or b"").decode()
    assert judged.files.read(paths.BACKLOG) == b"- [ ] sweep\n"


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


def test_nobody_answers_and_the_default_is_taken(judged: Client) -> None:
    judged.say("m1", "ask: colour? | default")
    judged.product.idle()
    judged.at(599)
    judged.product.idle()
    assert results(judged.files) == {}
    judged.at(600)
    judged.product.idle()
    assert [result(judged.files, id_).text for id_ in results(judged.files)] == ["did paint red"]


def test_nobody_answers_and_there_is_no_default(judged: Client) -> None:
    judged.say("m1", "ask: colour?")
    judged.product.idle()
    judged.at(601)
    judged.product.idle()
    assert results(judged.files) == {}
    assert loaded(judged.files, paths.PENDING_QUESTION) is None
    assert said(judged)[-1][0] == "system"


def test_an_answer_given_in_time_goes_before_the_default_though_it_is_read_late(
    judged: Client,
) -> None:
    judged.say("m1", "ask: colour? | default")
    judged.product.idle()
    judged.answer("a1", "blue")
    judged.at(10_000)
    judged.product.idle()
    assert [result(judged.files, id_).text for id_ in results(judged.files)] == ["did paint blue"]


def test_further_questions_wait_for_the_first(judged: Client) -> None:
    judged.say("m1", "ask: colour?")
    judged.say("m2", "ask: size?")
    judged.product.idle()
    first = loaded(judged.files, paths.PENDING_QUESTION)["question"]
    judged.answer("a1", "blue")
    judged.product.idle()
    second = loaded(judged.files, paths.PENDING_QUESTION)["question"]
    assert {first, second} == {"colour?", "size?"}
    judged.answer("a2", "small")
    judged.product.idle()
    assert len(results(judged.files)) == 2


def test_an_answer_to_a_question_that_is_closed_is_heard_by_the_teller(judged: Client) -> None:
    judged.say("a1", "blue", kind="answer", question_id="q-gone")
    judged.product.idle()
    assert said(judged) == [("user", "blue"), ("agent", "heard blue")]


def test_the_tellers_own_question_is_closed_by_its_answer(judged: Client) -> None:
    judged.say("m1", "wonder why")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION)["plannerTaskId"] is None
    assert said(judged)[-1] == ("agent", "why")
    judged.answer("a1", "because")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION) is None
    assert said(judged)[-1] == ("agent", "heard because")


def test_a_teller_may_ask_again_in_the_turn_that_hears_the_answer(judged: Client) -> None:
    judged.say("m1", "wonder why")
    judged.product.idle()
    judged.answer("a1", "wonder how")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION)["question"] == "how"
    judged.answer("a2", "so")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION) is None


# ---- attempts ----------------------------------------------------------------------------


def test_a_next_attempt_waits_and_a_success_is_one_result(judged: Client) -> None:
    judged.submit("t1", "flaky", max_attempts=3)
    judged.product.tick()
    judged.product.pool("worker")
    queued = loaded(judged.files, paths.queued("worker", "t1"))
    assert (queued["attempts"], queued["released"]) == (1, True)
    assert queued["notBefore"] == "2026-12-01T09:00:01.000Z"
    assert not judged.product.pool("worker"), "it is not taken early"
    judged.product.idle()
    assert (result(judged.files, "t1").status, result(judged.files, "t1").attempts) == ("done", 2)


def test_the_mark_of_a_release_is_gone_when_the_next_attempt_runs(judged: Client) -> None:
    seen: list[bool] = []

    def look(_request: EngineRequest) -> None:
        seen.append(loaded(judged.files, paths.running("worker", "t1"))["released"])

    judged.product.mind.hook = look
    judged.submit("t1", "flaky ~", max_attempts=2)
    judged.product.idle()
    assert seen == [False, False]


def test_a_failure_that_is_final_is_told_with_its_reason(judged: Client) -> None:
    judged.submit("t1", "bad", max_attempts=2, title="the job")
    judged.product.idle()
    found = result(judged.files, "t1")
    assert (found.status, found.failure_reason, found.attempts) == ("failed", "error", 2)
    assert "the job" in said(judged)[-1][1]


def test_a_long_result_is_cut_and_kept_whole_beside(judged: Client) -> None:
    judged.submit("t1", "long")
    judged.product.idle()
    found = result(judged.files, "t1").result
    assert found["truncated"] is True
    assert len(found["text"]) == 1000
    assert judged.files.read(found["whole"]) == b"a long story " * 100


def test_a_fault_of_an_engine_is_that_runs_failure(judged: Client) -> None:
    def burst(_request: EngineRequest) -> None:
        raise RuntimeError("pop")

    judged.product.mind.hook = burst
    judged.submit("t1", "x ~")
    judged.submit("t2", "y")
    judged.product.idle()
    assert results(judged.files) == {"t1": "failed", "t2": "done"}
    assert "pop" in (result(judged.files, "t1").error or "")


@pytest.mark.parametrize("seat", ["planner", "worker"])
def test_a_fault_of_our_own_is_that_tasks_failure_and_is_told(
    judged: Client, seat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mimikit.roles import planner, worker

    def burst(*_args: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr({"planner": planner, "worker": worker}[seat], f"{seat}_input", burst)
    judged.say("m1", "plan: one")
    judged.product.idle()
    assert said(judged)[-1][1].endswith("is failed")
    assert [error["event"] for error in judged.product.log.errors] == ["run_fault"]


def test_priority_then_age_decides_what_is_taken_first(judged: Client) -> None:
    judged.order("o1", "pause")
    judged.submit("t1", "old and low", priority=1)
    judged.product.clock.advance(1)
    judged.submit("t2", "new", priority=5)
    judged.submit("t3", "new too", priority=5)
    judged.product.clock.advance(1)
    judged.submit("t4", "urgent", priority=10)
    judged.product.idle()
    judged.order("o2", "resume")
    judged.product.idle()
    assert [id_ for id_, _ in judged.oracle.runs] == ["t4", "t2", "t3", "t1"]


def test_a_task_with_a_time_waits_for_it(judged: Client) -> None:
    judged.submit("t1", "later", not_before=START + timedelta(hours=2))
    judged.product.idle()
    assert judged.oracle.runs == []
    judged.at(7200)
    judged.product.idle()
    assert results(judged.files) == {"t1": "done"}
