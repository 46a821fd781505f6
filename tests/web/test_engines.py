"""Engines over HTTP: listing without keys, trials, and setup and order by commands."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimikit.engines import setup
from mimikit.engines.setup import EndpointTrial
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.models import Command, EngineStatus
from tests.support.fake_llm import Body, FakeLLM
from tests.support.reading import record
from tests.web.conftest import MakeWeb, Web, error_of

KEY = "canary-key-7fq2"
MINE = """engine = ["mine", "auto"]

[engines.mine]
type = "openai"
base_url = "http://127.0.0.1:9/v1"
model = "m1"
api_key_file = "engine-mine.key"

[roles.teller]
engines = ["codex", "mine"]
"""


@pytest.fixture
def mine(web: Web) -> Web:
    """An app with a configured endpoint."""
    web.files.write(paths.CONFIG, MINE.encode())
    web.files.write(f"{paths.SECRETS}/engine-mine.key", f"{KEY}\n".encode())
    return web


@pytest.fixture
def real(make_web: MakeWeb, tmp_path: Path) -> Web:
    """An app on a real disk."""
    disk: Any = RealDisk(tmp_path)
    return make_web(disk=disk)


def put(web: Web, name: str = "deep", **body: Any) -> Any:
    given = {"baseUrl": "http://127.0.0.1:11434/v1", "model": "m1", "id": "cmd-1", **body}
    return web.ask("PUT", f"/api/engines/{name}", given)


def command(web: Web) -> Command:
    return record(web.files, paths.command("cmd-1"), Command)


def test_engines_are_listed_with_state_and_roles_without_their_keys(mine: Web) -> None:
    waits = EngineStatus(engine="codex", state="waiting", problem="limited", reason="full", tasks=2)
    serves = {"teller": EngineStatus(engine="mine"), "standard": EngineStatus(engine="mine")}
    mine.beat(by_engine={"codex": waits, "mine": EngineStatus(engine="mine")}, engines=serves)
    shown = mine.get("/api/engines")
    assert KEY not in json.dumps(shown)
    codex, endpoint, builtin = shown["engines"]
    assert (codex["name"], codex["state"], codex["want"], codex["tasks"]) == (
        *("codex", "waiting", "limited"),
        2,
    )
    assert endpoint | {"kind": "endpoint", "key": "kept", "state": "ready"} == endpoint
    assert endpoint["serves"] == ["teller", "standard"]
    assert (builtin["name"], builtin["state"], builtin["baseUrl"]) == ("builtin", "ready", "")
    assert shown["orders"] == {"all": ["mine", "auto"], "teller": ["codex", "mine"]}


def test_unreadable_settings_are_reported(web: Web) -> None:
    web.files.write(paths.CONFIG, b"x = [\n")
    for answer in (web.ask("GET", "/api/engines"), put(web)):
        assert answer.status_code == 409
        assert error_of(answer)["code"] == "bad_settings"


def test_a_key_goes_into_its_file_and_nowhere_else(real: Web) -> None:
    web = real
    assert put(web, key=f" {KEY} ").status_code == 202
    file = Path(web.files.fs.root) / "secrets/engine-deep.key"
    assert file.read_text() == f"{KEY}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    given = command(web)
    assert (given.action, given.target, given.origin) == ("engine_set", "deep", "http")
    assert given.args == {
        "base_url": "http://127.0.0.1:11434/v1", "model": "m1", "api_key_file": "engine-deep.key",
    }  # fmt: skip
    others = [p for p in Path(web.files.fs.root).rglob("*") if p.is_file() and p != file]
    assert [p for p in others if KEY.encode() in p.read_bytes()] == []


def test_an_edited_engine_keeps_its_key_unless_the_address_changes(mine: Web) -> None:
    assert put(mine, "mine", baseUrl="http://127.0.0.1:9/v1/", model="m2").status_code == 202
    assert command(mine).args == {
        "base_url": "http://127.0.0.1:9/v1", "model": "m2", "api_key_file": "engine-mine.key",
    }  # fmt: skip
    tried = {"name": "mine", "baseUrl": "http://127.0.0.1:10/v1", "model": "m2"}
    for answer in (put(mine, "mine"), mine.ask("POST", "/api/engines/trial", tried)):
        assert (answer.status_code, error_of(answer)["field"]) == (422, "key")


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("Deep", {}, "name"),
        ("codex", {}, "name"),
        ("deep", {"baseUrl": "ftp://x"}, "baseUrl"),
        ("deep", {"baseUrl": "http://me:secret@host/v1"}, "baseUrl"),
        ("deep", {"baseUrl": "http://host/v1?key=x"}, "baseUrl"),
        ("deep", {"model": ""}, "model"),
        ("deep", {"key": "a b"}, "key"),
        ("deep", {"key": "k", "keyEnv": "K"}, "key"),
        ("deep", {"keyEnv": "not a name"}, "keyEnv"),
        ("deep", {"network": True}, "network"),
    ],
)
def test_an_invalid_engine_is_refused_with_its_field(
    web: Web, name: str, body: dict[str, Any], field: str
) -> None:
    before = web.contents()
    answer = put(web, name, **body)
    assert (answer.status_code, error_of(answer)["field"]) == (422, field)
    assert "secret" not in error_of(answer)["message"]
    assert web.contents() == before


def test_a_remote_page_cannot_name_an_environment_variable(make_web: MakeWeb) -> None:
    web = make_web(is_local=False)
    answer = put(web, keyEnv="AWS_SECRET_ACCESS_KEY")
    assert (answer.status_code, error_of(answer)["field"]) == (422, "keyEnv")
    assert put(web, key=KEY).status_code == 202


def test_the_engine_order_is_a_command_for_all_roles_or_one(mine: Web) -> None:
    body = {"use": "codex mine", "seat": "planner", "id": "cmd-1"}
    assert mine.ask("POST", "/api/engines", body).status_code == 202
    given = command(mine)
    assert (given.action, given.target, given.args) == (
        *("engine_use", "codex mine"),
        {"seat": "planner"},
    )
    for odd in ({"use": "gone"}, {"use": " "}, {"use": "mine", "seat": "cook"}):
        answer = mine.ask("POST", "/api/engines", odd)
        assert (answer.status_code, error_of(answer)["field"] in ("use", "seat")) == (422, True)


def test_an_endpoint_is_removed_by_a_command(mine: Web) -> None:
    answer = mine.ask("DELETE", "/api/engines/mine", {"id": "cmd-1"})
    assert answer.status_code == 202
    assert (command(mine).action, command(mine).target) == ("engine_remove", "mine")
    assert mine.ask("DELETE", "/api/engines/gone", {}).status_code == 404


# ---- trying


def says(body: Body) -> Body:
    if body["model"] != "m1":
        error = {"message": f"The model `{body['model']}` does not exist"}
        return {"status": 404, "body": {"error": error}}
    return {"call": {"name": "say", "arguments": {"word": "hello"}}}


@pytest.fixture(scope="module")
def llm() -> Iterator[FakeLLM]:
    models = [{"id": "m1"}, {"id": "m2"}]
    with FakeLLM([says], apis=["/v1/chat/completions"], models=models, key=KEY) as server:
        yield server


def tried(web: Web, url: str, key: str, model: str) -> dict[str, Any]:
    body = {"name": "deep", "baseUrl": url, "key": key, "model": model}
    answer = web.ask("POST", "/api/engines/trial", body)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()


def test_a_trial_lists_models_and_reports_the_result_of_a_test_turn(
    real: Web, llm: FakeLLM
) -> None:
    before = sorted(Path(real.files.fs.root).rglob("*"))
    found = tried(real, llm.url, KEY, "")
    assert (found["ok"], found["models"], found["api"]) == (True, ["m1", "m2"], None)
    found = tried(real, llm.url, KEY, "m1")
    assert (found["ok"], found["api"], found["callsTools"]) == (True, "chat", True)
    for url, key, model, field in (
        (llm.url, "wrong", "m1", "key"),
        (llm.url, KEY, "m3", "model"),
        ("http://127.0.0.1:9/v1", KEY, "m1", "baseUrl"),
    ):
        found = tried(real, url, key, model)
        assert (found["ok"], found["field"], bool(found["message"])) == (False, field, True)
        assert KEY not in json.dumps(found)
    assert sorted(Path(real.files.fs.root).rglob("*")) == before


def test_a_trial_that_never_ends_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address accepts a connection and never answers."""
    monkeypatch.setattr(setup, "TEST_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        asked = EndpointTrial(name="deep", facts={"base_url": url, "model": "m1"})
        found = setup.run_test_in_child(asked, tmp_path)
    assert (found.test, found.field) == (None, "baseUrl")
    assert "no complete answer" in found.message
