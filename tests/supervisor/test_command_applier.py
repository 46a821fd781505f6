"""Commands are applied once, and none blocks another."""

from __future__ import annotations

import pytest

from mimikit.conversation import turns
from mimikit.engines.base import EventKind, RunSpec
from mimikit.protocol import paths
from mimikit.supervisor import command_applier
from mimikit.supervisor.command_applier import MOST_AT_ONCE
from tests.crash.driver import Client
from tests.support.reading import loaded, result, results


def outcome(client: Client, order_id: str) -> tuple[bool, str]:
    found = loaded(client.files, paths.command_done(order_id))
    assert found is not None, f"expected order {order_id} to be settled"
    return found["ok"], found["message"]


def test_the_cancel_of_a_running_task_waits_for_its_end(judged: Client) -> None:
    def meanwhile(request: RunSpec) -> None:
        judged.order("o1", "cancel", "t1")
        judged.product.tick()
        assert request.cancel.reason == "canceled"
        assert judged.files.exists(paths.command("o1"))

    judged.product.mind.hook = meanwhile
    judged.submit("t1", "x ~", max_attempts=5)
    judged.product.idle()
    assert results(judged.files) == {"t1": "canceled"}
    assert outcome(judged, "o1")[0]
    assert len(judged.oracle.runs) == 1


def test_a_task_between_two_attempts_is_canceled_for_good(judged: Client) -> None:
    judged.submit("t1", "flaky", max_attempts=2)
    judged.product.tick()
    judged.product.pool("worker")
    judged.order("o1", "cancel", "t1")
    judged.product.idle()
    assert result(judged.files, "t1").status == "canceled"
    assert len(judged.oracle.runs) == 1


def test_a_task_that_is_over_can_not_be_canceled(judged: Client) -> None:
    judged.submit("t1", "one")
    judged.product.idle()
    judged.order("o1", "cancel", "t1")
    judged.product.idle()
    assert outcome(judged, "o1") == (False, "task t1 ended as done")
    assert results(judged.files) == {"t1": "done"}


def test_canceling_an_asking_plan_opens_the_next_question(judged: Client) -> None:
    judged.say("m1", "ask: colour?")
    judged.say("m2", "ask: size?")
    judged.product.idle()
    first = loaded(judged.files, paths.PENDING_QUESTION)
    judged.order("o1", "cancel", first["plannerTaskId"])
    judged.product.idle()
    second = loaded(judged.files, paths.PENDING_QUESTION)
    assert {first["question"], second["question"]} == {"colour?", "size?"}
    judged.answer("a1", "small")


def test_nothing_is_taken_while_paused_not_even_by_the_next_process(judged: Client) -> None:
    judged.order("o1", "pause")
    judged.submit("t1", "one")
    judged.product.idle()
    assert judged.oracle.runs == []
    assert loaded(judged.files, paths.RUNTIME)["paused"] is True
    judged.order("o2", "resume")
    judged.product.idle()
    assert results(judged.files) == {"t1": "done"}


def test_a_retry_is_a_task_of_its_own(judged: Client) -> None:
    judged.submit("t1", "bad", title="job", max_attempts=2)
    judged.product.idle()
    judged.order("o1", "retry", "t1")
    judged.product.idle()
    again = loaded(judged.files, paths.command_done("o1"))["resultId"]
    task = loaded(judged.files, paths.ended("worker", again))
    assert (task["retryOf"], task["title"], task["attempts"]) == ("t1", "job", 1)
    assert results(judged.files) == {"t1": "failed", again: "failed"}
    assert len(judged.oracle.runs) == 4


@pytest.mark.parametrize(
    ("action", "target", "said"),
    [
        ("cancel", "nobody", "no task or trigger nobody"),
        ("cancel", "../../x", "expected the id"),
        ("retry", "nobody", "expected the id of a task that has ended"),
        ("trigger_run", "../../history", "expected the id"),
        ("trigger_run", "nobody", "no trigger nobody"),
        ("trigger_remove", "nobody", "no trigger nobody"),
    ],
)
def test_a_failed_command_has_its_reason_and_blocks_no_other(
    judged: Client, action: str, target: str, said: str
) -> None:
    judged.order("o1", action, target)
    judged.order("o2", "pause")
    judged.order("o3", "resume")
    judged.product.idle()
    ok, message = outcome(judged, "o1")
    assert not ok
    assert said in message
    code = loaded(judged.files, paths.command_done("o1"))["code"]
    assert code == ("bad_id" if ".." in target else "not_found")
    assert outcome(judged, "o3")[0]
    assert judged.product.log.errors == []


