"""Which engine a role gets, and the status of each."""

from __future__ import annotations

from mimikit.config import Settings
from mimikit.engines.base import EngineOutage
from mimikit.engines.registry import EngineRegistry
from mimikit.protocol.models import EngineStatus
from tests.support.twins import ScriptedEngine


def engines_of(
    settings: Settings, *, known: tuple[str, ...] = (), **reasons: str | None
) -> EngineRegistry:
    found = [ScriptedEngine(name=name) for name in ("codex", "local", "builtin", "command")]
    for engine in found:
        engine.reason_unavailable = reasons.get(engine.name)
    served = {name: EngineStatus(engine=name) for name in known}
    return EngineRegistry(list(found), settings, served)


GONE = EngineOutage("no weights", "missing")


def test_a_small_model_is_teller_and_planner_and_builtin_the_worker() -> None:
    status = engines_of(Settings(), codex="not installed").status()
    assert {name: status[name].engine for name in ("teller", "planner", "standard")} == {
        "teller": "local",
        "planner": "local",
        "standard": "builtin",
    }
    assert status["teller"].text == "local, basic mode"


def test_a_small_model_named_alone_leaves_the_work_to_code() -> None:
    status = engines_of(Settings(engine="local")).status()
    assert status["planner"].engine == "local"
    assert (status["standard"].engine, status["standard"].state) == ("builtin", "ready")


def test_a_small_model_replaces_an_unavailable_engine_as_teller_only() -> None:
    engines = engines_of(Settings(), codex="logged out", known=("codex",))
    status = engines.status()
    assert (status["teller"].engine, status["teller"].state) == ("local", "ready")
    for name in ("planner", "standard"):
        assert (status[name].engine, status[name].state) == ("codex", "waiting")


def test_a_small_model_without_weights_is_not_waited_for() -> None:
    engines = engines_of(Settings(), codex="not installed", local=GONE, known=("local",))
    assert engines.status()["teller"].engine == "builtin"
    assert not engines.engine_status()
    named = engines_of(Settings(engine="local"), local=GONE).status()["teller"]
    assert (named.engine, named.state) == ("local", "waiting")


def test_an_unavailable_engine_is_skipped_with_its_reason() -> None:
    status = engines_of(Settings(), codex="not logged in", local=GONE).status()
    why = "codex: not logged in; local: no weights"
    assert status["teller"] == EngineStatus(engine="builtin", reason=why)
    assert status["teller"].text == "builtin"
    assert status["command"].text == "command"


def test_a_named_engine_is_waited_for() -> None:
    settings = Settings.model_validate({"roles": {"planner": {"engine": "codex"}}})
    status = engines_of(settings, codex="not logged in").status()["planner"]
    assert (status.engine, status.state, status.reason) == ("codex", "waiting", "not logged in")
    assert status.text == "codex — waiting: not logged in"
