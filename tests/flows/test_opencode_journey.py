"""A message goes Teller → Planner → Worker → Teller through a real `opencode serve`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.conversation import history, inbox
from mimikit.engines import process_marks
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem
from tests.support.fake_llm import Body, FakeLLM
from tests.support.opencode_ground import owner_config
from tests.support.programs import opencode

pytestmark = [
    pytest.mark.needs_program("opencode"),
    pytest.mark.needs_program("bwrap"),
    pytest.mark.nightly,
]

SECRET = "canary-7fq2"
WORK = "echo made > made.txt; cat .mimikit/canary; ls -R .mimikit; echo x > .mimikit/x"


def mind(body: Body) -> Body:
    """A model that plays every role."""
    words = body["messages"][1]["content"]
    turn = sum(message["role"] == "tool" for message in body["messages"])
    if words.startswith("You are the Mimikit runtime teller."):
        if "## Results\n```text" in words:
            return {"text": "It is done, all of it."}
        delegated = {"mcp": ["mimikit", "delegate", {"prompt": "make made.txt"}]}
        return {"text": "I am having it done."} if turn else delegated
    if "## Request\n" in words:
        planned = {"mcp": ["mimikit", "delegate", {"prompt": "make made.txt here"}]}
        return {"text": "planned"} if turn else planned
    return {"text": "made.txt was made."} if turn else {"shell": WORK}


def until(files: Files, look: Callable[[], Any]) -> Any:
    end = time.monotonic() + 110
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError((files.read("log.jsonl") or b"").decode()[-3000:])


def test_all_roles_go_through_one_server_that_ends_with_the_consumer(tmp_path: Path) -> None:
    state = tmp_path / "work/.mimikit"
    state.mkdir(parents=True, mode=0o700)
    (state / "canary").write_text(SECRET)
    with FakeLLM([mind]) as llm:
        owner_config(tmp_path, llm.url)
        (state / "config.toml").write_text(
            f'engine = "opencode"\ndurability = "fast"\nopencode.path = "{opencode()}"\n'
        )
        files = Files(RealDisk(state))
        files.make_folders()

        def texts() -> list[str]:
            return [message.text for message in history.page(files).messages]

        argv = [sys.executable, "-m", "mimikit", "--workspace", str(state.parent), "consumer"]
        env = {**os.environ, "HOME": str(tmp_path)}
        with subprocess.Popen(argv, env=env) as consumer:
            now = SystemClock().now()
            inbox.put(files, InboxItem(id="m1", text="make it", created_at=now))
            until(files, lambda: "It is done, all of it." in texts())
            marks = ((one, process_marks._mark_of(one.pid)) for one in psutil.process_iter())
            mine = f"{process_marks.state_id(state)}:opencode:"
            servers = [one for one, mark in marks if mark.startswith(mine)]
            consumer.terminate()
            assert consumer.wait(30) == 0
    assert servers
    assert not any(one.is_running() and one.status() != "zombie" for one in servers)
    assert (state.parent / "made.txt").read_text() == "made\n"
    assert SECRET not in json.dumps(llm.requests), "the Worker's shell could read the state folder"
    assert not (state / "x").exists()
    refused = [line for line in (files.read("log.jsonl") or b"").splitlines() if b"refused" in line]
    assert refused == []
