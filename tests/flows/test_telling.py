"""Who hears of what: on change, once a chain, once a minute, and when a trigger keeps failing."""

from __future__ import annotations

from typing import Any

import pytest

from mimikit.conversation import history
from mimikit.engines.base import RunSpec
from mimikit.protocol import paths
from mimikit.protocol.models import Message
from tests.crash.driver import Client
from tests.support.reading import at, loaded, results, transcript


def told(client: Client) -> list[Message]:
    """What was said beside the user."""
    page = history.page(client.files, limit=1000)
    return [message for message in page.messages if message.role != "user"]


def after(subject: str) -> dict[str, Any]:
    return {"type": "task_done", "params": {"taskId": subject}}


def chain(client: Client, first: str, *steps: str, **more: Any) -> None:
    """Tasks t1, s2, s3 … each of which waits for the one before."""
    before = "t1"
    for number, prompt in enumerate(steps, start=2):
        client.when(f"s{number}", prompt, after(before), once=True, title=f"step {number}", **more)
        before = f"s{number}"
    client.submit("t1", first, notify="message", title="step 1")


# ---- change


def test_one_that_is_told_on_change_says_so_when_first_changed_and_failed(judged: Client) -> None:
    judged.trigger("g1", 60, "tick", notify="change")
    at(judged, 60)
    assert len(told(judged)) == 1
    at(judged, 120)
    at(judged, 180)
    assert len(told(judged)) == 1
    judged.order("o1", "trigger_edit", "g1", prompt="tock")
    at(judged, 240)
    assert len(told(judged)) == 2
    judged.order("o2", "trigger_edit", "g1", prompt="bad")
    at(judged, 300)
    assert "failed" in told(judged)[-1].text
    assert len(results(judged.files)) == 5


# ---- chains


def test_a_chain_is_told_once_at_its_end(judged: Client) -> None:
    chain(judged, "one", "two", "three")
    judged.product.idle()
    assert set(results(judged.files).values()) == {"done"}
    assert len(results(judged.files)) == 3
    (message,) = told(judged)
    assert "step 3" in message.text


def test_a_chain_that_breaks_is_told_once_with_the_steps_that_will_not_run(judged: Client) -> None:
    chain(judged, "bad", "two", "three")
    judged.product.idle()
    (message,) = told(judged)
    assert "`step 1` failed" in message.text
    assert "What waited for it will not run: `step 2`, `step 3`." in message.text
    lines = judged.files.lines("tasks/2026-12.jsonl")
    ends = {line["title"]: line for _, line in lines if line["event"] == "ended"}
    assert [ends[f"step {n}"]["status"] for n in (1, 2, 3)] == ["failed", "canceled", "canceled"]
    assert [ends[f"step {n}"]["failureReason"] for n in (2, 3)] == ["upstream", "upstream"]
    parents = [ends[f"step {n}"]["parentTaskId"] for n in (2, 3)]
    assert parents == ["t1", ends["step 2"]["id"]]
    assert judged.files.names(paths.TRIGGERS) == []
    assert judged.files.names("worker/running") == []


def test_a_step_that_waits_for_one_that_is_to_fail_stays(judged: Client) -> None:
    judged.when("s2", "mend", {"type": "task_failed", "params": {"taskId": "t1"}}, once=True)
    judged.submit("t1", "one")
    judged.product.idle()
    assert judged.files.names(paths.TRIGGERS) == ["s2.json"]
    assert len(told(judged)) == 1


# ---- standing conditions


def test_edges_of_a_standing_condition_are_told_at_most_once_a_minute(judged: Client) -> None:
    judged.when("g1", "look", {"type": "file_changed", "params": {"path": "*.txt"}})
    at(judged, 1)
    for seconds in (2, 10, 20, 30):
        judged.touch(f"{seconds}.txt")
        at(judged, seconds)
    assert len(results(judged.files)) == 4
    assert [len(message.task_ids) for message in told(judged)] == [1]
    at(judged, 61)
    assert [len(message.task_ids) for message in told(judged)] == [1]
    at(judged, 62)
    assert [len(message.task_ids) for message in told(judged)] == [1, 3]
    judged.touch("70.txt")
    at(judged, 70)
    assert [len(message.task_ids) for message in told(judged)] == [1, 3]
    at(judged, 122)
    assert [len(message.task_ids) for message in told(judged)] == [1, 3, 1]
    assert {message.trigger_id for message in told(judged)} == {"g1"}


