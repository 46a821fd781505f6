"""Helpers for tests that start programs: real folders, living processes, open files."""

from __future__ import annotations

import contextlib
import gc
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from mimikit.engines.base import CancelToken, RunSpec, Tools, TurnInput
from mimikit.protocol.models import Role
from tests.support.engine_requests import NOW, Desk, make_request


@dataclass(frozen=True)
class Ground:
    """A workspace with its state folder, and a scratch folder."""

    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def state(self) -> Path:
        return self.workspace / ".mimikit"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    def request(
        self, prompt: str, *, role: Role = "worker", desk: Desk | None = None, **fields: Any
    ) -> RunSpec:
        cancel = fields.pop("cancel", None) or CancelToken()
        made = make_request(role, TurnInput(now=NOW), desk, prompt=prompt, cancel=cancel)
        folders = {"workspace": self.workspace, "scratch": self.scratch}
        fields["tools"] = Tools(
            made.tools.call, tuple(fields.pop("tools", ())), serve=fields.pop("serve", None)
        )
        return replace(made, **{**folders, "idle_timeout_s": 30, "timeout_s": 30, **fields})


def ground(root: Path) -> Ground:
    made = Ground(root)
    made.state.mkdir(parents=True)
    made.scratch.mkdir()
    return made


def tag() -> str:
    """A unique number of seconds to `sleep`, by which a process is found."""
    return f"86400.{secrets.randbelow(10**12):012}"


def alive(tag: str) -> list[int]:
    """The living processes whose command line holds `tag`."""
    found: list[int] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(tag in word for word in words):
            found.append(process.pid)
    return found


def zombies() -> list[int]:
    """Children of this process that have ended and were not waited for."""
    found: list[int] = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.append(child.pid)
    return found


def open_files() -> set[tuple[str, str]]:
    """Open descriptors with their targets; compare two calls to find a leak."""
    gc.collect()
    found: set[tuple[str, str]] = set()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            found.add((path.name, str(path.readlink())))
    return found
