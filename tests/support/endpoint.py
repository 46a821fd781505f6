"""An engine that asks a scripted model server, in a workspace of its own; chunks it may send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.engines.base import RunSpec, ToolSpec
from mimikit.engines.openai.engine import OpenAIEngine
from tests.support.engine_requests import NOW, Desk
from tests.support.fake_llm import Body, FakeLLM
from tests.support.runs import Ground
from tests.support.twins import FakeClock

KEY = "canary-key-of-the-endpoint"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
REPLY, LOOK = ToolSpec("reply", "Reply.", TEXT), ToolSpec("look", "Look.", TEXT)


def delta(finish: str | None = None, **fields: Any) -> Body:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def stream(*chunks: Body, done: bool = True) -> Body:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return {"raw": "".join([*lines, "data: [DONE]\n\n" if done else ""])}


class EndpointGround(Ground):
    """A workspace, and an engine `mine` that asks the server given to it."""

    def engine(
        self, llm: FakeLLM | None, clock: FakeClock | None = None, **facts: Any
    ) -> OpenAIEngine:
        url = llm.url if llm else "http://127.0.0.1:9/v1"
        known = {"base_url": url, "model": "m", "api_key_file": "mine.key", **facts}
        settings = Settings.model_validate({"engines": {"mine": known}})
        return OpenAIEngine("mine", settings, self.state, clock or FakeClock(NOW))

    def ask(self, prompt: str = "go", desk: Desk | None = None, **fields: Any) -> RunSpec:
        fields = {"instructions": "You are the role.", "role": "teller", **fields}
        return self.request(prompt, desk=desk, **fields)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EndpointGround:
    monkeypatch.setattr("mimikit.engines.openai.run.BACKOFF_S", (0.0,))
    return endpoint_ground(tmp_path)


def endpoint_ground(root: Path) -> EndpointGround:
    here = EndpointGround(root)
    (here.state / "secrets").mkdir(parents=True, mode=0o700)
    here.scratch.mkdir()
    key = here.state / "secrets/mine.key"
    key.write_text(f"{KEY}\n")
    key.chmod(0o600)
    return here
