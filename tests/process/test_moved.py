"""State folders that are removed, moved or replaced under running processes."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.process.world import World, until

ENDS_S = 8.0
"""Seconds: a look a second, and what an idle consumer takes to end on a busy machine."""


def ends(world: World, process: subprocess.Popen[bytes], reason: str) -> None:
    """It ends by itself, with one line that says why."""
    assert process.wait(ENDS_S) == 1
    said = world.said("consumer")
    assert f"{reason}; the consumer has to be started again" in said
    assert "Traceback" not in said


def replace(folder: Path) -> None:
    """Put another folder of the same content in a folder's place, as from a backup."""
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    shutil.copytree(away, folder)


def say(world: World, id_: str) -> int:
    return world.post("/api/input", {"id": id_, "text": "hello"}).status


def answered(world: World, id_: str) -> None:
    until(lambda: world.replies(id_), f"{id_} is answered", facts=world.facts)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_consumer_whose_lock_file_goes_ends(world: World, how: str) -> None:
    consumer = world.start_consumer()
    lock = world.state / "consumer.lock"
    lock.unlink()
    if how == "replaced":
        lock.touch()
    ends(world, consumer, "consumer.lock was removed or replaced")
    world.start_consumer()


def test_without_the_lock_file_a_second_consumer_is_still_kept_out(world: World) -> None:
    consumer = world.start_consumer()
    consumer.send_signal(signal.SIGSTOP)  # it can not notice
    (world.state / "consumer.lock").unlink()
    second = world.run("consumer")
    assert second.returncode == 1
    assert f"is in use: process {consumer.pid}" in second.stderr
    consumer.send_signal(signal.SIGCONT)
    ends(world, consumer, "consumer.lock was removed or replaced")
    world.start_consumer()


@pytest.mark.parametrize("folder", ["history", "tasks", "triggers/state"])
def test_a_consumer_ends_when_a_folder_it_remembers_is_replaced(world: World, folder: str) -> None:
    consumer = world.start_consumer()
    replace(world.state / folder)
    ends(world, consumer, f"{folder}/ was replaced")


@pytest.mark.parametrize("folder", ["history", "tasks"])
def test_a_consumer_ends_when_a_folder_it_remembers_is_removed(world: World, folder: str) -> None:
    consumer = world.start_consumer()
    shutil.rmtree(world.state / folder)
    ends(world, consumer, f"{folder}/ was removed")
    world.start_consumer()
    world.start_web()
    assert say(world, "msg-1") == 202
    answered(world, "msg-1")


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_other_folders_are_made_again_and_work_goes_on(world: World, how: str) -> None:
    consumer = world.start_consumer()
    web = world.start_web()
    assert say(world, "msg-1") == 202
    answered(world, "msg-1")
    folders = ["inbox", "commands", "memory", "side", "runs"]
    if how == "removed":
        folders += ["turns", "worker/queue", "worker/results", "planner"]
    for folder in folders:
        path = world.state / folder
        path.rename(world.state.with_name(f"away-{folder.replace('/', '-')}"))
        if how == "replaced":
            path.mkdir()
            assert [path.name for path in path.iterdir()] == []
    for folder in [*folders, "commands/done", "memory/summary"]:
        until((world.state / folder).is_dir, f"{folder} is there again")
    until(lambda: say(world, "msg-2") == 202, "messages are taken again")
    answered(world, "msg-2")
    world.drop("job", {"prompt": "echo fine", "profile": "command"})
    until(lambda: world.told("job"), "what is dropped is done", facts=world.facts)
    world.order("pause")
    assert world.post("/api/input", {"id": "msg-3", "text": "remember: the key is blue"}).status
    answered(world, "msg-3")
    assert (consumer.poll(), web.poll()) == (None, None)
    assert len(world.replies("msg-1")) == 1


@pytest.mark.parametrize("how", ["moved", "replaced", "removed"])
def test_a_state_folder_that_goes_ends_both_and_nothing_is_taken_for_it(
    world: World, how: str
) -> None:
    consumer = world.start_consumer()
    web = world.start_web()
    away = world.root / "away"
    assert say(world, "msg-1") == 202
    answered(world, "msg-1")
    if how == "removed":
        shutil.rmtree(world.state, ignore_errors=True)
        shutil.rmtree(world.state, ignore_errors=True)
    else:
        world.state.rename(away)
    if how == "replaced":
        shutil.copytree(away, world.state)
    try:
        status = say(world, "msg-2")
    except OSError:
        status = 503  # it has ended by now
    if how != "removed":  # a consumer may make folders again while they are being removed
        assert status == 503
        assert "msg-2" not in [path.stem for path in (away / "inbox").iterdir()]
        ends(world, consumer, "the folder was moved, removed or replaced")
    else:
        assert consumer.wait(ENDS_S) == 1
    assert web.wait(ENDS_S) != 0
    assert "the page has to be started again" in world.said("web")
    # Half a state folder would look like an empty one: what was said would seem never said.
    assert how != "moved" or not world.state.exists()
    assert "Traceback" not in world.said("web") + world.said("consumer")


def test_up_starts_both_again_over_a_restored_backup(world: World) -> None:
    up = world.spawn("up", "--port", str(world.port))
    until(world.is_serving, "the page is served")
    until(lambda: world.record("health.json"), "the consumer serves")
    assert say(world, "msg-1") == 202
    answered(world, "msg-1")
    old = (world.record("health.json") or {})["pid"]
    backup = world.root / "backup"
    shutil.copytree(world.state, backup, ignore=shutil.ignore_patterns(".tmp-*"))
    assert say(world, "msg-2") == 202
    answered(world, "msg-2")
    world.state.rename(world.root / "away")
    until(lambda: "started again" in world.said("up"), "up notices")
    assert not world.state.exists(), "nothing is made in place of a folder that was moved away"
    backup.rename(world.state)
    until(lambda: (world.record("health.json") or {"pid": old})["pid"] != old, "a new consumer")
    until(world.is_serving, "the page is served again")
    assert [m["id"] for m in world.transcript() if m["role"] == "user"] == ["msg-1"]
    until(lambda: say(world, "msg-2") == 202, "what the backup does not have is taken")
    answered(world, "msg-2")
    assert up.poll() is None
