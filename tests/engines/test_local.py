"""The engine `local`, with a process that answers by a script in place of the model's."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.config import Settings
from mimikit.engines.base import (
    CancelToken,
    EngineOutage,
    Failed,
    Outcome,
    ToolReply,
    TurnInput,
    stop_outcome,
)
from mimikit.engines.local import dialogue, weights
from mimikit.engines.local.dialogue import PlannerAction, ReplyStream
from mimikit.engines.local.engine import NO_WEIGHTS, LocalEngine
from mimikit.language.phrases import say
from mimikit.protocol.models import Role
from tests.support import local_model
from tests.support.engine_requests import NOW, Desk, inputs, make_request, task
from tests.support.local_model import model_file

PROGRAM = Path(local_model.__file__)
RULES = (
    ("hello|你好", {"action": "reply", "text": 'Hi, "you".\nAll well? 好'}),
    ("count", {"action": "delegate", "text": "count them"}),
    ("cat", {"action": "remember", "text": "a cat"}),
    ("that thing", {"action": "ask", "text": "Which thing?"}),
    ("disk daily", {"action": "command", "command": "df -h .", "when": "every day at 9:00"}),
    ("磁盘", {"action": "command", "command": "df -h .", "when": ""}),
    ("words", {"action": "command", "command": "wc -w a.md", "when": ""}),
    ("delete", {"action": "command", "command": "rm -rf .", "when": ""}),
    ("novel", {"action": "cannot", "command": "", "when": ""}),
    ("endless", '{"action": "reply", "text": "so and so and'),
    ("nonsense", "no JSON at all"),
    ("die", "die"),
    ("hang", "hang"),
)

Make = Callable[..., LocalEngine]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[LocalEngine] = []

    def engine(path: Path | None = None, **local: object) -> LocalEngine:
        path = path or model_file(tmp_path, *RULES)
        settings = Settings.model_validate({"local": {"model_path": str(path), **local}})
        made.append(LocalEngine(settings, lambda word: word == "ls", program=PROGRAM))
        return made[-1]

    yield engine
    for one in made:
        one.close()


def model_pids() -> list[int]:
    """The model's processes that this one has started."""
    children = psutil.Process().children()
    return [child.pid for child in children if str(PROGRAM) in child.cmdline()]


def told(engine: LocalEngine, text: str, desk: Desk, **fields: Any) -> Outcome:
    turn = TurnInput(now=NOW, inputs=inputs(text), **fields)
    return engine.run(make_request("teller", turn, desk))


def planned(engine: LocalEngine, text: str, desk: Desk) -> Outcome:
    turn = TurnInput(now=NOW, task=task(text))
    return engine.run(make_request("planner", turn, desk))


def test_a_reply_streams_while_its_json_comes_and_counts_its_tokens(make: Make) -> None:
    desk = Desk()
    outcome = told(make(), "hello", desk)
    deltas = [text for kind, text, _ in desk.events if kind == "delta"]
    assert outcome.status == "done"
    assert outcome.text == "".join(deltas) == 'Hi, "you".\nAll well? 好'
    assert outcome.usage.output_tokens == 7
    assert outcome.usage.input_tokens > 100


def test_work_is_delegated_in_the_users_own_words_and_said_to_be(make: Make) -> None:
    desk = Desk()
    outcome = told(make(), "please count my files", desk)
    (call,) = desk.calls
    assert call == (
        "delegate",
        {"prompt": "please count my files", "title": "please count my files"},
    )
    assert outcome.text == say("local_delegated", "en")


def test_what_the_user_tells_is_remembered_word_for_word(make: Make) -> None:
    desk = Desk()
    outcome = told(make(), "my cat is 3", desk)
    assert desk.calls == [("remember", {"content": "my cat is 3", "longTerm": True})]
    assert outcome.text == say("local_remembered", "en")


def test_what_is_unclear_is_asked_and_said_where_it_can_not_be(make: Make) -> None:
    engine, desk = make(), Desk()
    assert told(engine, "do that thing", desk).text == ""
    assert desk.calls == [("ask_user", {"question": "Which thing?"})]
    refused = Desk(lambda _name, _given: ToolReply(False, "a question is open already"))
    assert told(engine, "do that thing", refused).text == "Which thing?"


def test_an_answer_without_an_end_is_taken_as_far_as_it_goes(make: Make) -> None:
    assert told(make(), "endless", Desk()).text == "so and so and"


def test_what_is_no_answer_fails_that_run_alone(make: Make) -> None:
    engine = make()
    outcome = told(engine, "nonsense", Desk())
    assert (outcome.status, outcome.reason) == ("failed", "error")
    assert told(engine, "hello", Desk()).status == "done"


@pytest.mark.parametrize(
    ("text", "order", "language"),
    [
        ("how many words are there", "run: wc -w a.md", "en"),
        ("show the disk daily", "every day at 9:00, run: df -h .", "en"),
        ("看看磁盘", "运行：df -h .", "zh"),
        ("every 10 minutes, run: date", "every 10 minutes, run: date", "en"),
    ],
)
def test_a_command_is_a_question_to_the_user_and_nothing_else(
    make: Make, text: str, order: str, language: str
) -> None:
    desk = Desk()
    outcome = planned(make(), text, desk)
    ((tool, given),) = desk.calls
    assert (outcome.status, outcome.text, tool) == ("done", "", "needs_input")
    assert given["options"] == [order, say("local_no", "zh" if language == "zh" else "en")]
    assert "default" not in given
    assert order.rpartition(": ")[2].rpartition("：")[2] in given["question"]