def test_a_trigger_file_that_is_a_link_blocks_no_command(
    judged: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mimikit.errors import UnsafeFile
    from mimikit.triggers import registry

    def unsafe(*_args: object) -> None:
        raise UnsafeFile("expected a plain file, got something else, at triggers/g1.json")

    monkeypatch.setattr(registry, "active", unsafe)
    judged.order("o1", "trigger_run", "g1")
    judged.submit("t1", "one")
    judged.order("o2", "cancel", "t1")
    judged.product.idle()
    assert outcome(judged, "o1")[1].startswith("expected a plain file")
    assert results(judged.files) == {"t1": "canceled"}


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ([], None),
        ([("delta", "Hel"), ("delta", "lo")], "Hello"),
        ([("delta", "Hello"), ("reset", "")], "Hello"),
        ([("delta", "Hm"), ("reset", ""), ("delta", "Hello")], "Hello"),
    ],
    ids=["nothing", "words", "withdrawn", "again"],
)
@pytest.mark.parametrize("how", ["stopped", "failed"])
def test_what_came_of_a_reply_that_was_not_completed_is_kept(
    judged: Client, shown: list[tuple[EventKind, str]], kept: str | None, how: str
) -> None:
    teller = judged.product.mind._teller

    def end(request: RunSpec):
        for kind, text in shown:
            request.callbacks.on_event(kind, text, {})
        if how == "stopped":
            judged.product.store.live.cancel(request.run_id)
        return teller(request)

    judged.product.mind._teller = end
    judged.say("m1", "fail" if how == "failed" else "hello")
    judged.product.idle()
    asked, reply = judged.product.store.conversation.messages
    assert (asked.id, reply.in_reply_to) == ("m1", ["m1"])
    assert (reply.stopped, reply.failed) == (how == "stopped", how == "failed")
    assert reply.role == ("agent" if kept else "system")
    if kept:
        assert reply.text == kept
        assert (reply.error is None) == (how == "stopped")
    assert len(judged.oracle.runs) == (1 if how == "stopped" else 2)
    assert judged.files.names(paths.INBOX) == []


def test_a_stop_that_a_crash_overtakes_ends_the_next_attempt(client: Client) -> None:
    turn_id = turns.turn_id(["m1"])
    client.say("m1", "hello")
    turns.start(client.files, turn_id, 1, ["m1"], client.product.clock.now())
    client.order("o1", "cancel", turn_id)
    client.product.idle()
    assert [m.stopped for m in client.product.store.conversation.messages] == [False, True]
    assert outcome(client, "o1")[0]


def test_many_commands_are_applied_in_batches(judged: Client) -> None:
    for number in range(3 * MOST_AT_ONCE):
        judged.order(f"o{number:03}", "cancel", "nothing")
    judged.product.supervisor.tick(passes=1)
    assert len(judged.files.names(paths.COMMANDS)) == 2 * MOST_AT_ONCE
    judged.product.supervisor.tick()
    assert len(judged.files.names(paths.COMMANDS_DONE)) == 3 * MOST_AT_ONCE


def test_commands_waiting_for_runs_do_not_block_later_ones(
    judged: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_applier, "MOST_AT_ONCE", 2)
    began: list[int] = []

    def meanwhile(_request: RunSpec) -> None:
        if not began:
            began.append(1)
            for number in range(5):
                judged.order(f"a{number}", "cancel", "t1")
            judged.order("b", "pause")
            judged.product.tick()
            judged.order("c", "resume")
            judged.product.tick()
            assert judged.files.exists(paths.command_done("b"))
            assert judged.files.exists(paths.command_done("c"))
            assert len(judged.files.names(paths.COMMANDS)) == 5

    judged.product.mind.hook = meanwhile
    judged.submit("t1", "x ~")
    judged.product.idle()
    assert judged.files.names(paths.COMMANDS) == []


@pytest.mark.parametrize("last", ["pause", "resume"])
def test_commands_of_a_plan_are_applied_in_order(judged: Client, last: str) -> None:
    judged.trigger("g1", 6000, "water the plants")
    first = "resume" if last == "pause" else "pause"
    for number in range(6):
        judged.say(f"m{number}", f"change: {'; '.join(['g1 ' + first, 'g1 ' + last] * 6)}")
        judged.product.idle()
        definition = loaded(judged.files, paths.trigger("g1"))
        assert definition["enabled"] == (last == "resume"), number
