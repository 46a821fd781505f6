"""Threads of the consumer that die of what nobody expected: another takes over, and it is said."""

from __future__ import annotations

import json
import resource
import time

import pytest

from tests.process.test_hung import prepare
from tests.process.test_lifecycle import world_answers
from tests.process.world import World, until
from tests.support.pace import within

pytestmark = pytest.mark.needs_platform("linux")

SITE = """
import ctypes, os, sys, threading, time
if "consumer" in sys.orig_argv:
    state = sys.orig_argv[sys.orig_argv.index("--state") + 1]
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def wait():
        while True:
            time.sleep(0.05)
            if os.path.exists(state + "/kill"):
                os.remove(state + "/kill")
                own = (threading.main_thread(), threading.current_thread())
                found = [thread for thread in threading.enumerate() if thread not in own]
                with open(state + "/killed.part", "w") as file:
                    file.write("\\n".join(thread.name for thread in found))
                os.rename(state + "/killed.part", state + "/killed")
                for thread in found:
                    raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))

    threading.Thread(target=wait, daemon=True).start()
"""
"""Run by Python at its start: it ends every thread but the main one, on demand."""

DIE = {"supervisor", "worker pool", "planner pool", "scheduler", "folder watch", "file watch",
       "search", "tool server"}  # fmt: skip


@pytest.mark.fault(66, "openclaw#11924")
def test_every_thread_that_dies_is_replaced_and_nothing_stays_unanswered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(world, monkeypatch, SITE)
    consumer = world.start_consumer()
    world.start_web()
    world.put("triggers/seen.json", {"prompt": "echo seen", "profile": "command",
              "condition": {"type": "file_changed", "params": {"path": "src/*"}}})  # fmt: skip
    (world.workspace / "src").mkdir()
    world_answers(world, "msg-before", "remember: the key is blue")
    until(lambda: world.names("triggers/state"), "the trigger is looked after")
    (world.state / "kill").touch()
    until((world.state / "killed").exists, "they are killed")
    killed = (world.state / "killed").read_text()
    assert killed.count("folder-watch") >= 3
    assert {"supervisor", "teller", "tool-server", "Scheduler"} <= set(killed.split())
    assert world_answers(world, "msg-1", "hello") <= within(30)
    for number in range(6):  # each thread of the pool wakes for one
        world.drop(f"job-{number}", {"prompt": "echo fine", "profile": "command"})
    until(lambda: all(world.told(f"job-{n}") for n in range(6)), "all are done", facts=world.facts)
    assert world_answers(world, "msg-2", "run: echo by hand") <= within(30)

    told = "died, and was started again: "

    def died() -> set[str]:
        said = world.said("consumer").splitlines()
        lists = (line.partition(told)[2].split(", ") for line in said if told in line)
        return {name for names in lists for name in names}

    until(lambda: died() >= DIE, f"each was told of: {sorted(DIE)}", facts=died)
    assert [line for line in world.log() if line["event"] == "thread_died"]
    until(lambda: not (world.record("health.json") or {})["degraded"], "the trouble is over")
    (world.workspace / "src/new.txt").touch()
    until(lambda: '"seen"' in json.dumps(world.ledger()), "the trigger fires", facts=world.facts)
    assert consumer.poll() is None


def test_with_no_open_file_allowed_for_a_while_what_was_accepted_is_still_answered(
    world: World,
) -> None:
    consumer = world.start_consumer()
    world.start_web()
    world_answers(world, "msg-before", "hello")
    before = resource.prlimit(consumer.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(consumer.pid, resource.RLIMIT_NOFILE, (0, before[1]))
    said = [f"msg-{number}" for number in range(2)]
    for id_ in said:
        assert world.post("/api/input", {"id": id_, "text": f"run: echo {id_}"}).status == 202
    until(lambda: "Exception in thread" in world.said("consumer"), "threads die")
    time.sleep(2)
    resource.prlimit(consumer.pid, resource.RLIMIT_NOFILE, before)
    until(lambda: all(map(world.replies, said)), "all is answered", facts=world.facts)
    assert world_answers(world, "msg-after", "run: echo after") <= within(30)
    assert consumer.poll() is None
