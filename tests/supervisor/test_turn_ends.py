"""A turn that is stopped or fails says so on the message, and keeps what was said by then."""

from __future__ import annotations

from typing import Any

import pytest

from mimikit.engines.base import EngineRequest
from mimikit.protocol import paths
from tests.crash.driver import Client
from tests.support.reading import loaded, results


def messages(client: Client) -> dict[str, dict[str, Any]]:
    """By id, in order; of the agent's and system's by their role as well."""
    found = loaded(client.files, paths.HISTORY)["messages"]
    return {m["id"] if m["role"] == "user" else m["role"]: m for m in found}


def stop(client: Client) -> None:
    def ordered(request: EngineRequest) -> None:
        client.order("stop", "cancel", request.run_id)
        client.product.context.live.cancel(request.run_id)

    client.product.mind.hook = ordered


def test_a_stopped_reply_stays_as_far_as_it_had_come_and_nothing_else_stops(
    judged: Client,
) -> None:
    judged.submit("t1", "one", notify="none")
    judged.say("m1", "tell a long story")
    stop(judged)
    judged.product.idle()
    found = messages(judged)
    assert found["m1"]["ended"] == "stopped"
    assert found["agent"]["text"] == "tell a long story"
    assert found["agent"]["ended"] == "stopped"
    assert found["agent"]["inReplyTo"] == ["m1"]
    assert (found["system"]["ended"], found["system"]["failed"]) == ("stopped", False)
    assert "t1" in results(judged.files)
    assert loaded(judged.files, paths.command_done("stop"))["ok"]


def test_a_stop_that_the_death_of_the_consumer_outran_is_carried_out_at_the_start(
    judged: Client,
) -> None:
    judged.say("m1", "tell a long story")

    def die(request: EngineRequest) -> None:
        judged.order("stop", "cancel", request.run_id)
        judged.product.context.live.cancel(request.run_id)
        judged.product.seat.outcomes = list  # pyright: ignore[reportAttributeAccessIssue]

    judged.product.mind.hook = die
    judged.product.tick()
    judged.restart()
    judged.product.idle()
    assert messages(judged)["m1"]["ended"] == "stopped"
    assert len(judged.oracle.runs) == 1


def test_a_stop_while_the_engine_turns_the_run_away_ends_it_all_the_same(client: Client) -> None:
    client.say("m1", "tell it")
    client.say("m2", "limited")
    stop(client)
    client.product.idle()
    found = messages(client)
    assert (found["m1"]["ended"], found["m2"]["ended"]) == ("stopped", "stopped")


def test_a_failed_turn_says_why_in_both_languages(judged: Client) -> None:
    judged.say("m1", "break here")
    judged.product.idle()
    found = messages(judged)
    assert found["m1"]["ended"] == "failed"
    assert found["m1"]["why"] == {"en": "it broke off", "zh": "it broke off"}
    assert found["agent"]["text"] == "break here"
    assert found["system"]["failed"]


def test_a_message_is_answered_again_and_says_which_it_was(judged: Client) -> None:
    judged.say("m1", "break here")
    judged.product.idle()
    judged.say("r1", "hello", retry_of="m1")
    judged.product.idle()
    judged.say("r1", "hello", retry_of="m1")
    judged.product.idle()
    found = messages(judged)
    assert found["r1"]["retryOf"] == "m1"
    assert found["agent"]["inReplyTo"] == ["r1"]
    assert len(judged.oracle.runs) == 3


def test_an_answer_bears_the_question_it_was_given_to(judged: Client) -> None:
    judged.say("m1", "ask: colour?")
    judged.product.idle()
    judged.answer("a1", "blue")
    judged.product.idle()
    given = messages(judged)["a1"]["answered"]
    assert (given["question"], given["answer"], given["byUser"]) == ("colour?", "blue", True)


def test_a_default_that_was_taken_bears_its_question(judged: Client) -> None:
    judged.say("m1", "ask: colour? | default")
    judged.product.idle()
    judged.at(601)
    judged.product.idle()
    said = loaded(judged.files, paths.HISTORY)["messages"]
    (given,) = [m["answered"] for m in said if m["answered"]]
    (asked,) = [m for m in said if m["questionId"]]
    assert (given["default"], given["answer"], given["byUser"]) == ("red", "red", False)
    assert asked["questionId"] == given["questionId"]


def test_an_answer_to_the_tellers_own_question_bears_it(judged: Client) -> None:
    judged.say("m1", "wonder why")
    judged.product.idle()
    judged.answer("a1", "so")
    judged.product.idle()
    said = loaded(judged.files, paths.HISTORY)["messages"]
    (asked,) = [m for m in said if m["questionId"]]
    given = messages(judged)["a1"]["answered"]
    assert (asked["text"], given["question"], given["answer"]) == ("why", "why", "so")
    assert asked["questionId"] == given["questionId"]


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "failed"])
def test_a_result_that_was_being_told_is_told_by_code_and_the_line_is_none_of_its(
    judged: Client, is_stopped: bool
) -> None:
    def end(request: EngineRequest) -> None:
        if request.role == "teller" and is_stopped:
            judged.order("stop", "cancel", request.run_id)
            judged.product.context.live.cancel(request.run_id)

    judged.submit("t1", "one")
    judged.product.idle()
    before = len(loaded(judged.files, paths.HISTORY)["messages"])
    judged.submit("t2", "two", notify="teller")
    judged.product.tick()
    judged.product.pool("worker")
    judged.say("m1", "tell it" if is_stopped else "break here")
    judged.product.mind.hook = end
    judged.product.idle()
    said = loaded(judged.files, paths.HISTORY)["messages"][before:]
    line, told = [m for m in said if m["role"] == "system"]
    assert (line["ended"], line["taskIds"]) == ("stopped" if is_stopped else "failed", [])
    assert (told["ended"], told["taskIds"]) == (None, ["t2"])
    assert "two" in told["text"]
    assert judged.files.names(paths.INBOX) == []
