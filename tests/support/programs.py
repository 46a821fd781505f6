"""Programs that tests need and that a machine may lack."""

from __future__ import annotations

import importlib.util
import shutil


def browser() -> str | None:
    """Debian's Chromium; without windows, where that is installed: it takes half the time."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def is_installed(program: str) -> bool:
    """Whether a program is on the path, or codex in its Python package."""
    if program == "chromium":
        return browser() is not None
    if shutil.which(program) is not None:
        return True
    return program == "codex" and importlib.util.find_spec("codex_cli_bin") is not None
