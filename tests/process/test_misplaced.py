"""Something else in the place of a folder of the state: told and waited for, and never given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.protocol import paths
from tests.process.test_lifecycle import part_of, start_up, world_answers
from tests.process.world import World, until
from tests.support.pace import within

pytestmark = pytest.mark.needs_platform("linux")


BY_NIGHT = (("history", "link"), ("worker", "file"), ("secrets", "link"))
"""The other of a file and a link in the place of each folder."""


def put_aside(folder: Path, away: Path, how: str) -> None:
    """Have a file, or a link to it, in a folder's place; at no moment is there nothing."""
    folder.rename(away)
    if how == "file":
        folder.write_text("x")
    else:
        folder.symlink_to(away)


def put_back(folder: Path, away: Path) -> None:
    folder.unlink()
    away.rename(folder)


def degraded(world: World) -> str:
    return str((world.record("health.json") or {}).get("degraded"))


@pytest.mark.parametrize(
    "folders",
    [
        pytest.param(paths.FOLDERS[::4], id="some"),
        pytest.param(paths.FOLDERS, id="all", marks=pytest.mark.nightly),
    ],
)
def test_while_running_it_is_told_and_work_goes_on_when_it_is_put_back(
    world: World, folders: tuple[str, ...]
) -> None:
    up = start_up(world)
    assert world_answers(world, "msg-first", "hello") <= within(30)
    away = world.root / "away"
    for number, folder in enumerate(folders):
        place = world.state / folder
        put_aside(place, away, ("file", "link")[number % 2])
        until(lambda: "expected a folder" in degraded(world), folder, facts=world.facts)
        status = world.run("status")
        assert "expected a folder" in status.stdout + status.stderr
        if folder != paths.PAGES:  # without it the page starts again, and waits
            shown = world.ask("GET", "/api/status")
            assert "expected a folder" in str(shown.body)
            assert shown.status == (503 if folder == paths.CORRUPT else 200)
        put_back(place, away)
        until(lambda: degraded(world) == "None", f"{folder} is back", facts=lambda: degraded(world))
        id_ = f"msg-{folder.replace('/', '-')}"
        assert world_answers(world, id_, f"run: echo {folder}") <= within(30)
    assert up.poll() is None
    assert "giving up" not in world.said("up")
    assert world.said("up").count("The consumer ended") <= 1
    assert len(world.replies("msg-first")) == 1


@pytest.mark.parametrize(
    ("folder", "how"),
    [
        *(("history", "file"), ("worker", "link"), ("secrets", "file")),
        *(pytest.param(*pair, marks=pytest.mark.nightly) for pair in BY_NIGHT),
    ],
)
def test_at_the_start_it_is_waited_for(world: World, folder: str, how: str) -> None:
    world.start_consumer().terminate()
    assert world.consumer is not None
    assert world.consumer.wait(120) == 0
    away = world.root / "away"
    put_aside(world.state / folder, away, how)
    consumer = world.start_consumer()
    web = world.start_web(wait=False)
    until(lambda: f"{folder}: expected a folder" in degraded(world), "it is told")
    until(lambda: f"{folder}: expected a folder" in world.said("web"), "the page tells it, too")
    assert f"{folder}: expected a folder" in world.run("status").stdout
    assert f"The consumer waits: {folder}: expected a folder" in world.said("consumer")
    put_back(world.state / folder, away)
    until(world.is_serving, "the page is served")
    assert world_answers(world, "msg-1", "hello") <= within(30)
    assert (consumer.poll(), web.poll()) == (None, None)


def test_a_link_in_place_of_the_lock_is_set_aside_at_the_next_start(world: World) -> None:
    up = start_up(world)
    assert world_answers(world, "msg-1", "hello") <= within(30)
    first = part_of(up, "consumer").pid
    lock = world.state / "consumer.lock"
    lock.unlink()
    lock.symlink_to("/dev/null")
    until(lambda: part_of(up, "consumer").pid != first, "another takes its place")
    assert world_answers(world, "msg-2", "hello") <= within(30)
    assert lock.is_file()
    assert not lock.is_symlink()
    assert "consumer.lock was removed or replaced" in world.said("up")
    assert world.said("up").count("The consumer ended") == 1
    second = world.run("consumer")
    assert second.returncode == 1
    assert "is its consumer" in second.stderr
