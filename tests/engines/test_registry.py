"""Which engine serves whom, and what status and doctor say of it."""

from __future__ import annotations

from mimikit.config import Settings
from mimikit.engines.registry import EngineRegistry
from mimikit.protocol.models import EngineStatus
from mimikit.testing.twins import ScriptedEngine


def engines_of(settings: Settings, **reasons: str | None) -> EngineRegistry:
    found = [ScriptedEngine(name=name) for name in ("codex", "builtin", "command")]
    for engine in found:
        engine.reason_unavailable = reasons.get(engine.name)
    return EngineRegistry(list(found), settings)


def test_a_preferred_engine_that_can_not_serve_is_passed_over_with_its_reason() -> None:
    status = engines_of(Settings(), codex="not logged in").status()
    assert status["teller"] == EngineStatus(engine="builtin", reason="codex: not logged in")
    assert status["teller"].text == "builtin (codex: not logged in)"
    assert status["command"].text == "command"


def test_a_named_engine_is_waited_for() -> None:
    settings = Settings.model_validate({"roles": {"planner": {"engine": "codex"}}})
    status = engines_of(settings, codex="not logged in").status()["planner"]
    assert (status.engine, status.state, status.reason) == ("codex", "waiting", "not logged in")
    assert status.text == "codex — waiting: not logged in"


def test_what_is_ready_says_its_name_alone() -> None:
    assert engines_of(Settings()).status()["teller"].text == "codex"
