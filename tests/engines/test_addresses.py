"""Where codex and opencode ask their models, and how it is seen that somebody is there again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engine_settings import CodexSettings
from mimikit.engines.base import ProbedEngine
from mimikit.engines.codex.address import address_of
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.codex.workspace import CodexLocation
from mimikit.engines.health import accepts
from mimikit.engines.opencode import cli as opencode_cli
from mimikit.engines.opencode.engine import OpencodeEngine
from mimikit.protocol.models import EngineWant
from tests.support.fake_llm import FakeLLM
from tests.support.opencode_ground import owner_config

URL = "https://models.test/v1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    names = ("CODEX_HOME", "CODEX_API_KEY", *(f"XDG_{n}_HOME" for n in ("CONFIG", "DATA", "CACHE")))
    for name in (*names, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    (tmp_path / ".codex").mkdir()
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    return tmp_path


def of_codex(home: Path, **config: str) -> str | None:
    place = CodexLocation("codex", home / ".codex", own_home=False)
    return address_of(CodexSettings(config=config), place)


@pytest.mark.parametrize(
    "config",
    [
        {"model_provider": '"mine"', "model_providers.mine": f'{{name="m",base_url="{URL}"}}'},
        {"model_provider": "mine", "model_providers.mine.base_url": f'"{URL}"'},
        {"model_provider": '"mine"', "model_providers": f'{{mine={{base_url="{URL}"}}}}'},
        {"openai_base_url": f'"{URL}"'},
        {"openai_base_url": URL, "model_provider": '"openai"'},
    ],
)
def test_of_codex_it_is_that_of_the_provider_in_the_settings(
    home: Path, config: dict[str, str]
) -> None:
    (home / ".codex/auth.json").write_text('{"tokens": {"a": "b"}}')
    assert of_codex(home, **config) == URL


@pytest.mark.parametrize(
    ("login", "host"),
    [
        ('{"tokens": {"access_token": "x"}}', "https://chatgpt.com/"),
        ('{"OPENAI_API_KEY": "x", "tokens": null}', "https://api.openai.com/"),
        ("{}", None),
        ("no JSON", None),
        ("[1]", None),
        (None, None),
    ],
)
def test_else_it_is_that_of_the_login(home: Path, login: str | None, host: str | None) -> None:
    if login is not None:
        (home / ".codex/auth.json").write_text(login)
    found = of_codex(home)
    assert found is None if host is None else str(found).startswith(host)


def test_a_key_in_the_environment_goes_before_the_login(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".codex/auth.json").write_text('{"tokens": {"access_token": "x"}}')
    monkeypatch.setenv("CODEX_API_KEY", "x")
    assert str(of_codex(home)).startswith("https://api.openai.com/")


@pytest.mark.parametrize("provider", ['"ollama"', "[1]", "{", '"mine"'])
def test_of_a_provider_whose_address_is_not_given_nothing_is_known(
    home: Path, provider: str
) -> None:
    (home / ".codex/auth.json").write_text('{"tokens": {"a": "b"}}')
    config = {"model_provider": provider, "model_providers.mine": "[1]"}
    assert of_codex(home, **config) is None


def of_opencode(home: Path, model: str | None = None) -> str | None:
    place = opencode_cli.find(
        Settings().opencode.model_copy(update={"path": str(home / "program")})
    )
    assert place is not None
    return opencode_cli.address_of(place, model)


def test_of_opencode_it_is_that_of_the_models_provider(home: Path) -> None:
    owner_config(home, URL)
    assert of_opencode(home) == of_opencode(home, "fake/other") == URL
    assert of_opencode(home, "another/m") is None
    owner_config(home, "https://{env:WHERE}/v1")
    assert of_opencode(home) is None
    (home / ".config/opencode/opencode.json").write_text(json.dumps({"model": ["odd"]}))
    assert of_opencode(home) is None


def codex(home: Path, url: str) -> ProbedEngine:
    provider = {"model_provider": '"mine"', "model_providers.mine": f'{{base_url="{url}"}}'}
    settings = {"codex": {"path": str(home / "program"), "config": provider}}
    return CodexEngine(Settings.model_validate(settings), home / "state")


def opencode(home: Path, url: str) -> ProbedEngine:
    owner_config(home, url)
    settings = {"opencode": {"path": str(home / "program")}}
    return OpencodeEngine(Settings.model_validate(settings), home / "state")


@pytest.mark.parametrize("make", [codex, opencode])
@pytest.mark.parametrize("want", ["unreachable", "broken"])
def test_it_is_seen_that_somebody_takes_connections_again(
    home: Path, make: Callable[[Path, str], ProbedEngine], want: EngineWant
) -> None:
    with FakeLLM([]) as llm:
        assert make(home, llm.url).is_mended(want)
        assert not llm.requests
    assert not make(home, llm.url).is_mended(want)
    assert not make(home, "http://127.0.0.1:99999/v1").is_mended(want)
    assert not make(home, "no address").is_mended(want)


def test_behind_a_proxy_that_is_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLLM([]) as llm:
        monkeypatch.setenv("https_proxy", llm.url.removeprefix("http://").removesuffix("/v1"))
        assert accepts("https://models.test/v1")
        monkeypatch.setenv("no_proxy", "127.0.0.2")
        assert not accepts("https://127.0.0.2:1/v1")
        assert not accepts("https://127.0.0.1:1/v1")
    assert not accepts("https://models.test/v1")
