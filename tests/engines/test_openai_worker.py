"""A Worker of the engine `openai`: its tools, and their limits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimikit.engines.base import UPSTREAM
from tests.support.endpoint import KEY, EndpointGround, endpoint_ground
from tests.support.engine_requests import Desk
from tests.support.fake_llm import FakeLLM
from tests.support.runs import alive, tag

pytestmark = pytest.mark.needs_program("bwrap")

Outputs = list[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EndpointGround:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("canary-of-the-home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OTHER_API_KEY", "canary-of-the-environment")
    made = endpoint_ground(tmp_path)
    (made.state / "note").write_text("canary-of-the-state")
    return made


@pytest.fixture
def work(here: EndpointGround) -> Callable[..., Outputs]:
    """Let a Worker call these tools in order; returns their outputs."""

    def carry_out(*calls: tuple[str, Any], desk: Desk | None = None, **fields: Any) -> Outputs:
        steps: list[Any] = [{"call": {"name": n, "arguments": a}} for n, a in calls]
        facts = fields.pop("facts", {})
        with FakeLLM([*steps, {"text": "done"}]) as llm:
            request = here.ask(role="worker", desk=desk, **fields)
            outcome = here.engine(llm, **facts).run(request)
            assert (outcome.status, outcome.text) == ("done", "done"), outcome
            told = llm.requests[-1]["messages"]
        return [message["content"] for message in told if message["role"] == "tool"]

    return carry_out


def shell(line: str, **more: Any) -> tuple[str, Any]:
    return "shell", {"command": line, **more}


def test_the_tools_read_write_edit_and_run(here: EndpointGround, work: Any) -> None:
    desk = Desk()
    outputs = work(
        ("write_file", {"path": "src/a.py", "content": "x = 1\ny = 2\n"}),
        ("edit_file", {"path": "src/a.py", "old": "x = 1", "new": "x = 3"}),
        ("read_file", {"path": "src/a.py"}),
        shell("cat src/a.py; echo oh >&2; pwd; exit 3"),
        ("read_file", {"path": "src/a.py", "offset": 2, "limit": 1}),
        desk=desk,
    )
    assert (here.workspace / "src/a.py").read_text() == "x = 3\ny = 2\n"
    assert outputs[0] == "created src/a.py: 2 lines"
    assert outputs[1] == "changed src/a.py: 1 place"
    assert outputs[2] == "x = 3\ny = 2\n"
    assert outputs[3].startswith("exit code 3\n")
    assert {"x = 3", "oh", str(here.workspace)} <= set(outputs[3].splitlines())
    assert outputs[4].startswith("y = 2\n\n(lines 2 to 2 of 2")
    ended = [facts for kind, _, facts in desk.events if kind == "command"][-1]
    assert (ended["status"], ended["exitCode"]) == ("failed", 3)
    assert [text for kind, text, _ in desk.events if kind == "file"] == ["src/a.py", "src/a.py"]


def test_neither_shell_nor_file_tools_see_a_secret(here: EndpointGround, work: Any) -> None:
    note, key = here.state / "note", here.state / "secrets/mine.key"
    outputs = work(
        shell("cat .mimikit/note .mimikit/secrets/* ~/.ssh/id; env; cat /proc/*/environ"),
        *(("read_file", {"path": str(path)}) for path in (note, key, Path.home() / ".ssh/id")),
        shell("ln -s .mimikit/note way; ln -s .mimikit deep; true"),
        ("read_file", {"path": "way"}),
        ("read_file", {"path": "deep/note"}),
    )
    assert "canary" not in "".join(outputs)
    assert KEY not in "".join(outputs)


def test_neither_shell_nor_file_tools_write_outside_the_workspace(
    here: EndpointGround, work: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("as it was")
    (here.workspace / "link").symlink_to(outside)
    forged = here.state / "worker/queue/forged.json"
    outputs = work(
        shell(f"echo x > {outside}; echo x > link; mkdir -p {forged.parent}; echo x > {forged}"),
        ("write_file", {"path": str(outside), "content": "x"}),
        ("write_file", {"path": "link", "content": "x"}),
        ("write_file", {"path": str(forged), "content": "x"}),
        ("edit_file", {"path": str(outside), "old": "as", "new": "not as"}),
        shell("echo fine > $TMPDIR/a && cat $TMPDIR/a"),
    )
    assert outside.read_text() == "as it was"
    assert not forged.exists()
    assert outputs[4].startswith("error: ")  # what it wrote before went to the box's own /tmp
    assert outputs[5] == "exit code 0\nfine"


def test_a_command_that_does_not_end_is_killed_with_its_children(work: Any) -> None:
    mark = tag()
    outputs = work(
        shell(f"sleep {mark} & setsid sleep {mark} & echo begun; sleep {mark}", timeout=1),
        shell(f"nohup sleep {mark} >/dev/null 2>&1 & echo left"),
        shell("yes", timeout=60),
    )
    assert outputs[0].startswith("ended: not done within 1 s\nbegun")
    assert "left" in outputs[1]
    assert outputs[2].startswith("ended: it printed too much")
    assert alive(mark) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("shell", {}, "command: expected a value"),
        ("shell", {"command": ["bash", "-lc", "echo by words"]}, "by words"),
        ("shell", {"command": "x" * 200_000}, "at most"),
        ("read_file", {"path": "nowhere"}, "No such file"),
        ("read_file", {"path": "/dev/zero"}, "expected a file"),
        ("read_file", {"path": "pipe"}, "expected a file"),
        ("write_file", {"path": "a"}, "content: expected a value"),
        ("edit_file", {"path": "twice", "old": "a", "new": "b"}, "found it 2 times"),
        ("edit_file", {"path": "twice", "old": "z", "new": "b"}, "found it nowhere"),
        ("delete_file", {"path": "a"}, "expected one of shell, read_file"),
    ],
)
def test_wrong_calls_are_answered(
    here: EndpointGround, work: Any, tool: str, arguments: Any, expected: str
) -> None:
    (here.workspace / "twice").write_text("a a")
    os.mkfifo(here.workspace / "pipe")
    (output,) = work((tool, arguments))
    assert expected in output
    assert (here.workspace / "twice").read_text() == "a a"


def test_upstream_results_are_readable_and_cannot_be_replaced(
    here: EndpointGround, work: Any
) -> None:
    folder = here.scratch / UPSTREAM
    folder.mkdir()
    (folder / "t1.txt").write_text("the result")
    outputs = work(
        ("read_file", {"path": str(folder / "t1.txt")}),
        shell(f"mv {folder} {folder}2; ln -s {here.state} {folder}; cat {folder}/note"),
        shell(f"cat {folder}/note {folder}/t1.txt"),
    )
    assert outputs[0] == "the result"
    assert "canary" not in "".join(outputs)
    assert "the result" in outputs[2]


def test_without_a_sandbox_no_worker_runs(
    here: EndpointGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimikit.sandbox.programs.find_bwrap", lambda: None)
    with FakeLLM([{"shell": "touch ran"}]) as llm:
        engine = here.engine(llm)
        assert engine.unavailable() is None, "Teller and Planner need none"
        assert "bubblewrap" in str(engine.unavailable("worker"))
        outcome = engine.run(here.ask(role="worker"))
        assert not llm.requests
    assert outcome.reason == "engine_unavailable"
    assert not (here.workspace / "ran").exists()
