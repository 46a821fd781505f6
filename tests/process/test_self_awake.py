"""Self-awake with a real engine under a real consumer: killed in the midst of it, and judged."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.process.world import World, until
from tests.support.fake_llm import Body, FakeLLM, tool_names, tool_outputs
from tests.support.repositories import STATES, git, own_refs, repository, users

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "git"),
]
GOOD, BAD = "echo better > a.py", "echo worse > a.py"
CHECK = "grep -q better a.py && mkdir left && echo made > left/by-a-check"


class ScriptedMind:
    """Says what each part of an improvement does, by what it is asked."""

    def __init__(self) -> None:
        self.line, self.stalls = GOOD, True
        self.asked: list[str] = []

    def __call__(self, body: Body) -> Body:
        text = str(body.get("input") or body.get("messages"))
        outputs = tool_outputs(body)
        if "one small improvement can be made" in text:
            self.asked.append("plan")
            task = {"title": "Make a better", "prompt": "Make a.py better, and nothing else."}
            return {"text": ""} if outputs else {"tools": [["delegate", task]]}
        if "Judge whether its owner would want it" in text:
            self.asked.append("review")
            return {"text": '{"ok": true, "reason": "It is better."}'}
        self.asked.append("work")
        if not outputs:
            half = "; echo half > half.txt" if self.stalls else ""
            return _shell(body, self.line + half)
        return {"hang": 600} if self.stalls else {"text": "I made it better."}


def _shell(body: Body, line: str) -> Body:
    own = {"call": {"name": "shell", "arguments": {"command": line}}}
    return own if "shell" in tool_names(body) else {"shell": line}


def by_endpoint(url: str) -> str:
    return f'[engines.mine]\nbase_url = "{url}"\nmodel = "m"\n'


def by_codex(url: str) -> str:
    provider = (
        f'{{name="fake",base_url="{url}",wire_api="responses",env_key="FAKE_KEY",'
        "requires_openai_auth=false,request_max_retries=0,stream_max_retries=0}"
    )
    return (
        '[codex]\nenv = ["FAKE_KEY"]\n[codex.config]\n'
        f"model_provider = '\"fake\"'\n\"model_providers.fake\" = '{provider}'\n"
        '[roles.planner]\nmodel = "gpt-5.5"\n[profiles.standard]\nmodel = "gpt-5.5"\n'
    )


ENGINES: dict[str, Callable[[str], str]] = {"mine": by_endpoint, "codex": by_codex}


@pytest.mark.parametrize(
    "engine", ["mine", pytest.param("codex", marks=[pytest.mark.codex, pytest.mark.nightly])]
)
def test_an_improvement_outlives_a_kill_is_kept_beside_the_user_s_files_and_the_next_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FAKE_KEY", "canary-key")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (tmp_path / "home").mkdir()
    seats = ("ROLES__PLANNER__ENGINE", "PROFILES__STANDARD__ENGINE")
    world, mind = World(tmp_path, dict.fromkeys(seats, engine)), ScriptedMind()
    folder = repository(world.workspace, {"a.py": "one\n", "sub/b.py": "two\n"})
    for state in ("stashed", "dirty"):
        STATES[state](folder)
    with FakeLLM([mind]) as llm:
        world.state.mkdir()
        (world.state / "config.toml").write_text(
            f'{ENGINES[engine](llm.url)}[self_awake]\nchecks = ["{CHECK}"]\n'
            f'folder = "{tmp_path / "cache"}"\n'
        )
        before, objects = of_user(folder), object_names(folder)
        try:
            first = world.start_consumer()
            assert world.order("self_awake_run", "lint")["ok"]
            until(lambda: [*(tmp_path / "cache").glob("*/*/half.txt")], "the work has begun")
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            mind.stalls = False
            world.start_consumer()
            kept = ended(world, 1)
            made = git(folder, "show", "--format=%an|%s", "--name-only", kept["branch"]).split("\n")
            assert kept["end"] == "committed", kept
            assert made[:3] == ["mimikit|Make a better", "", "a.py"]
            assert made[3:] == [""], "neither what was half done nor what the check has made"
            assert own_refs(folder) == {kept["branch"]: kept["commit"]}
            assert of_user(folder) == before
            new = object_names(folder) - objects
            assert len(new) == 3, "a blob, a tree, a commit"
            [told] = [m["text"] for m in world.transcript() if kept["branch"] in m["text"]]
            assert "`Make a better`" in told
            assert "It is better." in told
            mind.line = BAD
            assert world.order("self_awake_run", "types")["ok"]
            dropped = ended(world, 2)
            assert dropped["end"] == "dropped"
            assert dropped["why"].startswith(f"the check `{CHECK}` failed: exit code 1")
            assert own_refs(folder) == {kept["branch"]: kept["commit"]}
            assert (of_user(folder), object_names(folder) - objects) == (before, new)
            assert [*(tmp_path / "cache").glob("*/*")] == []
            said = world.run("self-awake", "status").stdout
            assert kept["branch"] in said
            assert "dropped" in said
        finally:
            world.close()
    assert mind.asked.count("review") == 1, "what fails its checks is not judged"


def ended(world: World, count: int) -> dict[str, Any]:
    """The last improvement, once so many have ended."""

    def look() -> dict[str, Any] | None:
        state = world.record("self_awake.json") or {}
        past = state.get("past", [])
        return past[-1] if len(past) == count and state["run"] is None else None

    return until(look, f"{count} improvements ended", facts=world.facts)


def of_user(folder: Path) -> dict[str, str]:
    return {name: it for name, it in users(folder).items() if not name.startswith(".mimikit")}


def object_names(folder: Path) -> set[str]:
    return {path.name for path in (folder / ".git" / "objects").rglob("*") if path.is_file()}
