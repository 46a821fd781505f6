"""Orders to a consumer that works: cancel, retry, pause, resume, over HTTP and as files."""

from __future__ import annotations

import time

import pytest

from tests.process.world import Answer, World, until
from tests.support.pace import within
from tests.support.runs import alive, tag

pytestmark = pytest.mark.needs_platform("linux")


@pytest.fixture
def both(world: World) -> World:
    """Consumer and page."""
    world.start_consumer()
    world.start_web()
    return world


def long_run(world: World, name: str = "job") -> str:
    number = tag()
    world.drop(name, {"prompt": f"echo begun; sleep {number}", "profile": "command"})
    until(lambda: alive(number), "it runs")
    return number


def test_a_running_command_is_canceled_over_http(both: World) -> None:
    number = long_run(both)
    begun = time.monotonic()
    answer = both.post("/api/tasks/job/cancel", {"id": "cmd-mine"})
    assert answer.status in (200, 202)
    until(lambda: not alive(number), "it has ended")
    assert time.monotonic() - begun <= within(15)  # by itself it would sleep for a day
    done = until(lambda: both.record("commands/done/cmd-mine.json"), "the order is settled")
    assert done["ok"]
    result = until(lambda: both.result("job"), "it has its result")
    assert (result["status"], result["failureReason"]) == ("canceled", "canceled")
    until(lambda: both.told("job"), "it is told")
    again = both.post("/api/tasks/job/cancel", {"id": "cmd-mine"})
    assert (again.status, again.body["ok"]) == (200, True)
    assert len(both.told("job")) == 1


@pytest.mark.fault("complaint 19")
def test_a_canceled_task_stays_canceled_when_the_consumer_dies_at_it(world: World) -> None:
    consumer = world.start_consumer()
    number = long_run(world)
    consumer.kill()
    consumer.wait()
    world.order("cancel", "job", wait=False)
    world.start_consumer()
    result = until(lambda: world.result("job"), "it has its result")
    assert (result["status"], result["attempts"]) == ("canceled", 1)
    until(lambda: world.told("job"), "it is told")
    assert alive(number) == []
    assert world.names("worker/queue") == []


def test_a_waiting_task_is_canceled_before_it_runs(world: World) -> None:
    world.settings["MAX_CONCURRENCY"] = 1
    world.start_consumer()
    first = long_run(world)
    touched = world.root / "touched"
    world.drop("waiting", {"prompt": f"touch {touched}", "profile": "command"})
    assert world.order("cancel", "waiting")["ok"]
    assert world.order("cancel", "job")["ok"]
    until(world.is_idle, "nothing is left to do")
    assert (world.result("waiting") or {})["status"] == "canceled"
    assert not touched.exists()
    assert alive(first) == []


def test_a_failed_command_is_retried_as_a_new_task(both: World) -> None:
    flag = both.root / "flag"
    both.drop("job", {"prompt": f"test -e {flag} && echo better", "profile": "command"})
    until(lambda: both.told("job"), "its failure is told")
    assert (both.result("job") or {})["failureReason"] == "error"
    flag.touch()

    def again() -> Answer | None:
        """What came of it: the page waits for that for 2 s alone, and can be asked again."""
        answer = both.post("/api/tasks/job/retry", {"id": "cmd-again"})
        assert answer.status in (200, 202), answer
        return answer if answer.status == 200 else None

    answers = [until(again, "the order is settled") for _ in range(2)]
    new = answers[0].body["resultId"]
    assert answers[1].body["resultId"] == new
    (told,) = until(lambda: both.told(new), "the new one is told")
    assert "better" in told["text"]
    task = both.record(f"worker/ended/{new}.json") or {}
    assert task["retryOf"] == "job"
    assert sorted(both.names("worker/results")) == sorted(["job", new])


def test_while_paused_nothing_new_starts_also_after_a_kill(world: World) -> None:
    consumer = world.start_consumer()
    number = long_run(world)
    assert world.order("pause")["ok"]
    world.drop("later", {"prompt": "echo later", "profile": "command"})
    consumer.kill()
    consumer.wait()
    world.start_consumer()
    until(lambda: world.told("job"), "the interrupted run is told", facts=world.facts)
    assert alive(number) == []
    assert world.names("worker/queue") == ["later"]
    assert world.order("resume")["ok"]
    (told,) = until(lambda: world.told("later"), "it is done")
    assert "later" in told["text"]


@pytest.mark.fault(10)
def test_a_run_whose_shell_is_killed_has_failed_and_is_told(world: World) -> None:
    world.start_consumer()
    world.drop("job", {"prompt": "echo so far; kill -9 $$", "profile": "command"})
    (told,) = until(lambda: world.told("job"), "it is told")
    result = world.result("job") or {}
    assert (result["status"], result["failureReason"], result["exitCode"]) == (
        "failed",
        "error",
        137,
    )
    assert "SIGKILL" in told["text"]


def test_a_command_from_chat_is_delegated_run_and_told(both: World) -> None:
    body = {"id": "msg-1", "text": "run: echo from $((40 + 2))"}
    assert both.post("/api/input", body).status == 202
    until(lambda: len(both.transcript()) >= 3, "it is answered, and its result told")
    until(both.is_idle, "nothing is left to do")
    (task,) = both.names("worker/results")
    (told,) = both.told(task)
    assert "from 42" in told["text"]
    assert [m["role"] for m in both.transcript()] == ["user", "agent", "system"]


def test_orders_given_while_nobody_was_there_are_all_carried_out(world: World) -> None:
    """However many wait for the next start: each is one of the user's own."""
    world.settings["LIMITS__TASKS_PER_TRACE"] = 8
    world.start_web()
    count = 12
    for number in range(count):
        at = f"2026-01-01T00:00:{number:02}.000Z"
        text = f"run: echo {number} >> ran"
        record = {"id": f"msg-{number:02}", "text": text, "createdAt": at}
        world.put(f"inbox/msg-{number:02}.json", record)
    world.start_consumer()
    ran = world.workspace / "ran"
    until(
        lambda: ran.exists() and len(ran.read_text().split()) >= count,
        "all have run",
        timeout_s=60,
        facts=world.facts,
    )
    until(world.is_idle, "all is told", timeout_s=60, facts=world.facts)
    assert sorted(map(int, ran.read_text().split())) == list(range(count))
    said = [message["text"] for message in world.transcript() if message["role"] != "user"]
    assert not [text for text in said if "at most" in text]
