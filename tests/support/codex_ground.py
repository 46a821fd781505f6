"""A workspace for the real codex program, which asks a model server of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.engine_settings import CodexSettings
from mimikit.engines.base import RunSpec
from mimikit.engines.codex.engine import CodexEngine
from tests.support.engine_requests import Desk
from tests.support.fake_llm import FakeLLM
from tests.support.runs import Ground, ground


@dataclass(frozen=True)
class Here(Ground):
    """A workspace, and engines that ask the model server given to them."""

    engines: list[CodexEngine] = field(default_factory=list[CodexEngine])

    def engine(self, llm: FakeLLM | None, **settings: Any) -> CodexEngine:
        url = llm.url if llm else "http://127.0.0.1:9/v1"
        provider = (
            f'{{name="fake",base_url="{url}",wire_api="responses",env_key="FAKE_KEY",'
            "requires_openai_auth=false,request_max_retries=0,stream_max_retries=0}"
        )
        config = {"model_provider": '"fake"', "model_providers.fake": provider}
        config |= settings.pop("config", {})
        codex = CodexSettings.model_validate({"env": ["FAKE_KEY"], "config": config, **settings})
        made = CodexEngine(Settings(codex=codex), self.state)
        self.engines.append(made)
        return made

    def close(self) -> None:
        for engine in self.engines:
            engine.close()

    def ask(self, prompt: str, desk: Desk | None = None, **fields: Any) -> RunSpec:
        fields = {"instructions": "You are the role.", "model": "gpt-5.5", **fields}
        return self.request(prompt, desk=desk, **fields)


def codex_ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    made = ground(tmp_path)
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # codex takes no home below the folder of temporary files
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("FAKE_KEY", "canary-key")
    monkeypatch.setenv("OTHER_TOKEN", "canary-token")
    for name in ("CODEX_HOME", "CODEX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (made.state / "secret").write_text("canary-secret")
    return Here(made.root)
