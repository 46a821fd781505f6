"""When the Teller runs, what it waits for, and how questions close."""

from __future__ import annotations

import pytest

from mimikit.engines.base import RunSpec
from mimikit.protocol import paths
from mimikit.protocol.models import InboxItem, QueueName, Task, TurnRecord
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.roles import teller
from mimikit.supervisor.store import SLICE_S
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd, result_of
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import loaded, result, results, transcript


def said(client: Client) -> list[tuple[str, str]]:
    return transcript(client.files)


def test_a_turn_that_fails_twice_is_reported_and_the_next_message_is_answered(
    judged: Client,
) -> None:
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


class Seat:
    """A fake seat that returns the outcomes of the test."""

    def __init__(self) -> None:
        self.jobs: list[teller.TurnJob] = []
        self.ready: list[teller.TurnOutcome] = []

    def start(self, job: teller.TurnJob) -> None:
        self.jobs.append(job)

    def close(self, timeout_s: float) -> None: ...

    def outcomes(self) -> list[teller.TurnOutcome]:
        found, self.ready = self.ready, []
        return found


def test_a_late_outcome_of_the_first_attempt_does_not_end_the_second(judged: Client) -> None:
    product, seat = judged.product, Seat()
    product.teller._runner = seat
    judged.say("m1", "hello")
    product.tick()
    (first,) = seat.jobs
    late = teller.run_turn(product.context, first)
    seat.ready = [teller.TurnOutcome(first, None, "the stream broke", "error")]
    product.tick()
    product.tick()
    _, second = seat.jobs
    assert (first.id, first.attempt, second.attempt) == (second.id, 1, 2)
    seat.ready = [late]
    product.tick()
    assert not judged.files.exists(paths.turn_done(first.id))
    seat.ready = [teller.run_turn(product.context, second)]
    product.idle()
    record = judged.files.load(paths.turn_done(first.id), TurnRecord)
    assert record is not None
    assert record.attempt == 2


def test_a_turn_answers_the_messages_present_at_its_start(judged: Client) -> None:
    late = InboxItem(id="m2", text="late", created_at=START)
    teller = judged.product.mind._teller

    def slow(request: RunSpec):
        judged.files.save_new(paths.inbox("m2"), late)
        return teller(request)

    judged.product.mind._teller = slow
    judged.say("m1", "early")
    judged.product.idle()
    assert said(judged) == [
        ("user", "early"), ("agent", "heard early"), ("user", "late"), ("agent", "heard late"),
    ]  # fmt: skip


def test_an_unanswered_question_takes_its_default(judged: Client) -> None:
    judged.say("m1", "ask: colour? | default")
    judged.product.idle()
    judged.at(599)
    judged.product.idle()
    assert results(judged.files) == {}
    judged.at(600)
    judged.product.idle()
    assert [result(judged.files, id_).text for id_ in results(judged.files)] == ["did paint red"]


def test_an_unanswered_question_without_default_lapses(judged: Client) -> None:
    judged.say("m1", "ask: colour?")
    judged.product.idle()
    judged.at(601)
    judged.product.idle()
    assert results(judged.files) == {}
    assert loaded(judged.files, paths.PENDING_QUESTION) is None
    assert said(judged)[-1][0] == "system"


def test_an_answer_to_a_closed_question_is_a_message(judged: Client) -> None:
    judged.say("a1", "blue", kind="answer", question_id="q-gone")
    judged.product.idle()
    assert said(judged) == [("user", "blue"), ("agent", "heard blue")]


@pytest.mark.parametrize("text", ["wonder why", "ask: why"])
def test_a_question_and_its_answer_name_each_other(judged: Client, text: str) -> None:
    judged.say("m1", text)
    judged.product.idle()
    judged.answer("a1", "because")
    judged.product.idle()
    messages = judged.product.store.conversation.messages
    asked, answer = (message for message in messages if message.question_id)
    assert (asked.text, answer.text, asked.role) == ("why", "because", "agent")
    assert asked.question_id == answer.question_id


def test_the_tellers_own_question_is_closed_by_its_answer(judged: Client) -> None:
    judged.say("m1", "wonder why")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION)["plannerTaskId"] is None
    assert said(judged)[-1] == ("agent", "why")
    judged.answer("a1", "because")
    judged.product.idle()
    assert loaded(judged.files, paths.PENDING_QUESTION) is None
    assert said(judged)[-1] == ("agent", "heard because")


# ---- the user does not wait behind work


def ended_runs(client: Client, count: int) -> None:
    """Create finished runs that are not processed yet."""
    for number in range(count):
        task = Task(
            id=f"t{number:03}", prompt="work", created_at=START, trace_id="r", notify="message"
        )
        client.files.save_new(paths.running("worker", task.id), task)
        end = TaskEnd("done", None, 1)
        queue.finish(client.files, result_of(task, end, START, START))
        client.product.store.events.ended_runs.put(("worker", task.id))


def test_a_message_is_answered_before_many_finished_runs_are_processed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, steps = client.product, list[str]()
    end_run, start, apply = product.applier.end_run, product.seat.start, product.applier.apply

    def slow_end(seat: QueueName, task_id: str) -> None:
        product.clock.advance(SLICE_S / 4)
        steps.append("end")
        end_run(seat, task_id)

    def begun(job: teller.TurnJob) -> None:
        steps.append("turn")
        start(job)

    def applied(record: TurnRecord | PlanResult | TaskResult) -> bool:
        if isinstance(record, TurnRecord):
            steps.append(f"applied {record.author}")
        return apply(record)

    monkeypatch.setattr(product.applier, "end_run", slow_end)
    monkeypatch.setattr(product.seat, "start", begun)
    monkeypatch.setattr(product.applier, "apply", applied)
    ended_runs(client, 60)
    client.say("m1", "hello")
    product.idle()
    assert steps.index("turn") <= 6
    assert steps.index("applied teller") <= 16
    assert steps.count("end") == 60
    told = " ".join(text for role, text in said(client) if role == "system")
    assert told.count("work") == 60
