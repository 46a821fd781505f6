"""A message goes Teller → Planner → Worker → Teller through real codex processes."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.conversation import history, inbox
from mimikit.engine_settings import CodexSettings
from mimikit.engines.codex import cli as codex_cli
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Task
from mimikit.protocol.results import TaskDiff, TaskResult
from tests.support.fake_llm import Body, FakeLLM
from tests.support.runs import alive

pytestmark = [pytest.mark.codex, pytest.mark.needs_program("bwrap")]

SECRET = "canary-7fq2"
WORK = "echo made > made.txt; cat .mimikit/canary; ls .mimikit | head; echo forged > .mimikit/x"


def role_of(body: Body) -> str:
    """Which role a model request came from, by what it was told."""
    if "You are the Mimikit runtime teller." in words_of(body):
        return "teller"
    return "planner" if "## Request\n```text" in words_of(body) else "worker"


def words_of(body: Body) -> str:
    """Everything a request says, as text."""
    return json.dumps(body["input"]).replace("\\n", "\n")


class Mind:
    """A model that plays every role: delegates, plans one task, carries it out, tells."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, body: Body) -> Body:
        role = role_of(body)
        turn = self.asked.count(role)
        self.asked.append(role)
        if role == "teller" and "## Results\n```text" in words_of(body):
            return {"text": "It is done: made.txt is there."}
        if role == "teller":
            call = ["mimikit", "delegate", {"prompt": "make made.txt", "title": "Make a file"}]
            return {"mcp": call} if turn == 0 else {"text": "I am having it made."}
        if role == "planner":
            call = ["mimikit", "delegate", {"prompt": "make made.txt here", "title": "Make it"}]
            return {"mcp": call} if turn == 0 else {"text": ""}
        return {"shell": WORK} if turn == 0 else {"text": "made.txt was made."}


LONG = "a long report, line after line; " * 300 + "end"


class ChainingMind(Mind):
    """Plans two steps of which the second builds on the first, and reads the whole of that."""

    def __call__(self, body: Body) -> Body:
        words = words_of(body)
        role = role_of(body)
        turn = self.asked.count(role)
        if role == "planner":
            self.asked.append(role)
            first = {"prompt": "write the report", "title": "Report", "label": "report"}
            second = {"prompt": "file the report", "title": "File it", "after": ["report"]}
            calls = [first, second]
            return {"mcp": ["mimikit", "delegate", calls[turn]]} if turn < 2 else {"text": ""}
        if role == "worker" and "file the report" in words:
            self.asked.append("second")
            if self.asked.count("second") > 1:
                return {"text": "filed"}
            (folder,) = set(re.findall(r"stands in (\S+?),", words))
            return {"shell": f"wc -c {folder}/*; touch {folder}/forged; ls {folder}"}
        if role == "worker":
            self.asked.append("first")
            return {"text": LONG}
        return super().__call__(body)


@contextmanager
def consumer(workspace: Path) -> Generator[subprocess.Popen[bytes]]:
    """A real consumer of this workspace."""
    child = subprocess.Popen(
        [sys.executable, "-m", "mimikit", "--workspace", str(workspace), "consumer"],
        env=codex_env(workspace),
    )
    try:
        yield child
    finally:
        child.terminate()
        assert child.wait(30) == 0


def codex_env(workspace: Path) -> dict[str, str]:
    return {**os.environ, "FAKE_KEY": "x", "CODEX_HOME": str(workspace.parent / "codex-home")}


def settings(url: str) -> str:
    provider = (
        f'{{name="fake",base_url="{url}",wire_api="responses",env_key="FAKE_KEY",'
        "requires_openai_auth=false,request_max_retries=0,stream_max_retries=0}"
    )
    return f"""
[codex]
env = ["FAKE_KEY"]
[codex.config]
model_provider = '"fake"'
"model_providers.fake" = '{provider}'
[roles.teller]
engine = "codex"
model = "gpt-5.5"
[roles.planner]
engine = "codex"
model = "gpt-5.5"
[profiles.standard]
engine = "codex"
model = "gpt-5.5"
"""


def wait_for_reply(files: Files, text: str, limit_s: float = 90) -> list[Any]:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        messages = history.page(files).messages
        if any(text in m.text for m in messages):
            return messages
        time.sleep(0.05)
    raise AssertionError([m.text for m in history.page(files).messages])


