"""The findings of `mimikit doctor`, and the settings in force."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from pydantic import Field, computed_field

from mimikit import config
from mimikit.engine_settings import SettingsSection
from mimikit.errors import MimikitError
from mimikit.protocol import paths
from mimikit.views.base import View

Level: TypeAlias = Literal["ok", "note", "warning", "broken"]


class SettingView(View):
    key: str
    value: Any
    origin: str
    """`default`, `config.toml` or a variable's name."""


class Finding(View):
    """The result of one check of doctor's."""

    level: Level
    area: str
    text: str
    mend: str | None = None
    """What to do about it."""
    fix: Callable[[], object] | None = Field(None, exclude=True)
    """Does it, where that is safe."""

    @computed_field
    @property
    def fixable(self) -> bool:
        """Whether `--fix` fixes it."""
        return self.fix is not None


def _finding(
    level: Level,
    area: str,
    text: str,
    mend: str | None = None,
    fix: Callable[[], object] | None = None,
) -> Finding:
    return Finding(level=level, area=area, text=text, mend=mend, fix=fix)


ok = partial(_finding, "ok")
note = partial(_finding, "note")
warning = partial(_finding, "warning")
broken = partial(_finding, "broken")


class DoctorReport(View):
    settings: list[SettingView]
    findings: list[Finding]


_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)


def settings_in_force(folder: Path) -> list[SettingView]:
    """Each key with its value and origin, without secrets; empty when they are not valid."""
    try:
        settings = config.load(folder)
        file: dict[str, Any] = tomllib.loads(config.file_text(folder / paths.CONFIG))
    except (MimikitError, OSError, ValueError):
        return []
    return [
        SettingView(key=key, value=_shown(attrgetter(key)(settings)), origin=_origin(key, file))
        for key in config.known_keys()
    ]


def _shown(value: object) -> object:
    """Of named sections only what is set."""
    if not isinstance(value, dict):
        return value
    return {
        name: it.model_dump(exclude_defaults=True)
        if isinstance(it, SettingsSection)
        else "•••"
        if _SECRET.search(name)
        else it
        for name, it in cast("dict[str, Any]", value).items()
    }


def _origin(key: str, file: dict[str, Any]) -> str:
    for name in (key.replace(".", "__"), key.partition(".")[0]):
        if (variable := f"MIMIKIT_{name.upper()}") in os.environ:
            return variable
    *tables, name = key.split(".")
    for table in tables:
        inner = file.get(table)
        file = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return "config.toml" if name in file else "default"
