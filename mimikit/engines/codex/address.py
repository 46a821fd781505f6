"""Where codex asks its model, as far as that is known: to look whether that is back.

Of the settings in its home nothing counts, as runs leave them out.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import cast

from mimikit.engine_settings import CodexSettings
from mimikit.engines.codex.cli import API_KEY
from mimikit.engines.codex.workspace import CodexLocation

_OF_KEYS, _OF_LOGINS = "https://api.openai.com/v1", "https://chatgpt.com/backend-api/codex"
_OWN = "openai"
"""What codex calls the provider that it takes where none is named."""


def address_of(settings: CodexSettings, place: CodexLocation) -> str | None:
    """That of the provider in `codex.config`, else that of the login; None: it is not known."""
    provider = _given(settings.config, "model_provider")
    if provider not in (None, _OWN):
        table = f"model_providers.{provider}"
        return _text(_given(settings.config, f"{table}.base_url"))
    if (url := _given(settings.config, "openai_base_url")) is not None:
        return _text(url)
    if os.environ.get(API_KEY):
        return _OF_KEYS
    login = _login(place.home / "auth.json")
    if login.get("tokens"):
        return _OF_LOGINS
    return _OF_KEYS if login.get("OPENAI_API_KEY") else None


def _given(config: dict[str, str], name: str) -> object:
    """The value of a key, wherever the pairs have it: in one of its own, or in a table around it.

    What is no TOML is a text, as codex takes it. None where there is no such key.
    """
    for key, said in config.items():
        if key != name and not name.startswith(f"{key}."):
            continue
        try:
            value: object = tomllib.loads(f"value = {said}")["value"]
        except tomllib.TOMLDecodeError:
            value = said.strip()
        for part in name[len(key) + 1 :].split(".") if key != name else ():
            value = cast("dict[str, object]", value).get(part) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _login(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}
