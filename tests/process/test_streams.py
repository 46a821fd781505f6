"""The first words of an endpoint are on the page and in the terminal while the rest is to come."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.process.world import PATIENCE_S, TOKEN, World, until
from tests.support.fake_llm import FakeLLM

FIRST, REST = "Once", "upon a time there was a fox, and he lived happily ever after, they say."


@contextmanager
def told(world: World, since: str) -> Generator[Iterator[dict[str, Any]]]:
    """What the page is told by its stream of events, one by one."""
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=PATIENCE_S)
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connection.request("GET", f"/api/events?since={since}", headers=headers)
        lines = iter(connection.getresponse().readline, b"")
        yield (json.loads(line[5:]) for line in lines if line.startswith(b"data:"))
    finally:
        connection.close()


@pytest.mark.parametrize("api", ["/chat/completions", "/responses"])
def test_the_first_words_are_seen_before_the_last_are_said(tmp_path: Path, api: str) -> None:
    go_on = threading.Event()
    seats = ("ROLES__TELLER", "ROLES__PLANNER", "PROFILES__STANDARD")
    world = World(tmp_path, {f"{seat}__ENGINE": "mine" for seat in seats})
    world.state.mkdir(parents=True, mode=0o700)
    with FakeLLM([{"text": f"{FIRST} {REST}", "hold": go_on}], apis=[api]) as llm:
        (world.state / "config.toml").write_text(
            f'durability = "fast"\n[engines.mine]\nbase_url = "{llm.url}"\nmodel = "m"\n'
        )
        try:
            world.start_web(wait=False)
            world.start_consumer()
            until(world.is_serving, "the page is served", facts=world.facts)
            since = world.ask("GET", "/api/snapshot").body["cursor"]
            with (
                told(world, since) as events,
                subprocess.Popen(
                    world.command("chat", "tell me"),
                    env=world.environment(),
                    cwd=world.workspace,
                    stdout=subprocess.PIPE,
                ) as chat,
            ):
                assert chat.stdout is not None
                said = b""
                while FIRST.encode() not in said:
                    said += (piece := os.read(chat.stdout.fileno(), 4096))
                    assert piece, world.facts()
                heard = ""
                while FIRST not in heard:
                    event = next(events)
                    heard += event["text"] if event["kind"] == "delta" else ""
                draft = world.ask("GET", "/api/snapshot").body["draft"]
                assert FIRST in json.dumps(draft)
                assert not go_on.is_set()
                assert REST.encode() not in said
                assert not [m for m in world.transcript() if m["role"] == "agent"]
                go_on.set()
                said += chat.stdout.read()
                assert chat.wait(PATIENCE_S) == 0
                assert said.count(FIRST.encode()) == 1, "nothing is said twice"
                assert REST.encode() in said
            reply = [m["text"] for m in world.transcript() if m["role"] == "agent"]
            assert reply == [f"{FIRST} {REST}"]
        finally:
            go_on.set()
            world.close()
