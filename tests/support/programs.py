"""Programs that tests need and that a machine may lack."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path


def browser() -> str | None:
    """Debian's Chromium; the headless shell if installed, as it is twice as fast."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def opencode() -> str | None:
    """The program that `OPENCODE` names, the one on the path, or the one CI has fetched."""
    fetched = Path(__file__).parents[2] / "build/opencode/node_modules/.bin/opencode"
    return shutil.which(os.environ.get("OPENCODE") or "opencode") or shutil.which(str(fetched))


def is_installed(program: str) -> bool:
    """Whether a program is on the path, or codex in its Python package."""
    if program == "chromium":
        return browser() is not None
    if program == "opencode":
        return opencode() is not None
    if shutil.which(program) is not None:
        return True
    return program == "codex" and importlib.util.find_spec("codex_cli_bin") is not None
