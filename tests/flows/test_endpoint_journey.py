"""With nothing but an endpoint: chat, delegation with shell work, a schedule and a question."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mimikit.clock import SystemClock
from mimikit.conversation import history, inbox
from mimikit.memory.tokens import TokenCounter
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Question
from tests.support.fake_llm import Body, FakeLLM, tool_names
from tests.support.pace import within

pytestmark = pytest.mark.needs_program("bwrap")

KEY, SECRET = "canary-key-7fq2", "canary-7fq2"
WORK = "echo made > made.txt; cat .mimikit/canary; cat .mimikit/secrets/*; env; echo x > .mimikit/x"


def asked_of(body: Body) -> tuple[str, str, int]:
    """The role, what it is asked, and how many tools have answered already."""
    if "messages" in body:
        _, prompt, *rest = body["messages"]
        words, answered = prompt["content"], [m for m in rest if m["role"] == "tool"]
    else:
        prompt, *rest = body["input"]
        words = prompt["content"]
        answered = [item for item in rest if item.get("type") == "function_call_output"]
    if words.startswith("You are the Mimikit runtime teller."):
        told = "results" if "## Results\n```text" in words else words.rpartition("## Input")[2]
        return "teller", told, len(answered)
    if "## Request\n" in words:
        return "planner", words.rpartition("## Request")[2], len(answered)
    return "worker", words, len(answered)


def mind(body: Body) -> Body:
    role, asked, turn = asked_of(body)
    if role == "teller":
        if asked == "results":
            return {"text": "It is done, all of it."}
        if "hello" in asked:
            return {"text": "Hello to you, my friend."}
        given = {"prompt": asked.strip("`\n "), "reply": "I am having it done."}
        return {"call": {"name": "delegate", "arguments": given}}
    if role == "planner":
        if "colour" in asked and "blue" not in asked:
            question = {"question": "Which colour?", "options": ["red", "blue"]}
            return {"call": {"name": "needs_input", "arguments": question}}
        if "every" in asked:
            return {"call": {"name": "schedule", "arguments": {"prompt": "look", "interval": 600}}}
        return {"call": {"name": "delegate", "arguments": {"prompt": "make made.txt"}}}
    return {"shell": WORK} if not turn else {"text": "made.txt was made."}


def tokens_of(body: Body) -> int:
    """What a whole request is, as it is sent: instructions, tools, prompt and all about them."""
    counter = TokenCounter()
    assert counter.load()
    return counter.count(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


@dataclass
class World:
    """A consumer at work, and who writes to it."""

    files: Files
    workspace: Path

    def say(self, id_: str, text: str) -> None:
        now = SystemClock().now()
        inbox.put(self.files, InboxItem(id=id_, text=text, created_at=now))

    def texts(self) -> list[str]:
        return [message.text for message in history.page(self.files).messages]

    def until(self, look: Callable[[], Any], limit_s: float = 90) -> Any:
        until = time.monotonic() + within(limit_s)
        while time.monotonic() < until:
            if found := look():
                return found
            time.sleep(0.05)
        log = (self.files.read("log.jsonl") or b"").decode()[-3000:]
        raise AssertionError(f"{self.texts()}\n{log}")


@contextmanager
def world(tmp_path: Path, llm: FakeLLM) -> Generator[World]:
    workspace = tmp_path / "work"
    state = workspace / ".mimikit"
    (state / "secrets").mkdir(parents=True, mode=0o700)
    (state / "canary").write_text(SECRET)
    (state / "secrets/mine.key").write_text(KEY)
    (state / "config.toml").write_text(
        'engine = "mine"\ndurability = "fast"\n[engines.mine]\n'
        f'base_url = "{llm.url}"\nmodel = "m"\napi_key_file = "mine.key"\n'
    )
    files = Files(RealDisk(state))
    files.make_folders()
    argv = [sys.executable, "-m", "mimikit", "--workspace", str(workspace), "consumer"]
    child = subprocess.Popen(argv)
    try:
        yield World(files, workspace)
    finally:
        child.terminate()
        assert child.wait(within(30)) == 0


@pytest.mark.parametrize("api", ["/chat/completions", "/responses"])
def test_everything_works_with_nothing_but_an_endpoint(tmp_path: Path, api: str) -> None:
    with FakeLLM([mind], apis=[api], key=KEY) as llm, world(tmp_path, llm) as here:
        here.say("m1", "hello")
        here.until(lambda: "Hello to you, my friend." in here.texts())
        assert len(llm.requests) == 1, "hello is one request"
        assert tokens_of(llm.requests[0]) <= 1500
        here.say("m2", "make it")
        here.until(lambda: "It is done, all of it." in here.texts())
        asked = [asked_of(body)[0] for body in llm.requests[1:]]
        assert asked == ["teller", "planner", "worker", "worker", "teller"]
        assert "I am having it done." in here.texts()
        assert (here.workspace / "made.txt").read_text() == "made\n"
        here.say("m3", "look at it every ten minutes")
        here.until(lambda: here.files.names(paths.TRIGGERS))
        here.say("m4", "paint it in a colour")
        found = here.until(lambda: here.files.load(paths.PENDING_QUESTION, Question))
        assert (found.question, found.options) == ("Which colour?", ["red", "blue"])
        now = SystemClock().now()
        fields: dict[str, Any] = {"kind": "answer", "question_id": found.question_id}
        inbox.put(here.files, InboxItem(id="a1", text="blue", created_at=now, **fields))
        here.until(lambda: here.texts().count("It is done, all of it.") == 2)
    offered = {asked_of(body)[0]: set(tool_names(body)) for body in llm.requests}
    web = {"web_search", "web_fetch"}
    assert web <= offered["planner"], "carried out by the consumer, where the extra is installed"
    assert web | {"shell"} <= offered["worker"]
    assert not web & offered["teller"]
    told = json.dumps(llm.requests)
    assert "Which colour?" in told
    assert SECRET not in told, "the Worker's shell could read the state folder"
    assert KEY not in told, "the Worker's shell could read the key"
    assert not (here.workspace / ".mimikit/x").exists()
    kept = "".join(path.read_text() for path in here.workspace.rglob("*.json*"))
    assert KEY not in kept, "the key went into a file"


def test_an_endpoint_pulled_away_is_told_waited_for_and_loses_nothing(tmp_path: Path) -> None:
    went: list[str] = []

    def flaky(body: Body) -> Body:
        role, _, turn = asked_of(body)
        if role == "worker" and turn and not went:
            went.append(role)
        return {"status": 503, "headers": {"retry-after": "4"}} if len(went) == 1 else mind(body)

    with FakeLLM([flaky], key=KEY) as llm, world(tmp_path, llm) as here:
        here.say("m1", "make it")
        here.until(lambda: went)
        waiting = here.until(lambda: [task for task in queued(here.files) if task.get("waitsFor")])
        assert (waiting[0]["waitsFor"], waiting[0]["attempts"]) == ("mine", 0)
        went.append("back")
        here.until(lambda: "It is done, all of it." in here.texts())
    (name,) = here.files.names("worker/results")
    assert json.loads(here.files.read(f"worker/results/{name}") or b"")["attempts"] == 1


def queued(files: Files) -> list[Any]:
    """The tasks that wait for a Worker."""
    found = (files.read(f"worker/queue/{name}") for name in files.names("worker/queue"))
    return [json.loads(data) for data in found if data]
