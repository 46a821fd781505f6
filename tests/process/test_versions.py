"""A newer version takes over what an older one wrote; the older one then shows it, and no more."""

from __future__ import annotations

import contextlib
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from mimikit.protocol.state_import import import_state
from tests.process import make_state
from tests.process.world import World, until

OLD = Path(__file__).parents[1] / "data" / "state-0.1.0.zip"
RELEASED = sorted(OLD.parent.glob("state-*.zip"))
NEWER = Path(__file__).with_name("newer_mimikit.py")


class NewerWorld(World):
    """The same, by processes of a version to come."""

    def command(self, *arguments: str) -> list[str]:
        places = ["--workspace", str(self.workspace), "--state", str(self.state)]
        return [sys.executable, "-P", str(NEWER), *places, *arguments]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "DIE_ONCE": str(self.root / "died")}


@pytest.fixture
def newer(tmp_path: Path) -> Iterator[NewerWorld]:
    """A state as version 0.1.0 wrote it."""
    world = NewerWorld(tmp_path, settings={"COMMAND__SANDBOX": "off"})
    import_state(OLD, world.state)
    yield world
    world.close()


@pytest.fixture
def older(newer: NewerWorld) -> Iterator[World]:
    """This mimikit over the same state."""
    world = World(newer.root, settings=newer.settings)
    yield world
    world.close()


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder with its mode and bytes."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a temp file of somebody who writes
            mode, data = path.lstat().st_mode, path.read_bytes() if path.is_file() else b""
            found[path.relative_to(folder).as_posix()] = (stat.S_IMODE(mode), data)
    return found


SHOWN = (
    *("/api/snapshot", "/api/messages", "/api/tasks", "/api/triggers", "/api/status", "/api/home"),
    *("/api/memory", "/api/backlog", "/api/usage", "/api/search?q=pot", "/api/engines"),
)
WRITTEN = (
    ("/api/input", {"id": "msg-later", "text": "hello"}),
    ("/api/tasks", {"id": "task-later", "prompt": "true", "profile": "command"}),
    ("/api/pause", {}),
    ("/api/logout", {}),
)


@pytest.mark.fault(24, 25, 60)
@pytest.mark.timeout(600)
def test_what_a_newer_version_migrated_goes_on_there_and_is_only_shown_by_the_older(
    newer: NewerWorld, older: World
) -> None:
    before = tree(newer.state)
    # The newer one is killed in the midst of it, and goes on at its next start.
    newer.start_consumer(wait=False).wait()
    assert (newer.root / "died").exists()
    known = newer.record("schema.json") or {}
    assert (known["schemaVersion"], known["migratingFrom"]) == (2, 1)
    refused = older.run("consumer")
    assert (refused.returncode, "expected schemaVersion 1" in refused.stderr) == (1, True)
    consumer = newer.start_consumer()
    until(newer.is_idle, "what waited there is done", facts=newer.facts)
    for id_ in (*make_state.ANSWERED, make_state.WAITING):
        assert len(newer.replies(id_)) >= 1, id_
    consumer.terminate()
    assert consumer.wait() == 0
    known = newer.record("schema.json") or {}
    assert (known["schemaVersion"], known["migratingFrom"]) == (2, None)
    copies = newer.state / str(known["backup"])
    kept = {path.relative_to(copies).as_posix() for path in copies.rglob("*") if path.is_file()}
    assert {"history.json", "history/2026-11-26.jsonl"} < kept
    assert all((copies / path).read_bytes() == before[path][1] for path in kept)
    assert all("of" in line for line in newer.transcript()[:3])
    told = [line["event"] for line in newer.log() if "migrat" in line["event"]]
    assert told == ["migration_begun", "migration_begun", "migrated"]
    assert newer.names("corrupt", "") == []

    # The older one shows all of it.
    left = tree(newer.state)
    web = older.start_web()
    said = older.ask("GET", "/api/messages?limit=100").body["messages"]
    assert {m["id"] for m in newer.transcript()} >= {m["id"] for m in said} > set()
    assert "blue pot" in json.dumps(older.ask("GET", "/api/search?q=pot").body)
    for address in SHOWN:
        assert older.ask("GET", address).status == 200, address
    for address, body in WRITTEN:
        answer = older.post(address, body)
        assert (answer.status, answer.body["error"]["code"]) == (503, "newer_state"), address
        assert "use the newer mimikit" in answer.body["error"]["message"]
    assert "a newer mimikit wrote this state" in older.run("status").stdout
    assert "blue pot" in older.run("memory", "search", "pot").stdout
    for command in (["chat", "hello"], ["up"]):
        ended = older.run(*command)
        assert ended.returncode == 1, (command, ended.stdout)
        assert "a newer mimikit wrote this state" in ended.stderr + ended.stdout, command
    web.terminate()
    web.wait()
    assert {path for path, told in tree(newer.state).items() if left.get(path) != told} == set()
    assert left.keys() == tree(newer.state).keys()


@pytest.mark.fault(25)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", RELEASED, ids=[path.stem for path in RELEASED])
def test_what_a_released_version_wrote_is_shown_whole_and_talked_on_with(
    tmp_path: Path, file: Path
) -> None:
    world = World(tmp_path, settings={"COMMAND__SANDBOX": "off"})
    import_state(file, world.state)
    before = [message["id"] for message in world.transcript()]
    try:
        world.start_consumer()
        world.start_web()
        until(world.is_idle, "what waited there is done", facts=world.facts)
        assert world.post("/api/input", {"id": "msg-now", "text": "hello"}).status < 300
        until(lambda: world.replies("msg-now"), "it is answered", facts=world.facts)
        shown = world.ask("GET", "/api/messages?limit=100").body["messages"]
        assert [m["id"] for m in shown][: len(before)] == before
        tasks = {task["title"]: task for task in world.ask("GET", "/api/tasks").body["tasks"]}
        assert tasks["echo it ran"]["state"] == "done"
        found = world.ask("GET", f"/api/tasks/{tasks['echo it ran']['id']}").body
        assert "it ran" in json.dumps(found)
        triggers = world.ask("GET", "/api/triggers").body["triggers"]
        assert sorted((t["title"], t["type"], t["group"]) for t in triggers) == [
            ("look at this again", "scheduled", "active"),
            ("true", "recurring", "active"),
        ]
        assert all(trigger["nextRunAt"] for trigger in triggers)
        for words, said in (("spare key", "blue pot"), ("龙井", "龙井茶")):
            hits = world.ask("GET", f"/api/search?{urlencode({'q': words})}").body
            assert said in json.dumps(hits, ensure_ascii=False)
        assert "water the plants" in json.dumps(world.ask("GET", "/api/backlog").body)
        assert world.names("corrupt", "") == []
    finally:
        world.close()


@pytest.mark.fault(24)
@pytest.mark.timeout(300)
def test_a_page_under_which_a_newer_version_begins_takes_nothing_more_and_ends(
    older: World,
) -> None:
    web = older.start_web()
    assert older.post("/api/input", {"id": "msg-a", "text": "hello"}).status < 300
    older.put("schema.json", {"schemaVersion": 2})
    left = tree(older.state)
    try:
        answer = older.post("/api/input", {"id": "msg-b", "text": "hello"})
    except (OSError, ValueError):
        pass  # it has ended already
    else:
        assert (answer.status, answer.body["error"]["code"]) == (503, "newer_state")
    assert web.wait(timeout=60) != 0
    assert "a newer mimikit wrote this state" in older.said("web")
    assert {path for path in tree(older.state).keys() ^ left.keys() if "pages" not in path} == set()
