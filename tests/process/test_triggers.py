"""Triggers in real processes: by hand, by files of the workspace, in chains, over a kill."""

from __future__ import annotations

import shutil
from typing import Any

from tests.process.world import World, until


def command(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"prompt": prompt, "profile": "command", **fields}


def when(kind: str, **params: Any) -> dict[str, Any]:
    return {"condition": {"type": kind, "params": params}}


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
