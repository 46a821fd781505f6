"""State folders that are removed, moved or replaced under running processes."""

from __future__ import annotations

import contextlib
import shutil
import signal
from pathlib import Path

import pytest

from tests.process.warm import Process
from tests.process.world import World, until
from tests.support.pace import within

ENDS_S = 30.0
"""Seconds; it takes one or two, and one that does not notice never ends."""
BY_NIGHT = pytest.mark.nightly
"""One by day is enough: what each folder's change means, tests/supervisor has for all of them."""


def ends(world: World, process: Process, reason: str) -> None:
    """It ends by itself, with one line that says why."""
    assert process.wait(within(ENDS_S)) == 1
    said = world.said("consumer")
    assert f"{reason}; the consumer has to be started again" in said
    assert "Traceback" not in said


def replace(folder: Path) -> None:
    """Put another folder of the same content in a folder's place, as from a backup."""
    away, other = (folder.with_name(f"{folder.name}-{how}") for how in ("away", "other"))
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns(".tmp-*"))
    folder.rename(away)  # and at once, lest it be seen that there is none
    other.rename(folder)


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


@pytest.mark.fault(27)
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


@pytest.mark.fault(31)
@pytest.mark.parametrize(
    "folder",
    [
        "history",
        pytest.param("tasks", marks=BY_NIGHT),
        pytest.param("triggers/state", marks=BY_NIGHT),
    ],
)
def test_a_consumer_ends_when_a_folder_it_remembers_is_replaced(world: World, folder: str) -> None:
    consumer = world.start_consumer()
    replace(world.state / folder)
    ends(world, consumer, f"{folder}/ was replaced")


@pytest.mark.parametrize("folder", [pytest.param("history", marks=BY_NIGHT), "tasks"])
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
            path.mkdir(exist_ok=True)  # or the consumer was quicker
    for folder in [*folders, "commands/done", "memory/summary"]:
        until((world.state / folder).is_dir, f"{folder} is there again")
    until(lambda: say(world, "msg-2") == 202, "messages are taken again")
    answered(world, "msg-2")
    world.drop("job", {"prompt": "echo fine", "profile": "command"})
    until(lambda: world.told("job"), "what is dropped is done", facts=world.facts)
    world.order("pause")
    (world.state / "memory.md").symlink_to(world.root / "x")  # so it goes to the file of the day
    said = {"id": "msg-3", "text": "remember: the key is blue"}
    assert world.post("/api/input", said).status == 202
    answered(world, "msg-3")

    def kept() -> list[Path]:
        files = [path for path in world.workspace.rglob("*.md") if path.is_file()]
        return [path.parent for path in files if "the key is blue" in path.read_text()]

    assert until(kept, "it is remembered", facts=world.facts) == [world.state / "memory"]
    assert (consumer.poll(), web.poll()) == (None, None)
    assert len(world.replies("msg-1")) == 1


@pytest.mark.fault(31)
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
        shutil.copytree(away, world.state, ignore=shutil.ignore_patterns(".tmp-*"))
    try:
        status = say(world, "msg-2")
    except OSError:
        status = 503  # it has ended by now
    if how != "removed":  # a consumer may make folders again while they are being removed
        assert status == 503
        assert "msg-2" not in [path.stem for path in (away / "inbox").iterdir()]
        ends(world, consumer, "the folder was moved, removed or replaced")
    else:
        assert consumer.wait(within(ENDS_S)) == 1
    assert web.wait(within(ENDS_S)) != 0
    assert "the page has to be started again" in world.said("web")
    # Half a state folder would look like an empty one: what was said would seem never said.
    assert how != "moved" or not world.state.exists()
    assert "Traceback" not in world.said("web") + world.said("consumer")


@pytest.mark.fault(64)
def test_up_starts_both_again_over_a_restored_backup(world: World) -> None:
    up = world.spawn("up", "--port", str(world.port))
    until(world.is_serving, "the page is served")
    until(lambda: world.record("health.json"), "the consumer serves")
    assert say(world, "msg-1") == 202
    answered(world, "msg-1")
    until(world.is_idle, "no file comes and goes")
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


PARTS = {
    "tasks": ["tasks", "task_status.json"],
    "history": ["history", "history.json"],
    "worker": ["worker"],
    "whole": [""],
}
"""What of a backup is put back, the folder first."""


def contents(place: Path) -> dict[str, bytes]:
    """What a file, or each file below a folder, holds."""
    files = [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("part", PARTS)
def test_what_is_put_back_while_a_run_lives_is_what_the_next_start_finds(
    world: World, part: str
) -> None:
    """Byte for byte: on its way out the consumer writes nothing of what it remembers over it."""
    world.settings["LIMITS__SHUTDOWN_TIMEOUT_S"] = 4
    world.start_consumer()
    world.start_web()
    assert say(world, "msg-old") == 202
    answered(world, "msg-old")
    world.drop("job-old", {"prompt": "echo old", "profile": "command"})
    until(lambda: world.told("job-old"), "the first job is told", facts=world.facts)
    until(world.is_idle, "nothing is left to do")
    until((world.state / "task_status.json").exists, "it is written down", facts=world.facts)
    backup = world.root / "backup"
    shutil.copytree(world.state, backup, ignore=shutil.ignore_patterns(".tmp-*"))

    assert say(world, "msg-new") == 202
    answered(world, "msg-new")
    world.drop("job-new", {"prompt": "echo new", "profile": "command"})
    until(lambda: world.told("job-new"), "the second job is told", facts=world.facts)
    line = f"echo begun >> {world.root}/begun; sleep 2; echo over; sleep 30"
    world.drop("long", {"prompt": line, "profile": "command", "maxAttempts": 1})
    until((world.root / "begun").exists, "a run lives", facts=world.facts)
    consumer = world.consumer
    assert consumer is not None

    beside = world.root / "beside"
    for name in PARTS[part]:  # each is put there whole, by a rename
        place = world.state / name if name else world.state
        if place.is_dir():
            place.rename(world.root / f"was-{name}")
        (backup / name).rename(beside)
        beside.rename(place)
    put_back = {name: contents(world.state / name) for name in PARTS[part]}
    with contextlib.suppress(OSError):  # the page may have ended with the folder
        say(world, "msg-late")
    assert consumer.wait(within(ENDS_S)) == 1
    assert "Traceback" not in world.said("consumer")
    late = str(world.state / "inbox/msg-late.json")
    for name, files in put_back.items():
        now = contents(world.state / name)
        now.pop(late, None)  # the page's, over what was put back
        kept = {path: data for path, data in now.items() if "/pages/" not in path}
        assert kept == {path: data for path, data in files.items() if "/pages/" not in path}
