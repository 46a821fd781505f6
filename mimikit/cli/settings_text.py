"""The settings as text: a file to start from, and each value in force with where it came from."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from mimikit.config import Settings, known_keys

_HEAD = """\
# Settings of mimikit. Each line shows a default: to change one, take the # away from it and from
# the [table] above it.
# `mimikit doctor` prints every value in force and where it came from.
# The environment goes before this file: MIMIKIT_WEB__PORT=9000 is web.port.
"""


def config_template() -> str:
    """A config.toml that changes nothing and shows everything."""
    tables: dict[str, list[str]] = {}
    defaults = Settings.model_construct()
    for key in known_keys():
        table, _, name = key.rpartition(".")
        value = value_of(defaults, key)
        shown = "…" if value is None else _toml(value)
        tables.setdefault(table, []).append(f"# {name} = {shown}")
    parts = [_HEAD]
    for table, lines in tables.items():
        head = f"# [{table}]\n" if table else ""
        parts.append(head + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{}"
    return json.dumps(value, ensure_ascii=False)


def value_of(settings: BaseModel, key: str) -> Any:
    """The value of a dotted key."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def in_force(settings: Settings, folder: Path) -> Iterator[tuple[str, Any, str]]:
    """Each key with its value and its origin: `default`, `config.toml` or the variable's name."""
    file = _file_values(folder / "config.toml")
    for key in known_keys():
        yield key, value_of(settings, key), _origin(key, file)


def _origin(key: str, file: dict[str, Any]) -> str:
    own = "MIMIKIT_" + key.upper().replace(".", "__")
    section = "MIMIKIT_" + key.upper().partition(".")[0]
    for name in (own, section):
        if name in os.environ:
            return name
    *tables, name = key.split(".")
    for table in tables:
        inner = file.get(table)
        file = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return "config.toml" if name in file else "default"


def _file_values(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError):
        return {}
