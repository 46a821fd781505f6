"""Which engine serves whom, in lines for a person. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = {"teller": "Teller", "planner": "Planner"}


def engine_lines(engines: Mapping[str, str]) -> list[str]:
    """Role or profile → engine, as lines: those with the same engine and reason stand together."""
    shared: dict[str, list[str]] = {}
    for name, text in engines.items():
        shared.setdefault(text, []).append(_NAMES.get(name, name))
    return [f"{', '.join(names)}: {text}" for text, names in shared.items()]
