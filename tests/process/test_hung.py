"""A supervisor that hangs: its process says where, ends and is started again; no nap is one."""

from __future__ import annotations

import contextlib
import resource
import signal
import time

import pytest

from tests.process.test_lifecycle import part_of, start_up, world_answers
from tests.process.world import World, until
from tests.support.pace import within

pytestmark = pytest.mark.needs_platform("linux")

SITE = """
import os, sys, threading
if "consumer" in sys.orig_argv:
    from mimikit.conversation import inbox
    from mimikit.runner import consumer
    consumer._HUNG_AFTER_S, consumer._END_AFTER_S = HUNG_S, END_S
    take_in = inbox.take_in_dropped

    def hang_once(files, now):
        if files.remove("hang"):
            threading.Event().wait()
        return take_in(files, now)

    inbox.take_in_dropped = hang_once
"""
"""Run by Python at its start: it shortens the wait, and has an operation hang on demand."""


LOCK_SITE = (
    SITE.replace("threading.Event().wait()", "hold_the_log()")
    + """
    def hold_the_log():
        import logging
        for handler in [*logging.getLogger().handlers, logging.lastResort]:
            handler.acquire()
        threading.Event().wait()

    consumer._GRACE_S = 1.0
"""
)
"""The same; and whoever logs waits as well: the main thread, as it tells of the one that hangs."""


def prepare(world: World, monkeypatch: pytest.MonkeyPatch, site: str = SITE) -> float:
    """Have its consumers run this; gives after how many seconds one that hangs ends itself."""
    place = world.root / "site"
    place.mkdir()
    hung_s = min(within(4), 15.0)  # so long a pass that does not hang may take on a busy machine
    site = site.replace("HUNG_S, END_S", f"{hung_s}, {1.5 * hung_s}")
    (place / "sitecustomize.py").write_text(site)
    monkeypatch.setenv("PYTHONPATH", str(place))
    return 1.5 * hung_s


@pytest.mark.fault(66, "complaint 16")
def test_a_consumer_whose_supervisor_hangs_ends_itself_and_is_started_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(world, monkeypatch)
    up = start_up(world)
    first = part_of(up, "consumer").pid
    (world.state / "hang").write_bytes(b"")
    until(lambda: part_of(up, "consumer").pid != first, "another takes its place")
    assert world_answers(world, "msg-after", "hello") <= within(30)
    hung = [line for line in world.log() if line["event"] == "supervisor_hung"]
    assert hung
    assert all("in hang_once" in line["stack"] for line in hung)
    assert "exit code 70" in world.said("up")
    assert "in hang_once" in world.said("up"), "the stack stands where the consumer speaks"
    up.terminate()
    assert up.wait(120) == 0


@pytest.mark.fault(65)
def test_a_consumer_ends_itself_though_its_main_thread_waits_for_a_lock_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(world, monkeypatch, LOCK_SITE)
    up = start_up(world)
    first = part_of(up, "consumer").pid
    (world.state / "hang").write_bytes(b"")
    until(lambda: part_of(up, "consumer").pid != first, "another takes its place")
    assert world_answers(world, "msg-after", "hello") <= within(30)
    said = world.said("up")
    assert "exit code 70" in said
    assert "in hold_the_log" in said, "the supervisor's stack"
    assert "in check_worker_health" in said, "the main thread's stack"
    up.terminate()
    assert up.wait(120) == 0


def test_a_consumer_that_was_out_of_memory_for_seconds_works_on_or_is_started_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any lock may be lost to a MemoryError, or a thread die unborn: nobody waits for that."""
    prepare(world, monkeypatch, LOCK_SITE)
    up = start_up(world)
    world_answers(world, "msg-before", "run: echo before")
    for turn in range(3):
        pid = part_of(up, "consumer").pid
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (60 << 20, before[1]))
        said = f"msg-{turn}"
        assert world.post("/api/input", {"id": said, "text": f"run: echo {turn}"}).status == 202
        time.sleep(4)
        with contextlib.suppress(ProcessLookupError):  # it was ended, as by a kill
            resource.prlimit(pid, resource.RLIMIT_AS, before)
        until(lambda said=said: world.replies(said), "it is answered", facts=world.facts)
    assert world_answers(world, "msg-after", "hello") <= within(30)
    up.terminate()
    assert up.wait(120) == 0


def test_a_consumer_that_was_stopped_for_longer_is_not_taken_for_hung(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_s = prepare(world, monkeypatch)
    consumer = world.start_consumer()
    for _ in range(2):
        consumer.send_signal(signal.SIGSTOP)
        time.sleep(end_s + 2)
        consumer.send_signal(signal.SIGCONT)
    time.sleep(3)
    assert consumer.poll() is None
    assert not [line for line in world.log() if line["event"] == "supervisor_hung"]
    consumer.terminate()
    assert consumer.wait(120) == 0
