"""Journeys through a real consumer and real engines: an endpoint, codex, `opencode serve`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.conversation import history, inbox
from mimikit.engine_settings import CodexSettings
from mimikit.engines import process_marks
from mimikit.engines.codex import cli as codex_cli
from mimikit.memory.tokens import TokenCounter
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Question, Task
from mimikit.protocol.results import TaskDiff, TaskResult
from mimikit.tasks import queue
from tests.support.fake_llm import Body, FakeLLM
from tests.support.opencode_ground import owner_config
from tests.support.programs import opencode
from tests.support.runs import alive, tag

pytestmark = pytest.mark.needs_program("bwrap")

KEY, SECRET = "canary-key-7fq2", "canary-7fq2"
WORK = "echo made > made.txt; cat .mimikit/canary; ls .mimikit; echo x > .mimikit/x"


@dataclass
class World:
    """A consumer at work, and who writes to it."""

    files: Files
    workspace: Path
    process: subprocess.Popen[bytes]

    def say(self, id_: str, text: str, **fields: Any) -> None:
        now = SystemClock().now()
        inbox.put(self.files, InboxItem(id=id_, text=text, created_at=now, **fields))

    def texts(self) -> list[str]:
        return [message.text for message in history.page(self.files).messages]

    def is_told(self, text: str) -> None:
        self.until(lambda: text in self.texts())

    def until(self, look: Callable[[], Any], limit_s: float = 110) -> Any:
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if found := look():
                return found
            time.sleep(0.05)
        log = (self.files.read("log.jsonl") or b"").decode()[-3000:]
        raise AssertionError(f"{self.texts()}\n{log}")


def prepare(workspace: Path, config: str) -> Files:
    """A state folder with something secret in it."""
    state = workspace / ".mimikit"
    (state / "secrets").mkdir(parents=True, mode=0o700)
    (state / "canary").write_text(SECRET)
    (state / "secrets/mine.key").write_text(KEY)
    (state / "config.toml").write_text(f'durability = "fast"\n{config}')
    files = Files(RealDisk(state))
    files.make_folders()
    return files


@contextmanager
def consumer(workspace: Path, files: Files, **environment: str) -> Generator[World]:
    """A real consumer of this workspace; unless it was killed meanwhile, it ends well."""
    argv = [sys.executable, "-m", "mimikit", "--workspace", str(workspace), "consumer"]
    child = subprocess.Popen(argv, env={**os.environ, **environment})
    try:
        yield World(files, workspace, child)
    finally:
        child.terminate()
        assert child.wait(30) in (0, -9)


def nothing_leaked(llm: FakeLLM, workspace: Path) -> None:
    """No Worker's shell read the state folder, or wrote to it."""
    told = json.dumps(llm.requests)
    assert SECRET not in told, "the Worker's shell could read the state folder"
    assert KEY not in told, "the Worker's shell could read the key"
    assert re.search("No such file|Read-only|Permission", told), "the attempt was never made"
    assert not (workspace / ".mimikit/x").exists()
    assert (workspace / "made.txt").read_text() == "made\n"


# ---- an endpoint


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
    return (
        {"shell": f"{WORK}; cat .mimikit/secrets/*; env"}
        if not turn
        else {"text": "made.txt was made."}
    )


