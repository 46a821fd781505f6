"""Prompt templates: shipped ones, the user's overrides, and the check that none is empty."""

from __future__ import annotations

import re

from mimikit.assets import asset_folder
from mimikit.errors import BadSettings
from mimikit.protocol.files import Files

NAMES = ("teller", "planner", "worker", "llm-eval-batch", "daily-summary", "monthly-summary")
PLACEHOLDERS = frozenset(
    {"tools", "workspace", "now", "timezone", "statements", "period", "messages"}
)
NEEDED = {
    "llm-eval-batch": "statements",
    "daily-summary": "messages",
    "monthly-summary": "messages",
}
"""Without it the answer would be made of nothing, and taken for one of something."""
_PLACEHOLDER = re.compile(r"\{\{\s*([a-zA-Z_]*)\s*\}\}")


class Prompts:
    """The templates in force."""

    def __init__(self, files: Files) -> None:
        """Read and check every template.

        Raises:
            BadSettings: one is missing or empty, names an unknown placeholder, or lacks one.
        """
        self._templates = {name: _read(files, name) for name in NAMES}

    def fill(self, name: str, values: dict[str, str]) -> str:
        """The template with its placeholders filled."""
        return _PLACEHOLDER.sub(lambda m: values.get(m.group(1), ""), self._templates[name])


def _read(files: Files, name: str) -> str:
    own = files.read(f"prompts/{name}.md")
    where = f".mimikit/prompts/{name}.md" if own is not None else f"prompts/{name}.md (shipped)"
    if own is None:
        path = asset_folder("prompts") / f"{name}.md"
        if not path.is_file():
            raise BadSettings(
                f"{where}: expected a prompt template, got none; install mimikit anew"
            )
        own = path.read_bytes()
    text = own.decode("utf-8", "replace").strip()
    if not text:
        raise BadSettings(
            f"{where}: expected a prompt template, got an empty file; fill or remove it"
        )
    named = _PLACEHOLDER.findall(text)
    for found in named:
        if found not in PLACEHOLDERS:
            known = ", ".join(sorted(PLACEHOLDERS))
            raise BadSettings(f"{where}: expected placeholders among {known}; got {found!r}")
    if name in NEEDED and NEEDED[name] not in named:
        raise BadSettings(
            f"{where}: expected {{{{{NEEDED[name]}}}}} where the data goes, got none; "
            "add it or remove the file"
        )
    return text