# ---- circuit breaker


@pytest.mark.parametrize("notify", ["message", "change", "none"])
def test_three_equal_failures_in_a_row_pause_a_trigger_and_are_told_with_the_way_on(
    judged: Client, notify: str
) -> None:
    judged.trigger("g1", 60, "bad", notify=notify, title="backup")
    for seconds in (60, 120, 180, 240, 300):
        at(judged, seconds)
    assert len(results(judged.files)) == 3
    last = told(judged)[-1]
    assert len([m for m in told(judged) if "3 times in a row" in m.text]) == 1
    assert "`resume g1`" in last.text
    assert "`mimikit triggers resume g1`" in last.text
    definition, state = (
        loaded(judged.files, paths.trigger("g1")),
        loaded(judged.files, paths.trigger_state("g1")),
    )
    assert (definition["enabled"], state["pausedBy"]) == (False, "breaker")
    assert (len(told(judged)) == 3) == (notify != "none")


def test_a_resumed_trigger_counts_anew(judged: Client) -> None:
    judged.trigger("g1", 60, "bad")
    for seconds in (60, 120, 180):
        at(judged, seconds)
    judged.order("o1", "trigger_resume", "g1")
    for seconds in (200, 260, 320):
        at(judged, seconds)
    assert len(results(judged.files)) == 5
    assert loaded(judged.files, paths.trigger("g1"))["enabled"] is True
    at(judged, 380)
    assert len(results(judged.files)) == 6
    assert loaded(judged.files, paths.trigger("g1"))["enabled"] is False
    assert len([m for m in told(judged) if "3 times in a row" in m.text]) == 2


def test_runs_that_are_cut_short_as_the_product_ends_are_no_failures_of_their_trigger(
    judged: Client,
) -> None:
    judged.trigger("g1", 60, "bad ~")

    def die(request: RunSpec) -> None:
        raise KeyboardInterrupt

    for seconds in (60, 120, 180, 240):
        judged.product.mind.hook = die
        judged.at(seconds)
        with pytest.raises(KeyboardInterrupt):
            judged.product.idle()
        judged.product.mind.hook = lambda _request: None
        judged.restart()
        judged.product.idle()
    state = loaded(judged.files, paths.trigger_state("g1"))
    assert state["failureStreak"] == 0
    assert loaded(judged.files, paths.trigger("g1"))["enabled"] is True


# ---- together


def test_results_that_wait_together_are_told_in_one_turn(judged: Client) -> None:
    def meanwhile(request: RunSpec) -> None:
        if request.role == "teller" and not judged.files.names("worker/ended"):
            judged.product.pool("worker")
            judged.product.pool("worker")

    judged.product.mind.hook = meanwhile
    judged.submit("t1", "one", notify="teller")
    judged.submit("t2", "two", notify="teller")
    judged.say("m1", "wait for it")
    judged.product.idle()
    turns = [
        loaded(judged.files, f"turns/done/{name}") for name in judged.files.names("turns/done")
    ]
    telling = [turn for turn in turns if any(id_.startswith("res-") for id_ in turn["consumed"])]
    assert [sorted(turn["consumed"]) for turn in telling] == [["res-t1", "res-t2"]]


def test_results_of_one_request_are_told_in_one_turn_which_waits_a_minute_at_most(
    judged: Client,
) -> None:
    def spoken() -> list[str]:
        return [text for role, text in transcript(judged.files) if role == "agent"][1:]

    judged.say("m1", "plan: one; two; three")
    for _ in range(5):
        judged.product.tick()
        judged.product.pool("planner")
    for _ in range(2):
        judged.product.pool("worker")
        judged.product.tick()
    assert len(results(judged.files)) == 2
    assert spoken() == [], "the third may end soon"
    judged.product.clock.advance(61)
    judged.product.tick()
    judged.product.tick()
    assert [text.count(" is done") for text in spoken()] == [2]
    judged.product.idle()
    assert [text.count(" is done") for text in spoken()] == [2, 1]


def test_a_message_takes_waiting_results_of_a_request_along(judged: Client) -> None:
    judged.say("m1", "plan: one; two")
    for _ in range(5):
        judged.product.tick()
        judged.product.pool("planner")
    judged.product.pool("worker")
    judged.product.tick()
    judged.say("m2", "hello")
    judged.product.tick()
    judged.product.tick()
    last = transcript(judged.files)[-1][1]
    assert ("heard hello" in last, last.count(" is done")) == (True, 1)
