"""A consumer that may open no more files: it says so, begins nothing, and goes on by itself."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from tests.process.world import World, until

pytestmark = pytest.mark.needs_platform("linux")


def open_files(pid: int) -> list[int]:
    return [int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()]


@pytest.mark.fault(19)
@pytest.mark.parametrize("room", [0, 12])
def test_without_files_nothing_is_begun_or_spent_and_it_goes_on(world: World, room: int) -> None:
    consumer = world.start_consumer()
    web = world.start_web()
    world.drop("warm", {"prompt": "echo warm", "profile": "command"})
    until(lambda: world.told("warm"), "the first task is done")
    limit = max(open_files(consumer.pid)) + 1 + room
    before = resource.prlimit(consumer.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(consumer.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    until(lambda: "nothing new is begun" in str((world.record("health.json") or {})["degraded"]),
          "health says so", facts=world.facts)  # fmt: skip
    jobs = [f"job-{number}" for number in range(5)]
    for id_ in jobs:
        world.drop(id_, {"prompt": f"echo {id_}", "profile": "command", "maxAttempts": 1})
    assert world.post("/api/input", {"id": "msg-1", "text": "hello"}).status == 202
    assert "files" in world.ask("GET", "/api/status").body["degraded"]
    status = world.run("status")
    assert "nothing new is begun" in status.stdout
    time.sleep(4)
    assert [id_ for id_ in jobs if world.result(id_)] == []
    assert world.replies("msg-1") == []
    beaten = (world.record("health.json") or {})["beatAt"]
    until(lambda: (world.record("health.json") or {})["beatAt"] > beaten, "it still beats")
    resource.prlimit(consumer.pid, resource.RLIMIT_NOFILE, before)
    until(lambda: all(world.told(id_) for id_ in jobs), "all tasks are done", facts=world.facts)
    until(lambda: world.replies("msg-1"), "the message is answered")
    ended = [world.result(id_) or {} for id_ in jobs]
    assert [(end["status"], end["attempts"]) for end in ended] == [("done", 1)] * len(jobs)
    assert len(world.replies("msg-1")) == 1
    until(lambda: not (world.record("health.json") or {})["degraded"], "the trouble is over")
    assert (consumer.poll(), web.poll()) == (None, None)
    assert world.names("corrupt", "") == []
    assert "Traceback" not in world.said("consumer")