def tokens_of(body: Body) -> int:
    """What a whole request is, as it is sent: instructions, tools, prompt and all about them."""
    counter = TokenCounter()
    assert counter.load()
    return counter.count(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


@pytest.mark.parametrize("api", ["/chat/completions", "/responses"])
def test_everything_works_with_nothing_but_an_endpoint(tmp_path: Path, api: str) -> None:
    workspace = tmp_path / "work"
    with FakeLLM([mind], apis=[api], key=KEY) as llm:
        mine = f'base_url = "{llm.url}"\nmodel = "m"\napi_key_file = "mine.key"\n'
        files = prepare(workspace, f'engine = "mine"\n[engines.mine]\n{mine}')
        with consumer(workspace, files) as here:
            everything(here, llm)
    nothing_leaked(llm, workspace)
    assert "Which colour?" in json.dumps(llm.requests)
    kept = "".join(path.read_text() for path in workspace.rglob("*.json*"))
    assert KEY not in kept, "the key went into a file"


def everything(here: World, llm: FakeLLM) -> None:
    """Chat, delegation with shell work, a schedule and a question."""
    here.say("m1", "hello")
    here.is_told("Hello to you, my friend.")
    assert len(llm.requests) == 1, "hello is one request"
    assert tokens_of(llm.requests[0]) <= 1500
    here.say("m2", "make it")
    here.is_told("It is done, all of it.")
    asked = [asked_of(body)[0] for body in llm.requests[1:]]
    assert asked == ["teller", "planner", "worker", "worker", "teller"]
    assert "I am having it done." in here.texts()
    here.say("m3", "look at it every ten minutes")
    here.until(lambda: here.files.names(paths.TRIGGERS))
    here.say("m4", "paint it in a colour")
    found = here.until(lambda: here.files.load(paths.PENDING_QUESTION, Question))
    assert (found.question, found.options) == ("Which colour?", ["red", "blue"])
    here.say("a1", "blue", kind="answer", question_id=found.question_id)
    here.until(lambda: here.texts().count("It is done, all of it.") == 2)


# ---- codex


def codex_role(body: Body) -> str:
    """Which role a model request came from, by what it was told."""
    if "You are the Mimikit runtime teller." in words_of(body):
        return "teller"
    return "planner" if "## Request\n```text" in words_of(body) else "worker"


def words_of(body: Body) -> str:
    """Everything a request says, as text."""
    return json.dumps(body["input"]).replace("\\n", "\n")


class CodexMind:
    """A model that plays every role: delegates, plans one task, carries it out, tells."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, body: Body) -> Body:
        role = codex_role(body)
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


def codex_settings(url: str) -> str:
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


@pytest.fixture
def home_folder() -> Iterator[Path]:
    """A folder outside the temp dir: codex wants its home there."""
    folder = Path(tempfile.mkdtemp(prefix="mimikit-test-", dir=Path.home()))
    (folder / "codex-home").mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def codex_consumer(home: Path, files: Files) -> Any:
    return consumer(home / "work", files, FAKE_KEY="x", CODEX_HOME=str(home / "codex-home"))


@pytest.mark.codex
def test_a_message_travels_through_every_role_of_codex(home_folder: Path) -> None:
    place = codex_cli.find(CodexSettings())
    assert place is not None
    version = codex_cli.version_of(place.program)
    assert version is not None
    assert version >= codex_cli.MIN_VERSION
    workspace, mind = home_folder / "work", CodexMind()
    with FakeLLM([mind]) as llm:
        files = prepare(workspace, codex_settings(llm.url))
        with codex_consumer(home_folder, files) as here:
            here.say("msg-1", "please make made.txt")
            here.is_told("It is done: made.txt is there.")
    assert set(mind.asked) == {"teller", "planner", "worker"}
    assert [(m.role, m.text) for m in history.page(files).messages] == [
        ("user", "please make made.txt"),
        ("agent", "I am having it made."),
        ("agent", "It is done: made.txt is there."),
    ]
    (diff,) = (files.load(f"{paths.DIFFS}/{n}", TaskDiff) for n in files.names(paths.DIFFS))
    assert diff is not None
    changed = [(file.path, file.action, file.hunks[0].lines) for file in diff.files]
    assert changed == [("made.txt", "added", ["+made"])], "what a shell wrote is in the diff"
    nothing_leaked(llm, workspace)


@pytest.mark.codex
def test_a_killed_consumer_leaves_no_codex_and_its_worker_goes_on(home_folder: Path) -> None:
    workspace, number = home_folder / "work", tag()

    def mind(body: Body) -> Body:
        words = words_of(body)
        if codex_role(body) == "teller":
            return {"text": "I hear you."}
        if "come to its end" in words:
            return {"text": "It is finished."}
        return {"shell": f"echo begun; sleep {number}"}

    with FakeLLM([mind]) as llm:
        files = prepare(workspace, codex_settings(llm.url))
        with codex_consumer(home_folder, files) as here:
            here.say("msg-1", "hello")
            here.is_told("I hear you.")
            now = SystemClock().now()
            task = Task(
                id="t1", prompt="paint it mauve", created_at=now, trace_id="t", max_attempts=2
            )
            files.save(paths.queued("worker", task.id), task)
            here.until(lambda: alive(number))
            running = paths.running("worker", "t1")
            here.until(lambda: (one := files.load(running, Task)) and one.engine_session)
            below = psutil.Process(here.process.pid).children(recursive=True)
            assert any("app-server" in one.cmdline() for one in below)
            here.process.kill()
            here.process.wait()
            assert not psutil.wait_procs(below, timeout=5)[1], "left 5 s after its death"
        with codex_consumer(home_folder, files) as here:
            here.until(lambda: files.names("worker/results"))
    result = files.load(paths.result("worker", "t1"), TaskResult)
    assert result
    assert (result.text, result.attempts) == ("It is finished.", 2)
    first, *_, last = (words_of(body) for body in llm.requests if codex_role(body) == "worker")
    assert (first.count("mauve"), last.count("mauve")) == (1, 2), "its session is not gone on with"
    assert result.usage.input_tokens == 100, "what was used before is counted again"


def improving_mind(body: Body) -> Body:
    """A model that improves the repository, and agrees to that."""
    words = words_of(body)
    if "A program made the change" in words:
        return {"text": "Yes: it is right."}
    if codex_role(body) == "planner":
        call = ["mimikit", "delegate", {"prompt": "make made.txt here", "title": "Make it"}]
        return {"text": ""} if "planned as" in words else {"mcp": call}
    line = f"git log --oneline && echo x > ../repo.git/x; {WORK}"
    return {"text": "I made it."} if "function_call_output" in words else {"shell": line}


@pytest.mark.codex
def test_codex_improves_a_repository_on_a_branch(home_folder: Path) -> None:
    workspace = home_folder / "work"
    with FakeLLM([improving_mind]) as llm:
        files = prepare(workspace, codex_settings(llm.url))
        (workspace / "a.txt").write_text("a\n")
        for words in ("init -q", "add a.txt", "-c user.name=a -c user.email=a@b commit -qm one"):
            subprocess.run(["git", *words.split()], cwd=workspace, check=True)
        with codex_consumer(home_folder, files) as here:
            command = Command(id="c1", action="self_awake_run", created_at=SystemClock().now())
            queue.submit_command(files, command)
            here.until(lambda: any("made.txt" in text for text in here.texts()))
    argv = ["git", "log", "--all", "--format=%an %s", "--", "made.txt"]
    assert subprocess.check_output(argv, cwd=workspace) == b"mimikit Make it\n"
    assert sorted(path.name for path in workspace.iterdir()) == [".git", ".mimikit", "a.txt"]
    assert files.stat(paths.IMPROVEMENTS) is None
    told = json.dumps(llm.requests)
    assert SECRET not in told
    assert "Read-only file system" in told, "git's own files could be written"


# ---- opencode


def opencode_mind(body: Body) -> Body:
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


@pytest.mark.needs_program("opencode")
def test_all_roles_go_through_one_opencode_that_ends_with_the_consumer(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    with FakeLLM([opencode_mind]) as llm:
        owner_config(tmp_path, llm.url)
        config = f'engine = "opencode"\nopencode.path = "{opencode()}"\n'
        files = prepare(workspace, config)
        with consumer(workspace, files, HOME=str(tmp_path)) as here:
            here.say("m1", "make it")
            here.is_told("It is done, all of it.")
            marks = ((one, process_marks._mark_of(one.pid)) for one in psutil.process_iter())
            mine = f"{process_marks.state_id(workspace / '.mimikit')}:"
            servers = [one for one, mark in marks if mark.startswith(mine)]
    assert servers
    assert not any(one.is_running() and one.status() != "zombie" for one in servers)
    nothing_leaked(llm, workspace)
    refused = [line for line in (files.read("log.jsonl") or b"").splitlines() if b"refused" in line]
    assert refused == []
