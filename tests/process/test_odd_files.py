"""One odd thing never stops the rest, with the real consumer: every folder full of odd things."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil
import pytest

from mimikit.protocol import paths
from tests.flows.test_odd_files import (
    OTHERS,
    READ,
    RECORDS,
    Planted,
    plant_contents,
    plant_kinds,
    shown,
)
from tests.process.world import World, until

SETTLED = READ | {"planner/queue", "worker/queue"}


def plant(world: World) -> list[Planted]:
    """One of each oddity in each folder."""
    every: list[Planted] = []
    for folder, record in RECORDS.items():
        here = world.state / folder
        here.mkdir(parents=True, exist_ok=True)
        every.append(Planted(here, paths.RECORDS[folder].suffix, record))
        plant_kinds(every[-1])
        plant_contents(every[-1])
    for folder, suffix in OTHERS.items():
        here = world.state / folder
        here.mkdir(parents=True, exist_ok=True)
        plant_kinds(other := Planted(here, suffix, {}))
        plant_contents(other)
    return every


def goes_on(world: World, number: int) -> None:
    """A message, a task and a trigger are dealt with."""
    task = {"prompt": "echo fine", "profile": "command"}
    world.drop(f"good{number}", task)
    fires = '{"prompt": "echo fired", "profile": "command", "schedule": {"interval": 1}}'
    (world.state / f"triggers/g{number}.json").write_text(fires)
    (world.state / f"inbox/m{number}.json").write_text('{"text": "hello"}')
    until(
        lambda: f"good{number}" in said(world) and f'"m{number}"' in said(world),
        "the task is told and the message answered",
        facts=world.facts,
    )
    until((world.state / f"triggers/state/g{number}.json").exists, "the trigger is looked at")


def corrupt(world: World) -> set[str]:
    """Where what lies in `corrupt/` came from."""
    reasons = (world.state / "corrupt").glob("*.reason.txt")
    return {path.read_text().partition("\n")[0] for path in reasons}


def said(world: World) -> str:
    """The transcript, as far as its files are such."""
    files = (path for path in (world.state / "history").iterdir() if path.is_file())
    return "".join(
        path.read_text(errors="replace") for path in files if path.stat().st_size < 10**6
    )


@pytest.mark.parametrize("at_start", [True, False], ids=["at start", "while running"])
def test_odd_things_in_every_folder_stop_nothing(world: World, *, at_start: bool) -> None:
    every = plant(world) if at_start else []
    consumer = world.start_consumer()
    if not at_start:
        goes_on(world, 1)
        every = plant(world)
    goes_on(world, 2)

    def left() -> list[str]:
        """What should have been set aside and was not."""
        found = corrupt(world)
        missing: list[str] = []
        for planted in every:
            odd = dict(planted.kinds) if at_start or planted.name in SETTLED else {}
            if planted.name in SETTLED and planted.name != paths.TRIGGERS:
                odd |= planted.contents
            odd.pop("just below its limit", None)  # it is used
            if os.geteuid() == 0 and planted.name != paths.TRIGGERS:
                odd.pop("mode 000", None)  # root reads it
            missing += [shown(world.state, path) for path in odd.values()
                        if shown(world.state, path) not in found]  # fmt: skip
        return missing

    until(lambda: not left() or None, "all odd things are set aside", facts=lambda: str(left()))
    goes_on(world, 3)
    kept: list[str] = []

    def is_settled() -> bool:
        """What nobody runs goes to its queue after some seconds, and is judged there."""
        before = sorted(corrupt(world))
        threading.Event().wait(9)
        kept[:] = sorted(corrupt(world))
        return kept == before

    until(is_settled, "what lies in running/ is judged")
    assert psutil.Process(consumer.pid).memory_info().rss < 400 * 2**20
    threading.Event().wait(3)
    assert sorted(corrupt(world)) == kept
    failed = [line for line in _log(world.state) if '"operation_failed"' in line]
    assert failed == []


def _log(state: Path) -> list[str]:
    return (state / "log.jsonl").read_text().splitlines()
