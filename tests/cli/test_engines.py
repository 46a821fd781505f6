"""`mimikit engine`: set up, test, order and remove endpoints."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimikit.engines.setup import EndpointTest, EndpointTrial
from tests.cli.conftest import Cli
from tests.support.fake_llm import Body, FakeLLM

KEY = "canary-key-7fq2"
OWN = "# my own\n[limits]\nretry_delay_s = 3 # soon\n"


def answer(body: Body) -> Body:
    if body["model"] != "m1":
        error = {"message": f"The model `{body['model']}` does not exist"}
        return {"status": 404, "body": {"error": error}}
    return {"call": {"name": "say", "arguments": {"word": "hello"}}}


@pytest.fixture
def llm() -> Iterator[FakeLLM]:
    models = [{"id": "m1"}, {"id": "m2"}]
    with FakeLLM([answer], apis=["/v1/chat/completions"], models=models, key=KEY) as server:
        yield server


def settings(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / ".mimikit/config.toml").read_text())


def added(cli: Cli, llm: FakeLLM, *more: str, key: str = KEY) -> Any:
    given = ["--base-url", llm.url, "--model", "m1", "--key-stdin", *more]
    return cli("engine", "add", "deep", *given, text=f"{key}\n")


def test_it_is_tried_and_written_with_the_key_apart(cli: Cli, llm: FakeLLM, tmp_path: Path) -> None:
    cli("init")
    config, key = tmp_path / ".mimikit/config.toml", tmp_path / ".mimikit/secrets/engine-deep.key"
    config.write_text(OWN)
    pasted = ["--base-url", f"{llm.url}/chat/completions"]
    result = added(cli, llm, *pasted, "--effort", "low", "--price-in", "0.5", "--price-out", "2")
    assert result.exit_code == 0, result.output
    assert "It answers by Chat Completions" in result.stdout
    assert config.read_text().startswith(OWN)
    assert settings(tmp_path)["engines"]["deep"] == {
        "type": "openai", "base_url": pasted[1], "model": "m1", "effort": "low",
        "price": {"input": 0.5, "output": 2.0},
        "api_key_file": "engine-deep.key",
    }  # fmt: skip
    assert key.read_text() == f"{KEY}\n"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    shown = "".join(
        cli(*words).output
        for words in (["engine", "list"], ["engine", "list", "--json"], ["doctor"], ["logs"])
    )
    assert KEY not in shown + result.output
    assert f"m1 at {llm.url}" in shown


@pytest.mark.parametrize(
    ("facts", "key", "said"),
    [
        ({}, "wrong", "answered 401: Incorrect API key provided; check the key"),
        ({"--model": "m9"}, KEY, "does not exist; it has m1, m2"),
        ({"--base-url": "http://127.0.0.1:9/v1"}, KEY, "cannot be reached"),
        ({"--base-url": "http://me:key@host/v1"}, KEY, "without a name, a key or a query"),
        ({"--key-env": "SOME_KEY"}, KEY, "expected --key-env or --key-stdin, got both"),
    ],
)
def test_an_invalid_endpoint_is_reported_and_nothing_is_written(
    cli: Cli, llm: FakeLLM, tmp_path: Path, facts: dict[str, str], key: str, said: str
) -> None:
    cli("init")
    before = (tmp_path / ".mimikit/config.toml").read_text()
    given = {"--base-url": llm.url, "--model": "m1"}
    given |= {option: value.replace("URL/v2", f"{llm.url}/v2") for option, value in facts.items()}
    words = [word for pair in given.items() for word in pair]
    result = cli("engine", "add", "deep", *words, "--key-stdin", text=key)
    assert result.exit_code == 2
    assert said in result.stderr
    assert KEY not in result.output
    assert (tmp_path / ".mimikit/config.toml").read_text() == before
    assert not list((tmp_path / ".mimikit/secrets").glob("engine-*"))


def test_without_a_test_no_request_is_sent(cli: Cli, tmp_path: Path) -> None:
    given = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--no-test"]
    result = cli("engine", "add", "nearby", *given, "--key-env", "NO_SUCH_KEY")
    assert result.exit_code == 0, result.output
    assert "NO_SUCH_KEY is not set here" in result.stderr
    assert settings(tmp_path)["engines"]["nearby"]["api_key_env"] == "NO_SUCH_KEY"


def test_engines_are_ordered_and_removed(cli: Cli, llm: FakeLLM, tmp_path: Path) -> None:
    assert added(cli, llm, "--use").exit_code == 0
    assert settings(tmp_path)["engine"] == ["deep", "auto"]
    assert cli("engine", "order", "codex", "deep", "--for", "teller").exit_code == 0
    assert settings(tmp_path)["roles"]["teller"] == {"engines": ["codex", "deep"]}
    listed = json.loads(cli("engine", "list", "--json").stdout)
    assert listed["orders"] == {"all": ["deep", "auto"], "teller": ["codex", "deep"]}
    result = cli("engine", "order", "deep", "nobody", "--for", "teller")
    assert result.exit_code == 2
    assert "roles.teller.engine: expected one of auto, codex" in result.stderr
    assert cli("engine", "test", "deep").exit_code == 0
    assert cli("engine", "remove", "deep").exit_code == 0
    assert "engines" not in settings(tmp_path)
    assert settings(tmp_path)["roles"]["teller"] == {"engines": ["codex"]}
    assert not list((tmp_path / ".mimikit/secrets").glob("engine-*"))
    assert "expected an endpoint that is set up" in cli("engine", "remove", "deep").stderr


def test_changes_made_during_a_trial_are_kept(
    cli: Cli, llm: FakeLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial takes up to a minute; other writers may change the settings meanwhile."""
    cli("init")

    def slow(_trial: EndpointTrial, _state: Path) -> EndpointTest:
        other = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--no-test"]
        assert cli("engine", "add", "other", *other).exit_code == 0
        assert cli("usage", "--set-daily", "9000").exit_code == 0
        return EndpointTest("chat", "hello", calls_tools=True, took_s=60)

    monkeypatch.setattr(EndpointTrial, "turn", slow)
    assert added(cli, llm).exit_code == 0
    found = settings(tmp_path)
    assert sorted(found["engines"]) == ["deep", "other"]
    assert found["budget"] == {"daily_tokens": 9000}


def test_a_stored_key_is_not_sent_to_another_address(
    cli: Cli, llm: FakeLLM, tmp_path: Path
) -> None:
    cli("init")
    added(cli, llm)
    with FakeLLM([], apis=["/v1/chat/completions"]) as other:
        moved = cli("engine", "add", "deep", "--base-url", other.url, "--model", "m1")
        assert (moved.exit_code, "expected the key again" in moved.stderr) == (2, True)
        assert other.requests == []
    assert settings(tmp_path)["engines"]["deep"]["base_url"] == llm.url
