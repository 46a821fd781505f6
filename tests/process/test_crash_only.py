"""What the consumer does not live through: one line, its end, and `up` starts it again."""

from __future__ import annotations

import contextlib
import resource
import shutil
import time

import pytest

from tests.process.test_lifecycle import part_of, start_up
from tests.process.world import World, until

pytestmark = [pytest.mark.needs_platform("linux"), pytest.mark.nightly]

ENDS = "mimikit ends, to be started again: "
SITE = """
import sys, threading
if "consumer" in sys.orig_argv:
    from mimikit.conversation import inbox
    from mimikit.runner import consumer
    consumer._END_AFTER_S = 4.0
    take_in = inbox.read_drop_file

    def hang_once(files, now):
        if files.remove("hang"):
            threading.Event().wait()
        return take_in(files, now)

    inbox.read_drop_file = hang_once
"""
"""Run by Python at its start: it shortens the wait, and has an operation hang on demand."""


def world_answers(world: World, id_: str, text: str) -> float:
    """Send a message until it is accepted, and wait for its reply; gives how long that took."""
    begun = time.monotonic()

    def is_accepted() -> bool:
        try:
            return world.post("/api/input", {"id": id_, "text": text}).status == 202
        except OSError:
            return False

    until(is_accepted, "the message is accepted")
    until(lambda: world.replies(id_), "the message is answered", facts=world.facts)
    return time.monotonic() - begun


def prepare(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    place = world.root / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(place))


def test_a_hung_supervisor_ends_the_consumer_and_another_starts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(world, monkeypatch)
    up = start_up(world)
    first = part_of(up, "consumer").pid
    (world.state / "hang").write_bytes(b"")
    until(lambda: part_of(up, "consumer").pid != first, "another takes its place")
    assert world_answers(world, "msg-after", "hello") <= 30
    said = world.output("up")
    assert f"{ENDS}the supervisor thread hung" in said
    assert "exit code 70" in said
    assert "in hang_once" in said, "where it hung"
    assert [line for line in world.log() if line["event"] == "crashed"]


@pytest.mark.parametrize(
    ("limit", "least"), [(resource.RLIMIT_NOFILE, 0), (resource.RLIMIT_AS, 60 << 20)]
)
def test_what_was_accepted_during_a_shortage_is_answered_after_it(
    world: World, limit: int, least: int
) -> None:
    up = start_up(world)
    world_answers(world, "msg-before", "hello")
    pid = part_of(up, "consumer").pid
    before = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (least, before[1]))
    assert world.post("/api/input", {"id": "msg-1", "text": "run: echo 1"}).status == 202
    time.sleep(4)
    with contextlib.suppress(ProcessLookupError):  # it ended, as by a kill
        resource.prlimit(pid, limit, before)
    # However often it ended meanwhile, and however long `up` waited before it began again.
    until(lambda: world.replies("msg-1"), "it is answered", timeout_s=120, facts=world.facts)


@pytest.mark.parametrize("name", ["history", "consumer.lock"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_folder_or_lock_that_goes_ends_the_consumer_and_another_starts(
    world: World, name: str, how: str
) -> None:
    consumer = world.start_consumer()
    place = world.state / name
    place.rename(world.root / "away")
    if how == "replaced":
        place.mkdir() if "." not in name else place.touch()
    assert consumer.wait(20) == 70
    assert f"{ENDS}{world.state}: {name}" in world.output("consumer")
    assert "Traceback" not in world.output("consumer")
    world.start_consumer()
    world.start_web()
    assert world_answers(world, "msg-1", "hello") <= 30


def test_up_starts_both_again_over_a_restored_backup(world: World) -> None:
    up = start_up(world)
    world_answers(world, "msg-1", "hello")
    old = part_of(up, "consumer").pid
    backup = world.root / "backup"
    shutil.copytree(world.state, backup, ignore=shutil.ignore_patterns(".tmp-*"))
    world.state.rename(world.root / "away")
    until(lambda: "started again" in world.output("up"), "up notices")
    assert not world.state.exists(), "nothing is made in place of a folder that was moved away"
    backup.rename(world.state)
    until(lambda: part_of(up, "consumer").pid != old, "a new consumer")
    assert world_answers(world, "msg-2", "hello") <= 60
    assert [m["id"] for m in world.transcript() if m["role"] == "user"] == ["msg-1", "msg-2"]
