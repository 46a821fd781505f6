"""`mimikit doctor`: run every check in `CHECKS`, show how to fix problems, fix what is safe."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import click
from pydantic import Field, computed_field
from pydantic.dataclasses import dataclass

from mimikit import __version__, config, notifications, processes
from mimikit.cli import render, terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_cli_and_json
from mimikit.clock import SystemClock
from mimikit.config import local_host
from mimikit.engine_settings import SettingsSection
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.opencode import cli as opencode_cli
from mimikit.engines.registry import CODE_ENGINES, EngineRegistry
from mimikit.errors import MimikitError
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.notify import NotificationState
from mimikit.protocol.runtime import RuntimeState
from mimikit.roles.prompts import Prompts
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox, hidden_path_folders
from mimikit.state import State
from mimikit.triggers import registry
from mimikit.views.base import View
from mimikit.views.status import read_consumer

_BROKEN_MB, _LOW_MB = 50, 500
_MAX_SHOWN = 10

Level: TypeAlias = Literal["ok", "note", "warning", "broken"]
Fix: TypeAlias = Callable[[], object]


class SettingView(View):
    key: str
    value: Any
    origin: str


@dataclass
class Finding:
    level: Level
    area: str
    text: str
    mend: str | None = None
    """How to fix it."""
    fix: Callable[[], object] | None = Field(default=None, exclude=True)

    @computed_field
    @property
    def fixable(self) -> bool:
        return self.fix is not None


ok = partial(Finding, "ok")
note = partial(Finding, "note")
warning = partial(Finding, "warning")
broken = partial(Finding, "broken")


class DoctorReport(View):
    settings: list[SettingView]
    findings: list[Finding]


@click.command(cls=LeafCommand)
@click.option("--fix", is_flag=True, help="Fix what is safe to fix: rights, folders.")
@pass_cli_and_json
def doctor(cli: CliContext, fix: bool, as_json: bool) -> None:
    """Check everything and say how to fix it; exit code 1 when something is broken."""
    folder, workspace = cli.folders()
    findings = list(examine(cli, folder, workspace))
    if fix:
        for finding in findings:
            if finding.fix is not None:
                finding.fix()
                terminal.note(f"Fixed: {finding.text}")
        findings = list(examine(cli, folder, workspace))
    report = DoctorReport(settings=settings_in_force(folder), findings=findings)
    render.show(report, None, as_json=as_json)
    if any(finding.level == "broken" for finding in findings):
        raise click.exceptions.Exit(1)


def examine(cli: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
    """Run the checks; without a state folder or valid settings only the first ones."""
    version = sys.version.partition(" ")[0]
    yield ok("python", f"{version} at {sys.executable}, mimikit {__version__}")
    if not workspace.is_dir():
        yield broken("workspace", f"expected a folder, got {workspace}")
        return
    if not folder.exists():
        got = f"expected a state folder at {folder}, got none"
        make = partial(cli.open_writable, create=True)
        yield broken("state", got, "`mimikit init` makes one", make)
        return
    finding = rights(folder)
    yield finding
    if finding.level == "broken" and finding.fix is None:
        return
    try:
        settings = config.load(folder)
        yield ok("settings", "valid; each value and its origin are shown below")
    except MimikitError as error:
        yield broken("settings", str(error))
        return
    files, clock = Files(cli.close_at_end(RealDisk(folder))), SystemClock()
    state = State(folder, workspace, files, settings, clock, EventLog(files, clock))
    for check in CHECKS:
        try:
            yield from check(state)
        except MimikitError as error:
            yield broken(check.__name__, str(error))


# ---- the checks


def rights(folder: Path) -> Finding:
    if folder.is_symlink() or not folder.is_dir():
        return broken("state", f"expected a folder that is no link, got {folder}")
    status = folder.stat()
    if status.st_uid != os.getuid():
        got = f"expected a folder of yours, got {folder} of user {status.st_uid}"
        return broken("state", got, f"`sudo chown -R $(id -un) {folder}`")
    if (mode := stat.S_IMODE(status.st_mode)) != 0o700:
        got = f"expected mode 0700 on {folder}, got {mode:04o}"
        return broken("state", got, f"`chmod 700 {folder}`", lambda: folder.chmod(0o700))
    return ok("state", str(folder))


def disk(state: State) -> Iterator[Finding]:
    free_mb = shutil.disk_usage(state.path).free // 2**20
    if free_mb < _LOW_MB:
        short = broken if free_mb < _BROKEN_MB else warning
        yield short("disk", f"only {free_mb} MB left", "free some space; nothing is lost meanwhile")
    else:
        yield ok("disk", f"{free_mb / 1024:.1f} GB free")


def folders(state: State) -> Iterator[Finding]:
    every = {name: state.path / name for name in ("", *paths.FOLDERS)}
    full = os.R_OK | os.W_OK | os.X_OK
    there = [path for path in every.values() if path.exists()]
    if bad := [path for path in there if not (path.is_dir() and os.access(path, full))]:
        got = f"expected a folder that can be written to at {bad[0]}"
        yield broken("folders", got, "move it away, or give yourself the right to write there")
    elif missing := [name for name, path in every.items() if not path.is_dir()]:
        got = f"expected all folders, got none at {', '.join(missing[:_MAX_SHOWN])}"
        yield broken("folders", got, "make them", state.files.make_folders)


def corrupt(state: State) -> Iterator[Finding]:
    files = state.files
    reasons = files.names(paths.CORRUPT, suffix=paths.REASON)
    for name in reasons[:_MAX_SHOWN]:
        text = (files.read(f"{paths.CORRUPT}/{name}") or b"").decode(errors="replace")
        copy = f"{paths.CORRUPT}/{name.removesuffix(paths.REASON)}"
        mend = f"kept as {copy}: fix it and move it back, or remove both files"
        yield warning("corrupt", ": ".join(text.strip().split("\n", 1)), mend)
    for trigger_id in registry.ids(files):
        if error := registry.read(files, trigger_id)[1]:
            mend = "fix the file; until then its last valid definition stays in force"
            yield warning("trigger", f"{paths.trigger(trigger_id)}: {error}", mend)


def consumer(state: State) -> Iterator[Finding]:
    seen = read_consumer(state.files, state.clock.now())
    if seen.state == "stuck":
        yield broken("mimikit", f"{seen.who} holds the lock and hangs", "restart it")
    elif seen.is_up:
        yield ok("mimikit", f"{seen.state}: {seen.who} holds the lock")
    else:
        try:
            processes.check_consumer_starts(state)
            yield note("mimikit", "not running", "`mimikit up` starts it")
        except Exception as error:  # noqa: BLE001 - it would end the consumer, too
            kind = "" if isinstance(error, MimikitError) else f"{type(error).__name__}: "
            yield broken("mimikit", f"cannot start: {kind}{error}")
    if seen.current and seen.current.degraded:
        yield warning("mimikit", f"in trouble: {seen.current.degraded}")


def page(state: State) -> Iterator[Finding]:
    if own := processes.pages(state):
        yield ok("port", f"the page answers at {local_host(own[-1].host)}:{own[-1].port}")
        return
    at = (local_host(state.settings.web.host), state.settings.web.port)
    try:
        socket.create_server(at, family=socket.AF_INET6 if ":" in at[0] else socket.AF_INET).close()
        yield ok("port", f"{at[0]}:{at[1]} is free")
    except OSError as error:
        mend = "end the program that has it, set another web.port, or start with `up --port 0`"
        yield warning("port", f"expected {at[0]}:{at[1]} to be free, got {error}", mend)


def prompts(state: State) -> Iterator[Finding]:
    mend = "put a text file there, or remove it; then restart"
    yield from (warning("prompts", reason, mend) for reason in Prompts(state.files).skipped)


def engines(state: State) -> Iterator[Finding]:
    from mimikit import app

    runtime = state.files.peek(paths.RUNTIME, RuntimeState)
    known = runtime.engines if runtime else {}
    status = EngineRegistry(app.engines_of(state), state.settings, known).status()
    if current := read_consumer(state.files, state.clock.now()).current:
        status = current.engines  # the consumer has tried them
    if all(one.engine in CODE_ENGINES for one in status.values()):
        mend = "`codex login`, or `mimikit engine add`"
        yield warning("models", "no language model is connected", mend)
    else:
        for line, waits in terminal.engine_lines(status).items():
            mend = "until then its work waits in the queue"
            yield broken("models", line, mend) if waits else ok("models", line)
    skipped = {one.reason: one for one in status.values() if one.reason and one.state == "ready"}
    yield from (note("models", f"not used: {reason}") for reason in skipped)


def programs(state: State) -> Iterator[Finding]:
    engine, place = CodexEngine(state.settings, state.path), codex_cli.find(state.settings.codex)
    if (reason := engine.unavailable()) or place is None:
        yield note("codex", reason or "not installed")
    elif reason := engine.check_talk():
        yield warning("codex", f"its app-server does not start: {reason}", "update codex")
    else:
        yield ok("codex", f"{place.program}; its app-server starts")
        if codex_cli.is_in_keyring(state.settings.codex):
            yield warning("codex", codex_cli.KEYRING, codex_cli.KEYRING_REMEDY)
    if other := opencode_cli.find(state.settings.opencode):
        yield ok("opencode", str(other.program))


def sandbox(state: State) -> Iterator[Finding]:
    """Whether the sandbox hides a state folder from a Worker: tested on a temporary one."""
    settings = state.settings.sandbox
    if settings.mode == "off":
        advice = "an agent can then read and change all that you can"
        yield warning("sandbox", "off in the settings: agents run without it", advice)
        return
    with tempfile.TemporaryDirectory() as place:
        (masked := Path(place, paths.STATE_FOLDER)).mkdir()
        worker = WorkerSandbox(settings, masked)
        reason = worker.unavailable() or worker.why_unsafe(BoxSpec(Path(place), Path(place)))
    if reason is None:
        yield ok("sandbox", "an agent can neither read nor write a state: tested")
    else:
        yield warning("sandbox", reason, "until then no agent carries out a task")
    if unseen := hidden_path_folders(settings, state.workspace):
        what = f"agents do not see these folders of PATH: {', '.join(unseen)}"
        yield note("sandbox", what, "show those they need by `sandbox.show`")


def time_zone(state: State) -> Iterator[Finding]:
    if not (state.settings.timezone or config.find_system_zone()):
        found = "none found in TZ, /etc/localtime and /etc/timezone: UTC is assumed"
        yield warning("time zone", found, "set `timezone` in config.toml, such as Asia/Shanghai")


def notify(state: State) -> Iterator[Finding]:
    if notifications.names(state.files) and not notifications.is_installed():
        yield warning("notify", notifications.INSTALL)
    saved = state.files.peek(paths.NOTIFICATION_STATE, NotificationState) or NotificationState()
    for name, channel in saved.channels.items():
        if channel.error:
            yield warning("notify", f"{name}: {channel.error}", f"`mimikit notify test {name}`")


CHECKS = (
    *(time_zone, disk, folders, corrupt, consumer, page, prompts),
    *(engines, programs, sandbox, notify),
)


# ---- the report

_MARKS = {
    "ok": ("✓", "green"),
    "note": ("·", None),
    "warning": ("!", "yellow"),
    "broken": ("✗", "red"),
}
_TABLE_WIDTH = 20


@render.render.register
def _(view: DoctorReport, _context: terminal.RenderContext) -> Iterable[str]:
    yield terminal.bold("Findings")
    for finding in view.findings:
        mark, colour = _MARKS[finding.level]
        lead = f"  {click.style(mark, fg=colour)} {terminal.heading(finding.area)}"
        yield from terminal.hanging(lead, terminal.one_line(finding.text))
        if finding.mend:
            mend = finding.mend + (" (`mimikit doctor --fix` does it)" if finding.fixable else "")
            yield from terminal.hanging(f"    {terminal.heading('')}{terminal.dim('→')} ", mend)
    levels = [finding.level for finding in view.findings]
    counts: list[str] = []
    if number := levels.count("broken"):
        counts.append("1 thing is broken" if number == 1 else f"{number} things are broken")
    if number := levels.count("warning"):
        counts.append(terminal.plural(number, "warning"))
    yield f"\n{', '.join(counts) or 'All is well'}.\n"
    yield from _settings(view)


def _settings(view: DoctorReport) -> Iterator[str]:
    """The settings by table; those that are not defaults are bold and have their origin."""
    if not view.settings:
        return
    yield terminal.bold("Settings") + terminal.dim("  defaults are not bold")
    for table, members in itertools.groupby(view.settings, lambda it: it.key.rpartition(".")[0]):
        texts: list[str] = []
        for setting in members:
            value, name = setting.value, setting.key.rpartition(".")[2]
            text = f"{name} = {'none' if value is None else json.dumps(value, ensure_ascii=False)}"
            is_default = setting.origin == "default"
            texts.append(text if is_default else terminal.bold(f"{text} ({setting.origin})"))
        yield from terminal.hanging(
            f"  {terminal.dim((table or 'general').ljust(_TABLE_WIDTH))}", "  ".join(texts)
        )


# ---- the settings

_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)


def settings_in_force(folder: Path) -> list[SettingView]:
    try:
        settings = config.load(folder)
        file: dict[str, Any] = tomllib.loads(config.file_text(folder / paths.CONFIG))
    except (MimikitError, OSError, ValueError):
        return []
    return [
        SettingView(key=key, value=_masked(attrgetter(key)(settings)), origin=_origin(key, file))
        for key in config.known_keys()
    ]


def _masked(value: object) -> object:
    """Mask secrets; of named sections show only what is set."""
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
