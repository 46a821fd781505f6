"""Triggers in real processes: by hand, by files of the workspace, in chains, over a kill."""

from __future__ import annotations

import json
import shutil
import signal
from typing import Any

import pytest

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


def test_a_chain_dropped_by_hand_runs_in_order_and_hands_its_results_on(world: World) -> None:
    world.start_consumer()
    once = {"once": True}
    world.put(
        "triggers/third.json",
        command(
            "cat $MIMIKIT_UPSTREAM/*; echo three", **when("task_done", taskId="second"), **once
        ),
    )
    world.put(
        "triggers/second.json",
        command("cat $MIMIKIT_UPSTREAM/*; echo two", **when("task_done", taskId="first"), **once),
    )
    world.drop("first", command("echo one"))

    def third() -> dict[str, Any] | None:
        found = slots(world, "third")
        return world.result(found[0]["taskId"]) if found else None

    ended = until(third, "the third step ends", facts=world.facts)
    assert ended["result"]["text"].split() == ["one", "two", "three"]
    until(lambda: world.names("triggers") == [], "once is once")


@pytest.mark.fault("openclaw#6460")
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


@pytest.mark.fault(23, "complaint 4")
def test_a_definition_broken_by_hand_keeps_the_last_good_one_in_force(world: World) -> None:
    world.start_consumer()
    path = world.state / "triggers/often.json"
    world.put("triggers/often.json", command("true", schedule={"interval": 1}))
    until(lambda: slots(world, "often"), "it fires")
    path.write_text('{"prompt": "true",\n "schedule": {"interval": "soon"}}')
    told = until(
        # What is written by hand may be seen while it is still empty: that is told, too.
        lambda: [
            e for e in world.log() if e.get("event") == "trigger_broken" and "line 2" in e["reason"]
        ],
        "it is told",
        facts=world.facts,
    )
    assert told
    before = len(slots(world, "often"))
    until(lambda: len(slots(world, "often")) > before, "the last good one fires on")
    shown = world.run("triggers", "explain", "often", "--json")
    assert json.loads(shown.stdout)["state"] == "broken"
    path.unlink()
    until(lambda: "often" not in world.names("triggers"), "it is gone")
