"""A workspace for the real opencode program, which asks a model server of ours."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mimikit.clock import SystemClock
from mimikit.config import Settings
from mimikit.engines.base import RunSpec, ToolSpec
from mimikit.engines.opencode.engine import OpencodeEngine
from mimikit.tools.mcp import ToolServer
from tests.support.engine_requests import Desk
from tests.support.fake_llm import FakeLLM
from tests.support.programs import opencode
from tests.support.runs import Ground, ground

KEY = "canary-key-of-opencode"
SAY = ToolSpec(
    "say",
    "Say a word to the user.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


class OpencodeGround(Ground):
    """A workspace, and one engine whose server lasts as long as the ground."""

    engine: OpencodeEngine
    tools: ToolServer

    def ask(self, prompt: str = "go", desk: Desk | None = None, **fields: Any) -> RunSpec:
        facts: dict[str, Any] = {
            "instructions": "You are the role.",
            "role": "teller",
            "serve": self.tools.offered,
        }
        if fields.get("role", "teller") != "worker":
            facts["tools"] = (SAY,)
        return self.request(prompt, desk=desk, **{**facts, **fields})


def owner_config(home: Path, url: str, *, key: str = KEY) -> None:
    """What the owner of a home has set up: one provider, whose models the server plays."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": key},
        "models": {"m": {"tool_call": True, "limit": {"context": 100_000, "output": 8000}}},
    }
    folder = home / ".config/opencode"
    folder.mkdir(parents=True, exist_ok=True)
    made = {"provider": {"fake": provider}, "model": "fake/m"}
    (folder / "opencode.json").write_text(f"// the owner's\n{json.dumps(made)}\n")


@contextmanager
def opencode_ground(root: Path, llm: FakeLLM, **facts: Any) -> Generator[OpencodeGround]:
    """A ground with HOME at its `home`; everything of the owner's opencode is there."""
    ground(root)
    here = OpencodeGround(root)
    home = root / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("canary-of-the-home")
    login = home / ".local/share/opencode/auth.json"
    login.parent.mkdir(parents=True)
    login.write_text(json.dumps({"other": {"type": "api", "key": "canary-login"}}))
    (here.state / "note").write_text("canary-of-the-state")
    owner_config(home, llm.url)
    before = {name: os.environ.get(name) for name in ("HOME", "TMPDIR", "PATH")}
    (root / "tmp").mkdir()
    os.environ |= {"HOME": str(home), "TMPDIR": str(root / "tmp")}
    program = opencode()
    settings = Settings.model_validate({"opencode": {"path": program, **facts}})
    here = OpencodeGround(root)
    object.__setattr__(here, "engine", OpencodeEngine(settings, here.state, SystemClock()))
    try:
        with ToolServer() as tools:
            object.__setattr__(here, "tools", tools)
            try:
                yield here
            finally:
                here.engine.close()
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)
        shutil.rmtree(root / "tmp", ignore_errors=True)
