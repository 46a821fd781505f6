"""What of its owner's settings opencode is given, and what is said where it can not serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mimikit.engine_settings import OpencodeSettings
from mimikit.engines.base import EngineOutage
from mimikit.engines.opencode import cli
from mimikit.engines.opencode.cli import OpencodeLocation
from mimikit.engines.opencode.reader import SessionReader
from mimikit.errors import EngineError
from tests.support.engine_requests import NOW, Desk


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    (tmp_path / ".config/opencode").mkdir(parents=True)
    (tmp_path / "opencode").write_text("#!/bin/sh\n")
    (tmp_path / "opencode").chmod(0o755)
    return tmp_path


def settings(home: Path, **more: Any) -> OpencodeSettings:
    return OpencodeSettings(path=str(home / "opencode"), **more)


def place(home: Path) -> OpencodeLocation:
    found = cli.find(settings(home))
    assert found is not None
    return found


def test_where_it_is_not_installed_it_says_how(home: Path) -> None:
    reason = cli.unavailable(OpencodeSettings(path=str(home / "nowhere")))
    assert isinstance(reason, EngineOutage)
    assert reason.want == "missing"
    assert "opencode-ai" in reason


def test_without_a_provider_it_takes_no_model_of_its_makers(home: Path) -> None:
    reason = cli.unavailable(settings(home))
    assert isinstance(reason, EngineOutage)
    assert reason.want == "logged_out"
    assert "opencode auth login" in reason


@pytest.mark.parametrize("by", ["login", "provider", "model", "variable"])
def test_each_of_these_makes_it_serve(home: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    more: dict[str, Any] = {}
    if by == "login":
        (home / ".local/share/opencode").mkdir(parents=True)
        (home / ".local/share/opencode/auth.json").write_text('{"some": {"type": "api"}}')
    elif by == "provider":
        (home / ".config/opencode/opencode.jsonc").write_text('{"provider": {"some": {}},}')
    elif by == "model":
        more["model"] = "opencode/free"
    else:
        monkeypatch.setenv("SOME_API_KEY", "x")
        more["env"] = ["SOME_API_KEY"]
    assert cli.unavailable(settings(home, **more)) is None


def test_of_the_owners_settings_only_providers_and_models_count(home: Path) -> None:
    (home / ".config/opencode/opencode.jsonc").write_text(
        """{
          // a comment, with "quotes", and https://nowhere
          "provider": {"a": {"options": {"baseURL": "https://a/v1", "apiKey": "{file:key}"}},},
          "model": "a/m", /* another */
          "mcp": {"evil": {"type": "local", "command": ["evil"]}},
          "plugin": ["evil"], "instructions": ["evil.md"], "permission": "allow",
          "agent": {"mimikit": {"permission": {"*": "allow"}}},
        }"""
    )
    (home / ".config/opencode/opencode.json").write_text('{"model": "b/m", "share": "auto"}')
    made = json.loads(cli.content(settings(home), place(home)))
    assert "evil" not in json.dumps(made)
    assert made["model"] == "a/m"
    options = made["provider"]["a"]["options"]
    assert options["baseURL"] == "https://a/v1"
    assert options["apiKey"] == f"{{file:{home}/.config/opencode/key}}"
    assert made["agent"]["mimikit"]["permission"]["*"] == "deny"
    assert (made["permission"]["*"], made["share"]) == ("deny", "disabled")


def test_settings_of_the_owner_that_are_none_are_told(home: Path) -> None:
    (home / ".config/opencode/opencode.json").write_text("{oh")
    with pytest.raises(EngineError, match="expected JSON"):
        cli.content(settings(home), place(home))
    reason = cli.unavailable(settings(home))
    assert reason
    assert "fix it" in reason


def retry(said: str, attempt: int = 1, wait_ms: int = 2000) -> dict[str, object]:
    at = int(NOW.timestamp() * 1000) + wait_ms
    status = {"type": "retry", "attempt": attempt, "message": said, "next": at}
    return {"type": "session.status", "properties": {"sessionID": "s", "status": status}}


def error(name: str, **data: object) -> dict[str, object]:
    facts = {"sessionID": "s", "error": {"name": name, "data": data}}
    return {"type": "session.error", "properties": facts}


@pytest.mark.parametrize(
    ("event", "want"),
    [
        (retry("Too Many Requests"), "limited"),
        (retry("it broke"), None),
        (retry("it broke", attempt=3, wait_ms=10_000), "broken"),
        (retry("Unable to connect. Is the computer able to access the url?"), "unreachable"),
        (error("APIError", message="no", statusCode=401), "logged_out"),
        (error("APIError", message="no", statusCode=503), "broken"),
        (error("UnknownError", message="Model not found: a/b."), "unready"),
    ],
)
def test_its_troubles_are_told_apart(event: dict[str, object], want: str | None) -> None:
    reader = SessionReader("s", Desk().event, lambda: NOW)
    assert reader.take(event)
    if want is None:
        assert reader.failure is None
    else:
        assert reader.failure is not None
        assert reader.failure.want == want


def test_what_the_work_itself_did_wrong_is_no_trouble_of_the_engine() -> None:
    reader = SessionReader("s", Desk().event, lambda: NOW)
    reader.take(error("APIError", message="bad request", statusCode=400))
    assert reader.failure is not None
    assert (reader.failure.reason, reader.failure.want) == ("error", None)


def test_events_of_others_are_passed_over() -> None:
    reader = SessionReader("other", Desk().event, lambda: NOW)
    assert not reader.take(retry("Too Many Requests"))
    assert not reader.take({})
    assert not reader.take({"type": "session.idle", "properties": []})
    assert reader.failure is None
