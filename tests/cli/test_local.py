"""`mimikit local`: weights fetched, seen and removed in the user's cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mimikit.engines.local import weights
from mimikit.errors import EngineError
from tests.cli.conftest import Cli


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return weights.folder_of_user()


def put_weights(folder: Path) -> None:
    """A file of the size and name of the small weights, and nothing in it."""
    folder.mkdir(parents=True)
    with (folder / weights.SMALL.file).open("wb") as file:
        file.truncate(weights.SMALL.bytes)


def test_what_is_there_is_shown_and_not_fetched_again(cli: Cli, cache: Path) -> None:
    put_weights(cache)
    result = cli("local", "setup", "--yes")
    assert result.exit_code == 0, result.output
    assert f"{weights.SMALL.title} is there: {cache}" in result.stdout
    told = json.loads(cli("local", "status", "--json").stdout)
    assert told["weights"] == ["0.5b"]
    assert told["folder"] == str(cache)
    assert "0.5b" in cli("local", "status").stdout
    assert "Removed: Qwen2.5-Coder-0.5B" in cli("local", "remove").stdout
    assert not list(cache.iterdir())
    assert "There was nothing" in cli("local", "remove", "--size", "1.5b").stdout


def test_a_failed_download_is_said_in_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, _offset: int) -> Iterator[bytes]:
        raise EngineError(f"{url} cannot be downloaded: no connection")
        yield

    monkeypatch.setattr(weights, "download", refuse)
    result = cli("local", "setup", "--size", "1.5b", "--yes")
    assert result.exit_code == 1
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("mimikit: ")]
    assert "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf cannot be downloaded: no connection" in line