@pytest.mark.parametrize("text", ["delete it all", "write a novel"])
def test_what_is_risky_or_too_much_is_not_even_proposed(make: Make, text: str) -> None:
    desk = Desk()
    assert planned(make(), text, desk).text == say("local_cannot", "en")
    assert not desk.calls


def test_a_reminder_is_planned_by_code_alone(make: Make) -> None:
    engine, desk = make(), Desk()
    planned(engine, "remind me in 5 minutes to drink", desk)
    assert [name for name, _ in desk.calls] == ["schedule"]
    assert model_pids() == []


def test_a_no_to_a_proposal_ends_it(make: Make) -> None:
    prompt = f"count\n\nYou asked: x\nThe user answered: {say('local_no', 'en')}"
    desk = Desk()
    assert planned(make(), prompt, desk).text == say("local_declined", "en")
    assert not desk.calls


@pytest.mark.parametrize(
    "command",
    ["rm -rf /", "rm -r x", "git reset --hard", "sudo ls", "curl x | sh", "echo > /etc/x",
     "find . -delete", "ls \u202e x", "x" * 200],
)  # fmt: skip
def test_commands_that_can_not_be_taken_back_or_seen_whole_are_no_orders(command: str) -> None:
    assert dialogue.order_of(PlannerAction(action="command", command=command), "en") == ""


def test_a_reply_is_shown_as_it_comes_whatever_escapes_are_in_it() -> None:
    shown: list[str] = []
    stream = ReplyStream(shown.append)
    for letter in '{"action": "reply", "text": "a\\n\\"b\\" \\u4f60 \\\\"}':
        stream.add(letter)
    assert "".join(shown) == 'a\n"b" 你 \\'
    other = ReplyStream(shown.append)
    other.add('{"action": "delegate", "text": "not shown"}')
    assert "".join(shown) == 'a\n"b" 你 \\'


# ---- the process


def test_one_process_serves_all_runs_and_another_comes_when_it_has_died(make: Make) -> None:
    engine = make()
    told(engine, "hello", Desk())
    (first,) = model_pids()
    told(engine, "你好", Desk())
    assert model_pids() == [first]
    outcome = told(engine, "die", Desk())
    assert isinstance(outcome, Failed)
    assert (outcome.status, outcome.want) == ("failed", "broken")
    assert outcome.retry_now
    assert told(engine, "hello", Desk()).status == "done"
    (other,) = model_pids()
    assert other != first


@pytest.mark.parametrize("reason", ["canceled", "killed"])
def test_a_run_is_stopped_in_the_midst_of_an_answer(make: Make, reason: str) -> None:
    engine, cancel = make(), CancelToken()
    told(engine, "hello", Desk())
    turn = TurnInput(now=NOW, inputs=inputs("hang"))
    request = make_request("teller", turn, cancel=cancel)
    found: list[Outcome] = []
    run = threading.Thread(target=lambda: found.append(engine.run(request)))
    run.start()
    cancel.cancel(reason)
    run.join(20)
    assert found[0] == stop_outcome(reason)


def test_a_run_ends_at_its_time(make: Make) -> None:
    turn = TurnInput(now=NOW, inputs=inputs("hang"))
    outcome = make().run(make_request("teller", turn, timeout_s=0.5))
    assert outcome.reason == "timeout"


def test_it_ends_with_whoever_started_it_even_when_that_is_killed(tmp_path: Path) -> None:
    path = model_file(tmp_path, *RULES)
    lines = [
        "import sys",
        "from pathlib import Path",
        "import psutil",
        "from mimikit.engines.base import CancelToken",
        "from mimikit.engines.local.server import ModelProcess",
        f"program = Path({str(PROGRAM)!r})",
        f"model = dict(modelPath={str(path)!r}, threads=1, contextTokens=2048)",
        "server = ModelProcess(model, idle_s=60, program=program)",
        "server.start()",
        "server.wait_ready(CancelToken())",
        "print(psutil.Process().children()[0].pid, flush=True)",
        "sys.stdin.read()",
    ]
    owner = subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        handle = os.pidfd_open(pid)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        try:
            assert select.select([handle], [], [], 5)[0]
        finally:
            os.close(handle)
            with contextlib.suppress(ChildProcessError):  # it may have become this process's
                os.waitpid(pid, 0)


# ---- what is wrong


def test_a_model_that_can_not_be_loaded_is_told_and_waited_for(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF no rules")
    outcome = told(make(path), "hello", Desk())
    assert isinstance(outcome, Failed)
    assert (outcome.want, outcome.reason) == ("broken", "engine_unavailable")
    assert "broken.gguf cannot be served" in str(outcome.error)


@pytest.mark.parametrize(
    ("content", "said"), [(None, "expected a GGUF file"), (b"text", "got something else")]
)
def test_a_file_that_is_no_model_is_said_before_anything_runs(
    make: Make, tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "other.gguf"
    if content is not None:
        path.write_bytes(content)
    reason = make(path).unavailable("teller")
    assert isinstance(reason, EngineOutage)
    assert reason.want == "missing"
    assert said in reason


@pytest.mark.parametrize(
    ("role", "serves"), [("teller", True), ("planner", True), ("worker", False)]
)
def test_it_talks_and_plans_and_does_not_work(make: Make, role: Role, serves: bool) -> None:
    assert (make().unavailable(role) is None) == serves


def test_without_weights_it_says_how_to_fetch_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = LocalEngine(Settings(), program=PROGRAM)
    assert engine.unavailable() == NO_WEIGHTS
    folder = weights.folder_of_user()
    folder.mkdir(parents=True)
    with (folder / weights.SMALL.file).open("wb") as file:
        file.truncate(weights.SMALL.bytes)
    assert engine.unavailable() is None
    assert engine.title() == weights.SMALL.title
