"""Finds programs that run outside the box: never in a workspace, where a Worker could write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

_workspaces = set[Path]()


def exclude(workspace: Path) -> None:
    _workspaces.add(Path(os.path.realpath(workspace)))


def find(name: str) -> str | None:
    return next((path for path in _candidates(name) if not _is_in_workspace(path)), None)


def why_missing(name: str) -> str:
    if (refused := next(_candidates(name), None)) is not None:
        return f"{refused} lies in the workspace, where agents write; install it elsewhere"
    return f"expected {name}, got no such program"


def find_bwrap() -> str | None:
    """The system's, else that of codex's package."""
    return find("bwrap") or packaged("codex-resources", "bwrap")


def packaged(*parts: str) -> str | None:
    """A program of the installed package openai-codex-cli-bin.

    Ignores the current folder, which `python -m` puts on the path, and workspaces.
    """
    folders = [name for name in sys.path if _is_installed(Path(os.path.realpath(name or ".")))]
    package = PathFinder.find_spec("codex_cli_bin", folders)
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent.joinpath(*parts)
    return str(program) if os.access(program, os.X_OK) else None


def _is_installed(folder: Path) -> bool:
    if folder.is_relative_to(os.path.realpath(sys.prefix)):
        return True
    return folder != Path.cwd() and not any(map(folder.is_relative_to, _workspaces))


def folders_of(program: str) -> list[Path]:
    real = Path(os.path.realpath(program))
    if "codex_cli_bin" in real.parts:
        return [real.parents[len(real.parts) - 2 - real.parts.index("codex_cli_bin")]]
    if "node_modules" in real.parts:
        modules = real.parents[len(real.parts) - 2 - real.parts.index("node_modules")]
        return [modules, modules.parents[1] / "bin"]
    return [Path(program), real]


def _candidates(name: str) -> Iterator[str]:
    path = os.environ.get("PATH", os.defpath)
    folders = [""] if "/" in name else path.split(os.pathsep)
    for folder in folders:
        program = Path(folder, name).absolute()
        if program.is_file() and os.access(program, os.X_OK):
            yield str(program)


def _is_in_workspace(program: str) -> bool:
    places = Path(program), Path(os.path.realpath(program))
    return any(place.is_relative_to(top) for place in places for top in _workspaces)
