"""What a provider carries out for a run: every engine that thinks passes it on, in both roles."""

from __future__ import annotations

import json

import pytest

from mimikit.protocol.models import Role
from mimikit.tools.provider import ProvidedTools, ToolRun
from tests.engines.conformance.drivers import EngineDriver, open_session
from tests.support.engine_requests import Desk
from tests.support.fake_llm import tool_names
from tests.support.providing import Library


@pytest.mark.put_to(thinks=True, roles=("planner", "worker"))
def test_a_provided_tool_is_offered_called_and_answered(driver: EngineDriver, role: Role) -> None:
    library, audits, desk = Library(), list[tuple[str, object]](), Desk()
    provided = ProvidedTools(
        [library], ToolRun("run", role), lambda event, facts: audits.append((event, facts["ok"]))
    )
    said = {"tools": [["look_up", {"text": word}] for word in ("fish", "closed", "broken")]}
    ends = {"text": "it is a word"}
    session = open_session(role, provided)
    works = driver.by_server and role == "worker"  # its shell stays beside what it is given
    steps = [*([{"shell": "echo hi > made"}] if works else []), said, ends]
    played = driver.play(*steps, role=role, session=session, desk=desk, timeout_s=60.0)
    assert (played.outcome.status, played.outcome.text) == ("done", "it is a word")
    words = [given["text"] for _, given, _ in library.calls]
    assert sorted(map(str, words)) == ["broken", "closed", "fish"]
    assert sorted(audits) == [
        *(("tool_called", False), ("tool_called", True), ("tool_refused", False))
    ]
    assert not works or (driver.here.workspace / "made").read_text() == "hi\n"
    if driver.by_server:
        offered = tool_names(played.requests[0])
        assert any(name.endswith("look_up") or name == "functions/exec" for name in offered)
        told = json.dumps(played.told)
        assert "fish is a word" in told
        assert "this shelf is closed" in told
        assert "look_up failed: ValueError" in told
        assert "canary" not in str([played.requests, played.desk.events])
    tools = [text for kind, text, _ in desk.events if kind == "tool"]
    assert tools.count("look_up") >= 3
