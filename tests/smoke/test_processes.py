"""`mimikit up` starts, answers and stops; a kill loses nothing; a canceled run leaves nothing."""

from __future__ import annotations

import signal

import pytest

from tests.process.world import PATIENCE_S, World, children, until, wait_ended

pytestmark = pytest.mark.needs_platform("linux")


def test_up_starts_answers_and_stops(world: World) -> None:
    up = world.spawn("up", "--port", str(world.port))
    until(world.is_serving, "the page is served", facts=lambda: world.output("up"))
    world.post("/api/input", {"id": "msg-smoke", "text": "run: echo it works"})
    until(
        lambda: [m for m in world.transcript() if m["role"] != "user" and "it works" in m["text"]],
        "the result is told",
        facts=lambda: world.output("up"),
    )
    family = [child.pid for child in children(up.pid)]
    assert len(family) >= 2
    up.send_signal(signal.SIGTERM)
    assert up.wait(PATIENCE_S) == 0
    assert wait_ended(family, PATIENCE_S)


def test_a_killed_consumer_loses_and_repeats_nothing(world: World) -> None:
    consumer = world.start_consumer()
    record = world.scratch / "runs"
    ids = [f"task-smoke-{number}" for number in range(6)]
    for task_id in ids:
        prompt = f"echo {task_id} >> {record}; sleep 0.2"
        world.drop(task_id, {"id": task_id, "prompt": prompt, "profile": "command"})
    until(lambda: world.names("worker/results"), "a first task is done", facts=world.facts)
    consumer.kill()
    consumer.wait(PATIENCE_S)
    world.start_consumer()
    until(lambda: all(map(world.result, ids)), "each task ends", facts=world.facts)
    runs = record.read_text().split()
    assert len(runs) == len(set(runs)), "a recorded attempt is started at most once"
    for task_id in ids:
        result = world.result(task_id)
        assert result is not None
        assert result["status"] == ("done" if result.get("failureReason") is None else "failed")
        assert task_id in runs or result["status"] == "failed"


def test_a_canceled_run_leaves_no_process(world: World) -> None:
    world.start_consumer()
    world.drop(
        "task-long", {"id": "task-long", "prompt": "sleep 600 & sleep 601", "profile": "command"}
    )
    until(lambda: len(world.of_runs()) >= 2, "the run has started its programs", facts=world.facts)
    left = world.of_runs()
    world.order("cancel", "task-long")
    until(lambda: world.result("task-long"), "the task ends", facts=world.facts)
    assert wait_ended(left, PATIENCE_S)
    assert world.of_runs() == []
