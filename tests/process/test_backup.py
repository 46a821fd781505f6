"""An export that is made while everything runs goes on elsewhere, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import mimikit
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.state_export import export_state
from tests.process import make_state, oracle
from tests.process.load import Load
from tests.process.world import World, until

SETTINGS: dict[str, object] = {"COMMAND__SANDBOX": "off"}  # the load looks at the state
EACH = 6
"""So many messages and tasks are accepted between two exports."""


class Accepted(Load):
    """What was accepted at one moment."""

    def runs(self) -> list[tuple[str, int]]:
        """None: the file to which runs append is of both worlds."""
        return []


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Callable[[Path], World]]:
    """Makes worlds out of exports."""
    made: list[World] = []

    def make(file: Path) -> World:
        world = World(tmp_path / f"elsewhere-{len(made)}", settings=SETTINGS)
        made.append(world)
        imported = world.run("import", str(file))
        assert imported.returncode == 0, imported.stderr
        return world

    yield make
    for world in made:
        world.close()


def complaints(world: World, load: Load) -> list[str]:
    """As the oracle's of a whole world; runs may have begun here and where it came from."""
    judge = oracle._Judge(world, load)
    parts = (judge.messages, judge.tasks, judge.told, judge.orders, judge.left, judge.faults)
    return [line for part in parts for line in part()]


@pytest.mark.fault(64)
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_was_accepted_before_an_export_is_there_once_where_it_is_imported(
    world: World, elsewhere: Callable[[Path], World], size: int
) -> None:
    world.settings = SETTINGS
    world.start_consumer()
    world.start_web()
    load = Load(world, "backup")
    load.start()
    known: dict[Path, Accepted] = {}
    for number in range(1, 1 + size):
        until(
            lambda at=number * EACH: min(len(load.messages), len(load.tasks)) >= at,
            "messages and tasks are accepted",
            facts=world.facts,
        )
        accepted = Accepted(world, "", dict(load.messages), dict(load.tasks), dict(load.cancels))
        file = world.root / f"export-{number}.zip"
        exported = world.run("export", str(file))
        assert exported.returncode == 0, exported.stderr
        known[file] = accepted
    load.stop(60)
    until(world.is_idle, "the first world is idle", facts=world.facts)
    assert oracle.complaints(world, load) == []
    world.close()
    assert not list((world.state / "cache").glob("snapshot-*"))
    for file, accepted in known.items():
        assert accepted.messages
        assert not [name for name in zipfile.ZipFile(file).namelist() if "secrets" in name]
        other = elsewhere(file)
        other.start_consumer()
        until(other.is_idle, "what was imported is done", facts=other.facts)
        assert complaints(other, accepted) == []
        other.put("inbox/msg-new.json", {"text": "hello"})
        until(lambda at=other: at.replies("msg-new"), "it goes on", facts=other.facts)
        other.close()


def test_an_import_that_is_killed_at_any_step_leaves_nothing_half(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "export.zip"
    world.state.mkdir(mode=0o700)
    with contextlib.closing(RealDisk(world.state, is_state=True)) as disk:
        files = Files(disk)
        files.make_folders(["inbox"])
        for number in range(2):
            files.write(f"inbox/msg-{number}.json", b'{"text": "hello"}')
        now = datetime(2026, 11, 26, tzinfo=UTC)
        made = export_state(disk, file, now, version="0.1.0", with_secrets=False)
    exported = len(made.files)
    places = tmp_path / "places"
    places.mkdir()
    killer = [sys.executable, "-P", Path(__file__).with_name("import_killer.py"), file, places]
    ended = subprocess.run(
        killer, capture_output=True, text=True, check=False, env=world.environment()
    )
    assert ended.returncode == 0, ended.stderr
    steps = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(steps) > exported
    for told in steps:
        assert told["files"] in (None, exported), told
        assert told["files"] is not None or told["again"] == exported, told
        assert told["left"] == [".mimikit"], told  # what an earlier one left is gone
    assert any(told["there"] not in ([], [".mimikit"]) for told in steps)


OLD = sorted((Path(__file__).parents[1] / "data").glob("state-*.zip"))


@pytest.mark.fault(25, 60)
@pytest.mark.parametrize("file", OLD, ids=[path.stem for path in OLD])
def test_what_a_released_version_wrote_opens_and_goes_on(
    elsewhere: Callable[[Path], World], file: Path
) -> None:
    world = elsewhere(file)
    before = world.transcript()
    consumer = world.start_consumer()
    until(world.is_idle, "what waited there is done", facts=world.facts)
    said = world.transcript()
    assert said[: len(before)] == before
    ids = [message["id"] for message in said]
    assert len(set(ids)) == len(ids)
    for id_ in (*make_state.ANSWERED, make_state.WAITING):
        assert len(world.replies(id_)) >= 1, id_
        assert ids.count(id_) == 1
    assert (world.result(make_state.CUT_SHORT) or {})["failureReason"] == "killed"
    assert len(world.told(make_state.CUT_SHORT)) == 1
    assert world.names("corrupt", "") == []
    memory = (world.state / "memory.md").read_text()
    assert "blue pot" in memory
    assert "龙井茶" in memory
    assert "water the plants" in (world.state / "backlog.md").read_text()
    assert len(world.names("triggers")) == 2
    consumer.terminate()
    assert consumer.wait() == 0


def test_the_version_that_is_now_keeps_a_state_for_those_to_come() -> None:
    assert f"state-{mimikit.__version__}.zip" in {path.name for path in OLD}