def test_a_message_travels_through_every_role(home_folder: Path) -> None:
    place = codex_cli.find(CodexSettings())
    assert place is not None
    version = codex_cli.version_of(place.program)
    assert version is not None
    assert version >= codex_cli.LEAST_VERSION
    workspace = home_folder / "work"
    state = workspace / ".mimikit"
    state.mkdir(parents=True, mode=0o700)
    (home_folder / "codex-home").mkdir()
    (state / "canary").write_text(SECRET)
    mind = Mind()
    with FakeLLM([mind]) as llm:
        (state / "config.toml").write_text(settings(llm.url))
        files = Files(RealDisk(state))
        files.make_folders()
        with consumer(workspace):
            now = SystemClock().now()
            inbox.put(files, InboxItem(id="msg-1", text="please make made.txt", created_at=now))
            messages = wait_for_reply(files, "It is done")
    assert set(mind.asked) == {"teller", "planner", "worker"}
    said = [(m.role, m.text) for m in messages]
    assert said == [
        ("user", "please make made.txt"),
        ("agent", "I am having it made."),
        ("agent", "It is done: made.txt is there."),
    ]
    assert (workspace / "made.txt").read_text() == "made\n"
    (diff,) = (files.load(f"{paths.DIFFS}/{n}", TaskDiff) for n in files.names(paths.DIFFS))
    assert diff is not None
    changed = [(file.path, file.action, file.hunks[0].lines) for file in diff.files]
    assert changed == [("made.txt", "added", ["+made"])], "what a shell wrote is in the diff"
    assert not (state / "x").exists(), "the Worker's shell reached the state folder"
    told = b"".join(json.dumps(body).encode() for body in llm.requests)
    assert SECRET.encode() not in told, "the Worker's shell could read the state folder"
    assert re.search(rb"No such file|Read-only|Permission", told), "the attempt was never made"


def test_a_chain_hands_the_whole_result_on_read_only(home_folder: Path) -> None:
    workspace = home_folder / "work"
    state = workspace / ".mimikit"
    state.mkdir(parents=True, mode=0o700)
    (home_folder / "codex-home").mkdir()
    mind = ChainingMind()
    with FakeLLM([mind]) as llm:
        (state / "config.toml").write_text(settings(llm.url))
        files = Files(RealDisk(state))
        files.make_folders()
        with consumer(workspace):
            now = SystemClock().now()
            inbox.put(files, InboxItem(id="msg-1", text="write and file it", created_at=now))
            wait_for_reply(files, "It is done")
            until = time.monotonic() + 60
            while len(results := results_of(files)) < 2 and time.monotonic() < until:
                time.sleep(0.05)
    assert sorted(text[:5] for text in results) == ["a lon", "filed"]
    told = [body for body in llm.requests if "## Upstream results" in words_of(body)]
    assert told, "the second step was not given the first one's result"
    said = words_of(told[-1])
    assert f"{len(LONG)} " in said, "the whole result was not in its folder"
    assert "Read-only" in said or "Permission denied" in said, "it could be changed"
    assert files.names("triggers") == []


def test_a_killed_consumer_leaves_nothing_and_its_worker_goes_on(home_folder: Path) -> None:
    workspace = home_folder / "work"
    state = workspace / ".mimikit"
    state.mkdir(parents=True, mode=0o700)
    (home_folder / "codex-home").mkdir()
    tag = f"86400.{secrets.randbelow(10**12):012}"

    def mind(body: Body) -> Body:
        words = words_of(body)
        if role_of(body) == "teller":
            return {"text": "I hear you."}
        if "come to its end" in words:
            return {"text": "It is finished."}
        return {"shell": f"echo begun; sleep {tag}"}

    with FakeLLM([mind]) as llm:
        (state / "config.toml").write_text(settings(llm.url))
        files = Files(RealDisk(state))
        files.make_folders()
        killed = subprocess.Popen(
            [sys.executable, "-m", "mimikit", "--workspace", str(workspace), "consumer"],
            env=codex_env(workspace),
        )
        now = SystemClock().now()
        inbox.put(files, InboxItem(id="msg-1", text="hello", created_at=now))
        wait_for_reply(files, "I hear you.")
        task = Task(id="t1", prompt="paint it mauve", created_at=now, trace_id="t", max_attempts=2)
        files.save(paths.queued("worker", task.id), task)
        wait_until(lambda: alive(tag))
        wait_until(lambda: (running := running_task(files)) and running.engine_session)
        below = psutil.Process(killed.pid).children(recursive=True)
        assert any("app-server" in one.cmdline() for one in below)
        killed.kill()
        killed.wait()
        assert not psutil.wait_procs(below, timeout=5)[1], "left 5 s after the consumer's death"
        with consumer(workspace):
            wait_until(lambda: results_of(files))
    result = files.load(paths.result("worker", "t1"), TaskResult)
    assert result
    assert (result.text, result.attempts) == ("It is finished.", 2)
    first, *_, last = (words_of(body) for body in llm.requests if role_of(body) == "worker")
    assert (first.count("mauve"), last.count("mauve")) == (1, 2), "its session is not gone on with"
    assert result.usage.input_tokens == 100, "what was used before is counted again"


def running_task(files: Files) -> Task | None:
    return files.load(paths.running("worker", "t1"), Task)


def wait_until(holds: Callable[[], object], limit_s: float = 60) -> None:
    until = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def results_of(files: Files) -> list[str]:
    """The texts of all Worker results."""
    names = files.names("worker/results")
    return [json.loads(files.read(f"worker/results/{n}") or b"{}")["result"]["text"] for n in names]


@pytest.fixture
def home_folder() -> Iterator[Path]:
    """A folder outside the temp dir: codex wants its home there."""
    folder = Path(tempfile.mkdtemp(prefix="mimikit-test-", dir=Path.home()))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
