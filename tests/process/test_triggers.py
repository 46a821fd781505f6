"""Triggers in real processes: by hand, by files of the workspace, in chains, over a kill."""

from __future__ import annotations

import shutil
import signal
from typing import Any

from tests.process.world import World, until


def command(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"prompt": prompt, "profile": "command", **fields}


def when(kind: str, **params: Any) -> dict[str, Any]:
    return {"condition": {"type": kind, "params": params}}


def slots(world: World, trigger_id: str) -> list[dict[str, Any]]:
    return [e for e in world.ledger() if e["event"] == "slot" and e["id"] == trigger_id]


def looked_at(world: World, trigger_id: str) -> None:
    until(
        lambda: (world.record(f"triggers/state/{trigger_id}.json") or {}).get("initialized"),
        f"{trigger_id} is looked at",
        facts=world.facts,
    )


def test_files_written_appended_moved_and_removed_start_the_command(world: World) -> None:
    world.start_consumer()
    log = "echo run >> ../runs.txt"
    build = command(log, notify="none", **when("file_changed", path="src/**/*.txt"))
    world.put("triggers/build.json", build)
    looked_at(world, "build")
    source = world.workspace / "src"
    runs = world.root / "runs.txt"

    def ran(times: int) -> None:
        until(
            lambda: runs.exists() and len(runs.read_text().splitlines()) >= times,
            f"it runs for the {times}. time",
            facts=world.facts,
        )
        until(world.is_idle, "it is idle")

    (source / "deep/er").mkdir(parents=True)
    (source / "deep/er/a.txt").write_text("one")
    ran(1)
    with (source / "deep/er/a.txt").open("a") as file:
        file.write("two")
        file.flush()
        ran(2)
    (source / "deep/er/a.txt").rename(source / "b.txt")
    ran(3)
    (source / "b.txt").unlink()
    ran(4)
    (source / "other.md").write_text("not meant")
    shutil.rmtree(source)
    source.mkdir()
    (source / "again.txt").write_text("a folder of the same name")
    ran(5)
    assert all(slot["state"] == "ran" for slot in slots(world, "build"))


def test_a_trigger_fires_once_for_what_happened_while_nobody_lived(world: World) -> None:
    world.start_consumer()
    world.put(
        "triggers/build.json",
        command("true", notify="none", **when("file_changed", path="notes.txt")),
    )
    world.put("triggers/often.json", command("true", schedule={"interval": 1}))
    looked_at(world, "build")
    until(lambda: slots(world, "often"), "the clock fires")
    assert world.consumer is not None
    world.consumer.send_signal(signal.SIGKILL)
    world.consumer.wait(90)
    (world.workspace / "notes.txt").write_text("while it was dead")
    before = len(slots(world, "often"))
    world.start_consumer()
    until(lambda: slots(world, "build"), "the change is seen", facts=world.facts)
    until(lambda: len(slots(world, "often")) > before + 1, "the clock goes on")
    assert len(slots(world, "build")) == 1
    names = [slot["slot"] for slot in slots(world, "often")]
    assert len(names) == len(set(names))
